"""Awaiting what processes do: their word through a FIFO, their end through a pidfd. Linux."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from pathlib import Path
from typing import Self

TIMEOUT = 20.0


class Watched:
    """A process that is somebody else's child. A pidfd names it for good: its number cannot pass to another one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._fd = os.pidfd_open(pid)

    def ended(self, timeout: float = TIMEOUT) -> bool:
        """Did it end within ``timeout``?"""
        return bool(select.select([self._fd], [], [], timeout)[0])

    def peak(self) -> int:
        """Its highest resident size so far (``VmHWM``), in bytes."""
        return peak(self.pid)

    def close(self) -> None:
        """Forget it; what a failed test left running is killed."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._fd, signal.SIGKILL)
        os.close(self._fd)


def peak(pid: int) -> int:
    """The highest resident size of a process so far (``VmHWM``), in bytes."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM:"))


class Word:
    """A FIFO named ``name`` in ``folder``: the numbers a command writes into it, as soon as it does."""

    def __init__(self, folder: Path, name: str = "word") -> None:
        self.path = folder / name
        os.mkfifo(self.path)
        # Open for writing as well: then a writer that closes is no end of file, and the next one is awaited.
        self._fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        self._watched: list[Watched] = []

    def processes(self, timeout: float = TIMEOUT) -> list[Watched]:
        """The processes whose ids came as one line."""
        deadline, heard = time.monotonic() + timeout, b""
        while not heard.endswith(b"\n"):
            if not select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"nothing was written to {self.path}")
            heard += os.read(self._fd, 4096)
        found = [Watched(int(word)) for word in heard.split()]
        self._watched.extend(found)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
        for process in self._watched:
            process.close()


SLEEPER = "sleep 300 & echo $$ $! > word; wait"
"""A shell line that runs on with a child of its own, once both are named in the FIFO ``word``."""
