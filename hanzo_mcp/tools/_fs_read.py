"""fs.read: text by lines, images as images, anything else described or as base64."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from hanzo_mcp.core.encoding import EOLS, UTF8, Encoding, detect, eol_of, printable
from hanzo_mcp.core.tool import RESULT_META, JsonObject, Result
from hanzo_mcp.errors import InvalidInput, ToolError, from_oserror
from hanzo_mcp.runtime.local import Context
from hanzo_mcp.runtime.params import Params
from hanzo_mcp.sandbox.paths import Place
from hanzo_mcp.tools._fs_files import (
    CAP,
    INLINE,
    LIMIT,
    OFFSET,
    PATH,
    PATHS,
    WHOLE,
    WORD,
    Budget,
    Facts,
    Known,
    chosen,
    know,
    memory,
    regular,
    take,
    threaded,
)
from hanzo_mcp.tools._fs_lines import Range, blocks, lines_from, tail

IMAGE_LIMIT = 5 * 1024 * 1024
_LINES = 2000
_SAMPLE = 64 * 1024
_BASE64 = 72 * 1024
_IMAGES = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF87a", "gif"), (b"GIF89a", "gif"))
_KINDS = (
    (b"%PDF-", "PDF document"), (b"PK\x03\x04", "ZIP archive (or Office document, jar, wheel)"),
    (b"\x1f\x8b", "gzip data"), (b"\x7fELF", "ELF program or library"), (b"SQLite format 3\0", "SQLite database"),
    (b"BZh", "bzip2 data"), (b"\xfd7zXZ", "xz data"), (b"(\xb5/\xfd", "zstd data"), (b"MZ", "Windows program"),
    (b"\xca\xfe\xba\xbe", "Java class or Mach-O program"), (b"\0asm", "WebAssembly module"), (b"OggS", "Ogg media"),
)  # fmt: skip


class Read(Params):
    """One file or many."""

    model_config = ConfigDict(populate_by_name=True)

    path: str | None = Field(None, description=PATH)
    paths: list[str] | None = Field(None, description=PATHS)
    offset: int | None = Field(None, description=OFFSET)
    limit: int | None = Field(None, description=LIMIT)
    numbers: bool | None = Field(None, description="[read]")
    as_: Annotated[Literal["base64"] | None, WORD] = Field(None, alias="as", description="[read] base64")


@dataclass(frozen=True, slots=True)
class View:
    """What is shown of one file: ``block`` is a content block, ``note`` the last line, ``facts`` for ``_meta``."""

    block: JsonObject
    note: str
    facts: JsonObject


async def read(ctx: Context, params: Read) -> Result:
    """The text of a file as the first block, and a line about it in brackets.

    Facts of each file: ``path``, ``bytes``, ``encoding``, ``eol``, ``lines`` (total, when known), ``sha256`` (files
    up to 20 MB), ``first``, ``count``, ``next_offset`` (when lines follow), ``mime_type`` (images), ``as``.
    """
    paths = chosen(params.path, params.paths, "read")
    if params.limit is not None and params.limit < 1:
        raise InvalidInput(f"fs.read: limit: expected at least 1, got {params.limit}.")
    if len(paths) == 1:
        view = await _read_one(ctx, paths[0], params, CAP)
        note: JsonObject = {"type": "text", "text": view.note}
        return Result([view.block, note], meta={RESULT_META: view.facts})
    return await _read_many(ctx, paths, params)


async def _read_many(ctx: Context, paths: list[str], params: Read) -> Result:
    """Each file under its name; what cannot be read says why and the others are still shown."""
    content: list[JsonObject] = []
    facts: list[JsonObject] = []
    room, failed = CAP, 0
    for given in paths:
        path = printable(given)
        try:
            view = await _read_one(ctx, given, params, max(room, 0)) if room > 0 else None
        except ToolError as exc:
            failed += 1
            content.append({"type": "text", "text": f"== {path} ==\n[error: {exc}]"})
            facts.append({"path": path, "error": {**exc.details(), "message": str(exc)}})
            continue
        if view is None:
            content.append({"type": "text", "text": f"== {path} ==\n[not shown: the answer is full; read it alone]"})
            facts.append({"path": path, "shown": False})
            continue
        text = view.block.get("text")
        if text is None:
            content += [{"type": "text", "text": f"== {path} ==\n{view.note}"}, view.block]
        else:
            room -= len(text)
            content.append({"type": "text", "text": f"== {path} ==\n{text}{_gap(text)}{view.note}"})
        facts.append(view.facts)
    return Result(content, is_error=failed == len(paths), meta={RESULT_META: {"files": facts}})


def _gap(text: str) -> str:
    return "" if not text or text.endswith("\n") else "\n"


async def _read_one(ctx: Context, path: str, params: Read, cap: int) -> View:
    place = ctx.files.place(path)
    fd, info = regular(ctx, place)
    try:
        if info.st_size <= INLINE:
            return _view(ctx, fd, info, place, params, cap, Budget(20))
        # The thread owns a descriptor of its own: a cancelled call must not close it under the thread.
        twin = os.dup(fd)
    finally:
        os.close(fd)
    return await threaded(lambda budget: _closing(ctx, twin, info, place, params, cap, budget))


def _closing(ctx: Context, fd: int, info: os.stat_result, place: Place, params: Read, cap: int, budget: Budget) -> View:
    try:
        return _view(ctx, fd, info, place, params, cap, budget)
    except OSError as exc:
        raise from_oserror(exc, place.shown) from exc
    finally:
        os.close(fd)


def _view(ctx: Context, fd: int, info: os.stat_result, place: Place, params: Read, cap: int, budget: Budget) -> View:
    if params.as_ == "base64":
        return _as_base64(fd, info, place, params)
    facts: JsonObject = {"path": place.shown, "bytes": info.st_size}
    if info.st_size > WHOLE:
        return _view_large(fd, info, params, cap, budget, facts)
    kept = memory(ctx).kept(info) if info.st_size > INLINE else None
    if kept is not None:
        facts |= {"sha256": kept.sha256, "encoding": kept.encoding.name, "eol": kept.eol, "lines": kept.lines}
        return _again(fd, kept, params, cap, budget, facts)
    known = know(fd, info, place)
    facts |= {"bytes": len(known.data), "sha256": known.sha256}
    path = ctx.files.resolved(place).path
    memory(ctx).remember(ctx.session_id, path, known.sha256, known.data, known.encoding)
    image = _image_type(known.data)
    if image is not None and params.as_ is None:
        return _as_image(known, image, facts)
    if known.encoding is None:
        return _described(known.data, facts)
    view = _text(known, params, cap, facts)
    if info.st_size > INLINE and not known.encoding.codec.startswith(("utf-16", "utf-32")):
        memory(ctx).keep(info, Facts(known.sha256, known.encoding, facts["eol"], facts["lines"]))
    return view


def _again(fd: int, kept: Facts, params: Read, cap: int, budget: Budget, facts: JsonObject) -> View:
    """A range of a file whose totals are known: what stands before it is counted, what comes after is not read."""
    mark = EOLS["cr"].encode() if kept.eol == "cr" else b"\n"
    first, limit = _first(params.offset, kept.lines), _limit(params)
    source = blocks(lambda at, size: take(fd, at, size), len(kept.encoding.bom), budget.check, kept.encoding)
    return _shown(lines_from(source, mark, first, limit, cap), kept.encoding, kept.lines, params, facts)


def _limit(params: Read) -> int:
    return params.limit or (abs(params.offset) if params.offset is not None and params.offset < 0 else _LINES)


def _text(known: Known, params: Read, cap: int, facts: JsonObject) -> View:
    encoding = known.encoding or UTF8
    data, codec = known.data[len(encoding.bom) :], encoding
    if encoding.codec.startswith(("utf-16", "utf-32")):
        data = encoding.decode(known.data).encode("utf-8", "surrogatepass")
        codec = Encoding("utf-8", "surrogatepass")
    eol = eol_of(data)
    mark = EOLS["cr"].encode() if eol == "cr" else b"\n"
    total = data.count(mark) + (1 if data and not data.endswith(mark) else 0)
    facts |= {"encoding": encoding.name, "eol": eol, "lines": total}
    first, limit = _first(params.offset, total), _limit(params)
    found = lines_from(blocks(lambda at, size: data[at : at + size], 0, _nothing, UTF8), mark, first, limit, cap)
    return _shown(found, codec, total, params, facts)


def _nothing() -> None:
    """No deadline is needed for what is in memory."""


def _first(offset: int | None, total: int) -> int:
    if offset is None or offset == 0:
        return 1
    return offset if offset > 0 else max(1, total + offset + 1)


def _shown(found: Range, codec: Encoding, total: int | None, params: Read, facts: JsonObject) -> View:
    text = found.data.decode(codec.codec, codec.errors if codec.errors != "strict" else "surrogateescape")
    text = printable(text)
    if params.numbers:
        text = _numbered(text, found.first, facts["eol"])
    facts |= {"first": found.first, "count": found.count}
    if found.more and not found.cut:
        facts["next_offset"] = found.first + found.count
    if found.cut:
        facts |= {"line_cut": True, "next_offset": found.first + 1}
    return View({"type": "text", "text": text}, _note(found, total, facts), facts)


def _numbered(text: str, first: int, eol: str) -> str:
    mark = "\r" if eol == "cr" else "\n"
    lines = text.split(mark)
    last = lines.pop() if lines[-1] == "" else None
    shown = [f"{number:>6}\t{line}" for number, line in enumerate(lines, first)]
    return mark.join(shown) + (mark if last is not None and shown else "")


def _note(found: Range, total: int | None, facts: JsonObject) -> str:
    size = f"{facts['bytes']} bytes, {facts['encoding']}, {facts['eol']}"
    of = f" of {total}" if total is not None else ""
    if total == 0:
        where = "empty file"
    elif found.count == 0:
        where = f"line {found.first} is the last, nothing at this offset" if total is None else f"only {total} lines"
    elif found.count == total:
        where = f"{total} lines" if total != 1 else "1 line"
    else:
        where = f"lines {found.first}-{found.first + found.count - 1}{of}"
    parts = [where, size]
    if "sha256" in facts:
        parts.append(f"sha256 {facts['sha256'][:16]}")
    if found.cut:
        parts.append("the line is longer than an answer and cut; the rest with as=base64 and a byte offset")
    if "next_offset" in facts:
        parts.append(f"go on with offset={facts['next_offset']}")
    return f"[{'; '.join(parts)}]"


def _view_large(fd: int, info: os.stat_result, params: Read, cap: int, budget: Budget, facts: JsonObject) -> View:
    """More than ``WHOLE`` bytes: only what is asked for is kept, nothing is hashed."""
    sample = take(fd, 0, _SAMPLE)
    encoding = detect(sample, whole=False)
    image = _image_type(sample)
    if image is not None:
        facts["mime_type"] = image
    if encoding is None or image is not None:
        return _described(sample, facts)
    wide = encoding.codec.startswith(("utf-16", "utf-32"))
    eol = eol_of(sample.decode(encoding.codec, "replace") if wide else sample)
    mark = b"\r" if eol == "cr" else b"\n"
    facts |= {"encoding": encoding.name, "eol": eol}
    start, codec = len(encoding.bom), Encoding("utf-8", "surrogatepass") if wide else encoding

    if params.offset is not None and params.offset < 0 and not wide:
        return _view_tail(fd, info, mark, codec, params, cap, facts)
    first = params.offset or 1
    if first < 0:
        count = sum(block.count(mark) for block in blocks(lambda a, s: take(fd, a, s), start, budget.check, encoding))
        first = max(1, count + first + 1)
    source = blocks(lambda at, size: take(fd, at, size), start, budget.check, encoding)
    return _shown(lines_from(source, mark, first, params.limit or _LINES, cap), codec, None, params, facts)


def _view_tail(
    fd: int, info: os.stat_result, mark: bytes, codec: Encoding, params: Read, cap: int, facts: JsonObject
) -> View:
    wanted = min(-(params.offset or -1), 100_000)
    data, at = tail(lambda start, size: take(fd, start, size), info.st_size, mark, wanted, cap)
    if params.limit is not None:
        found = lines_from(iter([data]), mark, 1, params.limit, cap)
        data = found.data
    text = printable(data.decode(codec.codec, "surrogateescape"))
    count = data.count(mark) + (1 if data and not data.endswith(mark) else 0)
    facts |= {"count": count, "byte_offset": at}
    size = f"{facts['bytes']} bytes, {facts['encoding']}, {facts['eol']}"
    note = f"[{count} lines from byte {at} of {size}; line numbers are not known without reading it all]"
    return View({"type": "text", "text": text}, note, facts)


def _as_base64(fd: int, info: os.stat_result, place: Place, params: Read) -> View:
    start = params.offset or 0
    if start < 0:
        start = max(0, info.st_size + start)
    data = take(fd, start, min(params.limit or _BASE64, _BASE64)) if start < info.st_size else b""
    facts: JsonObject = {"path": place.shown, "bytes": info.st_size, "as": "base64", "first": start, "count": len(data)}
    parts = [f"bytes {start}-{start + len(data)} of {info.st_size} as base64"]
    if start + len(data) < info.st_size:
        facts["next_offset"] = start + len(data)
        parts.append(f"go on with offset={facts['next_offset']}")
    return View({"type": "text", "text": base64.b64encode(data).decode()}, f"[{'; '.join(parts)}]", facts)


def _image_type(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((f"image/{kind}" for magic, kind in _IMAGES if data.startswith(magic)), None)


def _as_image(known: Known, mime: str, facts: JsonObject) -> View:
    facts["mime_type"] = mime
    if len(known.data) > IMAGE_LIMIT:
        return _described(known.data, facts)
    block: JsonObject = {"type": "image", "data": base64.b64encode(known.data).decode(), "mimeType": mime}
    return View(block, f"[{mime}, {len(known.data)} bytes; sha256 {known.sha256[:16]}]", facts)


def _described(head: bytes, facts: JsonObject) -> View:
    """A binary in one line."""
    kind = _image_type(head) or next((name for magic, name in _KINDS if head.startswith(magic)), "binary data")
    facts |= {"binary": True, "kind": kind}
    text = f"{facts['path']}: {kind}, {facts['bytes']} bytes, not shown as text."
    note = "[binary; as=base64 gives its bytes, with offset and limit in bytes]"
    if facts.get("mime_type"):
        note = f"[an image above {IMAGE_LIMIT // 1024 // 1024} MB is not shown; as=base64 gives its bytes]"
    return View({"type": "text", "text": text}, note, facts)
