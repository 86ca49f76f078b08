from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanzo_mcp.core.charset import decode, known


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("UTF-8", "utf-8"),
        ('"utf8"', "utf-8"),
        ("iso-8859-1", "cp1252"),
        ("ISO-8859-15", "iso8859-15"),
        ("windows-1251", "cp1251"),
        ("gb2312", "gb18030"),
        ("Shift_JIS", "cp932"),
        ("unicode_escape", None),
        ("idna", None),
        ("utf-7", None),
        ("rot13", None),
        ("", None),
        (None, None),
    ],
)
def test_labels(label: str | None, codec: str | None) -> None:
    assert known(label) == codec
    if codec:
        codecs.lookup(codec)


@pytest.mark.parametrize(
    ("data", "declared", "text", "encoding"),
    [
        (codecs.BOM_UTF8 + "é".encode(), "windows-1251", "é", "utf-8"),
        (codecs.BOM_UTF16_BE + "é".encode("utf-16-be"), None, "é", "utf-16-be"),
        ("привет".encode("cp1251"), "windows-1251", "привет", "cp1251"),
        (b"<?xml version='1.0' encoding='iso-8859-2'?>" + "ł".encode("iso8859-2"), None, None, "iso8859-2"),
        (b"<meta http-equiv=x content='text/html; charset=koi8-r'>" + "ы".encode("koi8-r"), None, None, "koi8-r"),
        (b"<meta charset=utf-16>plain", None, "<meta charset=utf-16>plain", "utf-8"),
        (b"caf\xe9 \x93x\x94", "utf-8", "café “x”", "cp1252"),
        ("日本語".encode() + b"\xff", "utf-8", "日本語\ufffd", "utf-8"),
        (b"plain", "no-such", "plain", "utf-8"),
    ],
)
def test_the_order_of_evidence(data: bytes, declared: str | None, text: str | None, encoding: str) -> None:
    found, used = decode(data, declared)
    assert used == encoding and (text is None or found == text) and "\ufffd" not in found.replace("語\ufffd", "")


@given(st.binary(max_size=200), st.sampled_from([None, "utf-8", "utf-16", "gbk", "iso-2022-jp", "big5"]))
def test_never_fails(data: bytes, declared: str | None) -> None:
    text, encoding = decode(data, declared)
    codecs.lookup(encoding)
    assert text.encode("utf-8", "surrogatepass").decode("utf-8", "surrogatepass") == text


@given(st.text())
def test_utf_8_is_read_back(text: str) -> None:
    if "\ufeff" not in text[:1] and "\ufffd" not in text and "<" not in text:
        data = text.encode("utf-8", "replace")
        assert decode(data, None)[0] == data.decode()
