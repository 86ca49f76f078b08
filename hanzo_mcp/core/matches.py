"""What a search found, and a page of it as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hanzo_mcp.core.encoding import printable

WIDTH = 400
"""Characters shown of a long line, around its match."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A line (from 1) or several; ``match`` is false for context; ``at`` is where in the text the match begins."""

    line: int
    text: str
    match: bool = True
    at: int = 0


@dataclass(frozen=True, slots=True)
class Hits:
    """What was found in one file: how many matches, and the lines, read only when they are shown."""

    matches: int
    read: Callable[[], list[Hit]]

    @classmethod
    def of(cls, hits: list[Hit]) -> Hits:
        """Lines that are there already."""
        return cls(sum(hit.match for hit in hits), lambda: hits)


@dataclass(slots=True)
class Found:
    """``hits`` by path for lines, or ``files`` as (path, count); ``binary`` counts files that are no text."""

    hits: dict[str, Hits] = field(default_factory=dict[str, Hits])
    files: list[tuple[str, int | None]] = field(default_factory=list[tuple[str, "int | None"]])
    cut: bool = False
    binary: int = 0

    @property
    def file_count(self) -> int:
        """Files with a match."""
        return len(self.files) or len(self.hits)

    @property
    def total(self) -> int:
        """What offset and limit count: matching lines, or files."""
        return len(self.files) or sum(hits.matches for hits in self.hits.values())


def shown(found: Found, start: int, limit: int, cap: int) -> tuple[list[str], int]:
    """Lines of text for matches ``start`` on, at most ``limit`` of them and about ``cap`` characters."""
    if found.files:
        page = sorted(found.files)[start : start + limit]
        return _fitting(
            [printable(path) if count is None else f"{printable(path)}: {count}" for path, count in page], cap
        )
    lines: list[str] = []
    seen = count = size = 0
    for path, inside in sorted(found.hits.items(), key=lambda item: item[0]):
        if seen + inside.matches <= start:
            seen += inside.matches
            continue
        last = 0
        hits = inside.read()
        for hit in _page(hits, start - seen, limit - count):
            if size > cap:
                return lines, count
            if last and hit.line > last + 1 and any(not other.match for other in hits):
                lines.append("--")
            last = hit.line + hit.text.rstrip("\n").count("\n")
            lines.append(_line(path, hit))
            size += len(lines[-1])
            count += hit.match
        seen += inside.matches
        if count >= limit:
            break
    return lines, count


def _fitting(lines: list[str], cap: int) -> tuple[list[str], int]:
    size = 0
    for number, line in enumerate(lines):
        size += len(line) + 1
        if size > cap:
            return lines[:number], number
    return lines, len(lines)


def _page(hits: list[Hit], skip: int, limit: int) -> list[Hit]:
    """Matches ``skip`` to ``skip + limit`` of a file with the context that belongs to them."""
    matches = [number for number, hit in enumerate(hits) if hit.match]
    skip = max(skip, 0)
    if skip >= len(matches) or limit <= 0:
        return []
    first = 0 if skip == 0 else matches[skip - 1] + 1
    last = matches[skip + limit] if skip + limit < len(matches) else len(hits)
    return hits[first:last]


def _line(path: str, hit: Hit) -> str:
    path = printable(path).replace("\n", "\\n")
    mark = ":" if hit.match else "-"
    lines = hit.text.rstrip("\r\n").split("\n")
    parts = [_window(line.rstrip("\r"), hit.at if not number else 0) for number, line in enumerate(lines)]
    return "\n".join(f"{path}{mark}{hit.line + number}{mark} {part}" for number, part in enumerate(parts))


def _window(text: str, at: int) -> str:
    text = printable(text)
    if len(text) <= WIDTH:
        return text
    start = max(0, min(at - WIDTH // 4, len(text) - WIDTH))
    head, tail = "…" if start else "", "…" if start + WIDTH < len(text) else ""
    return head + text[start : start + WIDTH] + tail
