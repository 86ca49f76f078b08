"""fs: files of the workspace. It reads any text, never damages a byte that was not meant, and says when it cut.

Every path goes through ``ctx.files``; listing and searching are in ``_finding``, reading in ``_reading``, what was
last seen of a file in ``_seen``. Changes are serialised per file.
"""

from __future__ import annotations

import asyncio
import base64
import os
import stat as modes
import time
from typing import Literal

from pydantic import Field

from hanzo_mcp.core import replacing as editing
from hanzo_mcp.core.textfile import EOLS, decode, eol_of
from hanzo_mcp.core.tool import Access, JsonObject, Result
from hanzo_mcp.errors import Conflict, InvalidInput, NotFound, ToolError
from hanzo_mcp.runtime.local import Context, Op, Tool
from hanzo_mcp.runtime.params import Params
from hanzo_mcp.sandbox.paths import Place
from hanzo_mcp.tools import _finding, _reading
from hanzo_mcp.tools._seen import Seen, diff

EDIT_LIMIT = 64 * 1024 * 1024
_LINES = 2000
_IN_THREAD = 128 * 1024
_PATH = "[read write edit list search] Relative to the workspace"
_PATHS = "[read stat] Several paths"
_OFFSET = "[read] First line, from 1; negative counts from the end. [list search] Entries to skip"
_LIMIT = "[read list search] Most lines or entries"
_GLOB = "[list search] Such as *.py or src/**"
_IGNORED = "[list search] Also hidden and git-ignored files"


class Read(Params):
    """Read files."""

    path: str | None = Field(None, description=_PATH)
    paths: list[str] | None = Field(None, description=_PATHS, max_length=50)
    offset: int = Field(1, description=_OFFSET)
    limit: int = Field(_LINES, ge=1, le=100_000, description=_LIMIT)
    numbers: bool = Field(False, description="[read] Number the lines")
    as_: Literal["auto", "base64"] = Field("auto", alias="as", description="[read] base64: bytes, by offset and limit")


class Write(Params):
    """Write a file."""

    path: str = Field(description=_PATH)
    content: str = Field(description="[write] The text")
    mode: Literal["overwrite", "create", "append"] = Field("overwrite", description="[write] create fails if it exists")
    base_hash: str | None = Field(None, description="[write] sha256 the file must still have")


class Replacement(Params):
    """One replacement."""

    old: str
    new: str
    all: bool = False


class Edit(Params):
    """Replace text in a file."""

    path: str = Field(description=_PATH)
    old: str | None = Field(None, description="[edit] Text to replace; must be unique")
    new: str | None = Field(None, description="[edit] Its replacement")
    all: bool = Field(False, description="[edit] Replace every occurrence")
    edits: list[Replacement] | None = Field(
        None, description="[edit] Several {old, new, all}, all or none", max_length=200
    )
    dry_run: bool = Field(False, description="[edit] Show the diff only")


class List(Params):
    """List a directory."""

    path: str = Field(".", description=_PATH)
    depth: int = Field(1, ge=1, le=100, description="[list] Levels; over 1 lists files by path")
    glob: str | None = Field(None, description=_GLOB)
    details: bool = Field(False, description="[list] Size and time")
    include_ignored: bool = Field(False, description=_IGNORED)
    offset: int = Field(0, ge=0, description=_OFFSET)
    limit: int = Field(1000, ge=1, le=10_000, description=_LIMIT)


class Search(Params):
    """Search file contents."""

    path: str = Field(".", description=_PATH)
    pattern: str = Field(description="[search] Rust regular expression", min_length=1)
    literal: bool = Field(False, description="[search] pattern is plain text")
    ignore_case: bool = Field(False, description="[search]")
    glob: str | None = Field(None, description=_GLOB)
    context: int = Field(0, ge=0, le=20, description="[search] Lines around a match")
    multiline: bool = Field(False, description="[search] Let matches span lines")
    output: Literal["lines", "files", "count"] = Field("lines", description="[search]")
    include_ignored: bool = Field(False, description=_IGNORED)
    offset: int = Field(0, ge=0, description=_OFFSET)
    limit: int = Field(200, ge=1, le=5000, description=_LIMIT)


