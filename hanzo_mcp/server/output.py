"""Reply lines to the client, without ever blocking the loop on a client that does not read."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable

from hanzo_mcp.server.stdio import unblock

HIGH_WATER = 32 * 1024 * 1024
"""Bytes waiting at which no further input is read, so that memory stays bounded."""
_BATCH = 256 * 1024


class Output:
    """Lines are written in the order they are sent, many to one system call."""

    def __init__(self, fd: int, on_closed: Callable[[], None], on_level: Callable[[bool], None]) -> None:
        self._fd, self._on_closed, self._on_level = fd, on_closed, on_level
        self._loop = asyncio.get_running_loop()
        self._queue: deque[bytes] = deque()
        self._waiting = 0
        self._scheduled = self._armed = self._full = self._closed = False
        unblock(fd)

    def send(self, line: bytes) -> None:
        """Queue a line; it leaves with the next turn of the loop."""
        if self._closed:
            return
        self._queue.append(line)
        self._waiting += len(line)
        if not self._scheduled and not self._armed:
            self._scheduled = True
            self._loop.call_soon(self._flush)
        if not self._full and self._waiting > HIGH_WATER:
            self._full = True
            self._on_level(True)

    @property
    def empty(self) -> bool:
        """Has everything left?"""
        return self._closed or not self._queue

    def _flush(self) -> None:
        self._scheduled = False
        try:
            while self._queue:
                self._write_some()
        except BlockingIOError:
            self._arm()
            return
        except OSError:
            self._closed = True
            self._queue.clear()
            self._on_closed()
        self._disarm()

    def _write_some(self) -> None:
        batch = self._take()
        try:
            sent = os.write(self._fd, batch)
        except BaseException:
            self._queue.appendleft(batch)
            raise
        self._waiting -= sent
        if sent < len(batch):
            self._queue.appendleft(batch[sent:])
        if self._full and self._waiting < HIGH_WATER // 2:
            self._full = False
            self._on_level(False)

    def _take(self) -> bytes:
        if len(self._queue) == 1 or len(self._queue[0]) >= _BATCH:
            return self._queue.popleft()
        parts: list[bytes] = []
        size = 0
        while self._queue and size < _BATCH:
            parts.append(self._queue.popleft())
            size += len(parts[-1])
        return b"".join(parts)

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self._loop.add_writer(self._fd, self._flush)

    def _disarm(self) -> None:
        if self._armed:
            self._armed = False
            self._loop.remove_writer(self._fd)
