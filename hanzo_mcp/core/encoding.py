"""What a file's bytes are: which text encoding, which line ending, or no text at all.

Every encoding named here gives the same bytes back when text is decoded and encoded again, so a change in one place
never touches another. Nothing is replaced silently: bytes that are no UTF-8 in a UTF-8 file survive as escapes.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SNIFFED = 8192
_CONTROLS = bytes([*range(9), *range(14, 27), *range(28, 32)])
_BREAK = re.compile(r"\r\n|\n|\r")
EOLS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}


@dataclass(frozen=True, slots=True)
class Encoding:
    """A codec with the error handler that loses nothing, and the byte order mark in front.

    ``damaged`` counts bytes that are not valid in it and are shown as ``\\xNN``.
    """

    codec: str
    errors: str = "strict"
    bom: bytes = b""
    damaged: int = 0

    @property
    def name(self) -> str:
        """For people: ``utf-8``, ``utf-8 with BOM``, ``cp1252``, ``utf-8 (2 invalid bytes)``."""
        name = f"{self.codec} with BOM" if self.bom else self.codec
        return f"{name} ({self.damaged} invalid bytes, shown as \\xNN)" if self.damaged else name

    def decode(self, data: bytes) -> str:
        """The text of a whole file, without its mark."""
        return data[len(self.bom) :].decode(self.codec, self.errors)

    def encode(self, text: str) -> bytes:
        """Text as bytes, without a mark. Raises ``UnicodeEncodeError`` for what the encoding cannot hold."""
        return text.encode(self.codec, self.errors)


UTF8 = Encoding("utf-8")


def detect(data: bytes, *, whole: bool = True) -> Encoding | None:
    """The encoding of a file, ``None`` when it is no text. ``whole`` is false for the beginning of a longer one."""
    if data.isascii() and b"\0" not in data:
        return UTF8
    for bom, codec in _BOMS:
        if data.startswith(bom):
            return _marked(data, codec, bom, whole)
    if b"\0" in data[:_SNIFFED]:
        return _unmarked_utf16(data, whole)
    return _utf8(data, b"", whole) or _single_byte(data)


def _marked(data: bytes, codec: str, bom: bytes, whole: bool) -> Encoding | None:
    if codec == "utf-8":
        return _utf8(data[len(bom) :], bom, whole) or Encoding("utf-8", "surrogateescape", bom, 1)
    unit = 4 if codec.startswith("utf-32") else 2
    body = data[len(bom) :]
    if whole and len(body) % unit:
        return None
    try:
        body[: len(body) // unit * unit].decode(codec, "surrogatepass")
    except UnicodeDecodeError as exc:
        return None if whole or exc.end < len(body) - unit else Encoding(codec, "surrogatepass", bom)
    return Encoding(codec, "surrogatepass", bom)


def _utf8(data: bytes, bom: bytes, whole: bool) -> Encoding | None:
    """UTF-8, also with a few bad bytes among good sequences; ``None`` when another encoding is likelier."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=whole)
    except UnicodeDecodeError:
        text = data.decode("utf-8", "surrogateescape")
        bad = sum(1 for char in text if "\udc80" <= char <= "\udcff")
        good = sum(1 for char in text if char > "\x7f") - bad
        return Encoding("utf-8", "surrogateescape", bom, bad) if good > bad else None
    return Encoding("utf-8", "strict" if whole else "surrogateescape", bom)


def _single_byte(data: bytes) -> Encoding | None:
    head = data[:_SNIFFED]
    if len(head) - len(head.translate(None, _CONTROLS)) > len(head) // 50:
        return None
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return Encoding("latin-1")
    return Encoding("cp1252")


def _unmarked_utf16(data: bytes, whole: bool) -> Encoding | None:
    """UTF-16 without a mark, as some editors write it: half of (nearly) every pair is zero."""
    head = data[:_SNIFFED]
    if len(head) < 4 or (whole and len(data) % 2):
        return None
    even, odd, pairs = head[::2].count(0), head[1::2].count(0), len(head) // 2
    codec = "utf-16-le" if odd * 2 > pairs and even * 20 < pairs else "utf-16-be"
    if codec == "utf-16-be" and not (even * 2 > pairs and odd * 20 < pairs):
        return None
    try:
        text = data[: len(data) // 2 * 2].decode(codec)
    except UnicodeDecodeError:
        return None
    return Encoding(codec, "surrogatepass") if text[:_SNIFFED].count("\0") == 0 else None


def eol_of(text: str | bytes) -> str:
    """``lf``, ``crlf``, ``cr``, ``mixed`` or ``none``."""
    if isinstance(text, bytes):
        pairs, feeds, returns = text.count(b"\r\n"), text.count(b"\n"), text.count(b"\r")
    else:
        pairs, feeds, returns = text.count("\r\n"), text.count("\n"), text.count("\r")
    counts = {"crlf": pairs, "lf": feeds - pairs, "cr": returns - pairs}
    used = [name for name, count in counts.items() if count]
    return "none" if not used else used[0] if len(used) == 1 else "mixed"


def with_eol(text: str, eol: str) -> str:
    """``text`` with every line break written as ``eol`` (``lf``, ``crlf``, ``cr``; others leave it)."""
    mark = EOLS.get(eol)
    return text if mark is None or (mark == "\n" and "\r" not in text) else _BREAK.sub(mark, text)


def breaks(text: str) -> list[str]:
    """The line breaks in ``text``, in order."""
    return _BREAK.findall(text)


def split(text: str) -> list[str]:
    """The lines of ``text`` without their breaks; a break at the end gives an empty last one."""
    return _BREAK.split(text)


def printable(text: str) -> str:
    """``text`` that JSON can carry: undecodable bytes and lone surrogates as ``\\xNN`` and ``\\uNNNN``."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        escaped = (f"\\x{ord(c) - 0xDC00:02x}" if "\udc80" <= c <= "\udcff" else c for c in text)
        return "".join(escaped).encode("utf-8", "backslashreplace").decode("utf-8")
    return text
