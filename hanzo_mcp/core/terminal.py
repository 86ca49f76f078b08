"""What a terminal would show of a command's output, as plain text (sandbox design §4.8).

Progress bars overwrite their line with carriage returns and backspaces; only the last state is worth reading.
"""

from __future__ import annotations

import re

from hanzo_mcp.core.text import clean

_ERASE = re.compile(r"\x1b\[[0-3]?K")
_BINARY_SHARE = 0.3
_BINARY_MIN = 16
_NUL = "␀"


def settle(text: str) -> str:
    """``text`` with overwritten parts gone, escape sequences and invisible characters removed, NUL shown as ␀."""
    if text.isprintable():
        return text
    text = text.replace("\r\n", "\n").replace("\0", _NUL)
    if "\r" in text or "\b" in text:
        text = "\n".join(_last_state(line) for line in text.split("\n"))
    return clean(text)


def _last_state(line: str) -> str:
    shown = ""
    for part in line.split("\r"):
        erases = _ERASE.search(part) is not None
        plain = clean(_backspaced(part))
        shown = plain if erases else plain + shown[len(plain) :]
    return shown


def _backspaced(text: str) -> str:
    if "\b" not in text:
        return text
    kept: list[str] = []
    for char in text:
        if char != "\b":
            kept.append(char)
        elif kept:
            kept.pop()
    return "".join(kept)


def is_binary(data: bytes) -> bool:
    """Is this no text in any encoding near UTF-8? Judged by the share of bytes that cannot be decoded or shown."""
    sample = data[:8192]
    text = sample.decode("utf-8", "replace")
    odd = text.count("\ufffd") + 2 * sample.count(b"\0\0")  # one NUL separates names, two never do
    odd += sum(1 for char in text if char < " " and char not in "\t\n\r\b\x1b\f\0")
    return odd >= _BINARY_MIN and odd > _BINARY_SHARE * len(sample)


def last_line(data: bytes) -> str:
    """The last line with something in it, settled; empty when there is none."""
    for line in reversed(data.decode("utf-8", "replace").replace("\r", "\n").split("\n")):
        shown = settle(line).strip()
        if shown:
            return shown
    return ""
