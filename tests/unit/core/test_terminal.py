"""What a terminal would show, as text."""

from __future__ import annotations

import pytest

from hanzo_mcp.core.terminal import is_binary, last_line, settle


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain\ntext\n", "plain\ntext\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("10%\r20%\rdone", "done"),
        ("longer line\rshort", "shortr line"),
        ("longer line\r\x1b[Kshort", "short"),
        ("50%\r", "50%"),
        ("N\bNA\bA", "NA"),
        ("abc\b\b\bxyz\b\b\b\b\b", ""),
        ("\x1b]0;title\x07text\x1b[2J", "text"),
        ("\x1b]52;c;ZXZpbA==\x07", ""),
        ("a\0b", "a␀b"),
        ("safe\u202eevil\u200b", "safeevil"),
    ],
)
def test_settle(raw: str, shown: str) -> None:
    assert settle(raw) == shown


def test_backspaces_cost_linear_time() -> None:
    assert settle("x" * 100_000 + "\b" * 100_000) == ""


@pytest.mark.parametrize(
    ("data", "binary"),
    [
        (b"", False),
        (b"text\n", False),
        ("日本語".encode() * 100, False),
        ("Grüße, caf\xe9\n".encode("latin-1") * 20, False),
        (b"a\0b\0c\0" * 100, False),
        (b"\x1b[31mred\x1b[0m\r\n" * 50, False),
        (bytes(range(256)) * 10, True),
        (b"\x7fELF\2\1\1" + bytes(60), True),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(128, 256)) * 3, True),
    ],
)
def test_binary_is_told_from_text(data: bytes, binary: bool) -> None:
    assert is_binary(data) is binary


@pytest.mark.parametrize(
    ("data", "line"), [(b"", ""), (b"a\nb\n\n", "b"), (b"10%\r20%\r", "20%"), (b"\x1b[1mbold", "bold"), (b"\n \n", "")]
)
def test_the_last_line(data: bytes, line: str) -> None:
    assert last_line(data) == line
