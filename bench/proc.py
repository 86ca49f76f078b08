"""What Linux says about a process and its descendants (proc(5), clock_getcpuclockid(3))."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

_CPU_OF_PROCESS = 2
"""CPUCLOCK_SCHED of the kernel's per-process clock ids."""


def family(pid: int) -> Iterator[int]:
    """The process and every living descendant."""
    yield pid
    for task in _listing(f"/proc/{pid}/task"):
        for child in _read(f"/proc/{pid}/task/{task}/children").split():
            yield from family(int(child))


def rss(pid: int) -> float:
    """Resident memory of the family in MiB (VmRSS); pages they share count once for each."""
    kilobytes = 0
    for member in family(pid):
        status = _read(f"/proc/{member}/status")
        _, _, after = status.partition("VmRSS:")
        kilobytes += int(after.split()[0]) if after else 0
    return kilobytes / 1024


def cpu(pid: int) -> float:
    """CPU seconds of the family so far, user and system, to the nanosecond; children that ended are not in it."""
    return sum(time.clock_gettime((~member << 3) | _CPU_OF_PROCESS) for member in family(pid))


def processor() -> str:
    """Model and cores, as ``AMD EPYC, 2 cores``."""
    _, _, after = _read("/proc/cpuinfo").partition("model name")
    model = after.partition("\n")[0].strip(" \t:") or "unknown processor"
    cores = len(os.sched_getaffinity(0))
    return f"{model}, {cores} core{'s' if cores != 1 else ''}"


def _listing(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except FileNotFoundError:
        return []


def _read(path: str) -> str:
    """The text of a file of /proc, empty when the process has just gone."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""
