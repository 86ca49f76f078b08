"""What ``git status --porcelain=v2 -z --branch --show-stash`` says, as values (git-status(1), "Porcelain Format 2")."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_CHANGES = {"M": "modified", "T": "type changed", "A": "added", "D": "deleted", "R": "renamed", "C": "copied"}
_CONFLICTS = {
    "DD": "both deleted",
    "AU": "added by us",
    "UD": "deleted by them",
    "UA": "added by them",
    "DU": "deleted by us",
    "AA": "both added",
    "UU": "both modified",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One path that is not as committed.

    ``staged`` and ``unstaged`` are a word ("modified", "renamed", ...) or empty; ``conflict`` likewise ("both
    modified"); ``original`` is the old name of a rename or copy, ``score`` its similarity in percent.
    """

    path: str
    staged: str = ""
    unstaged: str = ""
    conflict: str = ""
    untracked: bool = False
    original: str = ""
    score: int = 0
    submodule: bool = False

    def to_wire(self) -> dict[str, Any]:
        """Only what applies: ``{"path", "staged"?, "unstaged"?, "conflict"?, "untracked"?, "from"?, ...}``."""
        wire = {
            "path": self.path,
            "staged": self.staged,
            "unstaged": self.unstaged,
            "conflict": self.conflict,
            "untracked": self.untracked,
            "from": self.original,
            "similarity": self.score,
            "submodule": self.submodule,
        }
        return {key: value for key, value in wire.items() if value}


@dataclass(slots=True)
class Status:
    """A whole answer. ``oid`` is ``None`` before the first commit, ``branch`` is ``None`` when HEAD is detached;
    ``ahead``/``behind`` are ``None`` without an upstream or when the upstream branch is gone."""

    oid: str | None = None
    branch: str | None = None
    upstream: str | None = None
    ahead: int | None = None
    behind: int | None = None
    stashes: int = 0
    entries: list[Entry] = field(default_factory=list[Entry])


def parse(data: bytes) -> Status:
    """Read the output; a last item without its NUL is left out, since the output was cut there."""
    status = Status()
    items = iter(data.split(b"\0")[:-1])
    for item in items:
        kind, _, rest = item.partition(b" ")
        if kind == b"#":
            _header(status, rest.decode("utf-8", "backslashreplace"))
        elif kind == b"1":
            status.entries.append(_ordinary(rest.split(b" ", 7)))
        elif kind == b"2":
            original = next(items, None)
            if original is not None:
                status.entries.append(_renamed(rest.split(b" ", 8), original))
        elif kind == b"u":
            status.entries.append(_unmerged(rest.split(b" ", 9)))
        elif kind == b"?":
            status.entries.append(Entry(quoted(rest), untracked=True))
    return status


def _header(status: Status, text: str) -> None:
    name, _, value = text.partition(" ")
    if name == "branch.oid":
        status.oid = None if value == "(initial)" else value
    elif name == "branch.head":
        status.branch = None if value == "(detached)" else value
    elif name == "branch.upstream":
        status.upstream = value
    elif name == "branch.ab":
        ahead, behind = value.split(" ")
        status.ahead, status.behind = int(ahead), -int(behind)
    elif name == "stash":
        status.stashes = int(value)


def _ordinary(fields: list[bytes]) -> Entry:
    staged, unstaged = _words(fields[0])
    return Entry(quoted(fields[7]), staged, unstaged, submodule=fields[1] != b"N...")


def _renamed(fields: list[bytes], original: bytes) -> Entry:
    staged, unstaged = _words(fields[0])
    return Entry(
        quoted(fields[8]),
        staged,
        unstaged,
        original=quoted(original),
        score=int(fields[7][1:]),
        submodule=fields[1] != b"N...",
    )


def _unmerged(fields: list[bytes]) -> Entry:
    letters = fields[0].decode()
    return Entry(quoted(fields[9]), conflict=_CONFLICTS.get(letters, letters), submodule=fields[1] != b"N...")


def _words(letters: bytes) -> tuple[str, str]:
    staged, unstaged = letters.decode()
    return _CHANGES.get(staged, ""), _CHANGES.get(unstaged, "")


def head_lines(found: Status, operation: str | None) -> list[str]:
    """Branch, upstream, operation in progress and stashes, for people."""
    at = found.oid[:12] if found.oid else "no commits yet"
    lines = [f"On branch {found.branch} ({at})" if found.branch else f"HEAD detached at {at}"]
    if found.upstream and found.ahead is None:
        lines.append(f"Upstream {found.upstream} is gone")
    elif found.upstream and not found.ahead and not found.behind:
        lines.append(f"Up to date with {found.upstream}")
    elif found.upstream:
        lines.append(f"Compared with {found.upstream}: {found.ahead} ahead, {found.behind} behind")
    if operation:
        lines.append(f"In progress: {operation}")
    if found.stashes:
        lines.append(f"Stashes: {found.stashes}")
    return lines


def entry_lines(found: Status, page: Sequence[Entry]) -> list[str]:
    """The entries of a page in the groups of ``git status``."""
    if not found.entries:
        return ["Nothing to commit, working tree clean"]
    groups = {
        "Conflicts": [f"{entry.conflict}: {entry.path}" for entry in page if entry.conflict],
        "Staged": [_change(entry.staged, entry) for entry in page if entry.staged],
        "Not staged": [_change(entry.unstaged, entry) for entry in page if entry.unstaged],
        "Untracked": [entry.path for entry in page if entry.untracked],
    }
    return [line for title, lines in groups.items() if lines for line in (f"{title}:", *(f"  {x}" for x in lines))]


def _change(word: str, entry: Entry) -> str:
    name = f"{entry.original} -> {entry.path}" if entry.original and word in ("renamed", "copied") else entry.path
    return f"{word}: {name}{' (submodule)' if entry.submodule else ''}"


_ESCAPED = {ord("\n"): r"\n", ord("\t"): r"\t", ord("\r"): r"\r", ord('"'): r"\"", ord("\\"): r"\\"}


def quoted(name: bytes) -> str:
    """A file name as git shows it: as it is when it is printable UTF-8, else in quotes with C escapes and octals."""
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text and text.isprintable() and '"' not in text:
        return text
    shown = "".join(_ESCAPED.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in name)
    return f'"{shown}"'


def unquoted(text: str) -> str:
    """The file name behind ``quoted``, in the form ``os.fsencode`` takes; other text is a name already."""
    if len(text) < 3 or not (text.startswith('"') and text.endswith('"')):
        return text
    return os.fsdecode(_ESCAPE.sub(_byte, text[1:-1].encode("utf-8", "surrogateescape")))


_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_PLAIN = {shown[1].encode(): bytes([byte]) for byte, shown in _ESCAPED.items()}


def _byte(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _PLAIN.get(code, code)
