"""Bytes of a text file <-> text, so that what is not edited comes back byte for byte.

The codec is chosen to be lossless for the bytes at hand: a BOM decides, then UTF-8, then Windows-1252 when every
byte has a meaning in it, then Latin-1, which always fits. Line endings are never translated here.
"""

from __future__ import annotations

from typing import NamedTuple

_BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_SNIFFED = 8192


class Encoding(NamedTuple):
    """A codec and the byte order mark in front of the text."""

    name: str
    bom: bytes

    def shown(self) -> str:
        """``utf-8``, ``utf-8 with BOM``, ``latin-1`` and so on."""
        return f"{self.name} with BOM" if self.bom else self.name


class Text(NamedTuple):
    """Decoded content; line endings are as in the file."""

    text: str
    encoding: Encoding

    def encode(self, text: str) -> bytes:
        """``text`` as bytes of this file. Raises ``UnicodeEncodeError`` for characters the codec lacks."""
        return self.encoding.bom + text.encode(self.encoding.name, _errors(self.encoding.name))


def is_binary(head: bytes) -> bool:
    """Does the start of a file look like no text? A NUL outside UTF-16/32 decides."""
    return b"\0" in head[:_SNIFFED] and _bom(head).bom == b""


def decode(data: bytes) -> Text:
    """``data`` as text; always succeeds, and ``encode`` of the result gives ``data`` again."""
    marked = _bom(data)
    body = data[len(marked.bom) :]
    for name in (marked.name, *(("cp1252", "latin-1") if marked.name == "utf-8" else ())):
        try:
            found = Text(body.decode(name, _errors(name)), Encoding(name, marked.bom))
        except UnicodeDecodeError:
            continue
        # UTF-8 is exact by its definition; the wide codecs may have read what they cannot write.
        if name == "utf-8" or found.encode(found.text) == data:
            return found
    return Text(data.decode("latin-1"), Encoding("latin-1", b""))


def _bom(data: bytes) -> Encoding:
    for mark, name in _BOMS:
        if data.startswith(mark):
            return Encoding(name, mark)
    return Encoding("utf-8", b"")


def _errors(name: str) -> str:
    return "surrogatepass" if name.startswith("utf-16") else "strict"


def eol_of(text: str) -> str:
    """``lf``, ``crlf``, ``cr``, ``mixed`` or ``none``."""
    crlf = text.count("\r\n")
    lf, cr = text.count("\n") - crlf, text.count("\r") - crlf
    kinds = [name for name, count in (("crlf", crlf), ("lf", lf), ("cr", cr)) if count]
    return kinds[0] if len(kinds) == 1 else ("mixed" if kinds else "none")


EOLS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}


def lines_of(text: str) -> list[str]:
    """Lines with their endings; CRLF and LF end a line, a lone CR does in a file that has no other ending."""
    ending = "\r" if "\r" in text and "\n" not in text else "\n"
    parts = text.split(ending)
    last = parts.pop()
    return [part + ending for part in parts] + ([last] if last else [])
