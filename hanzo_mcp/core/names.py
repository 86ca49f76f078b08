"""Names of tools: what clients accept, and when two names are the same to a reader."""

from __future__ import annotations

import re
import unicodedata

VALID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
"""What every client's model API accepts as a tool name."""


def folded(name: str) -> str:
    """The form in which names are compared: NFKC, case folded, without surrounding space."""
    return unicodedata.normalize("NFKC", name).casefold().strip()


def nearest(word: str, known: list[str]) -> str | None:
    """The closest known word, for 'did you mean'; ``None`` when nothing is close."""
    import difflib

    found = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return found[0] if found else None
