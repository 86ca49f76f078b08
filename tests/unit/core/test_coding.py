from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanzo_mcp.core.coding import Undecodable, decode, single


@given(st.binary(max_size=5000), st.sampled_from(["gzip", "zlib", "raw"]))
def test_gives_back_what_was_packed(data: bytes, form: str) -> None:
    packed = {"gzip": gzip.compress(data), "zlib": zlib.compress(data), "raw": zlib.compress(data)[2:-4]}[form]
    assert decode(packed, "gzip" if form == "gzip" else "deflate", 5000) == (data, "")


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate"]), st.integers(0, 50))
def test_any_bytes_end_in_a_bounded_answer_or_a_refusal(data: bytes, coding: str, limit: int) -> None:
    try:
        found, _ = decode(data, coding, limit)
    except Undecodable:
        return
    assert len(found) <= limit


def test_says_why_it_is_not_all() -> None:
    assert decode(gzip.compress(b"x" * 1000), "gzip", 10) == (b"x" * 10, "it unpacks to more than 10 bytes")
    assert decode(gzip.compress(b"x" * 10), "gzip", 10) == (b"x" * 10, "")
    found, why = decode(gzip.compress(bytes(range(256)) * 20)[:-30], "gzip", 10_000)
    assert bytes(range(256)).startswith(found[:256]) and why == "its compressed body ends early"


@pytest.mark.parametrize(("header", "name"), [("", None), ("identity", None), (" GZIP ", "gzip"), ("x-gzip", "x-gzip")])
def test_the_coding_of_a_header(header: str, name: str | None) -> None:
    assert single(header) == name


@pytest.mark.parametrize("header", ["br", "gzip, gzip", "gzip,deflate", "compress", "identity, zstd"])
def test_codings_nobody_asked_for(header: str) -> None:
    with pytest.raises(Undecodable):
        single(header)
