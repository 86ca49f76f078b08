"""``git log`` output with NUL between fields, and commits as text."""

from __future__ import annotations

from hanzo_mcp.core.text import clean

FORMAT = "--format=%H%x00%P%x00%D%x00%an <%ae>%x00%ad%x00%B"
_FIELDS = 6
_MESSAGE = 8000


def split(data: bytes, cut: bool) -> list[list[str]]:
    """Commits as ``[id, parents, names, author, date, message]``. When ``cut``, a last one that is not whole goes."""
    parts = data.decode("utf-8", "backslashreplace").split("\0")
    known = len(parts) - 1 if cut and len(parts) > _FIELDS else len(parts)
    return [parts[at : at + _FIELDS] for at in range(0, known // _FIELDS * _FIELDS, _FIELDS)]


def block(commit: list[str]) -> str:
    """One commit as ``git log`` shows it; a very long message is cut."""
    oid, parents, names, author, date, message = (clean(part) for part in commit)
    lines = [f"commit {oid}{f' ({names})' if names else ''}", f"Author: {author}", f"Date:   {date}"]
    if " " in parents:
        lines.append(f"Merge:  {' '.join(parent[:12] for parent in parents.split())}")
    shown = message.strip("\n")
    if len(shown) > _MESSAGE:
        shown = f"{shown[:_MESSAGE]}… ({len(shown) - _MESSAGE} more characters)"
    return "\n".join([*lines, "", *(f"    {line}".rstrip() for line in shown.split("\n"))])


def fitting(blocks: list[str], size: int) -> list[str]:
    """As many blocks as fit into ``size`` bytes, at least one."""
    used = 0
    for number, text in enumerate(blocks):
        used += len(text.encode())
        if used > size and number:
            return blocks[:number]
    return blocks
