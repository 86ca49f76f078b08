"""Bytes -> lines: the same lines however the bytes arrive."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanzo_mcp.server.framing import PREFIX, Lines, TooLong

PIECES = st.lists(
    st.sampled_from([b"\n", b"\r", b"\r\n", b" ", b"a", b'{"id":1}', b"\xff", b"\xe2\x80", b"\xa8", b"\xef\xbb\xbf"])
    | st.binary(max_size=5),
    max_size=30,
)


def fed(chunks: list[bytes], limit: int = 1 << 20) -> list[str]:
    lines = Lines(limit)
    found = [line for chunk in chunks for line in lines.feed(chunk)]
    return [*found, *lines.close()]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """``data`` in chunks that end at ``places``."""
    ends = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(ends)]


@given(PIECES, st.lists(st.integers(min_value=0, max_value=1000), max_size=20))
def test_any_chunking_gives_the_same_lines(pieces: list[bytes], places: list[int]) -> None:
    data = b"".join(pieces)
    assert fed(cut(data, places)) == fed([data]) == fed([data[i : i + 1] for i in range(len(data))])


@given(PIECES)
def test_lines_are_those_between_newlines(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    wanted = [line for line in data.split(b"\n") if line]
    if wanted:
        wanted[0] = wanted[0].removeprefix(b"\xef\xbb\xbf")
    texts = [line.decode("utf-8", "replace") for line in wanted if line and not line.isspace()]
    assert fed([data]) == texts


@given(PIECES, st.lists(st.integers(min_value=0, max_value=1000), max_size=20), st.integers(min_value=1, max_value=12))
def test_the_cap_is_the_same_for_any_chunking(pieces: list[bytes], places: list[int], limit: int) -> None:
    data = b"".join(pieces)
    whole, parts = fed([data], limit), fed(cut(data, places), limit)
    assert [isinstance(line, TooLong) for line in parts] == [isinstance(line, TooLong) for line in whole]
    assert [line for line in parts if not isinstance(line, TooLong)] == [
        line for line in whole if not isinstance(line, TooLong)
    ]


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"", []),
        (b"\n\n \n\t\r\n", []),
        (b"a", ["a"]),
        (b"a\r\nb", ["a\r", "b"]),
        (b"a\rb\n", ["a\rb"]),
        ("a\u2028b\u0085c\n".encode(), ["a\u2028b\u0085c"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        (b"\n\xef\xbb\xbfa\n", ["a"]),
        (b"\xff\xc3\n", ["\ufffd\ufffd"]),
    ],
)
def test_lines(data: bytes, wanted: list[str]) -> None:
    assert fed([data]) == wanted


def test_a_line_over_the_cap_is_told_once_and_skipped() -> None:
    lines = Lines(limit=10)
    assert lines.feed(b"01234") == []
    (told,) = lines.feed(b"567890")
    assert isinstance(told, TooLong)
    assert told == "01234567890"
    assert lines.feed(b"x" * 1000) == []
    assert lines.feed(b"yyy\nnext\n") == ["next"]
    assert lines.feed(b"0123456789\n") == ["0123456789"]
    assert lines.close() == []


def test_only_a_prefix_of_a_line_over_the_cap_is_kept() -> None:
    (told,) = Lines(limit=10).feed(b"x" * (4 * PREFIX))
    assert len(told) == PREFIX


def test_the_end_in_the_middle_of_a_skipped_line() -> None:
    lines = Lines(limit=3)
    assert len(lines.feed(b"abcdef")) == 1
    assert lines.close() == []
    assert lines.feed(b"ok\n") == ["ok"]
