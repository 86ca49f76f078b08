"""What a server on the official SDK costs at least: its low-level ``Server`` with one tool, ``think``."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

TOOL = types.Tool(
    name="think",
    description="Answers the thought.",
    input_schema={
        "type": "object",
        "properties": {"thought": {"type": "string"}, "seconds": {"type": "number"}},
        "required": ["thought"],
    },
)


async def list_tools(
    context: ServerRequestContext[Any],  # noqa: ARG001 - the SDK's shape
    params: types.PaginatedRequestParams | None,  # noqa: ARG001 - the SDK's shape
) -> types.ListToolsResult:
    """``tools/list``."""
    return types.ListToolsResult(tools=[TOOL])


async def call_tool(
    context: ServerRequestContext[Any],  # noqa: ARG001 - the SDK's shape
    params: types.CallToolRequestParams,
) -> types.CallToolResult:
    """``tools/call`` of the one tool."""
    arguments = params.arguments or {}
    if "seconds" in arguments:
        await anyio.sleep(arguments["seconds"])
    return types.CallToolResult(content=[types.TextContent(type="text", text=arguments["thought"])])


async def main() -> None:
    """Serve until end of file."""
    server = Server("sdk-lowlevel", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
