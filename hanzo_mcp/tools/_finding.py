"""Listing and searching, for ``fs.list`` and ``fs.search``: ripgrep where it is, a bounded walk where not."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from hanzo_mcp.core.glob import matches
from hanzo_mcp.core.shapes import as_object
from hanzo_mcp.errors import InvalidInput, NotFound, TimedOut, ToolError
from hanzo_mcp.runtime.local import Context
from hanzo_mcp.sandbox.paths import Place, Workspace

SECONDS = 60.0
WALK_FILES = 50_000
WALK_SECONDS = 10.0
MAX_LINE = 500


class Hit(NamedTuple):
    """A line of an answer: ``number`` 0 stands for the file itself; ``matched`` tells context apart."""

    path: str
    number: int
    text: str
    matched: bool


class Query(NamedTuple):
    """What is searched. ``flags`` are ripgrep's own, built from checked arguments."""

    pattern: str
    flags: tuple[str, ...]
    literal: bool
    ignore_case: bool
    glob: str | None


def ripgrep() -> str:
    """The wheel's binary beside the interpreter, else the one on PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "rg")
    return beside if os.path.exists(beside) else "rg"


class _Enough(Exception):
    pass


class _Lines:
    """Collects whole lines of a running command and stops it when ``wanted`` of them are there."""

    def __init__(self, wanted: int, mark: bytes, separator: bytes = b"\n") -> None:
        self.lines: list[bytes] = []
        self.enough = asyncio.Event()
        self._pending = b""
        self._wanted, self._mark, self._separator, self._count = wanted, mark, separator, 0

    def feed(self, data: bytes) -> None:
        if self.enough.is_set():
            return
        *lines, self._pending = (self._pending + data).split(self._separator)
        self.lines += lines
        self._count += sum(1 for line in lines if self._mark in line) if self._mark else len(lines)
        if self._count > self._wanted:
            self.enough.set()


async def _collect(ctx: Context, argv: list[str], cwd: str, lines: _Lines) -> bool:
    """Run ripgrep until it ends or enough was seen; True when it ended. Raises ``InvalidInput`` for its complaints."""
    running = asyncio.ensure_future(ctx.exec.run(argv, cwd=cwd, timeout=SECONDS, on_output=lines.feed, keep=8192))
    full = asyncio.ensure_future(lines.enough.wait())
    try:
        await asyncio.wait({running, full}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            return False
        done = running.result()
    finally:
        full.cancel()
        if not running.done():
            running.cancel()
            await asyncio.wait({running})
    if done.timed_out:
        raise TimedOut(f"search took more than {SECONDS:.0f} s; narrow it with path or glob.")
    if done.code not in (0, 1) and not lines.lines:
        raise InvalidInput(f"search: {_complaint(done.stderr.text())}")
    return True


def _complaint(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return " ".join(line.strip().removeprefix("rg: ") for line in lines[:6])[:400] or "ripgrep failed"


async def search(ctx: Context, place: Place, query: Query, wanted: int) -> tuple[list[Hit], bool, str]:
    """Up to ``wanted`` + 1 matches, whether that is all, and which engine found them."""
    root, target = _split(ctx.files, place)
    argv = [ripgrep(), "--json", "--no-config", *query.flags, "--", query.pattern, target]
    lines = _Lines(wanted, b'{"type":"match"')
    try:
        ended = await _collect(ctx, argv, root, lines)
    except NotFound:
        hits, ended = await asyncio.to_thread(_walk_search, ctx.files, place, query, wanted)
        return hits, ended, "without ripgrep, which is slower and knows no ignore files"
    return [hit for line in lines.lines if (hit := _hit(line)) is not None], ended, "ripgrep"


async def count(ctx: Context, place: Place, query: Query, wanted: int, files_only: bool) -> tuple[list[Hit], bool]:
    """Files with matches, each with how many (0 when only the names were asked)."""
    root, target = _split(ctx.files, place)
    mode = ["--files-with-matches"] if files_only else ["--count-matches", "--with-filename"]
    lines = _Lines(wanted, b"", b"\0" if files_only else b"\n")
    argv = [ripgrep(), *mode, "--null", "--no-config", *query.flags, "--", query.pattern, target]
    ended = await _collect(ctx, argv, root, lines)
    found: list[Hit] = []
    for line in lines.lines:
        path, _, number = line.partition(b"\0")
        found.append(Hit(_shown(os.fsdecode(path)), int(number or 0), "", True))
    return sorted(found), ended


def _split(files: Workspace, place: Place) -> tuple[str, str]:
    """Where ripgrep runs and what it is given: the resolved place, relative to its root."""
    real = files.real(place)
    return place.root.path, os.path.relpath(real, place.root.path)


def _shown(path: str) -> str:
    return path.removeprefix("./")


def _hit(line: bytes) -> Hit | None:
    try:
        event = as_object(json.loads(line)) or {}
    except ValueError:
        return None
    if event.get("type") not in ("match", "context"):
        return None
    data: dict[str, Any] = event["data"]
    text = _text(data["lines"]).rstrip("\r\n")
    cut = text if len(text) <= MAX_LINE else text[:MAX_LINE] + f"… ({len(text)} characters)"
    return Hit(_shown(_text(data["path"])), data.get("line_number") or 0, cut, event["type"] == "match")


def _text(value: dict[str, Any]) -> str:
    if "text" in value:
        return value["text"]
    return base64.b64decode(value["bytes"]).decode("utf-8", "backslashreplace")


async def files_below(ctx: Context, place: Place, flags: list[str], wanted: int) -> tuple[list[str], bool, bool]:
    """Paths of files below a place, whether that is all, and whether ignore files were honoured."""
    root, target = _split(ctx.files, place)
    lines = _Lines(wanted, b"", b"\0")
    try:
        ended = await _collect(ctx, [ripgrep(), "--files", "--null", "--no-config", *flags, "--", target], root, lines)
    except NotFound:
        glob = next((flag.removeprefix("--glob=") for flag in flags if flag.startswith("--glob=")), None)
        found, ended = await asyncio.to_thread(_walk_files, ctx.files, place, glob, wanted)
        return found, ended, False
    return [_shown(os.fsdecode(line)) for line in lines.lines if line], ended, True


def walk(files: Workspace, place: Place) -> Iterator[Place]:
    """Regular files below a place, depth first, links not followed, ``.git`` left out; bounded in time."""
    until = time.monotonic() + WALK_SECONDS
    pending = [place]
    while pending and time.monotonic() < until:
        folder = pending.pop()
        try:
            entries = sorted(files.scan(folder), key=lambda entry: entry.name, reverse=True)
        except ToolError:
            continue
        for entry in entries:
            inner = Place(folder.root, (*folder.parts, entry.name), os.path.join(folder.shown, entry.name))
            if entry.is_dir(follow_symlinks=False):
                if entry.name != ".git":
                    pending.append(inner)
            elif entry.is_file(follow_symlinks=False):
                yield inner


def _walk_files(files: Workspace, place: Place, glob: str | None, wanted: int) -> tuple[list[str], bool]:
    found: list[str] = []
    for inner in walk(files, place):
        if glob is None or matches(glob, os.path.basename(inner.shown)) or matches(glob, inner.shown):
            found.append(_shown(inner.shown))
        if len(found) > min(wanted, WALK_FILES):
            return found, False
    return found, True


def _walk_search(files: Workspace, place: Place, query: Query, wanted: int) -> tuple[list[Hit], bool]:
    expression = re.escape(query.pattern) if query.literal else query.pattern
    try:
        pattern = re.compile(expression, re.IGNORECASE if query.ignore_case else 0)
    except re.error as exc:
        raise InvalidInput(f"search: {exc}") from None
    single = stat.S_ISREG(files.stat(place).st_mode)
    hits: list[Hit] = []
    for inner in [place] if single else walk(files, place):
        name = os.path.basename(inner.shown)
        if query.glob is None or matches(query.glob, name):
            hits += _hits_in(files, inner, pattern)
        if len(hits) > wanted:
            return hits, False
    return hits, True


def _hits_in(files: Workspace, place: Place, pattern: re.Pattern[str]) -> list[Hit]:
    try:
        data = files.read(place, 4 * 1024 * 1024)
    except ToolError:
        return []
    if b"\0" in data[:8192]:
        return []
    lines = data.decode("utf-8", "replace").split("\n")
    shown = _shown(place.shown)
    return [Hit(shown, n, line[:MAX_LINE], True) for n, line in enumerate(lines, 1) if pattern.search(line)]
