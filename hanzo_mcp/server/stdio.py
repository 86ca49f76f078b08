"""Taking the protocol's descriptors away from everybody else.

After ``claim`` descriptor 0 is the null device and descriptor 1 is stderr, so a stray ``print``, a C library or a
child that inherits them can neither eat a protocol byte nor write one.
"""

from __future__ import annotations

import os
import select
import stat
import sys


def claim() -> tuple[int, int]:
    """Private duplicates of stdin and stdout, in that order."""
    fd_in, fd_out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return fd_in, fd_out


def unblock(fd: int) -> None:
    """Non-blocking mode for a pipe or socket; a terminal or file is shared or never blocks, and is left alone."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        os.set_blocking(fd, False)


_PIPE_BUF = 4096
_dropped: list[str] = []


def say(text: str) -> None:
    """One line on stderr, never waiting for a client that does not read it: what does not fit is counted."""
    line = f"hanzo-mcp: {text}\n".encode("utf-8", "backslashreplace")
    if _dropped:
        line = f"hanzo-mcp: {len(_dropped)} lines before this one were dropped, nobody read them\n".encode() + line
    try:
        if not _writable():
            _dropped.append("")
            return
        # A pipe that is ready takes this much without blocking (POSIX); more could wait for ever.
        os.write(2, line if len(line) <= _PIPE_BUF else line[: _PIPE_BUF - 2] + b"\n")
        _dropped.clear()
    except OSError:
        _dropped.append("")


def _writable() -> bool:
    if sys.platform == "win32":
        return True
    return bool(select.select([], [2], [], 0)[1])
