"""Replacing text in a text: exact first, then tolerant of line endings and of indentation, never of meaning.

Nothing outside the replaced span changes. A tolerant match must be unique, and a re-indented replacement must follow
from how the old text's indentation maps to the file's; where it does not, the edit is refused.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections import Counter
from typing import NamedTuple

from hanzo_mcp.core.textfile import EOLS, eol_of, lines_of
from hanzo_mcp.errors import Conflict, InvalidInput

_SHOWN = 12
_CLOSE_LINES = 5000


class Edit(NamedTuple):
    """Replace ``old`` by ``new``, everywhere when ``all``."""

    old: str
    new: str
    all: bool


class Span(NamedTuple):
    """Where in the text, and what comes there."""

    start: int
    end: int
    new: str


def apply(text: str, edits: list[Edit], shown: str) -> str:
    """``text`` after ``edits`` in order, all or none. Raises ``InvalidInput`` and ``Conflict`` (nothing found, several
    found), with the closest place and what differs. ``shown`` names the file."""
    for number, edit in enumerate(edits, 1):
        where = shown if len(edits) == 1 else f"{shown}, edit {number}"
        if edit.old == "":
            raise InvalidInput(f"{where}: old is empty. Give the text to replace; fs.write makes or appends to files.")
        if edit.old == edit.new:
            raise InvalidInput(f"{where}: old and new are the same.")
        for span in reversed(find(text, edit, where)):
            text = text[: span.start] + span.new + text[span.end :]
    return text


def find(text: str, edit: Edit, where: str) -> list[Span]:
    """The spans an edit replaces, in order."""
    exact = _occurrences(text, edit.old)
    if exact:
        _one_unless_all(text, exact, edit, where)
        return [Span(at, at + len(edit.old), _with_eol(text, at, edit)) for at in exact]
    found = _by_line_endings(text, edit) or _by_indentation(text, edit, where)
    if not found:
        raise Conflict(f"{where}: the text to replace was not found.{_closest(text, edit.old)}")
    _one_unless_all(text, [span.start for span in found], edit, where)
    return found


def _one_unless_all(text: str, starts: list[int], edit: Edit, where: str) -> None:
    if len(starts) > 1 and not edit.all:
        lines = ", ".join(str(_line_number(text, at)) for at in starts[:_SHOWN])
        more = "" if len(starts) <= _SHOWN else ", …"
        raise Conflict(
            f"{where}: the text to replace occurs {len(starts)} times (lines {lines}{more}). Add surrounding lines to old "
            "until it is unique, or set all to true."
        )


def _occurrences(text: str, old: str) -> list[int]:
    found: list[int] = []
    at = text.find(old)
    while at >= 0:
        found.append(at)
        at = text.find(old, at + len(old))
    return found


def _line_number(text: str, at: int) -> int:
    before = text[:at]
    return before.count("\n") + (before.count("\r") if "\n" not in text else 0) + 1


def _with_eol(text: str, at: int, edit: Edit) -> str:
    """Models write LF; in the midst of other line endings the new lines take the ones of the place."""
    if "\r" in edit.new or "\r" in edit.old or "\n" not in edit.new:
        return edit.new
    return edit.new.replace("\n", _eol_at(text, at))


def _eol_at(text: str, at: int) -> str:
    """The ending of the line at ``at``, else of the file, else LF."""
    end = text.find("\n", at)
    if end > 0:
        return "\r\n" if text[end - 1] == "\r" else "\n"
    return EOLS.get(eol_of(text), "\n")


def _by_line_endings(text: str, edit: Edit) -> list[Span]:
    """Matches in a view of the text with every ending as LF."""
    if "\r" not in text and "\r" not in edit.old:
        return []
    removed = [match.start() for match in re.finditer("\r\n", text)]
    view = text.replace("\r\n", "\n")
    view = view.replace("\r", "\n") if "\n" not in text else view
    old = edit.old.replace("\r\n", "\n").replace("\r", "\n")
    kept = [index - number for number, index in enumerate(removed)]
    spans: list[Span] = []
    for at in _occurrences(view, old):
        start, end = at + bisect_right(kept, at - 1), at + len(old)
        end += bisect_right(kept, end - 1)
        new = edit.new.replace("\r\n", "\n").replace("\n", _eol_at(text, start))
        spans.append(Span(start, end, new))
    return spans


def _by_indentation(text: str, edit: Edit, where: str) -> list[Span]:
    """Matches of whole lines that differ in leading and trailing white space only."""
    old, lines = lines_of(edit.old), lines_of(text)
    wanted = [line.strip() for line in old]
    if not any(wanted) or len(lines) < len(old):
        return []
    stripped = [line.strip() for line in lines]
    starts = [at for at in range(len(lines) - len(old) + 1) if stripped[at : at + len(old)] == wanted]
    offsets = _offsets(lines)
    spans: list[Span] = []
    for at in starts:
        matched = lines[at : at + len(old)]
        new = _reindented(edit, old, matched, where) if len(starts) == 1 or edit.all else ""
        end = offsets[at + len(old)]
        if not edit.old.endswith(("\n", "\r")):
            end -= len(matched[-1]) - len(matched[-1].rstrip("\r\n"))
        spans.append(Span(offsets[at], end, new.replace("\n", _eol_at(text, offsets[at]))))
    return spans


def _offsets(lines: list[str]) -> list[int]:
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    return offsets


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _reindented(edit: Edit, old: list[str], matched: list[str], where: str) -> str:
    """The new text with the file's indentation. Raises ``Conflict`` when the mapping is not clear."""
    mapping: dict[str, str] = {}
    for given, real in zip(old, matched, strict=True):
        if given.strip() and mapping.setdefault(_indent(given), _indent(real)) != _indent(real):
            raise Conflict(
                f"{where}: the text to replace matches lines but for their indentation, and the levels do not "
                f"correspond. The file has:\n{_quoted(matched)}\nRepeat it exactly."
            )
    lines = edit.new.replace("\r\n", "\n").split("\n")
    return "\n".join(line if not line.strip() else _mapped(line, mapping, matched, where) for line in lines)


