"""Reading a file or a part of it, for ``fs.read``."""

from __future__ import annotations

import base64
import os
from typing import BinaryIO, NamedTuple

from hanzo_mcp.core.textfile import Text, decode, eol_of, is_binary, lines_of
from hanzo_mcp.core.tool import JsonObject
from hanzo_mcp.errors import InvalidInput, TooLarge
from hanzo_mcp.sandbox.paths import Place, Workspace

WHOLE = 20 * 1024 * 1024
"""Bytes up to which a file is read and hashed as a whole; beyond, only the asked lines are."""
CAP = 100_000
"""Characters of text in one answer."""
MAX_IMAGE = 5 * 1024 * 1024
_CHUNK = 1 << 20
_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


class Excerpt(NamedTuple):
    """Lines of a text file. ``first`` counts from 1; ``total`` is ``None`` when the file was not read to its end."""

    text: Text
    lines: list[str]
    first: int
    total: int | None
    size: int
    whole: bytes | None


def image_type(data: bytes) -> str | None:
    """The media type of an image clients can show."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _IMAGES if data.startswith(magic)), None)


def image_block(data: bytes, kind: str) -> JsonObject:
    """An MCP image content block."""
    return {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": kind}


def head(files: Workspace, place: Place) -> tuple[bytes, int]:
    """The first bytes of a regular file, and its size."""
    with _opened(files, place) as file:
        return file.read(8192), os.fstat(file.fileno()).st_size


def slice_of(files: Workspace, place: Place, offset: int, limit: int) -> bytes:
    """Bytes from ``offset``; a negative one counts from the end."""
    with _opened(files, place) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size + offset) if offset < 0 else offset)
        return file.read(limit)


def excerpt(files: Workspace, place: Place, offset: int, limit: int) -> Excerpt:
    """``limit`` lines from line ``offset`` (1 is the first, -1 the last). Raises ``InvalidInput`` past the end."""
    with _opened(files, place) as file:
        size = os.fstat(file.fileno()).st_size
        if size <= WHOLE:
            return _from_whole(file.read(), place, offset, limit)
        if offset < 0:
            return _from_tail(file, size, place, -offset, limit)
        return _streamed(file, size, place, offset, limit)


def _opened(files: Workspace, place: Place) -> BinaryIO:
    fd = files.open(place)
    try:
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            raise InvalidInput(f"{place.shown}: is a directory; fs.list shows what is in it.")
        return os.fdopen(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


def _from_whole(data: bytes, place: Place, offset: int, limit: int) -> Excerpt:
    text = decode(data)
    lines = lines_of(text.text)
    first = max(1, len(lines) + 1 + offset) if offset < 0 else max(1, offset)
    if first > len(lines) and lines:
        raise InvalidInput(f"{place.shown}: has {len(lines)} lines; offset {offset} is past the end.")
    return Excerpt(text, lines[first - 1 : first - 1 + limit], first, len(lines), len(data), data)


def _streamed(file: BinaryIO, size: int, place: Place, offset: int, limit: int) -> Excerpt:
    """Count line feeds up to the first wanted line, then keep the wanted ones: memory is that of the answer."""
    _refuse_wide(file.read(4), place)
    file.seek(0)
    skip = max(1, offset) - 1
    kept: list[bytes] = []
    rest = 4 * CAP
    pending = b""
    while chunk := file.read(_CHUNK):
        if skip:
            ends = chunk.count(b"\n")
            if ends < skip:
                skip -= ends
                continue
            at = -1
            for _ in range(skip):
                at = chunk.index(b"\n", at + 1)
            chunk, skip = chunk[at + 1 :], 0
        pending += chunk
        *ended, pending = pending.split(b"\n")
        kept += [line + b"\n" for line in ended]
        rest -= len(chunk)
        if len(kept) >= limit or rest <= 0:
            break
    else:
        if skip:
            raise InvalidInput(f"{place.shown}: has fewer lines than offset {offset}.")
    if len(kept) < limit and pending:
        kept.append(pending)
    text = decode(b"".join(kept[:limit]))
    return Excerpt(text, lines_of(text.text), max(1, offset), None, size, None)


def _from_tail(file: BinaryIO, size: int, place: Place, count: int, limit: int) -> Excerpt:
    _refuse_wide(file.read(4), place)
    data = b""
    at = size
    while at > 0 and data.count(b"\n") <= count and len(data) <= 8 * CAP:
        step = min(_CHUNK, at)
        at -= step
        file.seek(at)
        data = file.read(step) + data
    lines = data.split(b"\n")
    ended = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    text = decode(b"".join(ended[-count:][:limit]))
    return Excerpt(text, lines_of(text.text), -count, None, size, None)


def _refuse_wide(start: bytes, place: Place) -> None:
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise TooLarge(f"{place.shown}: UTF-16 and UTF-32 files over {WHOLE} bytes cannot be read by line.")


def facts_of(found: Excerpt) -> JsonObject:
    """Encoding and line endings, for ``_meta`` and for the last line."""
    sample = found.text.text if found.whole is None or len(found.whole) < _CHUNK else "".join(found.lines)
    return {"encoding": found.text.encoding.shown(), "eol": eol_of(sample), "bytes": found.size}


def looks_binary(start: bytes) -> bool:
    """A file whose bytes are no text."""
    return is_binary(start)
