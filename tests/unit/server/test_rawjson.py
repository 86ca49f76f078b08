"""Slices of JSON text: the same values, in the writer's own spelling."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanzo_mcp.core.rawjson import Member, members, one_line

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
SPACE = st.text(alphabet=" \t\n\r", max_size=3)
OBJECTS = st.dictionaries(st.text(max_size=5), JSON, max_size=5)


def spaced(value: dict[str, Any], space: str, ascii: bool) -> str:
    """An object's text with ``space`` wherever the grammar allows it at the top level."""
    parts = (f"{json.dumps(k)}{space}:{space}{json.dumps(v, ensure_ascii=ascii)}" for k, v in value.items())
    return f"{space}{{{space}{f'{space},{space}'.join(parts)}{space}}}{space}"


@given(OBJECTS, SPACE, st.booleans())
def test_slices_read_again_are_the_values(value: dict[str, Any], space: str, ascii: bool) -> None:
    found = members(spaced(value, space, ascii))
    assert list(found) == list(value)
    for key, member in found.items():
        assert member.value == value[key]
        assert json.loads(member.text) == value[key]
        assert member.text == json.dumps(value[key], ensure_ascii=ascii), "the slice is the writer's own text"


@given(OBJECTS, st.text(max_size=10))
def test_an_object_may_start_anywhere(value: dict[str, Any], before: str) -> None:
    found = members(before + json.dumps(value), len(before))
    assert {key: member.value for key, member in found.items()} == value


def test_the_writers_spelling_is_kept() -> None:
    source = '{"a": 1e400, "b":0.10,"c" :[1.0 , 2],"d":"\\u00e9\\/", "e":1180591620717411303424,"a":-0.0}'
    texts = {key: member.text for key, member in members(source).items()}
    assert texts == {"a": "-0.0", "b": "0.10", "c": "[1.0 , 2]", "d": '"\\u00e9\\/"', "e": "1180591620717411303424"}
    assert members('{"x":1,"x":{"y":2}}') == {"x": Member({"y": 2}, '{"y":2}')}
    assert members(" {} ") == {}


NO_OBJECTS = [
    "",
    " ",
    "[]",
    "7",
    "{",
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,',
    '{"a" 1}',
    '{"a":1 "b":2}',
    "{1:2}",
    "{a:1}",
]


@pytest.mark.parametrize("source", NO_OBJECTS)
def test_what_is_no_object(source: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        members(source)


def test_a_comma_with_nothing_after_it_is_no_object() -> None:
    with pytest.raises(ValueError, match=r".+"):
        members('{"a":1,}')


@given(JSON, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_one_line_is_the_same_value_on_one_ascii_line(value: Any, indent: int | str | None, ascii: bool) -> None:
    written = json.dumps(value, indent=indent, ensure_ascii=ascii)
    for text in (written, written.replace("\n", "\r\n"), f"\n{written}\r"):
        line = one_line(text)
        assert line.isascii()
        assert "\n" not in line
        assert "\r" not in line
        assert json.loads(line) == value


@given(JSON)
def test_one_line_leaves_what_is_one_alone(value: Any) -> None:
    written = json.dumps(value)
    assert one_line(written) == written


def test_one_line_beyond_the_basic_plane() -> None:
    assert one_line('"\U0001f600\u2028\u00e9"') == '"\\ud83d\\ude00\\u2028\\u00e9"'
    assert one_line('"\ud800"') == '"\\ud800"'
