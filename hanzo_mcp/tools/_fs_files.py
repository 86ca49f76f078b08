"""What the ops of fs share: argument texts, bounded reading, locks, and what the caller has seen of a file."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import WithJsonSchema

from hanzo_mcp.core.encoding import Encoding, detect, eol_of
from hanzo_mcp.errors import Conflict, InvalidInput, NotFound, TimedOut, from_oserror
from hanzo_mcp.runtime.local import Context
from hanzo_mcp.sandbox.paths import Place

T = TypeVar("T")

CAP = 100_000
"""Bytes of text in one answer."""
WHOLE = 20 * 1024 * 1024
"""Files up to this many bytes are read whole and hashed."""
INLINE = 256 * 1024
"""Work on at most this many bytes is done on the loop; a thread costs more."""
_REMEMBERED = 64 * 1024
_SEEN = 512

PATH = "[all] Default workspace"
PATHS = "[read search stat] Several"
OFFSET = "[read list search] Line (negative: from end), entry, byte"
LIMIT = "[read list search]"
GLOB = "[list search] *.py, src/**, !x"
IGNORED = "[list search] Hidden, git-ignored too"
OUTPUT = "[list] tree, sizes; [search] files, count"
BASE_HASH = "[write edit] Its sha256"
WORD = WithJsonSchema({"type": "string"})
"""For a choice whose words stand in its description: the enum would say them twice."""


class Budget:
    """A deadline in seconds and a stop sign for work in a thread."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self.stopped = False

    @property
    def over(self) -> bool:
        """Is the time up?"""
        return time.monotonic() > self._end

    def check(self) -> None:
        """Raises ``TimedOut`` when the work must end."""
        if self.stopped or self.over:
            raise TimedOut("fs: took too long and was stopped; ask for less (a smaller range, a narrower path).")


async def threaded(work: Callable[[Budget], T], seconds: float = 20) -> T:
    """``work`` in a thread; it is told to stop when the call is cancelled."""
    budget = Budget(seconds)
    try:
        return await asyncio.to_thread(work, budget)
    finally:
        budget.stopped = True


@dataclass(frozen=True, slots=True)
class Known:
    """A file of at most ``WHOLE`` bytes. ``encoding`` is ``None`` when it is no text."""

    data: bytes
    info: os.stat_result
    sha256: str
    encoding: Encoding | None

    @property
    def eol(self) -> str:
        """``lf``, ``crlf``, ``cr``, ``mixed`` or ``none``."""
        if self.encoding is None:
            return "none"
        wide = self.encoding.codec.startswith("utf-16") or self.encoding.codec.startswith("utf-32")
        return eol_of(self.encoding.decode(self.data) if wide else self.data)


def regular(ctx: Context, place: Place) -> tuple[int, os.stat_result]:
    """An open descriptor of a regular file, which the caller closes, and its stat."""
    fd = ctx.files.open(place)
    info = os.fstat(fd)
    if stat.S_ISREG(info.st_mode):
        return fd, info
    os.close(fd)
    raise InvalidInput(f"{place.shown}: is a directory. Use op list to see what is in it.")


def take(fd: int, at: int, size: int) -> bytes:
    """``size`` bytes from ``at``, fewer only at the end of the file."""
    pieces: list[bytes] = []
    while size > 0:
        piece = os.pread(fd, min(size, 1 << 20), at)
        if not piece:
            break
        pieces.append(piece)
        at, size = at + len(piece), size - len(piece)
    return b"".join(pieces)


def know(fd: int, info: os.stat_result, place: Place) -> Known:
    """Read an open file of at most ``WHOLE`` bytes."""
    try:
        data = take(fd, 0, WHOLE)
    except OSError as exc:
        raise from_oserror(exc, place.shown) from exc
    return Known(data, info, hashlib.sha256(data).hexdigest(), detect(data))


