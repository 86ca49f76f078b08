"""git status, porcelain version 2, read to the last field."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanzo_mcp.core.porcelain import Entry, Status, entry_lines, head_lines, parse, quoted, unquoted

HASHES = b"100644 100644 100644 " + b"1" * 40 + b" " + b"2" * 40


def test_headers() -> None:
    data = b"# branch.oid abc\0# branch.head main\0# branch.upstream origin/main\0# branch.ab +2 -3\0# stash 4\0"
    assert parse(data) == Status("abc", "main", "origin/main", 2, 3, 4)


def test_unborn_and_detached() -> None:
    assert parse(b"# branch.oid (initial)\0# branch.head main\0") == Status(None, "main")
    assert parse(b"# branch.oid abc\0# branch.head (detached)\0") == Status("abc", None)


@pytest.mark.parametrize(
    ("item", "entry"),
    [
        (b"1 .M N... %b a b.txt\0", Entry("a b.txt", unstaged="modified")),
        (b"1 AM N... %b a\0", Entry("a", "added", "modified")),
        (b"1 D. N... %b a\0", Entry("a", "deleted")),
        (b"1 .T N... %b a\0", Entry("a", unstaged="type changed")),
        (b"1 .M SC.. %b sub\0", Entry("sub", unstaged="modified", submodule=True)),
        (b"2 R. N... %b R97 new name\0old name\0", Entry("new name", "renamed", original="old name", score=97)),
        (b"2 .C N... %b C75 new\0old\0", Entry("new", unstaged="copied", original="old", score=75)),
        (b"? untracked dir/\0", Entry("untracked dir/", untracked=True)),
        (b"? caf\xe9\n\0", Entry('"caf\\351\\n"', untracked=True)),
    ],
)
def test_entries(item: bytes, entry: Entry) -> None:
    assert parse(item.replace(b"%b", HASHES)).entries == [entry]


@pytest.mark.parametrize(
    ("letters", "words"),
    [
        (b"UU", "both modified"),
        (b"AA", "both added"),
        (b"DD", "both deleted"),
        (b"AU", "added by us"),
        (b"UA", "added by them"),
        (b"DU", "deleted by us"),
        (b"UD", "deleted by them"),
    ],
)
def test_conflicts(letters: bytes, words: str) -> None:
    item = b"u " + letters + b" N... 100644 100644 100644 100644 " + b" ".join([b"1" * 40] * 3) + b" a b\0"
    assert parse(item).entries == [Entry("a b", conflict=words)]


@pytest.mark.parametrize("at", range(1, 30))
def test_a_cut_item_is_left_out(at: int) -> None:
    whole = b"? first\0"
    assert parse(whole + b"2 R. N... " + HASHES + b" R97 new\0old\0"[:at]).entries[:1] == [
        Entry("first", untracked=True)
    ]


def test_text_for_people() -> None:
    found = Status("1" * 40, "main", "origin/main", 1, 0, 2)
    found.entries = [
        Entry("c", conflict="both modified"),
        Entry("new", "renamed", "modified", original="old", score=90),
        Entry("sub", unstaged="modified", submodule=True),
        Entry("u/", untracked=True),
    ]
    assert head_lines(found, "merge of abc") == [
        "On branch main (111111111111)",
        "Compared with origin/main: 1 ahead, 0 behind",
        "In progress: merge of abc",
        "Stashes: 2",
    ]
    assert entry_lines(found, found.entries) == [
        "Conflicts:",
        "  both modified: c",
        "Staged:",
        "  renamed: old -> new",
        "Not staged:",
        "  modified: new",
        "  modified: sub (submodule)",
        "Untracked:",
        "  u/",
    ]


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (Status("1" * 40, None), ["HEAD detached at 111111111111"]),
        (Status(None, "main"), ["On branch main (no commits yet)"]),
        (Status("1" * 40, "a", "b"), ["On branch a (111111111111)", "Upstream b is gone"]),
        (Status("1" * 40, "a", "b", 0, 0), ["On branch a (111111111111)", "Up to date with b"]),
    ],
)
def test_where_head_is(found: Status, lines: list[str]) -> None:
    assert head_lines(found, None) == lines


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"plain name.txt", "plain name.txt"),
        ("日本.txt".encode(), "日本.txt"),
        (b'say "hi"', '"say \\"hi\\""'),
        (b"a\\b", "a\\b"),
        (b"tab\there", '"tab\\there"'),
        (b"\x1b[31m", '"\\033[31m"'),
        (b"caf\xe9", '"caf\\351"'),
        ("a\u202eb".encode(), '"a\\342\\200\\256b"'),
    ],
)
def test_names(name: bytes, shown: str) -> None:
    assert quoted(name) == shown
    assert os.fsencode(unquoted(shown)) == name


@given(st.binary(min_size=1, max_size=40).filter(lambda name: b"\0" not in name))
def test_every_name_can_be_given_back(name: bytes) -> None:
    assert quoted(name).isprintable()
    assert os.fsencode(unquoted(quoted(name))) == name
