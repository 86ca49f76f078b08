"""Path globs and ignore files, as gitignore(5) describes them.

A pattern without a slash matches a name at any depth, one with a slash matches from the folder of the ignore file;
``**`` spans folders, a slash at the end means folders only, ``!`` takes back, the last match wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

_CHOICE = re.compile(r"\{([^{}]*)\}")
_SPELLED = 64
FILES = (".gitignore", ".ignore", ".rgignore")
"""Ignore files of a folder, the later ones stronger."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of an ignore file. ``pattern`` matches a path relative to the file's folder."""

    pattern: re.Pattern[str]
    only_dirs: bool
    keeps: bool


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one folder, ``base`` being its path from the root of the walk ("" for the root itself)."""

    base: str
    rules: tuple[Rule, ...]

    def verdict(self, path: str, is_dir: bool) -> bool | None:
        """True: ignored, False: taken back, ``None``: not mentioned."""
        inner = path[len(self.base) + 1 :] if self.base else path
        for rule in reversed(self.rules):
            if (is_dir or not rule.only_dirs) and rule.pattern.fullmatch(inner):
                return not rule.keeps
        return None


def ignored(levels: Sequence[Rules], path: str, is_dir: bool) -> bool:
    """Is ``path`` ignored by the rules of its folder and those above it (outermost first)?"""
    for level in reversed(levels):
        verdict = level.verdict(path, is_dir)
        if verdict is not None:
            return verdict
    return False


def parse(base: str, texts: Iterable[str]) -> Rules:
    """The rules in the ignore files of the folder ``base``, weaker files first."""
    found = (rule for text in texts for line in text.splitlines() if (rule := _rule(line)) is not None)
    return Rules(base, tuple(found))


def _rule(line: str) -> Rule | None:
    line = line.rstrip("\r")
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    if not line or line.startswith("#"):
        return None
    keeps = line.startswith("!")
    line = line[1:] if keeps else line
    only_dirs = line.endswith("/")
    line = line.rstrip("/") if only_dirs else line
    return Rule(glob_pattern(line), only_dirs, keeps) if line else None


class Globs:
    """Several globs of a call: ``!`` excludes; a path passes when one of the others matches or there is none."""

    def __init__(self, globs: Sequence[str]) -> None:
        wanted = [f"{glob}**" if glob.endswith("/") else glob for glob in globs if not glob.startswith("!")]
        self._wanted = [glob_pattern(glob) for glob in wanted]
        self._refused = [glob_pattern(glob[1:].rstrip("/")) for glob in globs if glob.startswith("!")]

    def wants(self, path: str) -> bool:
        """Does a file pass?"""
        wanted = not self._wanted or any(pattern.fullmatch(path) for pattern in self._wanted)
        return wanted and not self.refuses(path)

    def refuses(self, path: str) -> bool:
        """Is a file or a folder excluded by name?"""
        return any(pattern.fullmatch(path) for pattern in self._refused)

    def passes(self, path: str) -> bool:
        """Does a file pass, of whose folders nothing is known yet?"""
        steps = path.split("/")
        return self.wants(path) and not (
            self._refused and any(self.refuses("/".join(steps[:depth])) for depth in range(1, len(steps)))
        )

    @property
    def any(self) -> bool:
        """Is there a glob at all?"""
        return bool(self._wanted or self._refused)

    @property
    def any_wanted(self) -> bool:
        """Is there a glob that must match?"""
        return bool(self._wanted)


@lru_cache(maxsize=4096)
def glob_pattern(glob: str) -> re.Pattern[str]:
    """A gitignore glob as a regular expression for a relative path.

    An ignore file is somebody else's text, and an expression that takes forever would stop the whole server: every
    ``*`` but the last of a name, and every ``**`` but the last, takes the first place that fits and keeps it
    (an atomic group). What stands between two of them has one length, so a later place could never do better.
    """
    return re.compile("|".join(f"(?:{_path(one)})" for one in _spelled_out(glob)), re.DOTALL)


def _spelled_out(glob: str) -> list[str]:
    """``{a,b}`` as one glob for each; as it stands when there would be too many."""
    done: list[str] = []
    waiting = [glob]
    while waiting:
        one = waiting.pop()
        found = _CHOICE.search(one)
        if found is None or len(waiting) + len(done) > _SPELLED:
            done.append(one)
        else:
            waiting += [one[: found.start()] + word + one[found.end() :] for word in found[1].split(",")]
    return done


def _path(glob: str) -> str:
    names = glob.removeprefix("/").split("/") if "/" in glob else ["**", glob]
    runs: list[list[str]] = [[]]
    for name in names:
        if name != "**":
            runs[-1].append(_name(name))
        elif runs[-1] or len(runs) == 1:
            runs.append([])
    first, *others = runs
    out = "/".join(first) + ("/" if first and others else "")
    for run in others[:-1]:
        out += f"(?>(?:[^/]+/)*?{'/'.join(run)}/)"
    if others:
        out += f"(?:[^/]+/)*{'/'.join(others[-1])}" if others[-1] else ".+"
    return out


def _name(glob: str) -> str:
    """One name of a path."""
    pieces = [""]
    at = 0
    while at < len(glob):
        if glob[at] == "*":
            pieces += [] if at and glob[at - 1] == "*" and not pieces[-1] else [""]
            at += 1
        else:
            at, text = _character(glob, at)
            pieces[-1] += text
    first, *others = pieces
    held = "".join(f"(?>[^/]*?{piece})" for piece in others[:-1])
    return first + held + (f"[^/]*{others[-1]}" if others else "")


def _character(glob: str, at: int) -> tuple[int, str]:
    """What stands for one character: where it ends, and its expression."""
    char = glob[at]
    if char == "?":
        return at + 1, "[^/]"
    if char == "[" and (close := glob.find("]", at + 2 + (glob[at + 1 : at + 2] in ("!", "^")))) > 0:
        return close + 1, _set(glob[at + 1 : close])
    if char == "\\" and at + 1 < len(glob):
        return at + 2, re.escape(glob[at + 1])
    return at + 1, re.escape(char)


def _set(body: str) -> str:
    negated = body[:1] in ("!", "^")
    body = body[1:] if negated else body
    safe = re.sub(r"([\\\]\[&~|^])", r"\\\1", body)
    try:
        re.compile(f"[{safe}]")
    except re.error:
        return re.escape(f"[{body}]")
    return f"(?!/)[{'^' if negated else ''}{safe}]"
