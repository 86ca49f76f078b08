"""Calling one local tool in a test, through the same validation as the server, without a server."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from hanzo_mcp.core.tool import Call, JsonObject, Result
from hanzo_mcp.runtime.local import LocalSource, Ports
from hanzo_mcp.sandbox.launcher import Launcher
from hanzo_mcp.sandbox.net import Http
from hanzo_mcp.sandbox.paths import Workspace

TOOLS = ("fs", "exec", "git", "fetch", "think")


class SilentClient:
    """A client that can be asked nothing and keeps what it is told."""

    modern = False

    def __init__(self) -> None:
        self.progressed: list[tuple[float, float | None, str | None]] = []

    def can_elicit(self) -> bool:
        return False

    async def elicit(self, params: JsonObject) -> JsonObject:
        raise AssertionError("nobody to ask")

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self.progressed.append((progress, total, message))

    def relay(self, method: str, params: JsonObject) -> None:
        raise AssertionError(f"nothing to relay, got {method}")


class LocalTools:
    """The local tools on a workspace. ``call`` raises the ``ToolError`` a server would turn into ``isError``."""

    def __init__(self, *roots: Path, http: Http | None = None, environ: dict[str, str] | None = None) -> None:
        self.files = Workspace([str(root) for root in roots])
        self.client = SilentClient()
        ports = Ports(self.files, Launcher(environ if environ is not None else dict(os.environ)), http or Http())
        self.source = LocalSource(TOOLS, lambda: ports)

    async def acall(self, tool: str, **arguments: Any) -> Result:
        call = Call(tool, arguments, {"name": tool, "arguments": arguments}, "", "test", self.client)
        outcome = await self.source.prepare(call, arguments).run()
        assert isinstance(outcome, Result)
        return outcome

    def call(self, tool: str, **arguments: Any) -> Result:
        return asyncio.run(self.acall(tool, **arguments))

    def text(self, tool: str, **arguments: Any) -> str:
        """The first text block."""
        return str(self.call(tool, **arguments).content[0]["text"])
