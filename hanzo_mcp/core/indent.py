"""How the indentation a caller wrote maps to the one in a file; ``None`` wherever it is not certain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_WIDTHS = (1, 2, 3, 4, 8)


@dataclass(frozen=True, slots=True)
class Mapping:
    """Written indentation to the file's: ``drop`` is taken from the front and ``add`` put there, or, with ``width``,
    ``width`` spaces stand for one tab (``tabs``: the file has the tabs) after ``shift`` levels are added."""

    drop: str = ""
    add: str = ""
    width: int = 0
    tabs: bool = False
    shift: int = 0

    def apply(self, indent: str) -> str | None:
        """The indentation in the file for a line written with ``indent``."""
        if not self.width:
            if not indent.startswith(self.drop):
                return None
            moved = self.add + indent[len(self.drop) :]
            return moved if " " not in moved or "\t" not in moved or not self.add else self._mixed(moved)
        if self.tabs:
            levels, rest = divmod(len(indent), self.width)
            wrong = rest or indent.strip(" ") or levels + self.shift < 0
            return None if wrong else "\t" * (levels + self.shift)
        levels = len(indent) + self.shift
        return None if indent.strip("\t") or levels < 0 else " " * (levels * self.width)

    def _mixed(self, moved: str) -> str | None:
        """Tabs and spaces together are only what a file that already has both in this place wants."""
        return moved if " " in self.add and "\t" in self.add else None


def indent_of(line: str) -> str:
    """The spaces and tabs a line begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def mapping(written: Sequence[str], found: Sequence[str]) -> Mapping | None:
    """The one mapping that turns every ``written`` indentation into the ``found`` one."""
    pairs = list(dict.fromkeys(zip(written, found, strict=True)))
    if not pairs:
        return None
    for candidate in (_shifted(pairs[0]), *_converted(pairs)):
        if candidate is not None and all(candidate.apply(have) == want for have, want in pairs):
            return candidate
    return None


def _shifted(pair: tuple[str, str]) -> Mapping | None:
    """The same characters, deeper or less deep."""
    written, found = pair
    if found.endswith(written):
        return Mapping(add=found[: len(found) - len(written)])
    if written.endswith(found):
        return Mapping(drop=written[: len(written) - len(found)])
    return None


def _converted(pairs: Sequence[tuple[str, str]]) -> list[Mapping]:
    """Tabs for spaces or spaces for tabs, where the width follows from the lines and is the only one that fits."""
    tabs = any("\t" in found for _, found in pairs)
    if any(("\t" in written) == tabs and written for written, _ in pairs):
        return []
    fitting: list[Mapping] = []
    for width in _WIDTHS:
        have, want = pairs[0]
        shift = len(want) - len(have) // width if tabs else len(want) // width - len(have)
        candidate = Mapping(width=width, tabs=tabs, shift=shift)
        if all(candidate.apply(have) == want for have, want in pairs):
            fitting.append(candidate)
    unshifted = [candidate for candidate in fitting if not candidate.shift]
    return unshifted if len(unshifted) == 1 else fitting if len(fitting) == 1 else []
