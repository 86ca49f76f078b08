"""``tools`` and ``call``: the served list and one call, from a terminal, through the server's own code."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from hanzo_mcp.app import App, build
from hanzo_mcp.config.secrets import forget
from hanzo_mcp.config.workspace import choose
from hanzo_mcp.core.messages import encode
from hanzo_mcp.core.text import clean
from hanzo_mcp.core.tool import Call, InputRequired, JsonObject, Outcome, Verbatim
from hanzo_mcp.errors import ConfigError, ProtocolError
from hanzo_mcp.server import boot
from hanzo_mcp.server.stdio import say

LIST_SECONDS = 10.0
Json = dict[str, Any]


class Terminal:
    """The client of a one-shot call: it shows progress on stderr and cannot be asked."""

    modern = True

    def can_elicit(self) -> bool:
        return False

    async def elicit(self, params: JsonObject) -> JsonObject:
        raise ProtocolError(-32603, f"nobody to ask: {params.get('message', '')}")

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if sys.stderr.isatty():
            of = f"/{total:g}" if total is not None else ""
            say(f"{progress:g}{of} {clean(message or '', 200)}")

    def relay(self, method: str, params: JsonObject) -> None:
        if method == "notifications/progress":
            self.progress(float(params.get("progress", 0)), params.get("total"), params.get("message"))


class _Audience:
    def tools_changed(self) -> None:
        """A one-shot command has no subscribers."""

    def notice(self, level: str, text: str) -> None:  # noqa: ARG002 - stderr takes every level
        say(text)


def _start(workspaces: Sequence[str]) -> boot.Start:
    environ = dict(os.environ)
    forget("HANZO_API_KEY")
    return boot.prepare(choose(workspaces, os.getcwd(), environ), environ, (0, 1))


def _app(start: boot.Start) -> App:
    return build(start.choice, start.environ, start.door, start.catalog, _Audience(), start.session.id)


def show_tools(workspaces: Sequence[str], *, as_json: bool) -> int:
    """Print what is served; the exit status."""
    try:
        start = _start(workspaces)
    except ConfigError as exc:
        say(str(exc))
        return 2
    listing = asyncio.run(_listed(start))
    if as_json:
        print(json.dumps(listing, indent=2))
        return 0
    _print_table(start, listing)
    return 0


async def _listed(start: boot.Start) -> Json:
    ready = start.catalog.ready()
    if ready is None or start.catalog.stale():
        app = _app(start)
        if app.door is not None:
            await app.door.heard(LIST_SECONDS)
            await app.door.close()
        start.catalog.give_up()
        app.close()
        ready = start.catalog.ready()
    return ready.to_wire() if ready else {"tools": []}


def _print_table(start: boot.Start, listing: Json) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(soft_wrap=False)
    table = Table(title=start.choice.sentence(), title_justify="left")
    for heading in ("tool", "from", "operations", "what it does"):
        table.add_column(heading, overflow="fold")
    local = set(start.catalog.local_names)
    for tool in listing["tools"]:
        source = "this machine" if tool["name"] in local else "cloud"
        text = clean(str(tool.get("description", "")).split("\n")[0], 200)
        table.add_row(tool["name"], source, _operations(tool), text)
    console.print(table)
    size = len(encode({"tools": [tool for tool in listing["tools"] if tool["name"] in local]}))
    where = f"the cloud at {start.door}" if start.door else "the cloud is switched off"
    console.print(
        f"{len(listing['tools'])} tools; the local ones take {size / 1024:.1f} KB of a model's context; {where}."
    )


def _operations(tool: Json) -> str:
    ops: list[str] = tool.get("inputSchema", {}).get("properties", {}).get("op", {}).get("enum", [])
    shown = ", ".join(clean(str(op), 60) for op in ops[:8])
    return f"{shown}, … {len(ops) - 8} more" if len(ops) > 8 else shown


def make_call(workspaces: Sequence[str], tool: str, arguments: str, *, as_json: bool) -> int:
    """Make one call and print its answer: 0 when it worked, 1 when not, 2 when the command line is wrong."""
    try:
        start = _start(workspaces)
        given = json.loads(arguments)
    except (ConfigError, ValueError) as exc:
        say(f"the arguments are not JSON: {exc}" if isinstance(exc, ValueError) else str(exc))
        return 2
    return asyncio.run(_called(start, tool, given, as_json))


async def _called(start: boot.Start, tool: str, arguments: Any, as_json: bool) -> int:
    start.catalog.ready()
    app = _app(start)
    params: Json = {"name": tool, "arguments": arguments}
    call = Call(tool, arguments, params, encode({"params": params}), start.session.id, Terminal())
    try:
        outcome = await app.pipeline.call(call)
    except ProtocolError as exc:
        say(str(exc))
        return 1
    finally:
        if app.door is not None:
            await app.door.close()
        app.close()
    return _print_outcome(outcome, as_json)


def _print_outcome(outcome: Outcome, as_json: bool) -> int:
    if isinstance(outcome, InputRequired):
        wire: Json = {"resultType": "input_required", "inputRequests": outcome.requests}
    elif isinstance(outcome, Verbatim):
        wire = outcome.value if outcome.member == "result" else {"isError": True, "error": outcome.value}
    else:
        wire = outcome.to_wire()
    failed = bool(wire.get("isError")) or wire.get("resultType") == "input_required"
    texts = [block["text"] for block in wire.get("content", []) if block.get("type") == "text"]
    if as_json or not texts:
        print(json.dumps(wire, indent=2))
    else:
        print(clean("\n".join(map(str, texts))))
    return 1 if failed else 0
