"""Globs as gitignore(5) describes them, in time that a hostile one cannot stretch."""

from __future__ import annotations

import pytest

from hanzo_mcp.core.ignore import Globs, glob_pattern, ignored, parse


@pytest.mark.parametrize(
    ("glob", "path", "wanted"),
    [
        ("*.py", "a.py", True), ("*.py", "x/a.py", True), ("*.py", "a.pyc", False),
        ("/a", "a", True), ("/a", "x/a", False),
        ("src/**", "src/a/b", True), ("src/**", "src", False),
        ("**/foo", "foo", True), ("**/foo", "a/b/foo", True),
        ("a/**/b", "a/b", True), ("a/**/b", "a/x/y/b", True), ("a/**/b", "a/xb", False),
        ("a/*/b", "a/x/b", True), ("a/*/b", "a/x/y/b", False),
        ("a**b", "axxb", True), ("a**b", "ax/xb", False),
        ("[ab]x", "ax", True), ("[!a]x", "ax", False), ("[]a]", "]", True), ("[!a]", "/", False),
        ("?", "a", True), ("?", "/", False), ("\\*", "*", True), ("\\*", "a", False),
        ("*a*a*b", "xaxaxb", True), ("*a*a*b", "xaxb", False), ("*.tar.*", "x.tar.tar.gz", True),
        ("**/a/**/b/*.c", "q/a/z/b/x.c", True), ("**/a/b/**/b/c", "a/a/b/b/c", True),
        ("{a,b}.{py,md}", "b.md", True), ("{src,t/x}/*.py", "t/x/a.py", True), ("*{ab,a}*b", "ab", True),
    ],
)  # fmt: skip
def test_a_glob(glob: str, path: str, wanted: bool) -> None:
    assert bool(glob_pattern(glob).fullmatch(path)) is wanted


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*a" * 12 + "b", "a" * 200),
        ("**/a/" * 20 + "b", "a/" * 300 + "c"),
        ("**/*a*/" * 15 + "*b", "aaaa/" * 400 + "c"),
        ("{a,b}" * 30, "a" * 30),
        ("*" + "?" * 100 + "b", "a" * 4000),
    ],
)
def test_a_hostile_glob_ends(glob: str, path: str) -> None:
    """With a backtracking expression the first of them alone takes years."""
    assert glob_pattern(glob).fullmatch(path) is None


def test_the_last_rule_and_the_innermost_file_win() -> None:
    outer = parse("", ["*.log\n!keep.log\n# note\n\n/top/\n"])
    inner = parse("sub", ["!debug.log\nkeep.log\n"])
    assert ignored([outer], "a.log", False)
    assert not ignored([outer], "keep.log", False)
    assert ignored([outer], "top", True)
    assert not ignored([outer], "top", False)
    assert not ignored([outer, inner], "sub/debug.log", False)
    assert ignored([outer, inner], "sub/keep.log", False)


def test_globs_of_a_call() -> None:
    globs = Globs(["*.py", "docs/", "!vendor", "!docs/old"])
    assert globs.passes("src/a.py")
    assert globs.passes("docs/x/y.md")
    assert not globs.passes("a.md")
    assert not globs.passes("src/vendor/a.py")
    assert not globs.passes("docs/old/a.md")
