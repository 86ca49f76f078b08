"""Who is measured: ours, the two standard-library echoes and the SDK's low-level server."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.driver import Server
from bench.messages import THOUGHT, call

COMMAND = "HANZO_BENCH_COMMAND"
"""Environment variable with another command line to measure as ours."""
OURS, ASYNCIO, BLOCKING, SDK = "hanzo-mcp", "asyncio echo", "blocking echo", "SDK low-level"
KEY = "bench-0123456789abcdef"
"""As long as a real one: masking it in results is part of the work."""
PEERS = Path(__file__).parent / "peers"


@dataclass(frozen=True, slots=True)
class Contender:
    """A name, a command line and what gives the line of a call that takes it a second."""

    name: str
    command: tuple[str, ...]
    slow: Callable[[int | str], bytes]


def ours() -> tuple[str, ...]:
    """``HANZO_BENCH_COMMAND``, else the ``hanzo-mcp`` beside this interpreter, as a client would start it."""
    asked = os.environ.get(COMMAND)
    if asked:
        return tuple(shlex.split(asked))
    script = Path(sys.executable).parent / "hanzo-mcp"
    start = (str(script),) if script.exists() else (sys.executable, "-P", "-m", "hanzo_mcp")
    return (*start, "serve")


def contenders() -> list[Contender]:
    """All four, ours first."""
    peers = {ASYNCIO: "asyncio_echo.py", BLOCKING: "blocking_echo.py", SDK: "sdk_lowlevel.py"}
    return [
        Contender(OURS, ours(), lambda number: call(number, "exec", {"op": "run", "command": "sleep 1"})),
        *(Contender(name, (sys.executable, str(PEERS / script)), _waiting) for name, script in peers.items()),
    ]


def _waiting(number: int | str) -> bytes:
    return call(number, "think", {"thought": THOUGHT, "seconds": 1})


@dataclass(frozen=True, slots=True)
class Place:
    """Where servers are started: a home and a workspace of their own, in a folder that goes away."""

    root: Path
    settings: Mapping[str, str] = field(default_factory=dict[str, str])

    def environ(self) -> dict[str, str]:
        """The environment of a fresh machine; the door is off unless ``settings`` say otherwise."""
        base = {"HOME": str(self.root / "home"), "PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
        return {**base, "HANZO_API_KEY": KEY, "HANZO_MCP_DOOR": "off", **self.settings}

    def spawn(self, command: tuple[str, ...]) -> Server:
        """Start a server here."""
        return Server(command, self.environ(), str(self.root / "workspace"))


@contextmanager
def place(**settings: str) -> Generator[Place]:
    """A fresh place; ``settings`` are environment variables on top."""
    with tempfile.TemporaryDirectory(prefix="bench-") as root:
        for name in ("home", "workspace"):
            (Path(root) / name).mkdir()
        yield Place(Path(root), settings)
