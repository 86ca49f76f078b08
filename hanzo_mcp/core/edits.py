"""Replacing text in a text: exact first, then tolerant of line endings and of indentation, never of meaning.

Only the spans that were found change. A tolerant match must be unique, and where the replacement has to be indented
anew its indentation must follow from how the old text maps to the file's; where it does not, the edit is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from hanzo_mcp.core.changes import Change, compose
from hanzo_mcp.core.encoding import breaks, split
from hanzo_mcp.core.indent import Mapping, indent_of, mapping
from hanzo_mcp.core.nearmiss import closest, line_at
from hanzo_mcp.errors import Conflict, InvalidInput

_ANY_BREAK = r"(?>\r\n|\n|\r)"
_LAST_BREAK = re.compile(_ANY_BREAK + r"\Z")
_NAMED = 12
_COUNTED = 1000
"""Places counted at most for an error."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace ``old`` by ``new``, everywhere with ``all``."""

    old: str
    new: str
    all: bool = False


@dataclass(frozen=True, slots=True)
class Splice:
    """``text[start:end]`` becomes ``new``."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class Edited:
    """The text after all edits, where it differs, how many places changed, and what was tolerated."""

    text: str
    changes: list[Change]
    count: int
    notes: list[str]


def apply(text: str, edits: Sequence[Edit], shown: str) -> Edited:
    """``edits`` in order, each on what the ones before it left; all or none.

    Raises ``InvalidInput`` for an edit that says nothing, ``Conflict`` for text that is missing or ambiguous.
    """
    changes: list[Change] = []
    notes: list[str] = []
    count = 0
    for number, edit in enumerate(edits, 1):
        where = shown if len(edits) == 1 else f"{shown}: edit {number} of {len(edits)}"
        splices, note = _find(text, edit, where)
        text, made = _splice(text, splices)
        changes = compose(changes, made)
        count += len(splices)
        if note:
            notes.append(note if len(edits) == 1 else f"edit {number}: {note}")
    return Edited(text, changes, count, notes)


def _splice(text: str, splices: Sequence[Splice]) -> tuple[str, list[Change]]:
    pieces: list[str] = []
    changes: list[Change] = []
    at = shift = 0
    for splice in splices:
        pieces += [text[at : splice.start], splice.new]
        start = splice.start + shift
        changes.append(Change(splice.start, splice.end, start, start + len(splice.new)))
        shift += len(splice.new) - (splice.end - splice.start)
        at = splice.end
    return "".join([*pieces, text[at:]]), changes


def _find(text: str, edit: Edit, where: str) -> tuple[list[Splice], str]:
    """What an edit replaces, in order, and a word about what had to be tolerated."""
    if not edit.old:
        raise InvalidInput(f"{where}: old is empty. Give the text to replace; op write makes and appends.")
    if edit.old == edit.new:
        raise InvalidInput(f"{where}: old and new are the same; nothing would change.")
    spans = _spans(text, edit.old, overlapping=not edit.all)
    if edit.old[0] in " \t" and ("\n" in edit.old or "\n" in edit.new):
        # Half of an indentation is no match: the lines after the first would end up at another depth than it.
        spans = [span for span in spans if not _cuts_indentation(text, span[0])]
    if spans:
        _refuse_ambiguous(text, spans, edit, where)
        return [Splice(a, b, _with_eols(text, a, b, edit)) for a, b in spans], ""
    return _by_indentation(text, edit, where)


def _spans(text: str, old: str, *, overlapping: bool) -> list[tuple[int, int]]:
    """Where ``old`` stands, a line break in it standing for any; never half of a CRLF.

    ``overlapping`` finds ``aa`` twice in ``aaa``: which of the two is meant nobody can know.
    """
    if "\r" in old:
        exact = _matches(re.escape(old), text, overlapping)
        if exact:
            return exact
    if "\r" not in text and "\r" not in old:
        return _matches(re.escape(old), text, overlapping)
    return _matches(_ANY_BREAK.join(map(re.escape, split(old))), text, overlapping)


def _matches(expression: str, text: str, overlapping: bool) -> list[tuple[int, int]]:
    pattern = re.compile(expression)
    found: list[tuple[int, int]] = []
    match = pattern.search(text)
    while match is not None and (not overlapping or len(found) < _COUNTED):
        start, end = match.span()
        if not _halves_crlf(text, start, end):
            found.append((start, end))
            start = start if overlapping else end - 1
        match = pattern.search(text, start + 1)
    return found


def _halves_crlf(text: str, start: int, end: int) -> bool:
    return (start > 0 and text[start - 1 : start + 1] == "\r\n") or text[end - 1 : end + 1] == "\r\n"


def _cuts_indentation(text: str, start: int) -> bool:
    """Does a match begin inside the white space at the beginning of a line?"""
    line = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    return line < start and not text[line:start].strip(" \t")


def _refuse_ambiguous(text: str, spans: Sequence[tuple[int, int]], edit: Edit, where: str) -> None:
    if len(spans) == 1 or edit.all:
        return
    lines = ", ".join(str(line_at(text, start)) for start, _ in spans[:_NAMED])
    more = ", …" if len(spans) > _NAMED else ""
    times = f"{len(spans)}" if len(spans) < _COUNTED else f"{_COUNTED} or more"
    raise Conflict(
        f"{where}: the old text occurs {times} times (lines {lines}{more}). Add neighbouring lines to old until it is "
        "unique, or give all: true. Nothing was changed."
    )


def _with_eols(text: str, start: int, end: int, edit: Edit) -> str:
    """The new text with the line breaks of the place, unless the caller wrote out its own."""
    new = edit.new
    if ("\n" not in new and "\r" not in new) or ("\r" not in text and "\r" not in new):
        return new
    chosen = "\r" in new and "\r" not in edit.old
    if chosen or ("\r" in edit.old and text[start:end] == edit.old):
        return new
    return _joined(split(edit.old), split(new), breaks(text[start:end]) or [_near_break(text, start)])


def _joined(old: list[str], new: list[str], found: Sequence[str]) -> str:
    """The new lines; one that was there keeps the break ``found``, as does one in its place; others take the last."""
    kept: dict[int, str] = {}
    if len(set(found)) > 1:
        bare, wanted = [line.strip() for line in old], [line.strip() for line in new]
        for _, a, a_end, b, b_end in SequenceMatcher(None, bare, wanted, autojunk=False).get_opcodes():
            kept.update(zip(range(b, b_end), found[a:a_end], strict=False))
    pieces: list[str] = []
    mark = found[0]
    for number, line in enumerate(new[:-1]):
        mark = kept.get(number, mark)
        pieces += [line, mark]
    return "".join([*pieces, new[-1]])


def _near_break(text: str, at: int) -> str:
    """The break of the line at ``at``, of the one before it, or a newline."""
    after = re.compile(_ANY_BREAK).search(text, at)
    if after:
        return after[0]
    before = breaks(text[max(0, at - 100_000) : at])
    return before[-1] if before else "\n"


def _by_indentation(text: str, edit: Edit, where: str) -> tuple[list[Splice], str]:
    """Whole lines that are the old ones but for their indentation."""
    lines = split(text)
    wanted = split(edit.old)
    trailing = len(wanted) > 1 and wanted[-1] == ""
    if trailing:
        wanted.pop()
    found = _blocks(lines, wanted)
    if not found:
        raise Conflict(f"{where}: the old text was not found. Nothing was changed.{closest(lines, wanted)}")
    if len(found) > 1:
        numbers = ", ".join(str(first + 1) for first, _ in found[:_NAMED])
        raise Conflict(
            f"{where}: the old text is not there exactly; but for indentation it occurs {len(found)} times (lines "
            f"{numbers}). Give it with the file's own indentation. Nothing was changed."
        )
    first, indents = found[0]
    start, end = _extent(text, first, len(wanted), trailing)
    new = _indented(edit.new, indents, where, first + 1)
    if trailing and end == len(text) and text[-1:] not in ("\n", "\r"):
        new = _LAST_BREAK.sub("", new)  # the file ends without a break, and goes on doing so
    moved = Edit(edit.old, new, edit.all)
    note = f"matched at line {first + 1} with another indentation; the new text was indented like the file"
    note = note if indents != Mapping() else "matched the last line, which ends without a line break"
    return [Splice(start, end, _with_eols(text, start, end, moved))], note


def _blocks(lines: list[str], wanted: list[str]) -> list[tuple[int, Mapping]]:
    """``(first line from 0, how indentation maps)`` for each place where ``wanted`` stands indented otherwise."""
    bare = [line.lstrip(" \t") for line in wanted]
    anchor = max(range(len(bare)), key=lambda number: len(bare[number].strip()))
    if not bare[anchor].strip():
        return []
    found: list[tuple[int, Mapping]] = []
    for number, line in enumerate(lines):
        first = number - anchor
        if first < 0 or not line.endswith(bare[anchor]) or line.lstrip(" \t") != bare[anchor]:
            continue
        block = lines[first : first + len(wanted)]
        if [other.lstrip(" \t") for other in block] == bare:
            indents = mapping(
                [indent_of(other) for other in wanted if other.strip()],
                [indent_of(other) for other in block if other.strip()],
            )
            if indents is not None:
                found.append((first, indents))
    return found


def _extent(text: str, first: int, count: int, trailing: bool) -> tuple[int, int]:
    """The span of ``count`` lines from line ``first`` on, with the last one's break when ``trailing``."""
    marks = re.compile(_ANY_BREAK).finditer(text)
    start = 0
    for number, mark in enumerate(marks, 1):
        if number == first:
            start = mark.end()
        if number == first + count:
            return start, mark.end() if trailing else mark.start()
    return start, len(text)


def _indented(new: str, indents: Mapping, where: str, line: int) -> str:
    pieces: list[str] = []
    depth: int | None = None
    for text, mark in zip(split(new), [*breaks(new), ""], strict=True):
        indent = indent_of(text)
        moved = indents.apply(indent) if text.strip() else indent
        if text.strip() and moved is not None and indents.width:
            level = len(moved) if indents.tabs else len(indent)
            moved = None if depth is not None and level > depth + 1 else moved
            depth = level
        if moved is None:
            raise Conflict(
                f"{where}: the old text is at line {line} with another indentation, and how {text.strip()[:60]!r} of "
                "the new text must be indented does not follow from it (tabs against spaces?). Give old and new with "
                "the file's own indentation. Nothing was changed."
            )
        pieces += [moved + text[len(indent) :], mark]
    return "".join(pieces)
