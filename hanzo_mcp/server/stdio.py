"""Taking the protocol's descriptors away from everybody else.

After ``claim`` descriptor 0 is the null device and descriptor 1 is stderr, so a stray ``print``, a C library or a
child that inherits them can neither eat a protocol byte nor write one.
"""

from __future__ import annotations

import os
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


def say(text: str) -> None:
    """One line on stderr; a closed or full stderr is nobody's problem."""
    line = f"hanzo-mcp: {text}\n".encode("utf-8", "backslashreplace")
    try:
        os.write(2, line)
    except OSError:
        sys.stderr = None
