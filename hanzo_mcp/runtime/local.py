"""Local tools: what one is made of, and the source that serves them.

A tool is one file in ``hanzo_mcp/tools``: params models, one coroutine per op, and a ``TOOL`` at the end. Its module
is imported with its first call; until then the committed contract answers for it.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hanzo_mcp.core.names import nearest
from hanzo_mcp.core.tool import Access, Call, ClientPort, Outcome, Prepared
from hanzo_mcp.errors import InvalidInput

if TYPE_CHECKING:
    from hanzo_mcp.runtime.params import Params
    from hanzo_mcp.sandbox.launcher import Launcher
    from hanzo_mcp.sandbox.net import Http
    from hanzo_mcp.sandbox.paths import Workspace

P = TypeVar("P", bound="Params")
MODULES = "hanzo_mcp.tools"


@dataclass(frozen=True, slots=True)
class Ports:
    """The only ways from a tool to a file, a process and the network."""

    files: Workspace
    exec: Launcher
    http: Http


@dataclass(frozen=True, slots=True)
class Context:
    """What a handler gets: the ports, the caller, and ``memo``, its tool's memory for the life of the process."""

    files: Workspace
    exec: Launcher
    http: Http
    client: ClientPort
    session_id: str
    memo: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Op(Generic[P]):
    """One verb. ``summary`` is shown to the model; ``output`` names the result's facts for the contract."""

    name: str
    params: type[P]
    run: Callable[[Context, P], Awaitable[Outcome]]
    access: Access
    summary: str


@dataclass(frozen=True, slots=True)
class Tool:
    """One subsystem. The first op is the default when the caller names none and the tool has just one."""

    name: str
    title: str
    description: str
    ops: Sequence[Op[Any]]

    def op(self, name: Any) -> Op[Any]:
        """The op called ``name``. Raises ``InvalidInput`` that lists the ops."""
        if name is None and len(self.ops) == 1:
            return self.ops[0]
        names = [op.name for op in self.ops]
        for op in self.ops:
            if op.name == name:
                return op
        if name is None:
            raise InvalidInput(f"{self.name}: missing argument 'op'. It is one of: {', '.join(names)}.")
        close = nearest(str(name), names)
        hint = f" Did you mean {close!r}?" if close else ""
        raise InvalidInput(f"{self.name}: unknown op {name!r}.{hint} It is one of: {', '.join(names)}.")


class LocalSource:
    """The tools of this machine."""

    name = "local"

    def __init__(self, names: Sequence[str], ports: Callable[[], Ports]) -> None:
        self._names = frozenset(names)
        self._ports = ports
        self._loaded: set[str] = set()
        self._memos: dict[str, dict[str, Any]] = {}

    def has(self, tool: str) -> bool:
        return tool in self._names

    async def ready(self, tool: str) -> None:
        """The first call of a tool imports it, pydantic included: in a thread, so that pings are still answered."""
        if tool not in self._loaded:
            await asyncio.to_thread(load, tool)
            self._loaded.add(tool)

    def prepare(self, call: Call, arguments: Any) -> Prepared:
        from hanzo_mcp.runtime.params import validate

        tool = load(call.tool)
        flat = _flatten(call.tool, arguments)
        op = tool.op(flat.pop("op", None))
        params = validate(op.params, flat, f"{tool.name}.{op.name}")
        context = self._context(call)
        return Prepared(f"{tool.name}.{op.name}", op.access, {"op": op.name, **flat}, lambda: op.run(context, params))

    def _context(self, call: Call) -> Context:
        ports = self._ports()
        memo = self._memos.setdefault(call.tool, {})
        return Context(ports.files, ports.exec, ports.http, call.client, call.session_id, memo)


def load(name: str) -> Tool:
    """The ``TOOL`` of ``hanzo_mcp/tools/<name>.py``."""
    return importlib.import_module(f"{MODULES}.{name}").TOOL


def _flatten(tool: str, arguments: Any) -> dict[str, Any]:
    """``{"op", "input": {...}}``, as the cloud's tools look, is the same as flat arguments."""
    if arguments is None:
        return {}
    if not isinstance(arguments, dict):
        raise InvalidInput(f"{tool}: arguments must be an object, got {type(arguments).__name__}.")
    given: dict[str, Any] = dict(arguments)  # pyright: ignore[reportUnknownArgumentType]
    inner = given.get("input")
    if isinstance(inner, dict) and set(given) <= {"op", "input"}:
        return {"op": given.get("op"), **inner} if "op" in given else dict(inner)  # pyright: ignore[reportUnknownArgumentType]
    return given
