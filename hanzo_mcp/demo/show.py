"""``hanzo-mcp demo``: start the server as a client would, make one call of each kind, print what was said.

Nothing of it stays: settings, cache and audit log of the shown server are in a temporary folder, and its cloud is a
stand-in on loopback with invented data. HOME and the workspace are the caller's own.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hanzo_mcp.config.paths import state_dir
from hanzo_mcp.config.workspace import Choice, choose
from hanzo_mcp.core.messages import encode
from hanzo_mcp.core.shapes import as_list, as_object
from hanzo_mcp.core.text import clean, one_line
from hanzo_mcp.demo import endpoint, steps
from hanzo_mcp.demo.client import Answer, StdioClient
from hanzo_mcp.demo.serve_door import serve_door
from hanzo_mcp.errors import HanzoError, TimedOut, Unavailable
from hanzo_mcp.server.catalog import contract

if TYPE_CHECKING:
    from rich.console import Console

PATIENCE = 30.0
"""Seconds one answer may take."""
KEY = "hk-demo-key-of-nobody"
WIDTH = 100
SHOWN = WIDTH - 6
"""Characters shown of a request or of a line of an answer."""
LINES = 6
"""Lines shown of an answer."""
STDERR_LINES = 12
LIST_CHANGED = "notifications/tools/list_changed"
Json = dict[str, Any]


def demo(color: bool) -> int:
    """Run it in the current directory. 0 when every step was answered as expected, 1 when not."""
    page = Page(color)
    choice = choose([], os.getcwd(), os.environ)
    with serve_door() as door, tempfile.TemporaryDirectory(prefix="hanzo-mcp-demo-") as scratch:
        environ = environment(door, scratch)
        with StdioClient([sys.executable, "-P", "-m", "hanzo_mcp", "serve"], environ, os.getcwd(), PATIENCE) as server:
            page.opening(choice, door)
            show = Show(page, server)
            try:
                show.all(choice.roots[0], door)
            except (TimedOut, Unavailable) as exc:
                show.broke(exc)
            show.ending(server.close(), environ)
    return 1 if show.failures else 0


def environment(door: str, scratch: str) -> dict[str, str]:
    """The server's environment: the caller's, with the stand-in cloud and everything it keeps in ``scratch``."""
    kept = {key: value for key, value in os.environ.items() if key != "HANZO_API_BASE"}
    places = {
        "XDG_CACHE_HOME": os.path.join(scratch, "cache"),
        "XDG_STATE_HOME": os.path.join(scratch, "state"),
        "HANZO_CONFIG_HOME": os.path.join(scratch, "config"),
    }
    return {**kept, **places, "HANZO_MCP_DOOR": door, "HANZO_API_KEY": KEY}


class Show:
    """The steps, one after another, on a page."""

    def __init__(self, page: Page, server: StdioClient) -> None:
        self._page, self._server = page, server
        self.failures = 0
        self._start_up = 0.0
        self._list: Answer | None = None

    def all(self, root: str, door: str) -> None:
        """Every step. Raises ``TimedOut`` or ``Unavailable`` when the server does not go on."""
        first = steps.initialize()
        answer = self._server.ask(first.method, first.params)
        self._start_up = self._server.age
        self._judge(first, answer)
        self._server.tell("notifications/initialized")
        self._list = self.listed()
        self._page.tools(steps.tools_of(self._list))
        for step in steps.calls(root, door):
            self._step(step)
        self._step(steps.discover())

    def listed(self) -> Answer:
        """The list; when the cloud was too slow for the first one, the one announced afterwards."""
        step = steps.listing()
        answer = self._server.ask(step.method, step.params)
        if step.check(answer.message) is not None:
            self._server.wait_for(LIST_CHANGED)
            answer = self._server.ask(step.method, step.params)
        self._judge(step, answer)
        return answer

    def _step(self, step: steps.Step) -> None:
        self._judge(step, self._server.ask(step.method, step.params))

    def _judge(self, step: steps.Step, answer: Answer) -> None:
        wrong = step.check(answer.message)
        self.failures += wrong is not None
        self._page.step(step, answer, wrong)

    def broke(self, exc: HanzoError) -> None:
        """The server did not go on."""
        self.failures += 1
        self._page.line(f"FAILED: {exc}", "bold red")

    def ending(self, status: int, environ: Mapping[str, str]) -> None:
        """Figures, one line of the audit log, after failures the end of the server's stderr, and the verdict."""
        self.failures += status != 0
        if self._list is not None:
            self._page.figures(self._start_up, self._list)
        self._page.audit(_audit_lines(environ))
        for line in self._server.stderr().splitlines()[-STDERR_LINES:] if self.failures else []:
            self._page.line(f"stderr: {line}", "red")
        self._page.verdict(self.failures, status)


def _audit_lines(environ: Mapping[str, str]) -> list[str]:
    try:
        with open(os.path.join(state_dir(environ), "audit.jsonl"), encoding="utf-8") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