class Stat(Params):
    """Facts about paths."""

    paths: list[str] = Field(description=_PATHS, min_length=1, max_length=1000)


# -- read


async def read(ctx: Context, params: Read) -> Result:
    """Text by lines, images as images, anything as base64 on request."""
    names = params.paths or ([params.path] if params.path else [])
    if not names:
        raise InvalidInput("fs.read: give path, or paths for several.")
    if len(names) == 1:
        return await _read_one(ctx, names[0], params)
    content: list[JsonObject] = []
    facts: JsonObject = {}
    for name in names:
        try:
            one = await _read_one(ctx, name, params)
        except ToolError as exc:
            content.append({"type": "text", "text": f"== {name}\n{exc}"})
            facts[name] = {"error": exc.details()}
            continue
        content += [{"type": "text", "text": f"== {name}"}, *one.content]
        facts[name] = one.meta.get("hanzo.ai/result", {})
    return Result(content, meta={"hanzo.ai/result": {"files": facts}})


async def _read_one(ctx: Context, name: str, params: Read) -> Result:
    place = ctx.files.place(name)
    start, size = _reading.head(ctx.files, place)
    if params.as_ == "base64":
        return _as_bytes(ctx, place, params, size)
    kind = _reading.image_type(start)
    if kind is not None and size <= _reading.MAX_IMAGE:
        data = ctx.files.read(place, _reading.MAX_IMAGE)
        return Result([_reading.image_block(data, kind)], meta={"hanzo.ai/result": {"bytes": size, "mime_type": kind}})
    if _reading.looks_binary(start):
        text = f'{place.shown}: binary, {size} bytes, starts with {start[:8].hex(" ")}. as: "base64" reads its bytes.'
        return Result.text(text, {"bytes": size, "binary": True})
    if size <= _IN_THREAD:
        found = _reading.excerpt(ctx.files, place, params.offset, params.limit)
    else:
        found = await asyncio.to_thread(_reading.excerpt, ctx.files, place, params.offset, params.limit)
    return _as_text(ctx, place, params, found)


def _as_bytes(ctx: Context, place: Place, params: Read, size: int) -> Result:
    offset = 0 if params.offset == 1 else params.offset
    limit = _reading.CAP * 3 // 4 if params.limit == _LINES else params.limit
    data = _reading.slice_of(ctx.files, place, offset, limit)
    facts = {"bytes": size, "offset": offset, "length": len(data)}
    return Result.text(base64.b64encode(data).decode(), facts)


def _as_text(ctx: Context, place: Place, params: Read, found: _reading.Excerpt) -> Result:
    facts = _reading.facts_of(found)
    if found.whole is not None:
        facts["sha256"] = Seen.of(ctx).note(place.path, found.whole)
        facts["lines"] = found.total
    shown, cut = _capped(found.lines)
    last = found.first + len(shown) - 1
    if params.numbers and found.first > 0:
        shown = [f"{number:>6}\t{line}" for number, line in enumerate(shown, found.first)]
    text = "".join(shown)
    more = found.total is None and len(found.lines) >= params.limit if found.total is None else last < found.total
    if more and found.first > 0:
        facts["next_offset"] = last + 1
    note = _read_note(found, facts, last, cut)
    separator = "" if not note or text.endswith("\n") or not text else "\n"
    return Result.text(f"{text}{separator}{note}", facts)


def _capped(lines: list[str]) -> tuple[list[str], bool]:
    """As many lines as an answer holds; a single longer one is cut."""
    room = _reading.CAP
    for index, line in enumerate(lines):
        room -= len(line)
        if room < 0:
            return (lines[:index], False) if index else ([line[: _reading.CAP] + "\n"], True)
    return lines, False


