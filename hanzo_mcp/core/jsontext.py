"""JSON source made readable without changing a value: numbers, keys and duplicates stay as they were written."""

from __future__ import annotations

import json
import re

MAX_LENGTH = 1_000_000
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_DEEPEST = 10
"""Indentation stops growing here: a thousand levels would turn a page into gigabytes of blanks."""


def indented(source: str) -> str | None:
    """``source`` with one member or item a line, ``None`` when it is not JSON or longer than ``MAX_LENGTH``."""
    if len(source) > MAX_LENGTH:
        return None
    try:
        json.loads(source)
    except (ValueError, RecursionError):
        return None
    pieces: list[str] = []
    depth, before = 0, ""
    for part in _TOKEN.findall(source):
        if part in "]}":
            depth -= 1
        if (part in "]}" and before not in "[{") or (before in ("[", "{", ",") and part not in "]}"):
            pieces.append("\n" + "  " * min(depth, _DEEPEST))
        pieces.append(": " if part == ":" else part)
        if part in "[{":
            depth += 1
        before = part
    return "".join(pieces)