class Page:
    """What is printed. Works without a terminal and on one that knows ASCII only."""

    def __init__(self, color: bool) -> None:
        from rich.console import Console

        probe = Console()
        width = min(probe.width, WIDTH) if probe.is_terminal else WIDTH
        self._console: Console = Console(width=width, force_terminal=None if color else False, highlight=False)
        self._count = 0

    def line(self, text: str, style: str = "") -> None:
        """Text as it is, no markup; what the terminal's encoding lacks is escaped."""
        from rich.text import Text

        encoding = self._console.encoding
        self._console.print(Text(clean(text).encode(encoding, "backslashreplace").decode(encoding), style))

    def opening(self, choice: Choice, door: str) -> None:
        """What is being shown."""
        self.line("hanzo-mcp demo: the server, started as an MCP client starts it", "bold")
        self.line(choice.sentence())
        self.line(f"Cloud: a stand-in at {door} with invented data; nothing leaves this machine.")

    def step(self, step: steps.Step, answer: Answer, wrong: str | None) -> None:
        """One numbered step: request, answer, time."""
        self._count += 1
        mark = "ok" if wrong is None else "FAILED"
        self.line("")
        self.line(f"{self._count:2}. {step.title}  [{mark}, {answer.seconds * 1000:.1f} ms]", "bold")
        self.line(f"    > {_request(step)}", "cyan")
        for text in _shown(step, answer):
            self.line(f"    < {text}", "green" if wrong is None else "red")
        if wrong is not None:
            self.line(f"    FAILED: {wrong}", "bold red")

    def tools(self, listed: list[Json]) -> None:
        """The merged list as a table."""
        from rich.box import ASCII2
        from rich.table import Table
        from rich.text import Text

        table = Table("tool", "answered by", "operations", box=ASCII2)
        local = {tool["name"] for tool in contract()}
        hidden = local & {tool["name"] for tool in endpoint.tools()}
        for tool in listed:
            cells = (tool.get("name"), _source(tool.get("name"), local, hidden), _operations(tool))
            table.add_row(*(Text(one_line(str(cell), 200)) for cell in cells))
        self._console.print(table)

    def figures(self, start_up: float, listed: Answer) -> None:
        """Start-up time, number of tools, bytes of the list."""
        tools = steps.tools_of(listed)
        local = {tool["name"] for tool in contract()}
        ours = [tool for tool in tools if tool.get("name") in local]
        self.line("")
        self.line(f"Start to the answer to initialize: {start_up * 1000:.0f} ms")
        self.line(f"Tools: {len(tools)}, of them {len(ours)} of this machine and {len(tools) - len(ours)} of the cloud")
        self.line(f"Bytes of the list: {listed.size}, of them {len(encode({'tools': ours}))} for this machine's tools")

    def audit(self, lines: list[str]) -> None:
        """How many calls were recorded, and how one record looks."""
        if lines:
            self.line(f"Audit log: {len(lines)} records, the last one:")
            self.line(f"    {lines[-1]}")

    def verdict(self, failures: int, status: int) -> None:
        """The last line."""
        if failures:
            ended = f"; the server ended with status {status}" if status else ""
            self.line(f"{failures} of the steps were not answered as expected{ended}.", "bold red")
        else:
            self.line("Every step was answered as expected.", "bold green")


def _source(name: Any, local: set[str], hidden: set[str]) -> str:
    if name not in local:
        return "the cloud"
    return "this machine (hides the cloud's)" if name in hidden else "this machine"


def _operations(tool: Json) -> str:
    schema = as_object(tool.get("inputSchema")) or {}
    op = as_object((as_object(schema.get("properties")) or {}).get("op")) or {}
    return ", ".join(str(name) for name in as_list(op.get("enum")) or [])


def _request(step: steps.Step) -> str:
    name, given = step.method, step.params
    if name == "tools/call":
        name, given = given["name"], given["arguments"]
    return one_line(f"{name} {json.dumps(given)}", SHOWN)


def _shown(step: steps.Step, answer: Answer) -> list[str]:
    """An answer in a few lines."""
    message = answer.message
    if step.method == "tools/list":
        return [f"{len(steps.tools_of(answer))} tools, {answer.size} bytes"]
    failed = "error: " if "error" in message else "isError: " if steps.result_of(message).get("isError") else ""
    text = failed + (steps.text_of(message) or _outline(steps.result_of(message)))
    lines = [one_line(line, SHOWN) for line in text.splitlines() if line.strip()]
    return [*lines[: LINES - 1], f"... {len(lines) - LINES + 1} more lines"] if len(lines) > LINES else lines


def _outline(result: Json) -> str:
    """The parts of a handshake's result that a reader looks for."""
    wanted = ("protocolVersion", "supportedVersions", "serverInfo", "instructions")
    return "\n".join(f"{name}: {_plain(result[name])}" for name in wanted if name in result)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
