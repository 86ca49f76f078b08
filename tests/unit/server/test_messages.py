"""Text -> message, with nothing a client writes able to raise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanzo_mcp.core.messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_DEPTH,
    PARSE_ERROR,
    Broken,
    Notification,
    Request,
    Response,
    depth,
    encode,
    error_line,
    find_id,
    notification_line,
    parse,
    request_line,
    result_line,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
IDS = st.integers() | st.text()


def request_text(**members: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", **members})


@given(IDS, st.text(), st.dictionaries(st.text(max_size=5).filter(lambda key: key != "_meta"), JSON, max_size=3))
def test_a_request(id: Any, method: str, params: dict[str, Any]) -> None:
    source = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    assert parse(source) == Request(id, method, params, source)


@given(st.text())
def test_no_text_raises(text: str) -> None:
    parse(text)
    find_id(text)


@given(JSON, JSON, JSON, JSON)
def test_no_value_raises_and_every_refusal_can_be_written(id: Any, method: Any, params: Any, version: Any) -> None:
    value = {"jsonrpc": version, "id": id, "method": method, "params": params}
    for source in (json.dumps(value), json.dumps({**value, "jsonrpc": "2.0", "method": "ping"})):
        message = parse(source)
        if isinstance(message, Broken):
            json.loads(error_line(message.id, encode(message.error.to_wire())))


@pytest.mark.parametrize("id", ["1e400", "-1e400"])
def test_a_refusal_of_a_number_beyond_every_range_can_be_written(id: str) -> None:
    message = parse(f'{{"jsonrpc":"2.0","id":{id},"method":"ping"}}')
    assert isinstance(message, Broken)
    assert message.error.code == INVALID_REQUEST
    assert json.loads(error_line(message.id, encode(message.error.to_wire())))["id"] is None


@pytest.mark.parametrize(
    ("source", "code", "id", "answered"),
    [
        ("{oops", PARSE_ERROR, None, False),
        ('{"id":3,oops', PARSE_ERROR, 3, True),
        ("NaN", PARSE_ERROR, None, False),
        (request_text(params={"a": float("nan")}), PARSE_ERROR, 1, True),
        (request_text(params={"a": float("inf")}), PARSE_ERROR, 1, True),
        ('{"id":1,"a":' + "9" * 5000 + "}", PARSE_ERROR, 1, True),
        ("7", INVALID_REQUEST, None, False),
        ("null", INVALID_REQUEST, None, False),
        (request_text(id=None), INVALID_REQUEST, None, True),
        (request_text(id=True), INVALID_REQUEST, None, True),
        (request_text(id={}), INVALID_REQUEST, None, True),
        (request_text(id=1.5), INVALID_REQUEST, 1.5, True),
        (request_text(jsonrpc="1.0"), INVALID_REQUEST, 1, True),
        (request_text(method=7), INVALID_REQUEST, 1, True),
        (request_text(params=[]), INVALID_PARAMS, 1, True),
        (request_text(params={"_meta": 7}), INVALID_PARAMS, 1, True),
        ('{"jsonrpc":"1.0","method":"x"}', INVALID_REQUEST, None, False),
        ('{"jsonrpc":"2.0","id":null,"result":{}}', INVALID_REQUEST, None, False),
        ('{"jsonrpc":"2.0","result":{}}', INVALID_REQUEST, None, False),
    ],
)
def test_what_is_refused(source: str, code: int, id: Any, answered: bool) -> None:
    message = parse(source)
    assert isinstance(message, Broken)
    assert (message.error.code, message.id, message.answer) == (code, id, answered)


def test_the_other_kinds() -> None:
    assert parse('{"jsonrpc":"2.0","method":"x","params":null}') == Notification("x", {})
    assert parse('{"jsonrpc":"2.0","id":"a","result":[1]}') == Response("a", [1], None)
    assert parse('{"jsonrpc":"2.0","id":0,"error":{"code":1}}') == Response(0, None, {"code": 1})
    assert parse('{"jsonrpc":"2.0","id":0,"error":"no"}') == Response(0, None, None)
    assert parse("[]") == []


def test_a_batch() -> None:
    found = parse('[{"jsonrpc":"2.0","id":1,"method":"a"}, {"jsonrpc":"2.0","method":"b"}, 7, {"id":1e400}]')
    assert isinstance(found, list)
    first, second, third, fourth = found
    assert isinstance(first, Request)
    assert json.loads(first.source) == {"jsonrpc": "2.0", "id": 1, "method": "a"}
    assert second == Notification("b", {})
    assert isinstance(third, Broken)
    assert isinstance(fourth, Broken)


# -- nesting


def nested(levels: int, open: str, close: str) -> str:
    return open * levels + close * levels


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 10_000, 200_000])
@pytest.mark.parametrize(("open", "close", "inner"), [("[", "]", ""), ('{"a":', "}", "1")])
def test_too_deep(levels: int, open: str, close: str, inner: str) -> None:
    deep = open * levels + inner + close * levels
    for source in (deep, f'{{"jsonrpc":"2.0","id":"x","method":"m","params":{{"a":{deep}}}}}'):
        message = parse(source)
        assert isinstance(message, Broken)
        assert message.error.code == INVALID_REQUEST
        assert message.id == ("x" if source is not deep else None)


def test_as_deep_as_allowed() -> None:
    inner = MAX_DEPTH - 2
    message = parse(f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{nested(inner, "[", "]")}}}}}')
    assert isinstance(message, Request)
    message = parse(request_text(params={"a": "[" * 100_000}))
    assert isinstance(message, Request)


@given(JSON)
def test_depth(value: Any) -> None:
    def recursive(value: Any) -> int:
        inner: list[Any] = [*value.values()] if isinstance(value, dict) else [*value] if isinstance(value, list) else []
        return 1 + max(map(recursive, inner), default=0) if isinstance(value, (dict, list)) else 0

    assert depth(value) == recursive(value)


def test_depth_stops_past_the_limit() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    assert depth(value) == MAX_DEPTH + 1
    while value:  # a deep list is taken apart by hand: freeing it at once would recurse
        value = value[0]


# -- the id of what cannot be parsed


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ('{"id":7,', 7),
        ('  {"jsonrpc" : "2.0" , "id" : -7 , ', -7),
        ('{"id":"a\\"b\\u00e9"}', 'a"bé'),
        ('{"id":"\\ud800"}', "\ud800"),
        ('{"params":{"id":1},"id":2,', 2),
        ('{"params":[{"id":1}],"x":"\\"id\\":3","id":"y"}', "y"),
        ('{"method":"id","id":5}', 5),
        ('{"params":{"id":1},', None),
        ('{"params":{"id":1,', None),
        ('[{"id":1}', None),
        ('{"id":1', None),
        ('{"id":12', None),
        ('{"id":1.5}', None),
        ('{"id":1e3}', None),
        ('{"id":null}', None),
        ('{"id":{"id":4}}', None),
        ('{"id":' + "9" * 400 + "}", None),
        ('{"id":"open', None),
        ('{"id":01}', None),
        ("", None),
        ('x{"id":1}', None),
    ],
)
def test_find_id(text: str, id: Any) -> None:
    assert find_id(text) == id


@given(IDS.filter(lambda id: isinstance(id, str) or abs(id) < 10**299), JSON, JSON)
def test_the_id_found_is_the_one_a_parser_finds(id: Any, before: Any, after: Any) -> None:
    assert find_id(json.dumps({"a": before, "id": id, "z": after})[:-1] + ",oops") == id
    assert find_id(json.dumps({"a": before, "id": id}, ensure_ascii=False)) == id


# -- lines of ours


@given(IDS, JSON)
def test_lines_are_ascii_on_one_line(id: Any, value: Any) -> None:
    result = {"jsonrpc": "2.0", "id": id, "result": value}
    lines = [
        (result_line(id, encode(value)), result),
        (error_line(id, encode(value)), {"jsonrpc": "2.0", "id": id, "error": value}),
        (notification_line("m", {"a": value}), {"jsonrpc": "2.0", "method": "m", "params": {"a": value}}),
        (request_line(id, "m", {"a": value}), {"jsonrpc": "2.0", "id": id, "method": "m", "params": {"a": value}}),
    ]
    for line, wanted in lines:
        assert line.isascii()
        assert line.count(b"\n") == 1
        assert line.endswith(b"\n")
        assert json.loads(line) == wanted
