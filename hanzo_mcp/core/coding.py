"""Content codings undone in bounded memory (RFC 9110 §8.4.1).

A few hundred bytes of gzip can stand for gigabytes, so the output is asked for in pieces and stops at a limit.
"""

from __future__ import annotations

import zlib

OFFERED = "gzip, deflate"
"""What to put in ``Accept-Encoding``."""
_PIECE = 256 * 1024
_AUTO = 32 + zlib.MAX_WBITS  # the zlib or the gzip header, whichever is there
_CODINGS = frozenset({"gzip", "x-gzip", "deflate"})


class Undecodable(Exception):
    """The body is not what its ``Content-Encoding`` says, or a coding nobody asked for; ``str()`` says which."""


def single(header: str) -> str | None:
    """The one coding named by a ``Content-Encoding`` header, ``None`` for none. Raises ``Undecodable``."""
    names = [name.strip().lower() for name in header.split(",")]
    names = [name for name in names if name and name != "identity"]
    if not names:
        return None
    if len(names) > 1 or names[0] not in _CODINGS:
        raise Undecodable(f"the content coding {', '.join(names)!r} was not asked for")
    return names[0]


def decode(data: bytes, coding: str, limit: int) -> tuple[bytes, str]:
    """At most ``limit`` decoded bytes, and why there are not all of them ("" when they are).

    Raises ``Undecodable``.
    """
    if not data:
        return b"", ""
    try:
        return _inflate(data, _wbits(data, coding), limit)
    except zlib.error as exc:
        raise Undecodable(f"the body is not valid {coding} ({exc})") from None


def _wbits(data: bytes, coding: str) -> int:
    """Some servers call raw deflate "deflate"; a zlib stream starts with 0x?8 and a checksum (RFC 1950 §2.2)."""
    zlib_header = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
    return -zlib.MAX_WBITS if coding == "deflate" and not zlib_header else _AUTO


def _inflate(data: bytes, wbits: int, limit: int) -> tuple[bytes, str]:
    stream = zlib.decompressobj(wbits)
    found = bytearray()
    while not stream.eof:
        piece = stream.decompress(data, min(_PIECE, limit + 1 - len(found)))
        data = stream.unconsumed_tail
        found += piece
        if len(found) > limit:
            del found[limit:]
            return bytes(found), f"it unpacks to more than {limit} bytes"
        if not piece and not data and not stream.eof:
            return bytes(found), "its compressed body ends early"
    if stream.unused_data.startswith(b"\x1f\x8b"):
        raise Undecodable("the body has several gzip members")
    return bytes(found), ""
