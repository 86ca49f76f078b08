"""Taking a secret out of the process's environment for good.

Unsetting a variable leaves the text in the block the kernel shows as ``/proc/<pid>/environ``, where any child of the
same user can read it. The block is our own memory, so it is overwritten there.
"""

from __future__ import annotations

import os
import sys

_ENV_START = 49
"""Index of ``env_start`` in ``/proc/self/stat``, counted from the first field (proc(5) field 50)."""


def forget(name: str) -> bool:
    """Unset ``name`` and blank its value in memory; False when the value may still be visible to other processes."""
    if os.environ.pop(name, None) is None:
        return True
    if sys.platform != "linux":
        return False
    try:
        return _blank(name.encode())
    except OSError:
        return False


def _blank(name: bytes) -> bool:
    with open("/proc/self/environ", "rb") as file:
        block = file.read()
    with open("/proc/self/stat", "rb") as file:
        # The second field is the program's name in brackets and may hold spaces.
        fields = file.read().rpartition(b")")[2].split()
    start = int(fields[_ENV_START - 2])
    at = 0
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        for entry in block.split(b"\0"):
            if entry.startswith(name + b"="):
                memory.seek(start + at + len(name) + 1)
                memory.write(b"\0" * (len(entry) - len(name) - 1))
            at += len(entry) + 1
    with open("/proc/self/environ", "rb") as file:
        return all(not entry[len(name) + 1 :] for entry in file.read().split(b"\0") if entry.startswith(name + b"="))