@dataclass(frozen=True, slots=True)
class Facts:
    """What does not change while a file does not: its totals, for reading a range of it again."""

    sha256: str
    encoding: Encoding
    eol: str
    lines: int


def version(info: os.stat_result) -> tuple[int, ...] | None:
    """What names this version of a file; ``None`` while it is so young that a change might not show."""
    if time.time() - info.st_ctime < 2:
        return None
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


@dataclass(slots=True)
class Seen:
    """How a file was when this caller last read or wrote it; ``text`` only of small ones."""

    sha256: str
    text: str | None


@dataclass(slots=True)
class Memory:
    """The tool's memory: what each caller has seen, and one lock for each file being changed."""

    seen: OrderedDict[tuple[str, str], Seen] = field(default_factory=OrderedDict[tuple[str, str], Seen])
    facts: OrderedDict[tuple[int, ...], Facts] = field(default_factory=OrderedDict[tuple[int, ...], Facts])
    locks: dict[str, tuple[asyncio.Lock, int]] = field(default_factory=dict[str, tuple[asyncio.Lock, int]])

    def remember(self, session: str, path: str, sha256: str, data: bytes, encoding: Encoding | None) -> None:
        """This caller now knows the file as it is."""
        small = encoding is not None and len(data) <= _REMEMBERED
        text = encoding.decode(data) if small and encoding is not None else None
        self.seen[session, path] = Seen(sha256, text)
        self.seen.move_to_end((session, path))
        while len(self.seen) > _SEEN:
            self.seen.popitem(last=False)

    def keep(self, info: os.stat_result, facts: Facts) -> None:
        """Remember the facts of a version."""
        key = version(info)
        if key is not None:
            self.facts[key] = facts
            while len(self.facts) > _SEEN:
                self.facts.popitem(last=False)

    def kept(self, info: os.stat_result) -> Facts | None:
        """The facts of this version, when they are known."""
        key = version(info)
        return self.facts.get(key) if key is not None else None


def memory(ctx: Context) -> Memory:
    """The memory of this process."""
    found: Any = ctx.memo.get("files")
    if isinstance(found, Memory):
        return found
    return ctx.memo.setdefault("files", Memory())


class Locked:
    """``async with Locked(memory, path)``: changes of one file happen one after another."""

    def __init__(self, kept: Memory, path: str) -> None:
        self._locks, self._path = kept.locks, path
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> None:
        self._lock, users = self._locks.get(self._path, (self._lock, 0))
        self._locks[self._path] = self._lock, users + 1
        try:
            await self._lock.acquire()
        except asyncio.CancelledError:
            self._leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()
        self._leave()

    def _leave(self) -> None:
        lock, users = self._locks[self._path]
        if users == 1:
            del self._locks[self._path]
        else:
            self._locks[self._path] = lock, users - 1


def chosen(path: str | None, paths: list[str] | None, op: str) -> list[str]:
    """The paths of a call that takes one or many."""
    found = [*([path] if path is not None else []), *(paths or [])]
    if not found or "" in found:
        raise InvalidInput(f"fs.{op}: name a file with path, or several with paths; an empty path names nothing.")
    if len(found) > 200:
        raise InvalidInput(f"fs.{op}: {len(found)} paths; at most 200 at once.")
    return found


def named(path: str | None, op: str) -> str:
    """The one path of a call."""
    if not path:
        raise InvalidInput(f"fs.{op}: path is missing or empty; it names the file.")
    return path


def current(ctx: Context, place: Place) -> Known | None:
    """The file as it is, ``None`` when it does not exist. Raises ``Conflict`` for one too large to change here."""
    try:
        fd, info = regular(ctx, place)
    except NotFound:
        return None
    try:
        if info.st_size > WHOLE:
            raise Conflict(f"{place.shown}: {info.st_size} bytes; fs changes files of at most {WHOLE} bytes.")
        return know(fd, info, place)
    finally:
        os.close(fd)
