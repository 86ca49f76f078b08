"""``hanzo-mcp serve``: choose the workspace, then hand over to the start-up loop. Imports nothing heavy."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from hanzo_mcp.config.secrets import forget
from hanzo_mcp.config.workspace import choose
from hanzo_mcp.errors import ConfigError
from hanzo_mcp.server import boot
from hanzo_mcp.server.stdio import say


def serve(workspaces: Sequence[str]) -> int:
    """Serve over stdio; the exit status (2 when an option is wrong)."""
    environ = dict(os.environ)
    if not forget("HANZO_API_KEY"):
        say("HANZO_API_KEY stays visible in this process's environment to other programs of yours.")
    try:
        choice = choose(workspaces, _cwd(), environ)
    except ConfigError as exc:
        say(str(exc))
        return 2
    if sys.stdin is not None and sys.stdin.isatty():
        _greet(choice.sentence())
    return boot.serve(choice, environ, _engine)


def _engine(start: boot.Start, ended: bool) -> int:
    from hanzo_mcp.server.engine import run

    return run(start, ended)


def _cwd() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return os.path.sep


def _greet(workspace: str) -> None:
    say(
        "this is an MCP server: a client starts it and talks to it over stdin and stdout.\n"
        "  Add to your client's configuration:\n"
        '  {"mcpServers": {"hanzo": {"command": "hanzo-mcp", "args": ["serve"]}}}\n'
        f"  {workspace}\n"
        "  `hanzo-mcp demo` shows it at work, `hanzo-mcp tools` lists what it serves. Press Ctrl-C to leave."
    )
