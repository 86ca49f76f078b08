"""Slices of JSON source text, so that a value can be passed on exactly as it was written.

Re-serialising loses what a parser does not keep: number spellings (``1e400``, ``0.10``), duplicate
keys, key order in some stacks. The door forwards slices instead (HIP-0300 §2.2 "verbatim").
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse)
_SPACE = re.compile(r"[ \t\n\r]*")
_LINE_BREAKS = re.compile(r"[\r\n]+")
_NON_ASCII = re.compile(r"[^\x00-\x7f]")


class Member(NamedTuple):
    """A decoded value and the text it was written as."""

    value: Any
    text: str


def members(source: str, start: int = 0) -> dict[str, Member]:
    """The members of the JSON object that starts at ``start``; the last of duplicate keys wins.

    Raises ``ValueError`` when there is no well-formed object.
    """
    at = _skip(source, start)
    if source[at : at + 1] != "{":
        raise ValueError("expected a JSON object")
    found: dict[str, Member] = {}
    at = _skip(source, at + 1)
    if source[at : at + 1] == "}":
        return found
    while True:
        key, at = _decoder.raw_decode(source, at)
        if not isinstance(key, str):
            raise ValueError("expected a string key")
        at = _expect(source, at, ":")
        value, end = _decoder.raw_decode(source, at)
        found[key] = Member(value, source[at:end])
        at = _skip(source, end)
        if source[at : at + 1] == "}":
            return found
        at = _expect(source, at, ",")


def one_line(text: str) -> str:
    """JSON source as ASCII on one line: the same value, safe on a line-framed wire.

    A raw line break in valid JSON can only be white space, and a non-ASCII character only part of a string.
    """
    text = _LINE_BREAKS.sub(" ", text)
    return text if text.isascii() else _NON_ASCII.sub(lambda match: json.dumps(match.group())[1:-1], text)


def _skip(source: str, at: int) -> int:
    match = _SPACE.match(source, at)
    return match.end() if match else at


def _expect(source: str, at: int, mark: str) -> int:
    at = _skip(source, at)
    if source[at : at + 1] != mark:
        raise ValueError(f"expected {mark!r} at position {at}")
    return _skip(source, at + 1)
