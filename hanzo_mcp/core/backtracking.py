"""How long Python's regular expressions may take: they try every way to match, hold the interpreter meanwhile and
cannot be stopped, so a pattern of somebody else's is bounded before it is used."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PIECE = re.compile(
    r"\\[1-9]|\(\?P=|\(\?<?[=!]|\(\?\(|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|\((?:\?(?:P?<\w+>|[aiLmsux-]*:|>|#))?|.",
    re.DOTALL,
)
_REPEAT = re.compile(r"[*+]|\{\d*,\d*\}")
REACH = (10_000, 5_000, 500)
"""Characters of a line that may be searched with no, one and two repeats: some 10^7 steps at worst."""


@dataclass(slots=True)
class _Group:
    """An open parenthesis: does it hold a choice or a repeat?"""

    loose: bool = False


def reach(pattern: str) -> int:
    """Characters of a line that ``pattern`` can be tried on in bounded time.

    Raises ``ValueError`` with words for what cannot be bounded: a repeat of what holds a repeat or a choice, more than
    two repeats, look-around and back-references.
    """
    repeats = 0
    groups = [_Group()]
    closed: _Group | None = None
    for piece in _PIECE.findall(pattern):
        repeat = bool(_REPEAT.fullmatch(piece))
        if closed is not None and closed.loose and (repeat or (piece.startswith("{") and len(piece) > 1)):
            raise ValueError("a repeat of a repeat or of a choice, such as (a+)+ or (a|b)*")
        repeats += repeat
        closed = _step(piece, repeat, groups)
    if repeats >= len(REACH):
        raise ValueError(f"more than {len(REACH) - 1} repeats (*, +, {{n,}})")
    return REACH[repeats]


def _step(piece: str, repeat: bool, groups: list[_Group]) -> _Group | None:
    """Keep track of the groups; the one that ends with this piece."""
    if piece in ("(?=", "(?!", "(?<=", "(?<!", "(?P=", "(?(") or (
        piece[0] == "\\" and piece[1:].isdigit() and piece != "\\0"
    ):
        raise ValueError("look-around or a back-reference")
    if piece.startswith("(") and piece != "(?#":
        groups.append(_Group())
    elif piece == ")" and len(groups) > 1:
        ended = groups.pop()
        groups[-1].loose |= ended.loose
        return ended
    elif repeat or piece == "|":
        groups[-1].loose = True
    return None
