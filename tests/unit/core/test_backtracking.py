"""Which regular expressions are tried, and on how much of a line."""

from __future__ import annotations

import pytest

from hanzo_mcp.core.backtracking import reach


@pytest.mark.parametrize(
    ("pattern", "characters"),
    [
        ("needle", 10_000),
        (r"def \w{3}\(", 10_000),
        (r"a\+\*\{2,\}[*+{]", 10_000),
        (r"[]*]x[^]*]", 10_000),
        ("(a|b)c?", 10_000),
        ("(?:ab)?(?P<n>c)", 10_000),
        (r"def \w+\(", 5_000),
        ("(ab)+", 5_000),
        ("x{2,}", 5_000),
        (r"class \w+\(.*\):", 500),
    ],
)
def test_what_can_be_bounded(pattern: str, characters: int) -> None:
    assert reach(pattern) == characters


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(a+)+", "repeat of a repeat"),
        ("(a|a)*$", "repeat of a repeat or of a choice"),
        ("((a|b)c)+", "repeat of a repeat or of a choice"),
        ("(?:(?:x*)y){3}", "repeat of a repeat"),
        ("(?P<n>a+){2,}", "repeat of a repeat"),
        ("a*a*a*b", "more than 2 repeats"),
        (r"(a)\1", "back-reference"),
        ("(?=a)b", "look-around"),
        ("(?<!a)b", "look-around"),
    ],
)
def test_what_cannot(pattern: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        reach(pattern)
