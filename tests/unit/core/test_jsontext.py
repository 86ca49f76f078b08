from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from hanzo_mcp.core.jsontext import MAX_LENGTH, indented

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES, st.booleans())
def test_looks_like_the_standard_indentation(value: object, ascii_only: bool) -> None:
    source = json.dumps(value, ensure_ascii=ascii_only)
    assert indented(source) == json.dumps(value, ensure_ascii=ascii_only, indent=2) or _deep(value)


def _deep(value: object) -> bool:
    """Deeper than indentation goes: then only the value must be the same."""
    source = json.dumps(value)
    return "[[" in json.dumps(value, separators=(",", ":")) and json.loads(indented(source) or "0") == value


def test_keeps_numbers_and_duplicates_as_written() -> None:
    assert indented('{"a":1.10,"a":1e400,"b":[ ]}') == '{\n  "a": 1.10,\n  "a": 1e400,\n  "b": []\n}'


def test_what_is_not_json_or_too_long() -> None:
    for source in ("", "{", "x", "[1,]", "[" * 100_000, "1" * (MAX_LENGTH + 1)):
        assert indented(source) is None


def test_depth_does_not_multiply_the_length() -> None:
    source = "[" * 200 + "1," * 10_000 + "1" + "]" * 200
    found = indented(source)
    assert found is not None and len(found) < 20 * len(source) and json.loads(found) == json.loads(source)
