"""Bytes from the client -> lines, in linear time and bounded memory.

Lines are split on byte 0x0A only: CR, U+2028 and U+0085 may stand inside a JSON string.
"""

from __future__ import annotations

MAX_LINE = 32 * 1024 * 1024
PREFIX = 64 * 1024
_BOM = b"\xef\xbb\xbf"


class TooLong(str):
    """The first part of a line over the cap; the rest of it is skipped."""

    __slots__ = ()


class Lines:
    """A splitter that is fed chunks of any size."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False
        self._first = True

    def feed(self, data: bytes) -> list[str]:
        """The lines completed by ``data``, decoded (invalid UTF-8 as U+FFFD), blank ones left out."""
        found: list[str] = []
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._add(end, found)
            self._finish(found)
        if rest:
            self._add(rest, found)
        return found

    def close(self) -> list[str]:
        """An unterminated last line."""
        found: list[str] = []
        self._finish(found)
        return found

    def _add(self, part: bytes, found: list[str]) -> None:
        if self._skipping:
            return
        self._size += len(part)
        if self._size <= self._limit:
            self._parts.append(part)
            return
        head = b"".join([*self._parts, part])[:PREFIX]
        found.append(TooLong(head.decode("utf-8", "replace")))
        self._parts.clear()
        self._skipping = True

    def _finish(self, found: list[str]) -> None:
        line = b"".join(self._parts)
        self._parts.clear()
        self._size, skipped, self._skipping = 0, self._skipping, False
        if skipped:
            return
        if self._first and line:
            line = line.removeprefix(_BOM)
            self._first = False
        if line and not line.isspace():
            found.append(line.decode("utf-8", "replace"))
