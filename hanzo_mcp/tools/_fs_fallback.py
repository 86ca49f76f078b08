"""The search without ripgrep: bounded, in a thread, with Python's regular expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable

from hanzo_mcp.core.backtracking import REACH, reach
from hanzo_mcp.core.encoding import detect
from hanzo_mcp.core.ignore import Globs
from hanzo_mcp.core.matches import Found, Hit, Hits
from hanzo_mcp.core.ripgrep import Query, spans_lines
from hanzo_mcp.errors import InvalidInput, ToolError
from hanzo_mcp.sandbox.paths import Place, Workspace
from hanzo_mcp.tools._fs_files import WHOLE, Budget
from hanzo_mcp.tools._fs_list import Walk

_MOST = 20_000
_SPANNED = 16_384
"""Characters of a file in which a repeat may span lines."""
_TYPES = {
    "py": "*.py,*.pyi", "python": "*.py,*.pyi", "js": "*.js,*.jsx,*.mjs,*.cjs", "ts": "*.ts,*.tsx,*.mts,*.cts",
    "rust": "*.rs", "go": "*.go", "java": "*.java", "c": "*.c,*.h", "cpp": "*.cpp,*.cc,*.cxx,*.hpp,*.hh,*.h",
    "md": "*.md,*.markdown", "markdown": "*.md,*.markdown", "json": "*.json", "yaml": "*.yaml,*.yml",
    "toml": "*.toml", "html": "*.html,*.htm", "css": "*.css", "sh": "*.sh,*.bash", "txt": "*.txt", "sql": "*.sql",
}  # fmt: skip


def scan(
    files: Workspace, places: Iterable[Place], name: Callable[[str], str | None], query: Query, budget: Budget
) -> Found:
    """Search the files below ``places``. Raises ``InvalidInput`` for a pattern that cannot be used."""
    within = _within(query)
    pattern = _compiled(query)
    found = Found()
    many = len(tuple(places)) > 1
    for place in places:
        for path, file in _files(files, place, query, budget):
            shown = name(f"{place.shown}/{path}" if many and path else path or place.shown)
            if shown is None:
                continue
            if budget.over or found.total > _MOST:
                found.cut = True
                return found
            _search(files, file, shown, pattern, query, found, within)
    return found


def _within(query: Query) -> int:
    """Characters that are searched of a line, or of a file when a match may span lines.

    Raises ``InvalidInput`` for what could take forever.
    """
    spans = spans_lines(query)
    try:
        within = REACH[0] if query.literal else reach(query.pattern)
        if spans and within < REACH[1]:
            raise ValueError("more than one repeat when it spans lines")
    except ValueError as exc:
        raise InvalidInput(f"fs.search: ripgrep is missing, and without it the pattern may not have {exc}.") from None
    return within if not spans else WHOLE if within == REACH[0] else _SPANNED


def _compiled(query: Query) -> re.Pattern[str]:
    flags = (re.IGNORECASE if query.ignore_case else 0) | re.MULTILINE
    try:
        return re.compile(re.escape(query.pattern) if query.literal else query.pattern, flags)
    except re.error as exc:
        raise InvalidInput(f"fs.search: pattern: {exc}. Give literal: true to search for plain text.") from None


def _files(files: Workspace, place: Place, query: Query, budget: Budget) -> Generator[tuple[str, Place]]:
    types = _TYPES.get(query.type or "", "")
    if query.type and not types:
        raise InvalidInput(f"fs.search: ripgrep is missing, and without it type {query.type!r} is not known; use glob.")
    kinds = Globs(types.split(",") if types else [])
    try:
        files.entries(place)
    except ToolError:  # a file: it is what was asked for, whatever its name
        yield "", place
        return
    every = bool(query.include_ignored)
    walk = Walk(files, budget, 64, hidden=every, include_ignored=every)
    walk.globs = Globs([*(query.glob or []), "!.git"])
    for path, entry in walk.run(place):
        if entry.kind == "file" and kinds.wants(path):
            yield path, Place(place.root, (*place.parts, *path.split("/")), path)


def _search(
    files: Workspace, file: Place, shown: str, pattern: re.Pattern[str], query: Query, found: Found, within: int
) -> None:
    try:
        data = files.read(file, WHOLE)
    except ToolError:  # unreadable, or larger than this search looks into
        return
    encoding = detect(data)
    text = "\0" if encoding is None else encoding.decode(data).replace("\r\n", "\n")
    if "\0" in text:
        return
    spans = spans_lines(query)
    hits = _spanning(text, pattern, within) if spans else _by_line(text, pattern, query.context, within)
    if not hits:
        return
    if query.output == "files":
        found.files.append((shown, None))
    elif query.output == "count":
        times = len(hits) if spans else sum(len(pattern.findall(hit.text, 0, within)) for hit in hits if hit.match)
        found.files.append((shown, times))
    else:
        found.hits[shown] = Hits.of(hits)


def _spanning(text: str, pattern: re.Pattern[str], within: int) -> list[Hit]:
    hits: list[Hit] = []
    for match in pattern.finditer(text, 0, within):
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", max(match.end() - 1, match.start()))
        hits.append(
            Hit(text.count("\n", 0, start) + 1, text[start : end if end >= 0 else len(text)], at=match.start() - start)
        )
    return hits


def _by_line(text: str, pattern: re.Pattern[str], context: int | None, within: int) -> list[Hit]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    matched = {n: match.start() for n, line in enumerate(lines) if (match := pattern.search(line, 0, within))}
    around = min(max(context or 0, 0), 50)
    near = sorted({n for at in matched for n in range(max(0, at - around), min(len(lines), at + around + 1))})
    return [Hit(n + 1, lines[n], n in matched, matched.get(n, 0)) for n in near]