def _read_note(found: _reading.Excerpt, facts: JsonObject, last: int, cut: bool) -> str:
    notes: list[str] = []
    if "next_offset" in facts:
        of = f" of {found.total}" if found.total is not None else ""
        notes.append(f"lines {found.first}-{last}{of}; offset {last + 1} goes on")
    if cut:
        notes.append(f'line {found.first} is cut at {_reading.CAP} characters; as: "base64" reads bytes')
    if facts["encoding"] != "utf-8":
        notes.append(facts["encoding"])
    if facts["eol"] not in ("lf", "none"):
        notes.append(f"{facts['eol']} line endings")
    if found.size == 0:
        notes.append("empty file")
    return f"[{'; '.join(notes)}]" if notes else ""


# -- write and edit


async def write(ctx: Context, params: Write) -> Result:
    """Create, overwrite or append; an existing file keeps mode, encoding, BOM and line endings."""
    place = ctx.files.place(params.path)
    seen = Seen.of(ctx)
    async with seen.lock(place.path):
        old = _current(ctx, place)
        if old is not None and params.mode == "create":
            raise Conflict(f"{place.shown}: already exists. Use mode overwrite, or fs.edit to change a part.")
        if params.base_hash is not None:
            _check_base(seen, place, old, params.base_hash)
        data = _encoded(place, params, old)
        await _store(ctx, place, data)
        digest = seen.note(place.path, data)
    verb = "created" if old is None else ("appended to" if params.mode == "append" else "overwrote")
    facts: JsonObject = {"bytes": len(data), "sha256": digest, "created": old is None}
    return Result.text(f"{verb} {place.shown}: {len(data)} bytes", facts)


def _current(ctx: Context, place: Place) -> bytes | None:
    try:
        return ctx.files.read(place, EDIT_LIMIT)
    except NotFound:
        return None


def _check_base(seen: Seen, place: Place, old: bytes | None, base_hash: str) -> None:
    if old is None:
        raise Conflict(f"{place.shown}: does not exist any more. Nothing was written.")
    seen.check(place.path, old, place.shown)
    if seen.note(place.path, old) != base_hash.lower():
        raise Conflict(f"{place.shown}: is not the file of base_hash any more. Nothing was written; read it again.")


def _encoded(place: Place, params: Write, old: bytes | None) -> bytes:
    if old is None:
        return params.content.encode("utf-8", "surrogateescape" if params.content.isascii() else "strict")
    existing = decode(old)
    text = params.content
    ending = EOLS.get(eol_of(existing.text), "\n")
    if ending != "\n" and "\r" not in text:
        text = text.replace("\n", ending)
    try:
        return existing.encode(existing.text + text if params.mode == "append" else text)
    except UnicodeEncodeError as exc:
        if params.mode != "append" and not existing.encoding.bom:
            return text.encode("utf-8")
        raise InvalidInput(f"{place.shown}: {exc.object[exc.start]!r} cannot be written in {exc.encoding}.") from None


async def _store(ctx: Context, place: Place, data: bytes) -> None:
    if len(data) <= _IN_THREAD:
        ctx.files.write(place, data, parents=True)
    else:
        await asyncio.to_thread(lambda: ctx.files.write(place, data, parents=True))


async def edit(ctx: Context, params: Edit) -> Result:
    """Replace text; every other byte stays. The answer is the diff of the change."""
    place = ctx.files.place(params.path)
    wanted = _wanted(params)
    seen = Seen.of(ctx)
    async with seen.lock(place.path):
        old = ctx.files.read(place, EDIT_LIMIT)
        if _reading.looks_binary(old):
            raise InvalidInput(f"{place.shown}: binary; there is no text to edit.")
        seen.check(place.path, old, place.shown)
        before = decode(old)
        after = editing.apply(before.text, wanted, place.shown)
        try:
            data = before.encode(after)
        except UnicodeEncodeError as exc:
            char = exc.object[exc.start]
            raise InvalidInput(
                f"{place.shown}: is {before.encoding.name}, which has no {char!r}. Nothing was changed."
            ) from None
        if not params.dry_run:
            await _store(ctx, place, data)
            seen.note(place.path, data)
    change = _change(before.text, after, place.shown)
    head = "would change (dry_run)" if params.dry_run else "changed"
    return Result.text(f"{head} {place.shown}\n{change}", {"edits": len(wanted), "bytes": len(data)})