def _mapped(line: str, mapping: dict[str, str], matched: list[str], where: str) -> str:
    indent = _indent(line)
    body = line[len(indent) :]
    if indent in mapping:
        return mapping[indent] + body
    known = [level for level in mapping if indent.startswith(level)]
    unit = _unit(mapping)
    if known and unit is not None:
        base = max(known, key=len)
        levels, rest = divmod(len(indent) - len(base), len(unit[0]))
        if not rest and indent == base + unit[0] * levels:
            return mapping[base] + unit[1] * levels + body
    raise Conflict(
        f"{where}: the text to replace matches but for its indentation, and it is not clear how to indent the new line "
        f"{body.strip()[:60]!r}. The file has:\n{_quoted(matched)}\nRepeat the file's own indentation in old and new."
    )


def _unit(mapping: dict[str, str]) -> tuple[str, str] | None:
    """One level in the old text and in the file, when the mapped levels agree on it."""
    levels = sorted(mapping.items(), key=lambda pair: len(pair[0]))
    steps: set[tuple[str, str]] = set()
    for (given, real), (deeper, deeper_real) in zip(levels, levels[1:], strict=False):
        if deeper.startswith(given) and deeper_real.startswith(real) and len(deeper_real) > len(real):
            steps.add((deeper[len(given) :], deeper_real[len(real) :]))
    if len(steps) == 1:
        return steps.pop()
    only = levels[0] if len(levels) == 1 else None
    return only if only is not None and only[0] and only[1] and only[0][0] == only[1][0] == " " else None


def _quoted(lines: list[str]) -> str:
    return "\n".join(line.rstrip("\r\n").replace("\t", "→") for line in lines[:_SHOWN])


def _closest(text: str, old: str) -> str:
    """The place that looks most like ``old``, with a diff, or nothing."""
    wanted, lines = lines_of(old), lines_of(text)
    start = _best_start([line.strip() for line in wanted], [line.strip() for line in lines])
    if start is None:
        return " Nothing like it is in the file; read it again."
    there = lines[start : start + len(wanted)]
    diff = difflib.unified_diff(
        [line.rstrip("\r\n") for line in wanted[:_SHOWN]],
        [line.rstrip("\r\n") for line in there[:_SHOWN]],
        "what you gave",
        "what the file has",
        lineterm="",
    )
    return f" The closest place is line {start + 1}:\n" + "\n".join(diff)


def _best_start(wanted: list[str], lines: list[str]) -> int | None:
    """By votes of equal lines, else by the line most like the first one."""
    places: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        if line:
            places.setdefault(line, []).append(at)
    votes = Counter(
        at - offset for offset, line in enumerate(wanted) for at in places.get(line, [])[:100] if at >= offset
    )
    if votes:
        return votes.most_common(1)[0][0]
    first = next((line for line in wanted if line), "")
    close = difflib.get_close_matches(first[:200], [line[:200] for line in lines[:_CLOSE_LINES]], n=1, cutoff=0.5)
    if not close:
        return None
    return next(at for at, line in enumerate(lines) if line[:200] == close[0])
