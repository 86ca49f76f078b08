"""What this server last saw of each file, so that an edit never lands on text its caller has not seen."""

from __future__ import annotations

import asyncio
import difflib
import hashlib
import os
from collections import OrderedDict
from typing import Any, NamedTuple

from hanzo_mcp.core.textfile import decode
from hanzo_mcp.errors import Conflict
from hanzo_mcp.runtime.local import Context

_FILES = 2000
_REMEMBERED = 256 * 1024
"""Bytes up to which the content itself is kept, to show what changed since."""
_SHOWN = 60


class Sight(NamedTuple):
    """A file as it was: its fingerprint, and its content when small."""

    sha256: str
    data: bytes | None


class Seen:
    """The files of one server process, least recently used first, and one lock per file that is being changed."""

    def __init__(self) -> None:
        self._sights: OrderedDict[str, Sight] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}

    @classmethod
    def of(cls, ctx: Context) -> Seen:
        """The record in the tool's memory."""
        memo: dict[str, Any] = ctx.memo
        return memo.setdefault("seen", cls())

    def lock(self, path: str) -> asyncio.Lock:
        """Held around read, change and write of ``path``, so that changes of one file follow each other."""
        return self._locks.setdefault(path, asyncio.Lock())

    def note(self, path: str, data: bytes) -> str:
        """Remember ``data`` as seen; its sha256."""
        digest = hashlib.sha256(data).hexdigest()
        self._sights[path] = Sight(digest, data if len(data) <= _REMEMBERED else None)
        self._sights.move_to_end(path)
        if len(self._sights) > _FILES:
            self._sights.popitem(last=False)
        return digest

    def check(self, path: str, data: bytes, shown: str) -> None:
        """Raises ``Conflict`` with the difference when ``path`` changed since it was seen; then it is seen."""
        old = self._sights.get(path)
        if old is None or hashlib.sha256(data).hexdigest() == old.sha256:
            return
        self.note(path, data)
        raise Conflict(
            f"{shown}: changed since it was last read here, by something else. Nothing was written. "
            f"It is now:\n{_difference(old.data, data)}\nTry again if your change still fits."
        )


def _difference(old: bytes | None, new: bytes) -> str:
    if old is None or len(new) > _REMEMBERED:
        return "(too large to show; read it again)"
    return diff(decode(old).text, decode(new).text, "last read", "now")


def diff(old: str, new: str, old_name: str, new_name: str, limit: int = _SHOWN) -> str:
    """A unified diff for reading, cut after ``limit`` lines."""
    before, after = old.splitlines(), new.splitlines()
    lines = list(difflib.unified_diff(before, after, old_name, new_name, n=2, lineterm=""))
    if len(lines) > limit:
        lines = [*lines[:limit], f"… {len(lines) - limit} more lines of difference"]
    return "\n".join(lines) or os.linesep.join(["(only line endings or the last newline differ)"])
