"""One session of the Python SDK's client with the server under test. Runs in the peer's own environment, by itself."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from typing import Any

from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client

Plan = dict[str, Any]


async def attempt(client: Client, call: Plan) -> Plan:
    try:
        result = await client.call_tool(call["name"], call["arguments"])
    except MCPError as error:
        return {"error": {"code": error.error.code, "message": error.error.message}}
    return {"result": result.model_dump(mode="json", by_alias=True, exclude_none=True)}


async def session(plan: Plan, said: Any) -> Plan:
    command, *args = plan["command"]
    server = StdioServerParameters(command=command, args=args, env=plan["env"], cwd=plan["cwd"])
    async with Client(stdio_client(server, errlog=said), mode=plan["mode"]) as client:
        listed = await client.list_tools()
        calls = [await attempt(client, call) for call in plan["calls"]]
        together = await asyncio.gather(*[attempt(client, call) for call in plan["together"]])
        info = client.server_info
        return {
            "version": client.protocol_version,
            "server": info.model_dump(mode="json", by_alias=True, exclude_none=True) if info else None,
            "capabilities": client.server_capabilities.model_dump(mode="json", by_alias=True, exclude_none=True),
            "instructions": client.instructions,
            "tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools],
            "calls": calls,
            "together": together,
            "problems": [],
        }


def main() -> None:
    with tempfile.TemporaryFile("w+") as said:
        report = asyncio.run(session(json.loads(sys.argv[1]), said))
        said.seek(0)
        print(json.dumps(report | {"stderr": said.read()}))


if __name__ == "__main__":
    main()
