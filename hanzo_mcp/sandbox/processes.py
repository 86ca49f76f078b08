"""Finding and ending every process a run started, also those that left its group or outlived it.

A run's processes are known by their ancestry, by their session and by a mark in their environment. On Linux the
server adopts orphans (``PR_SET_CHILD_SUBREAPER``), so a daemon stays below it and can be found; elsewhere the
process group is all there is.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import time
from collections.abc import Collection

MARK = "HANZO_RUN"
"""Environment variable that names the run a process belongs to."""
_SET_CHILD_SUBREAPER = 36
_STALE = 10.0
"""Seconds after which a dead child that nobody collects is collected here."""


@functools.cache
def adopt_orphans() -> None:
    """From now on descendants that lose their parent become children of this process. Linux only."""
    if not os.path.isdir("/proc/self/task"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children(pid: int) -> list[int]:
    """The direct children of every thread of ``pid``; empty where there is no /proc."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
                found.extend(int(word) for word in file.read().split())
    return found


def below(pid: int) -> list[int]:
    """Every descendant of ``pid``."""
    found: list[int] = []
    pending = [pid]
    while pending:
        nearest = children(pending.pop())
        found.extend(nearest)
        pending.extend(nearest)
    return found


class Tree:
    """The processes of one run. ``leader`` is the one we started, in a session of its own; ``mark`` is unique.

    ``leaders`` are those of every run that has not been waited for: our children, but nobody's orphans.
    """

    def __init__(self, leader: int, mark: str, leaders: Collection[int]) -> None:
        self.leader, self._mark, self._leaders = leader, f"{MARK}={mark}".encode(), leaders
        self.leader_gone = False
        self._known: set[int] = set()

    def adopted(self) -> list[int]:
        """Living orphans of this run that are our children now; dead ones are collected."""
        found = [pid for pid in children(os.getpid()) if pid not in self._leaders and self._owns(pid)]
        living = [pid for pid in found if not _collected(pid)]
        self._known.difference_update(found)
        self._known.update(living)
        return living

    def members(self) -> list[int]:
        """Every living process of the run, the leader too while it has not been waited for."""
        found = [] if self.leader_gone else [self.leader, *below(self.leader)]
        for pid in self.adopted():
            found += [pid, *below(pid)]
        self._known.update(found)  # once dead, an orphan in its own session is known by nothing else
        return found

    def alive(self) -> bool:
        """Is anything of the run left?"""
        return bool(self.members()) or (not _HAS_PROC and self._group(0))

    def signal(self, number: int) -> None:
        """Signal all of it. The number of a leader that is gone may be a stranger's now: its group is left alone."""
        members = self.members()
        if not self.leader_gone or not _HAS_PROC:
            self._group(number)
        for pid in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _group(self, number: int) -> bool:
        try:
            os.killpg(self.leader, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _owns(self, pid: int) -> bool:
        if pid in self._known:
            return True
        try:
            return os.getsid(pid) == self.leader or self._mark in _environ(pid).split(b"\0")
        except ProcessLookupError:
            return False


_HAS_PROC = os.path.isdir("/proc/self/task")


def _environ(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read(256 * 1024)
    except OSError:  # dead, or another user's
        return b""


def _collected(pid: int) -> bool:
    """Wait for ``pid`` if it is dead already."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


class Strays:
    """Dead orphans in a session of their own: nothing tells whose they were, so they are collected when nobody else
    has done it for a while."""

    def __init__(self) -> None:
        self._since: dict[int, float] = {}

    def collect(self, leaders: Collection[int]) -> None:
        """Look at our dead children outside ``leaders`` and collect those seen dead long ago."""
        now, own = time.monotonic(), os.getsid(0)
        dead = {pid for pid in children(os.getpid()) if pid not in leaders and _is_stray(pid, own)}
        self._since = {pid: self._since.get(pid, now) for pid in dead}
        for pid, since in self._since.items():
            if now - since >= _STALE:
                _collected(pid)


def _is_stray(pid: int, own: int) -> bool:
    try:
        if os.getsid(pid) == own:
            return False
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"Z"
    except (OSError, IndexError):
        return False


def name_of(number: int) -> str:
    """``SIGTERM`` for 15; ``signal 40`` for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
