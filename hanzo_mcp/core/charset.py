"""Bytes from the web as text: byte order mark, header, the document's own word, then a guess that loses nothing.

Labels mean what the WHATWG Encoding Standard says they mean (``iso-8859-1`` is windows-1252), and only its encodings
are known here: Python also has codecs that are no charset (``unicode_escape``, ``idna``).
"""

from __future__ import annotations

import codecs
import re

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_META = re.compile(rb"<meta[^<>]*?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_XML = re.compile(rb"^\s*<\?xml[^<>]*?encoding\s*=\s*[\"']([\w.:-]{1,40})", re.IGNORECASE)
_SNIFFED = 4096
_ALIASES = {
    "ascii": "cp1252", "us-ascii": "cp1252", "latin1": "cp1252", "latin-1": "cp1252", "l1": "cp1252",
    "iso-8859-1": "cp1252", "iso8859-1": "cp1252", "windows-1252": "cp1252", "cp1252": "cp1252",
    "utf8": "utf-8", "utf-8": "utf-8", "unicode-1-1-utf-8": "utf-8",
    "utf-16": "utf-16-le", "utf-16le": "utf-16-le", "utf-16be": "utf-16-be",
    "gb2312": "gb18030", "gbk": "gb18030", "x-gbk": "gb18030", "gb18030": "gb18030",
    "big5": "big5hkscs", "big5-hkscs": "big5hkscs", "euc-jp": "euc_jp", "iso-2022-jp": "iso2022_jp",
    "shift_jis": "cp932", "shift-jis": "cp932", "sjis": "cp932", "x-sjis": "cp932", "windows-31j": "cp932",
    "euc-kr": "cp949", "ks_c_5601-1987": "cp949", "windows-949": "cp949", "windows-874": "cp874", "tis-620": "cp874",
    "iso-8859-9": "cp1254", "iso-8859-11": "cp874", "koi8-r": "koi8-r", "koi8-u": "koi8-u", "ibm866": "cp866",
    "macintosh": "mac-roman", "x-mac-cyrillic": "mac-cyrillic",
}  # fmt: skip
_FAMILIES = re.compile(r"(?:windows-|cp)(125[0-8])|iso-?8859-(1[03-6]|[2-8])")


def decode(data: bytes, declared: str | None) -> tuple[str, str]:
    """The text, and the encoding it was read with; ``declared`` is the ``charset`` parameter of the content type.

    Never fails. A byte that has no meaning becomes U+FFFD; a document that is plainly not the UTF-8 it claims to be
    is read as windows-1252.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace"), encoding
    encoding = known(declared) or _own_word(data[:_SNIFFED])
    if encoding not in (None, "utf-8"):
        return data.decode(encoding, "replace"), encoding
    text = data.decode("utf-8", "replace")
    wrong = text.count("\ufffd")
    if wrong * 2 > _non_ascii(text):
        return data.decode("cp1252", "replace"), "cp1252"
    return text, "utf-8"


def _non_ascii(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


def known(label: str | None) -> str | None:
    """The Python codec for a charset label, ``None`` for a label the web does not have."""
    name = (label or "").strip().strip("\"'").lower()
    family = _FAMILIES.fullmatch(name)
    if family:
        return f"cp{family[1]}" if family[1] else f"iso8859-{family[2]}"
    return _ALIASES.get(name)


def _own_word(head: bytes) -> str | None:
    match = _XML.match(head) or _META.search(head)
    encoding = known(match[1].decode("ascii")) if match else None
    # A document whose tag could be read as ASCII is not UTF-16, whatever the tag says.
    return "utf-8" if encoding and encoding.startswith("utf-16") else encoding
