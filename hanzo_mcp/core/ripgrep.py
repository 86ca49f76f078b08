"""Ripgrep's command line for a search, and its answers."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, Protocol

from hanzo_mcp.core.matches import Found, Hit, Hits
from hanzo_mcp.core.text import clean

_BEGIN, _MATCH, _CONTEXT, _END = (b'{"type":"%b' % kind for kind in (b"b", b"m", b"c", b"e"))
_KIND = len(_BEGIN)
_PLAIN = b'{"type":"begin","data":{"path":{"text":"'
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
    out.append("--no-mmap")  # it would not notice that a file is binary after its beginning
    switches = {
        "--fixed-strings": query.literal,
        "--ignore-case": query.ignore_case,
        "--multiline": spans_lines(query),
        "--hidden": query.include_ignored,
        "--no-ignore": query.include_ignored,
        "--glob=!.git": query.include_ignored,
        # A match over lines needs the whole file in memory, also one of a terabyte.
        "--max-filesize=64M": spans_lines(query),
    }
    out += [option for option, wanted in switches.items() if wanted]
    out += _narrowed(query)
    if query.context:
        out.append(f"--context={min(max(query.context, 0), 50)}")
    return [*out, f"--regexp={query.pattern}"]


def _narrowed(query: Query) -> list[str]:
    """What of the globs ripgrep may see: names only, the paths are for ``Globs``.

    As ``--glob`` a name would bring back ignored and hidden files; as a type it only leaves others out.
    """
    globs = query.glob or []
    out = [f"--glob={glob.rstrip('/')}" for glob in globs if glob.startswith("!") and "/" not in glob.rstrip("/")]
    if query.type:
        return [*out, f"--type={query.type}"]
    names = [glob.rsplit("/", 1)[-1] for glob in globs if not glob.startswith("!")]
    if names and all(_is_name_glob(name) for name in names):
        out += [*(f"--type-add=named:{name}" for name in names), "--type=named"]
    return out


def _is_name_glob(name: str) -> bool:
    """Is it narrower than everything, and whole? A brace with a slash in it has been cut."""
    return name not in ("", "**") and name.count("{") == name.count("}") and not name.startswith("include:")


def trouble(message: str) -> str:
    """Ripgrep's complaint for the one who wrote the pattern."""
    text = clean(message, 1500).removeprefix("rg: ")
    if "unrecognized file type" in text:
        return f"{text} (for example py, js, ts, rust, go, java, c, cpp, md, json, yaml; or use glob)"
    if "look-around" in text or "backreferences" in text:
        text = text.split("Consider enabling PCRE2")[0].strip()
        return f"{text}\nThis engine has no look-around and no backreferences."
    if "error parsing glob" in text:
        return text
    return f"{text}\nGive literal: true to search for plain text."


def parse_json(data: bytes, cut: bool, name: Name) -> Found:
    """The messages of ``--json`` (ripgrep's printer documentation): begin, match, context, end, summary."""
    found = Found(cut=cut)
    path: str | None = None
    lines: list[bytes] = []
    for line in data.split(b"\n")[:-1]:
        kind = line[:_KIND]
        if kind in (_MATCH, _CONTEXT):
            lines.append(line)
        elif kind == _BEGIN:
            path, lines = name(_path(line)), []
        elif kind == _END and path is not None:
            if b'"binary_offset":null' in line:
                found.hits[path] = _hits(lines)
            else:
                found.binary += 1
            path, lines = None, []
    if path is not None and lines:  # cut in the middle of a file
        found.hits[path] = _hits(lines)
    return found


def _path(line: bytes) -> str:
    """The path of a begin message; a search may find tens of thousands of them, most without an escape."""
    if line.startswith(_PLAIN) and b"\\" not in line:
        return line[len(_PLAIN) : -len(b'"}}}')].decode()
    return _text(json.loads(line)["data"]["path"])


def _hits(lines: list[bytes]) -> Hits:
    return Hits(sum(line[:_KIND] == _MATCH for line in lines), lambda: [_hit(json.loads(line)) for line in lines])


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
