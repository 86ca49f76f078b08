"""Where two texts differ, kept while a text is edited, and shown as a unified diff without comparing the whole."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NamedTuple

_CONTEXT = 3
_SHOWN = 60_000


class Change(NamedTuple):
    """``before[a0:a1]`` became ``after[b0:b1]``."""

    a0: int
    a1: int
    b0: int
    b1: int


def compose(first: Sequence[Change], second: Sequence[Change]) -> list[Change]:
    """The changes from the first text to the third, of those to and from the second."""
    steps = [(c.b0, c.b1, (c.a1 - c.a0) - (c.b1 - c.b0), 0) for c in first]
    steps += [(c.a0, c.a1, 0, (c.b1 - c.b0) - (c.a1 - c.a0)) for c in second]
    out: list[Change] = []
    before = after = 0  # what to add to a position of the second text to get one of the first, of the third
    group: tuple[int, int, int, int] | None = None
    for low, high, left, right in [*sorted(steps), (1 << 62, 1 << 62, 0, 0)]:
        if group is not None and low <= group[1]:
            group = group[0], max(group[1], high), group[2] + left, group[3] + right
            continue
        if group is not None:
            start, end, more_left, more_right = group
            out.append(Change(start + before, end + before + more_left, start + after, end + after + more_right))
            before, after = before + more_left, after + more_right
        group = low, high, left, right
    return out


def whole(before: str, after: str) -> list[Change]:
    """The one change between two texts: all but their common beginning and end."""
    start = _common(before, after)
    a, b = before[start:], after[start:]
    end = _common(a[::-1], b[::-1])
    return [] if before == after else [Change(start, len(before) - end, start, len(after) - end)]


def _common(one: str, other: str) -> int:
    """The length of the common beginning, by halving."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def unified(before: str, after: str, changes: Sequence[Change], mark: str = "\n", limit: int = _SHOWN) -> str:
    """Hunks of a unified diff, three lines of context; at most about ``limit`` characters, saying so when cut."""
    out: list[str] = []
    size = line_a = line_b = at_a = at_b = 0
    for a0, a1, b0, b1 in _hunks(before, after, changes, mark):
        line_a, at_a = line_a + before.count(mark, at_a, a0), a0
        line_b, at_b = line_b + after.count(mark, at_b, b0), b0
        hunk = _hunk(_lines(before[a0:a1], mark), _lines(after[b0:b1], mark), line_a, line_b)
        out += hunk
        size += sum(map(len, hunk))
        if size > limit:
            return "\n".join(out)[:limit] + "\n… the rest of the diff is left out"
    return "\n".join(out)


def _hunks(before: str, after: str, changes: Sequence[Change], mark: str) -> list[Change]:
    """The changes widened to whole lines with context, those that touch joined."""
    found: list[Change] = []
    for change in changes:
        head = change.a0 - _back(before, change.a0, mark)
        tail = _forward(before, change.a1, mark) - change.a1
        tail = min(tail, len(after) - change.b1)
        wide = Change(change.a0 - head, change.a1 + tail, change.b0 - head, change.b1 + tail)
        if found and wide.a0 <= found[-1].a1:
            found[-1] = Change(found[-1].a0, wide.a1, found[-1].b0, wide.b1)
        else:
            found.append(wide)
    return found


def _back(text: str, at: int, mark: str) -> int:
    for _ in range(_CONTEXT + 1):
        at = text.rfind(mark, 0, at)
        if at < 0:
            return 0
    return at + len(mark)


def _forward(text: str, at: int, mark: str) -> int:
    for _ in range(_CONTEXT + 1):
        found = text.find(mark, at)
        if found < 0:
            return len(text)
        at = found + len(mark)
    return at


def _lines(text: str, mark: str) -> list[str]:
    lines = text.split(mark)
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += "\n\\ No newline at end of file"
    return lines


def _hunk(old: list[str], new: list[str], line_a: int, line_b: int) -> list[str]:
    strip = [line.rstrip("\r") for line in old] != [line.rstrip("\r") for line in new]
    lines = list(difflib.unified_diff(old, new, n=_CONTEXT, lineterm=""))[2:]
    shown: list[str] = []
    for line in lines:
        if line.startswith("@@"):
            shown.append(_moved(line, line_a, line_b))
        else:
            shown.append(line.rstrip("\r") if strip else line.replace("\r", "␍"))
    return shown


def _moved(header: str, line_a: int, line_b: int) -> str:
    """``@@ -1,3 +1,4 @@`` counted from the beginning of the file."""
    _, old, new, _ = header.split(" ")
    return f"@@ {_shift(old, line_a)} {_shift(new, line_b)} @@"


def _shift(part: str, by: int) -> str:
    start, comma, count = part[1:].partition(",")
    return f"{part[0]}{int(start) + by}{comma}{count}"
