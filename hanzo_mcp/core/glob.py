"""The glob dialect of permission and hook patterns.

``*`` any run of characters (dots too), ``?`` one character, ``[abc]``/``[!abc]`` one of a set; everything
else is literal, case counts, the whole subject must match. Matching is linear in the subject for each
``*`` (no backtracking regex), so a hostile pattern costs nothing special.
"""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=4096)
def compile_glob(pattern: str) -> tuple[str | frozenset[str] | tuple[str, frozenset[str]] | None, ...]:
    """Tokens: a character, ``""`` for ``?``, ``None`` for ``*``, a set, or ``("!", set)``."""
    tokens: list[str | frozenset[str] | tuple[str, frozenset[str]] | None] = []
    at = 0
    while at < len(pattern):
        char, at = pattern[at], at + 1
        if char == "*":
            if not tokens or tokens[-1] is not None:
                tokens.append(None)
        elif char == "?":
            tokens.append("")
        elif char == "[" and (end := pattern.find("]", at + 1 + (pattern[at : at + 1] == "!"))) > 0:
            tokens.append(_char_set(pattern[at:end]))
            at = end + 1
        else:
            tokens.append(char)
    return tuple(tokens)


def _char_set(body: str) -> frozenset[str] | tuple[str, frozenset[str]]:
    negated = body.startswith("!")
    body = body[1:] if negated else body
    chars: set[str] = set()
    at = 0
    while at < len(body):
        if body[at + 1 : at + 2] == "-" and at + 2 < len(body):
            chars.update(map(chr, range(ord(body[at]), ord(body[at + 2]) + 1)))
            at += 3
        else:
            chars.add(body[at])
            at += 1
    return ("!", frozenset(chars)) if negated else frozenset(chars)


def _accepts(token: str | frozenset[str] | tuple[str, frozenset[str]] | None, char: str) -> bool:
    if isinstance(token, str):
        return token in ("", char)
    if isinstance(token, frozenset):
        return char in token
    return token is not None and char not in token[1]


def matches(pattern: str, subject: str) -> bool:
    """Does the whole ``subject`` match ``pattern``? O(len(pattern) * len(subject)) at worst."""
    tokens = compile_glob(pattern)
    at = place = 0
    star, resume = -1, 0
    while at < len(subject):
        if place < len(tokens) and tokens[place] is not None and _accepts(tokens[place], subject[at]):
            at, place = at + 1, place + 1
        elif place < len(tokens) and tokens[place] is None:
            star, resume = place, at
            place += 1
        elif star >= 0:
            resume += 1
            at, place = resume, star + 1
        else:
            return False
    return all(token is None for token in tokens[place:])