def _wanted(params: Edit) -> list[editing.Edit]:
    if params.edits and params.old is None:
        return [editing.Edit(one.old, one.new, one.all) for one in params.edits]
    if params.edits or params.old is None or params.new is None:
        raise InvalidInput("fs.edit: give old and new, or edits as a list of {old, new}.")
    return [editing.Edit(params.old, params.new, params.all)]


def _change(before: str, after: str, shown: str) -> str:
    """The diff of the changed region alone: comparing a whole large file would cost more than the edit."""
    old, new = before.split("\n"), after.split("\n")
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    first = max(0, start - 3)
    tail = max(0, end - 3)
    region = diff("\n".join(old[first : len(old) - tail]), "\n".join(new[first : len(new) - tail]), shown, shown, 400)
    return f"(from line {first + 1})\n{region}" if first else region


# -- list, search, stat


async def list_(ctx: Context, params: List) -> Result:
    """Entries of a directory, or files below it by path."""
    place = ctx.files.place(params.path)
    if params.depth == 1 and params.glob is None:
        names = await asyncio.to_thread(_entries, ctx, place, params.include_ignored)
        return _page(ctx, names, params, True, "" if params.include_ignored else "hidden entries are left out")
    flags = [f"--max-depth={params.depth}"] if params.depth > 1 else []
    flags += ["--hidden", "--no-ignore"] if params.include_ignored else []
    flags += [f"--glob={params.glob}"] if params.glob else []
    found, ended, honoured = await _finding.files_below(ctx, place, flags, 200_000)
    note = "hidden and ignored files are left out" if honoured and not params.include_ignored else ""
    return _page(
        ctx, sorted(found), params, ended, note if honoured else "ripgrep is missing: ignore files not honoured"
    )


def _entries(ctx: Context, place: Place, hidden: bool) -> list[str]:
    shown: list[str] = []
    for entry in ctx.files.scan(place):
        if entry.name.startswith(".") and not hidden:
            continue
        mark = "@" if entry.is_symlink() else ("/" if entry.is_dir(follow_symlinks=False) else "")
        shown.append(entry.name + mark)
    return sorted(shown)


def _page(ctx: Context, names: list[str], params: List, ended: bool, note: str) -> Result:
    part = names[params.offset : params.offset + params.limit]
    lines = [_detailed(ctx, params, name) for name in part] if params.details else [_printable(name) for name in part]
    total = f"{len(names)}" if ended else f"more than {len(names) - 1}"
    facts: JsonObject = {"total": len(names), "complete": ended}
    notes = [f"{total} entries", *([note] if note else [])]
    if params.offset + len(part) < len(names) or not ended:
        facts["next_offset"] = params.offset + len(part)
        notes.append(f"offset {facts['next_offset']} goes on")
    return Result.text("\n".join([*lines, f"[{'; '.join(notes)}]"]), facts)


def _printable(name: str) -> str:
    return (
        name
        if name.isprintable()
        else name.encode("utf-8", "surrogateescape")
        .decode("utf-8", "backslashreplace")
        .encode("unicode_escape")
        .decode()
    )


def _detailed(ctx: Context, params: List, name: str) -> str:
    path = os.path.join(params.path, name.rstrip("/@")) if params.depth == 1 and params.glob is None else name
    try:
        info = ctx.files.stat(ctx.files.place(path), follow=False)
    except ToolError as exc:
        return f"{_printable(name)}  ({exc})"
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(info.st_mtime))
    return f"{info.st_size:>12}  {when}  {_printable(name)}"


async def search(ctx: Context, params: Search) -> Result:
    """Matching lines, files or counts."""
    place = ctx.files.place(params.path)
    query = _query(params)
    wanted = params.offset + params.limit
    if params.output != "lines":
        found, ended = await _finding.count(ctx, place, query, wanted, params.output == "files")
        lines = [f"{_printable(hit.path)}" + (f":{hit.number}" if hit.number else "") for hit in found]
        return _search_page(lines[params.offset :][: params.limit], len(lines), params, ended, "")
    hits, ended, engine = await _finding.search(ctx, place, query, wanted)
    lines, total = _grouped(hits, params.offset, params.limit)
    return _search_page(lines, total, params, ended, "" if engine == "ripgrep" else f"searched {engine}")


