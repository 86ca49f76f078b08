"""Lines out of a file of any size: what is asked for is read, the rest only counted, nothing is kept."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from hanzo_mcp.core.encoding import Encoding

_BLOCK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Range:
    """``data`` are whole lines from line ``first`` (1-based), ``count`` of them.

    ``more`` is true when lines follow; ``cut`` when the last line is longer than the answer may be.
    """

    data: bytes
    first: int
    count: int
    more: bool
    cut: bool = False


Reader = Callable[[int, int], bytes]
"""``(offset, size) -> bytes``; empty at the end."""


def blocks(read: Reader, at: int, check: Callable[[], None], encoding: Encoding) -> Generator[bytes]:
    """The bytes from ``at`` on; UTF-16 and UTF-32 come as UTF-8."""
    wide = encoding.codec.startswith(("utf-16", "utf-32"))
    decoder = codecs.getincrementaldecoder(encoding.codec)("surrogateescape" if not wide else "replace")
    while piece := read(at, _BLOCK):
        at += len(piece)
        check()
        yield decoder.decode(piece).encode("utf-8", "surrogatepass") if wide else piece


def lines_from(source: Iterator[bytes], mark: bytes, first: int, limit: int, cap: int) -> Range:
    """``limit`` lines from line ``first`` on, at most ``cap`` bytes of them."""
    line, rest = 1, b""
    for block in source:
        found = block.count(mark)
        if line + found >= first:
            rest = block[_nth(block, mark, first - line) :]
            line = first
            break
        line += found
    else:
        return Range(b"", line, 0, False)
    return _taken(rest, source, mark, first, limit, cap)


def _taken(rest: bytes, source: Iterator[bytes], mark: bytes, first: int, limit: int, cap: int) -> Range:
    kept, count, ended = bytearray(), 0, False
    while count < limit and len(kept) <= cap:
        if not rest:
            rest = next(source, b"")
            if not rest:
                ended = True
                break
        stop = _nth(rest, mark, limit - count)
        kept += rest[:stop]
        count += rest.count(mark, 0, stop)
        rest = rest[stop:]
    if len(kept) > cap:
        return _capped(bytes(kept), mark, first, cap)
    more = not ended and bool(rest or next(source, b""))
    unfinished = bool(kept) and not kept.endswith(mark)
    return Range(bytes(kept), first, count + unfinished, more)


def _capped(kept: bytes, mark: bytes, first: int, cap: int) -> Range:
    """The whole lines that fit; a single one that does not is cut."""
    stop = kept.rfind(mark, 0, cap)
    if stop < 0:
        return Range(kept[:cap], first, 1, True, cut=True)
    data = kept[: stop + len(mark)]
    return Range(data, first, data.count(mark), True)


def _nth(block: bytes, mark: bytes, number: int) -> int:
    """The position after the ``number``-th ``mark``; the end when there are fewer."""
    at = 0
    for _ in range(number):
        found = block.find(mark, at)
        if found < 0:
            return len(block)
        at = found + len(mark)
    return at


def tail(read: Reader, size: int, mark: bytes, number: int, cap: int) -> tuple[bytes, int]:
    """The last ``number`` lines, at most ``cap`` bytes, and where they start; read from the end backwards."""
    at, kept = size, b""
    while at > 0 and len(kept) <= cap and kept.count(mark, 0, max(0, len(kept) - len(mark))) < number:
        start = max(0, at - _BLOCK)
        kept = read(start, at - start) + kept
        at = start
    body = kept[:-1] if kept.endswith(mark) else kept
    stop = len(body)
    for _ in range(number):
        stop = body.rfind(mark, 0, stop)
        if stop < 0:
            break
    begin = stop + len(mark) if stop >= 0 else 0
    if len(kept) - begin > cap:
        over = kept.find(mark, len(kept) - cap - 1)
        begin = over + len(mark) if 0 <= over < len(kept) - 1 else len(kept) - cap
    return kept[begin:], at + begin
