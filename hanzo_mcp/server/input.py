"""The client's bytes as they come, from a pipe, a socket, a terminal or a file."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable

_CHUNK = 256 * 1024


class Input:
    """Calls ``on_data`` with each chunk and with ``b""`` at the end."""

    def __init__(self, fd: int, on_data: Callable[[bytes], None]) -> None:
        self._fd, self._on_data = fd, on_data
        self._loop = asyncio.get_running_loop()
        self._watching = False

    def start(self) -> None:
        """Begin to read."""
        try:
            self.resume()
        except (PermissionError, NotImplementedError, OSError):
            # A regular file or the null device cannot be polled, Windows pipes neither: a thread reads those.
            threading.Thread(target=self._pump, name="stdin", daemon=True).start()

    def resume(self) -> None:
        """Read on after ``pause``."""
        # Readiness is asked before each read, so the descriptor itself can stay in blocking mode: it may be
        # shared with the client's other processes.
        self._loop.add_reader(self._fd, self._read)
        self._watching = True

    def pause(self) -> None:
        """Leave bytes in the pipe; the client feels it."""
        if self._watching:
            self._loop.remove_reader(self._fd)
            self._watching = False

    @property
    def pausable(self) -> bool:
        """Can ``pause`` have an effect?"""
        return self._watching

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self.pause()
        self._on_data(data)

    def _pump(self) -> None:
        while True:
            try:
                data = os.read(self._fd, _CHUNK)
            except OSError:
                data = b""
            self._loop.call_soon_threadsafe(self._on_data, data)
            if not data:
                return
