"""The pipes of a child: read as they fill, kept in bounded memory, fed without blocking."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

_CHUNK = 256 * 1024
_PAUSE = 0.1
"""Seconds between two reads of a pipe nobody listens to: a flood in the background costs next to nothing."""


@dataclass(frozen=True, slots=True)
class Output:
    """One stream: ``head`` and ``tail`` with ``dropped`` bytes between them."""

    head: bytes
    tail: bytes
    dropped: int

    @property
    def total(self) -> int:
        """Bytes the child wrote."""
        return len(self.head) + self.dropped + len(self.tail)

    def text(self) -> str:
        """The stream as text, with a line where bytes were dropped."""
        if not self.dropped:
            return (self.head + self.tail).decode("utf-8", "replace")
        head, tail = _whole_end(self.head), _whole_start(self.tail)
        return (
            f"{head.decode('utf-8', 'replace')}\n… {self.dropped} bytes left out …\n{tail.decode('utf-8', 'replace')}"
        )


def _whole_end(data: bytes) -> bytes:
    """``data`` without the beginning of a character at its cut end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            wanted = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if back < wanted else data
        if byte < 0x80:
            break
    return data


def _whole_start(data: bytes) -> bytes:
    """``data`` without the end of a character at its cut start."""
    start = 0
    while start < min(3, len(data)) and 0x80 <= data[start] < 0xC0:
        start += 1
    return data[start:]


class Collector(Protocol):
    """Where the bytes of a stream go."""

    def add(self, data: bytes) -> bool:
        """Take the next bytes; False when nothing more is wanted and the child may be ended."""
        ...

    def output(self) -> Output:
        """What was kept."""
        ...


class Ring:
    """Head and tail of a stream of any length; ``keep`` bytes of each."""

    def __init__(self, keep: int) -> None:
        self._keep, self._head, self._tail, self._total = keep, bytearray(), bytearray(), 0

    def add(self, data: bytes) -> bool:
        self._total += len(data)
        room = self._keep - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data[-self._keep :]
        if len(self._tail) > 2 * self._keep:
            del self._tail[: -self._keep]
        return True

    def output(self) -> Output:
        tail = bytes(self._tail[-self._keep :])
        return Output(bytes(self._head), tail, self._total - len(self._head) - len(tail))


class Window:
    """``size`` bytes from ``offset`` on; the rest is counted, up to ``limit`` bytes of the whole stream."""

    def __init__(self, offset: int, size: int, limit: int) -> None:
        self._offset, self._size, self._limit = offset, size, limit
        self._kept = bytearray()
        self.total = 0
        self.lines = 0

    @property
    def exhausted(self) -> bool:
        """Did the stream go on past ``limit``? Then the totals are only a lower bound."""
        return self.total >= self._limit

    def add(self, data: bytes) -> bool:
        start = max(0, self._offset - self.total)
        room = self._size - len(self._kept)
        if room > 0 and start < len(data):
            self._kept += data[start : start + room]
        self.total += len(data)
        self.lines += data.count(b"\n")
        return self.total < self._limit

    def output(self) -> Output:
        return Output(bytes(self._kept), b"", self.total - len(self._kept))


class Pipe:
    """The reading end of a child's stdout or stderr, watched by the running loop. Owns the descriptor.

    ``on_data`` hears the bytes and whether the collector wants more.
    """

    def __init__(self, fd: int, collector: Collector, on_data: Callable[[bytes, bool], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd, self._collector, self._on_data = fd, collector, on_data
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.seen = 0
        self._open, self._ignored = True, False
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._read)

    def output(self) -> Output:
        """What the collector kept."""
        return self._collector.output()

    def _read(self) -> None:
        data = self._take()
        if data:
            self.seen += len(data)
            self._on_data(data, self._collector.add(data))

    def _take(self) -> bytes | None:
        try:
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return None
        if not data:
            self.close()
        return data

    def ignore(self) -> None:
        """Go on reading, unheard, until the last writer is gone: a background process must not die of its output."""
        if self._open and not self._ignored:
            self._ignored = True
            self._loop.remove_reader(self._fd)
            self._loop.call_later(_PAUSE, self._skim)

    def _skim(self) -> None:
        if self._open:
            self._take()
            self._loop.call_later(_PAUSE, self._skim)

    def close(self) -> None:
        """Stop reading; writers get EPIPE from now on."""
        if not self._open:
            return
        self._open = False
        if not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
            self.ended.set_result(None)
        os.close(self._fd)


class Feeder:
    """Writes ``data`` to a child's stdin as fast as it reads, then closes it. Owns the descriptor."""

    def __init__(self, fd: int, data: bytes) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd: int | None = fd
        self._left = memoryview(data)
        os.set_blocking(fd, False)
        self._loop.add_writer(fd, self._write)

    def _write(self) -> None:
        if self._fd is None:
            return
        try:
            self._left = self._left[os.write(self._fd, self._left) :]
        except BlockingIOError:
            return
        except (BrokenPipeError, ConnectionResetError):
            self.close()  # the child does not want the rest
            return
        if not self._left:
            self.close()

    def close(self) -> None:
        """The child sees the end of its input."""
        fd, self._fd = self._fd, None
        if fd is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop is gone
            self._loop.remove_writer(fd)
        os.close(fd)
