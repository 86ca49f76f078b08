"""fs.list and fs.stat: what is in a folder, and what a path is."""

from __future__ import annotations

import grp
import os
import pwd
import stat as modes
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import Annotated, Literal

from pydantic import Field

from hanzo_mcp.core.encoding import printable
from hanzo_mcp.core.ignore import FILES, Globs, Rules, ignored, parse
from hanzo_mcp.core.tool import RESULT_META, JsonObject, Result
from hanzo_mcp.errors import Denied, InvalidInput, NotFound, ToolError
from hanzo_mcp.runtime.local import Context
from hanzo_mcp.runtime.params import Params
from hanzo_mcp.sandbox.paths import Entry, Place, Workspace
from hanzo_mcp.tools._fs_files import (
    CAP,
    GLOB,
    IGNORED,
    LIMIT,
    OFFSET,
    OUTPUT,
    PATH,
    PATHS,
    WORD,
    Budget,
    chosen,
    threaded,
)

_ENTRIES = 1000
_IGNORE_FILE = 256 * 1024


class List(Params):
    """What is in a folder."""

    path: str | None = Field(None, description=PATH)
    depth: int | None = Field(None, description="[list] Default 1")
    output: Annotated[Literal["tree", "sizes"] | None, WORD] = Field(None, description=OUTPUT)
    glob: list[str] | None = Field(None, description=GLOB)
    include_ignored: bool | None = Field(None, description=IGNORED)
    offset: int | None = Field(None, description=OFFSET)
    limit: int | None = Field(None, description=LIMIT)


class Stat(Params):
    """What paths are."""

    path: str | None = Field(None, description=PATH)
    paths: list[str] | None = Field(None, description=PATHS)


@dataclass(slots=True)
class Skipped:
    """What a walk left out: entries ignored, hidden entries, folders that cannot be read."""

    ignored: int = 0
    hidden: int = 0
    unreadable: int = 0

    def words(self) -> str:
        """``12 ignored, 3 hidden``, or nothing."""
        parts = [(self.ignored, "ignored"), (self.hidden, "hidden"), (self.unreadable, "unreadable")]
        return ", ".join(f"{count} {name}" for count, name in parts if count)


@dataclass(slots=True)
class Walk:
    """A walk below one folder, sorted, links not followed."""

    files: Workspace
    budget: Budget
    depth: int
    hidden: bool = False
    include_ignored: bool = False
    details: bool = False
    globs: Globs = field(default_factory=lambda: Globs([]))
    skipped: Skipped = field(default_factory=Skipped)

    def run(self, place: Place) -> Generator[tuple[str, Entry]]:
        """``(path below the start, entry)``, folders before what is in them."""
        base = "/".join(place.parts)
        levels = [] if self.include_ignored else self._above(place)
        yield from self._folder(place, base, "", levels, 1)

    def _above(self, place: Place) -> list[Rules]:
        """The ignore files from the root down to the parent of the start."""
        levels = [self._rules(Place(place.root, (".git", "info", "exclude"), ""), "")]
        for depth in range(len(place.parts)):
            above = Place(place.root, place.parts[:depth], "")
            levels.append(self._read_rules(above, "/".join(above.parts), FILES))
        return [level for level in levels if level.rules]

    def _rules(self, place: Place, base: str) -> Rules:
        return parse(base, self._texts([place]))

    def _read_rules(self, place: Place, base: str, names: tuple[str, ...]) -> Rules:
        return parse(base, self._texts([Place(place.root, (*place.parts, name), "") for name in names]))

    def _texts(self, places: list[Place]) -> list[str]:
        texts: list[str] = []
        for place in places:
            try:
                texts.append(self.files.read(place, _IGNORE_FILE).decode("utf-8", "replace"))
            except ToolError:  # none there, or nothing one could read rules from
                continue
        return texts

    def _folder(
        self, place: Place, base: str, shown: str, levels: list[Rules], level: int
    ) -> Generator[tuple[str, Entry]]:
        self.budget.check()
        try:
            entries = self.files.entries(place, details=self.details)
        except ToolError:
            if level == 1:
                raise
            self.skipped.unreadable += 1
            return
        if not self.include_ignored:
            dotted = {entry.name for entry in entries if entry.name.startswith(".")}
            names = tuple(name for name in FILES if name in dotted)
            if names:
                levels = [*levels, self._read_rules(place, base, names)]
        entries.sort(key=itemgetter(0))
        prefix, globs = f"{shown}/" if shown else "", self.globs if self.globs.any else None
        for entry in self._kept(entries, base, levels):
            path = prefix + entry.name
            folder = entry.kind == "dir"
            if globs is not None and globs.refuses(path):
                continue
            if globs is None or (globs.wants(path) and not (folder and globs.any_wanted)):
                yield path, entry
            # What is in .git is asked for by that name.
            if folder and level < self.depth and entry.name != ".git":
                inner = Place(place.root, (*place.parts, entry.name), "")
                yield from self._folder(inner, f"{base}/{entry.name}" if base else entry.name, path, levels, level + 1)

    def _kept(self, entries: list[Entry], base: str, levels: list[Rules]) -> list[Entry]:
        """The entries that are neither hidden nor ignored; the others are counted."""
        kept = entries if self.hidden else [entry for entry in entries if not entry.name.startswith(".")]
        self.skipped.hidden += len(entries) - len(kept)
        if not levels:
            return kept
        prefix = f"{base}/" if base else ""
        shown = [entry for entry in kept if not ignored(levels, prefix + entry.name, entry.kind == "dir")]
        self.skipped.ignored += len(kept) - len(shown)
        return shown


