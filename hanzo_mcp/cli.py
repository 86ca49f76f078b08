"""The command line: each sub-command imports what it needs inside its own function."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from hanzo_mcp import __version__


def parser() -> argparse.ArgumentParser:
    """All sub-commands and options."""
    root = argparse.ArgumentParser(
        prog="hanzo-mcp", description="One local MCP server: this machine's tools, merged with the Hanzo cloud's."
    )
    root.add_argument("--version", action="version", version=f"hanzo-mcp {__version__}")
    commands = root.add_subparsers(dest="command", metavar="COMMAND")
    _with_workspace(commands.add_parser("serve", help="serve over stdin and stdout (a client starts this)"))
    tools = commands.add_parser("tools", help="show every tool that is served, local and cloud")
    tools.add_argument("--json", action="store_true", help="the tools/list result itself")
    _with_workspace(tools)
    call = commands.add_parser("call", help="make one call, through the same checks as a client's")
    call.add_argument("tool", metavar="TOOL")
    call.add_argument("arguments", metavar="JSON", nargs="?", default="{}", help="the arguments; default {}")
    call.add_argument("--json", action="store_true", help="print the whole result as JSON")
    _with_workspace(call)
    demo = commands.add_parser("demo", help="start the server as a client would and show it at work")
    demo.add_argument("--no-color", action="store_true", help="plain text")
    return root


def _with_workspace(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--workspace", action="append", default=[], metavar="DIR", help="a folder the tools may touch; repeatable"
    )


def run(arguments: Sequence[str]) -> int:
    """Run a command line; the exit status."""
    given = parser().parse_args(arguments)
    if given.command == "serve":
        from hanzo_mcp.serve import serve

        return serve(given.workspace)
    if given.command == "tools":
        from hanzo_mcp.oneshot import show_tools

        return show_tools(given.workspace, as_json=given.json)
    if given.command == "call":
        from hanzo_mcp.oneshot import make_call

        return make_call(given.workspace, given.tool, given.arguments, as_json=given.json)
    if given.command == "demo":
        from hanzo_mcp.demo.show import demo

        return demo(color=not given.no_color)
    parser().print_help()
    return 2