def _query(params: Search) -> _finding.Query:
    chosen = {
        "--fixed-strings": params.literal,
        "--ignore-case": params.ignore_case,
        "--multiline": params.multiline,
        "--multiline-dotall": params.multiline,
        "--hidden": params.include_ignored,
        "--no-ignore": params.include_ignored,
        f"--context={params.context}": params.context > 0 and params.output == "lines",
        f"--glob={params.glob}": params.glob is not None,
        "--glob=!.git/": params.include_ignored,
    }
    flags = tuple(flag for flag, wanted in chosen.items() if wanted)
    return _finding.Query(params.pattern, flags, params.literal, params.ignore_case, params.glob)


def _grouped(hits: list[_finding.Hit], offset: int, limit: int) -> tuple[list[str], int]:
    """Lines by file, matches ``offset`` to ``offset + limit`` with their context; and the matches seen in all."""
    lines: list[str] = []
    seen = 0
    path = ""
    for hit in hits:
        if hit.matched:
            seen += 1
        if not offset < max(seen, 1) <= offset + limit or len(lines) > 5000:
            continue
        if hit.path != path:
            path = hit.path
            lines.append(_printable(path))
        lines.append(f"  {hit.number}{':' if hit.matched else '-'} {hit.text}")
    return lines, seen


def _search_page(lines: list[str], total: int, params: Search, ended: bool, note: str) -> Result:
    notes = [f"{total} matches" if ended else f"more than {total - 1} matches", *([note] if note else [])]
    facts: JsonObject = {"total": total, "complete": ended}
    if not ended or total > params.offset + params.limit:
        facts["next_offset"] = params.offset + params.limit
        notes.append(f"offset {facts['next_offset']} goes on")
    if not params.include_ignored:
        notes.append(
            "hidden, ignored and binary files are left out" if total == 0 else "without hidden and ignored files"
        )
    text = "\n".join(lines)
    if len(text) > _reading.CAP:
        text = text[: _reading.CAP]
        notes.append(f"cut at {_reading.CAP} characters; use a smaller limit")
    return Result.text(f"{text}\n[{'; '.join(notes)}]" if text else f"[{'; '.join(notes)}]", facts)


async def stat(ctx: Context, params: Stat) -> Result:
    """Type, size, mode, times and link target of paths."""
    rows = [_facts(ctx, name) for name in params.paths]
    lines = [
        f"{row['path']}: {row['error']}"
        if "error" in row
        else "{path}: {type}, {size} bytes, {mode}, {modified}".format(**row)
        for row in rows
    ]
    return Result.text("\n".join(lines), structured={"entries": rows})


def _facts(ctx: Context, name: str) -> JsonObject:
    try:
        info = ctx.files.stat(ctx.files.place(name), follow=False)
    except ToolError as exc:
        return {"path": name, "error": str(exc), "code": exc.code}
    return {
        "path": name,
        "type": _TYPES.get(modes.S_IFMT(info.st_mode), "other"),
        "size": info.st_size,
        "mode": modes.filemode(info.st_mode),
        "modified": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(info.st_mtime)),
        "links": info.st_nlink,
    }


_TYPES = {
    modes.S_IFREG: "file",
    modes.S_IFDIR: "directory",
    modes.S_IFLNK: "link",
    modes.S_IFIFO: "fifo",
    modes.S_IFSOCK: "socket",
}

TOOL = Tool(
    name="fs",
    title="Files",
    description="Files of the workspace. Prefer search to reading many files, and edit to writing a whole file again.",
    ops=[
        Op("read", Read, read, Access.READ, "text by lines, or an image"),
        Op("write", Write, write, Access.WRITE, "create or replace a file"),
        Op("edit", Edit, edit, Access.WRITE, "replace exact text"),
        Op("list", List, list_, Access.READ, "entries of a directory, or files below it"),
        Op("search", Search, search, Access.READ, "grep contents"),
        Op("stat", Stat, stat, Access.READ, "type, size, time"),
    ],
)
