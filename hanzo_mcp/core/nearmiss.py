"""The place in a file that is most like a text that was not found, and what differs. Bounded in time."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence

_LINES = 50_000
_SHOWN = 14
_WIDTH = 200
_WORD = re.compile(r"\w{2,}")


def line_at(text: str, at: int) -> int:
    """The number of the line at a position, from 1; any kind of line break counts."""
    return text.count("\n", 0, at) + text.count("\r", 0, at) - text.count("\r\n", 0, at) + 1


def closest(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """Words for an error: the closest lines with their numbers and a diff to ``wanted``; or that none is near."""
    first = _best(lines[:_LINES], wanted)
    if first is None:
        return " No line of the file is like it; read the file again."
    block = list(lines[first : first + len(wanted)])
    last = first + len(block)
    numbered = [f"{number:>6}\t{line[:_WIDTH]}" for number, line in enumerate(block[:_SHOWN], first + 1)]
    difference = _difference(block, wanted)
    return "\n".join([f" Closest are lines {first + 1}-{last}:", *numbered, "Difference (- file, + old):", *difference])


def _best(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The first line of the window that shares most with ``wanted``: equal lines count most, then words."""
    votes: Counter[int] = Counter()
    places: dict[str, list[int]] = {}
    words: dict[str, list[int]] = {}
    for number, line in enumerate(wanted[:400]):
        if line.strip():
            places.setdefault(line.strip(), []).append(number)
            for word in set(_WORD.findall(line)):
                words.setdefault(word, []).append(number)
    for number, line in enumerate(lines):
        bare = line.strip()
        for offset in places.get(bare, ())[:4]:
            votes[number - offset] += 10 + len(bare)
        for word in set(_WORD.findall(bare[:1000])) if words else ():
            for offset in words.get(word, ())[:4]:
                votes[number - offset] += 2
    if not votes:
        return None
    shortlist = [max(0, start) for start, _ in votes.most_common(5)]
    target = "\n".join(wanted)[:2000]
    return max(shortlist, key=lambda start: _ratio("\n".join(lines[start : start + len(wanted)])[:2000], target))


def _ratio(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other, autojunk=True).quick_ratio()


def _difference(block: list[str], wanted: Sequence[str]) -> list[str]:
    blind = [line.split() for line in block] == [line.split() for line in wanted]
    old, new = [list(map(_visible, side)) if blind else list(side) for side in (block, wanted)]
    lines = [line[:_WIDTH] for line in list(difflib.unified_diff(old, new, n=1, lineterm=""))[3:]]
    if blind:
        lines.insert(0, "(only white space differs; · is a space, → a tab)")
    return lines if len(lines) <= 2 * _SHOWN else [*lines[: 2 * _SHOWN], "…"]


def _visible(line: str) -> str:
    return line.replace(" ", "·").replace("\t", "→")
