"""The local stand-in for the cloud endpoint (``peers/door.py``) as a process that is told what to be."""

from __future__ import annotations

import json
import subprocess
import sys
from types import TracebackType
from typing import Any, Self

from bench.contenders import PEERS

Json = dict[str, Any]

CALLED = "bench_hold"
"""Its tool that answers after ``{"op": "hold", "input": {"ms": N}}``."""


class Endpoint:
    """The process. A context manager; leaving it ends the process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(PEERS / "door.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.url = self._read()

    def switch(self, mode: str) -> None:
        """Become ``ok``, ``slow``, ``hang``, ``redirect`` or ``dead``."""
        self._ask(mode)

    def stats(self) -> tuple[int, int]:
        """Calls answered and most requests open at once, both since the last time."""
        stats: Json = json.loads(self._ask("stats"))
        return stats["calls"], stats["most_at_once"]

    def _ask(self, word: str) -> str:
        assert self._process.stdin
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{PEERS.name}/door.py ended with status {self._process.wait()}; its stderr says why")
        return line.strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=10)
