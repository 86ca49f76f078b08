"""git log output, whole and cut."""

from __future__ import annotations

import pytest

from hanzo_mcp.core.commits import block, fitting, split

ONE = b"id1\0p1\0\0A <a>\0date\0subject\n\0"
TWO = b"id2\0p1 p2\0HEAD -> main\0B <b>\0date\0s\n\nbody \xff\n\0"


def test_whole_output() -> None:
    assert split(b"", False) == []
    assert split(ONE + TWO, False) == [
        ["id1", "p1", "", "A <a>", "date", "subject\n"],
        ["id2", "p1 p2", "HEAD -> main", "B <b>", "date", "s\n\nbody \\xff\n"],
    ]


@pytest.mark.parametrize("at", range(1, len(TWO) - 1))
def test_a_commit_that_is_not_whole_is_left_out(at: int) -> None:
    assert [commit[0] for commit in split(ONE + TWO[:at], True)] == ["id1"]


def test_a_single_commit_too_long_is_shown_as_far_as_it_goes() -> None:
    assert split(ONE[:-4], True) == [["id1", "p1", "", "A <a>", "date", "subje"]]


def test_a_block() -> None:
    assert block(split(TWO, False)[0]) == (
        "commit id2 (HEAD -> main)\nAuthor: B <b>\nDate:   date\nMerge:  p1 p2\n\n    s\n\n    body \\xff"
    )
    assert block(["i", "", "", "a", "d", "x" * 9000]).endswith("x… (1000 more characters)")


def test_pages() -> None:
    assert fitting(["aaaa", "bbbb", "cccc"], 9) == ["aaaa", "bbbb"]
    assert fitting(["aaaa"], 1) == ["aaaa"], "at least one"
    assert fitting([], 1) == []
