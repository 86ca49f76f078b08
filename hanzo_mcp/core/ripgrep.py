"""Ripgrep's command line for a search, and its answers."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, Protocol

from hanzo_mcp.core.matches import Found, Hit
from hanzo_mcp.core.text import clean

Name = Callable[[str], "str | None"]
"""What a path is called in the answer; ``None`` leaves it out."""


class Query(Protocol):
    """What a search is given."""

    @property
    def pattern(self) -> str: ...
    @property
    def literal(self) -> bool | None: ...
    @property
    def ignore_case(self) -> bool | None: ...
    @property
    def type(self) -> str | None: ...
    @property
    def context(self) -> int | None: ...
    @property
    def output(self) -> str | None: ...
    @property
    def glob(self) -> list[str] | None: ...
    @property
    def include_ignored(self) -> bool | None: ...


def spans_lines(query: Query) -> bool:
    """May a match span lines? When the pattern names a line break, or lets the dot be one."""
    return "\n" in query.pattern or (not query.literal and ("\\n" in query.pattern or "(?s" in query.pattern))


def arguments(query: Query) -> list[str]:
    """Options; every value is in one word with its option, so none can be taken for an option."""
    forms = {"files": ["--files-with-matches", "--null"], "count": ["--count-matches", "--null", "--with-filename"]}
    out = ["--no-config", "--no-messages", "--no-require-git", "--crlf", *forms.get(query.output or "", ["--json"])]
    switches = {
        "--fixed-strings": query.literal,
        "--ignore-case": query.ignore_case,
        "--multiline": spans_lines(query),
        "--hidden": query.include_ignored,
        "--no-ignore": query.include_ignored,
        "--glob=!.git": query.include_ignored,
    }
    out += [option for option, wanted in switches.items() if wanted]
    out += [f"--glob={glob}" for glob in query.glob or []]
    if query.type:
        out.append(f"--type={query.type}")
    if query.context:
        out.append(f"--context={min(max(query.context, 0), 50)}")
    return [*out, f"--regexp={query.pattern}"]


def trouble(message: str) -> str:
    """Ripgrep's complaint for the one who wrote the pattern."""
    text = clean(message, 1500).removeprefix("rg: ")
    if "unrecognized file type" in text:
        return f"{text} (for example py, js, ts, rust, go, java, c, cpp, md, json, yaml; or use glob)"
    if "look-around" in text or "backreferences" in text:
        text = text.split("Consider enabling PCRE2")[0].strip()
        return f"{text}\nThis engine has no look-around and no backreferences."
    return f"{text}\nGive literal: true to search for plain text."


def parse_json(data: bytes, cut: bool, name: Name) -> Found:
    """The messages of ``--json`` (ripgrep's printer documentation): begin, match, context, end, summary."""
    found = Found(cut=cut)
    path: str | None = None
    for line in data.split(b"\n")[:-1]:
        if line.startswith(b'{"type":"begin"'):
            path = name(_text(json.loads(line)["data"]["path"]))
        elif line.startswith((b'{"type":"match"', b'{"type":"context"')) and path is not None:
            found.hits.setdefault(path, []).append(_hit(json.loads(line)))
        elif line.startswith(b'{"type":"end"') and b'"binary_offset":null' not in line and path is not None:
            found.binary += 1
            found.hits.pop(path, None)
    return found


def _hit(message: dict[str, Any]) -> Hit:
    data = message["data"]
    at = data["submatches"][0]["start"] if data["submatches"] else 0
    return Hit(data["line_number"] or 0, _text(data["lines"]), message["type"] == "match", at)


def _text(value: dict[str, str]) -> str:
    """``{"text"}``, or ``{"bytes"}`` for what is no UTF-8."""
    if "text" in value:
        return value["text"]
    data = base64.b64decode(value["bytes"])
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def parse_names(data: bytes, cut: bool, name: Name) -> Found:
    """Paths, each with a NUL behind it."""
    paths = [name(path.decode("utf-8", "surrogateescape")) for path in data.split(b"\0")[:-1]]
    return Found(files=[(path, None) for path in paths if path is not None], cut=cut)


def parse_counts(data: bytes, cut: bool, name: Name) -> Found:
    """``path NUL count`` lines."""
    found = Found(cut=cut)
    rest = data
    while rest:
        path, _, rest = rest.partition(b"\0")
        count, _, rest = rest.partition(b"\n")
        count = count.rstrip(b"\r")  # --crlf
        called = name(path.decode("utf-8", "surrogateescape"))
        if called is not None and count.isdigit():
            found.files.append((called, int(count)))
    return found