async def list_(ctx: Context, params: List) -> Result:
    """Paths below the folder, one a line, folders with ``/``, links with their target.

    Facts: ``path``, ``count``, ``total`` (one level only), ``next_offset``, ``ignored``, ``hidden``.
    """
    if params.limit is not None and params.limit < 1:
        raise InvalidInput(f"fs.list: limit: expected at least 1, got {params.limit}.")
    place = ctx.files.place(params.path or ".")
    return await threaded(lambda budget: _list(ctx, place, params, budget))


def _list(ctx: Context, place: Place, params: List, budget: Budget) -> Result:
    globs = params.glob or []
    deep = any("/" in glob or not glob.startswith("!") for glob in globs)
    depth = params.depth or (64 if deep else 3 if params.output == "tree" else 1)
    walk = Walk(
        ctx.files,
        budget,
        depth,
        hidden=bool(params.include_ignored),
        include_ignored=bool(params.include_ignored),
        details=params.output == "sizes",
        globs=Globs(globs),
    )
    start, limit = max(params.offset or 0, 0), min(params.limit or _ENTRIES, 10_000)
    found = walk.run(place)
    for _ in islice(found, min(start, sys.maxsize)):
        pass
    lines: list[str] = []
    size, more = 0, False
    for path, entry in found:
        if len(lines) == limit or size > CAP:
            more = True
            break
        lines.append(_line(path, entry, params))
        size += len(lines[-1]) + 1
    total = start + len(lines) + (1 + sum(1 for _ in found) if more else 0) if depth == 1 or not more else None
    return _listed(place, lines, start, total, more, walk.skipped)


def _line(path: str, entry: Entry, params: List) -> str:
    shown = printable(path.replace("\n", "\\n"))
    if params.output == "tree":
        shown = "  " * shown.count("/") + shown.rsplit("/", 1)[-1]
    shown += {
        "dir": "/",
        "link": f" -> {entry.target}" if entry.target else "@",
        "other": " (device, FIFO or socket)",
    }.get(entry.kind, "")
    if params.output != "sizes":
        return shown
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.mtime))
    return f"{'-' if entry.kind == 'dir' else entry.size:>10} {when} {shown}"


def _listed(place: Place, lines: list[str], start: int, total: int | None, more: bool, skipped: Skipped) -> Result:
    facts: JsonObject = {"path": place.shown, "count": len(lines)}
    parts = [f"{len(lines)} entries" if len(lines) != 1 else "1 entry"]
    if more or start:
        parts = [f"entries {start}-{start + len(lines)} of {total if total is not None else 'more'}"]
    if total is not None:
        facts["total"] = total
    if more:
        facts |= {"truncated": True, "next_offset": start + len(lines)}
        parts.append(f"truncated; go on with offset={start + len(lines)}")
    if words := skipped.words():
        facts |= {"ignored": skipped.ignored, "hidden": skipped.hidden}
        parts.append(f"left out: {words} (include_ignored shows them)")
    return Result.text("\n".join([*lines, f"[{'; '.join(parts)}]"]), facts)


async def stat(ctx: Context, params: Stat) -> Result:
    """One object for each path: ``path``, ``type`` (file, directory, link, other or missing), ``bytes``, ``mode``
    (octal text), ``modified`` (ISO 8601), ``owner``, ``group``, ``links``, ``target`` (links), ``error``."""
    found = [_stat_one(ctx, path) for path in chosen(params.path, params.paths, "stat")]
    text = "\n".join(_stat_line(item) for item in found)
    failed = all("error" in item for item in found)
    return Result(
        [{"type": "text", "text": text}], {"files": found}, is_error=failed, meta={RESULT_META: {"count": len(found)}}
    )


def _stat_one(ctx: Context, path: str) -> JsonObject:
    try:
        place = ctx.files.place(path)
        info = ctx.files.stat(place, follow=False)
        item = _stat_facts(path, info)
        if item["type"] == "link":
            item["target"] = _target(ctx, place)
        return item
    except NotFound:
        return {"path": printable(path), "type": "missing", "error": "no such file or directory"}
    except ToolError as exc:
        return {"path": printable(path), "type": "unknown", "error": str(exc)}


def _target(ctx: Context, place: Place) -> str:
    try:
        return ctx.files.real(place)
    except Denied:
        return "outside the workspace"
    except ToolError as exc:
        return f"broken ({exc})"


def _stat_facts(path: str, info: os.stat_result) -> JsonObject:
    kinds = {modes.S_IFREG: "file", modes.S_IFDIR: "directory", modes.S_IFLNK: "link"}
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(info.st_mtime))
    return {
        "path": path,
        "type": kinds.get(modes.S_IFMT(info.st_mode), "other"),
        "bytes": info.st_size,
        "mode": f"{modes.S_IMODE(info.st_mode):04o}",
        "modified": when,
        "owner": _owner(info.st_uid),
        "group": _group(info.st_gid),
        "links": info.st_nlink,
    }


def _owner(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def _stat_line(item: JsonObject) -> str:
    if "error" in item:
        return f"{item['path']}: {item['error']}"
    arrow = f" -> {item['target']}" if "target" in item else ""
    return (
        f"{item['path']}{arrow}: {item['type']}, {item['bytes']} bytes, mode {item['mode']}, "
        f"{item['owner']}:{item['group']}, modified {item['modified']}"
    )
