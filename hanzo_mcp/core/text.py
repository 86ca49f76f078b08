"""One sanitiser for other people's text and one redactor for secrets (sandbox design §4.8, HIP-0300 Security).

Text from a page, a repository, a command or the cloud may carry terminal escapes and invisible
characters that steer a terminal or a model. ``clean`` removes them; ``Redactor`` removes secrets.
"""

from __future__ import annotations

import base64
import json
import re
import urllib.parse
from typing import Any

from hanzo_mcp.core.shapes import as_list, as_object

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]"
)
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"  # zero width, bidi
    "\u061c\U000e0000-\U000e007f\U000e0100-\U000e01ef"  # tags and variation selectors, which can carry hidden text
    "\ud800-\udfff]"  # lone surrogates
)


def clean(text: str, limit: int | None = None) -> str:
    """``text`` without escape sequences, control, bidi, zero-width, tag characters and lone surrogates.

    Carriage returns before a newline vanish; a lone one becomes a newline. ``limit`` caps the length in characters.
    """
    if not text.isascii() or not text.isprintable():
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        text = _INVISIBLE.sub("", _ESCAPES.sub("", text))
    if limit is not None and len(text) > limit:
        return text[: limit - 1] + "…"
    return text


def one_line(text: str, limit: int = 300) -> str:
    """``clean`` text on one line, for a log or an error message."""
    return clean(" ".join(clean(text).split()), limit)


MASK = "[redacted]"
_MIN_SECRET = 6


class Redactor:
    """Replaces known secrets, in the spellings they are likely to leak in, by ``[redacted]``.

    Spellings: raw, JSON-escaped, URL-quoted, base64 and base64url (of the value and of ``user:value``-free form).
    """

    def __init__(self) -> None:
        self._secrets: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, secret: str | None) -> None:
        """Remember a secret. Very short ones are ignored: masking them would shred honest text."""
        if not secret or len(secret) < _MIN_SECRET or secret in self._secrets:
            return
        self._secrets.add(secret)
        spellings = sorted({form for known in self._secrets for form in _spellings(known)}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, spellings)))

    def finds_in(self, value: Any) -> bool:
        """Does any string of a JSON value hold a secret? Cheaper than encoding the value to look at its text."""
        if self._pattern is None:
            return False
        pending = [value]
        while pending:
            item = pending.pop()
            if isinstance(item, str):
                if self._pattern.search(item):
                    return True
            elif (inner := as_object(item)) is not None:
                pending += [*inner, *inner.values()]
            elif (items := as_list(item)) is not None:
                pending += items
        return False

    def redact(self, text: str) -> str:
        """``text`` with every known secret masked."""
        return self._pattern.sub(MASK, text) if self._pattern else text


def _spellings(secret: str) -> set[str]:
    raw = secret.encode("utf-8", "surrogateescape")
    return {
        secret,
        json.dumps(secret)[1:-1],
        urllib.parse.quote(secret, safe=""),
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
    }
