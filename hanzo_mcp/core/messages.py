"""JSON-RPC 2.0 messages as MCP uses them: parsing, checking, building.

Everything here is a pure function; the engine and the start-up loop share it.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple

from hanzo_mcp.core.shapes import as_list, as_object
from hanzo_mcp.errors import ProtocolError

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
UNSUPPORTED_VERSION = -32022

MAX_DEPTH = 256
"""Nesting accepted in a message. Deeper values are refused before anything walks them."""

RequestId = str | int | float
_INVALID = object()


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode


class Request(NamedTuple):
    """A call that must be answered. ``source`` is the message's own JSON text, kept for verbatim forwarding."""

    id: RequestId
    method: str
    params: dict[str, Any]
    source: str


class Notification(NamedTuple):
    """A message that must never be answered."""

    method: str
    params: dict[str, Any]


class Response(NamedTuple):
    """The peer's answer to a request of ours."""

    id: RequestId
    result: Any
    error: dict[str, Any] | None


class Broken(NamedTuple):
    """A message that cannot be processed. ``id`` is ``None`` when no answer can be addressed."""

    id: RequestId | None
    error: ProtocolError
    answer: bool


Message = Request | Notification | Response | Broken


def parse(source: str) -> list[Message] | Message:
    """One line of input -> a message, or a list of them for a batch. Never raises on bad input."""
    try:
        value = _decode(source)
    except RecursionError:
        return _unreadable(source, INVALID_REQUEST, f"Nested deeper than {MAX_DEPTH} levels")
    except ValueError as exc:
        return _unreadable(source, PARSE_ERROR, f"Not valid JSON: {exc}")
    if source.count("[") + source.count("{") > MAX_DEPTH and depth(value) > MAX_DEPTH:
        return _unreadable(source, INVALID_REQUEST, f"Nested deeper than {MAX_DEPTH} levels")
    batch = as_list(value)
    if batch is not None:
        return [_classify_item(item) for item in batch]
    return classify(value, source)


def _classify_item(item: Any) -> Message:
    try:
        return classify(item, encode(item))
    except ValueError:
        return Broken(None, ProtocolError(INVALID_REQUEST, "A number out of range"), False)


def classify(value: Any, source: str) -> Message:
    """A decoded JSON value -> ``Request``, ``Notification``, ``Response`` or ``Broken``."""
    message = as_object(value)
    if message is None:
        return Broken(None, ProtocolError(INVALID_REQUEST, "A message must be a JSON object"), False)
    identity = _identity(message)
    if "method" not in message and ("result" in message or "error" in message):
        return _response(message, identity)
    problem = _envelope_problem(message)
    if problem is None and identity is _INVALID:
        problem = ProtocolError(INVALID_REQUEST, "id must be a string or an integer")
    if problem is not None:
        return Broken(_echo(message), problem, "id" in message)
    params: dict[str, Any] = message.get("params") or {}
    if identity is None:
        return Notification(message["method"], params)
    return Request(identity, message["method"], params, source)


def _identity(message: dict[str, Any]) -> Any:
    """The id, ``None`` when there is none, ``_INVALID`` when it is no string or integer."""
    if "id" not in message:
        return None
    value = message["id"]
    return value if isinstance(value, (str, int)) and not isinstance(value, bool) else _INVALID


def _echo(message: dict[str, Any]) -> RequestId | None:
    value = message.get("id")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float)) and not isinstance(value, bool) else None


def _envelope_problem(message: dict[str, Any]) -> ProtocolError | None:
    if message.get("jsonrpc") != "2.0":
        return ProtocolError(INVALID_REQUEST, 'jsonrpc must be "2.0"')
    if not isinstance(message.get("method"), str):
        return ProtocolError(INVALID_REQUEST, "method must be a string")
    params = message.get("params")
    if params is None:
        return None
    given = as_object(params)
    if given is None:
        return ProtocolError(INVALID_PARAMS, "params must be an object")
    if given.get("_meta") is not None and as_object(given["_meta"]) is None:
        return ProtocolError(INVALID_PARAMS, "params._meta must be an object")
    return None


def _response(message: dict[str, Any], identity: Any) -> Message:
    if identity is None or identity is _INVALID:
        return Broken(None, ProtocolError(INVALID_REQUEST, "A response without a usable id"), False)
    return Response(identity, message.get("result"), as_object(message.get("error")))


def _unreadable(source: str, code: int, words: str) -> Broken:
    found = find_id(source)
    return Broken(found, ProtocolError(code, words), found is not None)


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]')
_ID_VALUE = re.compile(r'\s*:\s*(-?\d{1,300}(?![\d.eE])|"(?:[^"\\]|\\.)*")\s*[,}]')


def find_id(text: str) -> RequestId | None:
    """The id of a request that cannot be parsed, when it stands plainly at the top level.

    Iterative, so that hostile nesting costs nothing. ``None`` when unsure: an answer to
    the wrong id would be worse than none.
    """
    if not text.lstrip().startswith("{"):
        return None
    level = 0
    for token in _TOKEN.finditer(text):
        word = token.group()
        if word in "{[":
            level += 1
        elif word in "}]":
            level -= 1
        elif level == 1 and word == '"id"' and (value := _ID_VALUE.match(text, token.end())):
            return _scalar(value.group(1))
    return None


def _scalar(text: str) -> RequestId | None:
    try:
        return json.loads(text)
    except ValueError:
        return None


def depth(value: Any) -> int:
    """Nesting of a decoded JSON value: 0 for a scalar. Iterative and stops just past ``MAX_DEPTH``."""
    level, layer = 0, [value]
    while layer and level <= MAX_DEPTH:
        below: list[Any] = []
        for item in layer:
            if (inner := as_object(item)) is not None:
                below.extend([None, *inner.values()])
            elif (items := as_list(item)) is not None:
                below.extend([None, *items])
        if not below:
            return level
        level, layer = level + 1, below
    return level


_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode


def encode(value: Any) -> str:
    """Compact ASCII JSON. Raises ``ValueError`` for NaN and infinities, which JSON does not have."""
    return _encode(value)


def result_line(request_id: RequestId, result_json: str) -> bytes:
    """A reply line around an already encoded result."""
    return f'{{"jsonrpc":"2.0","id":{_encode(request_id)},"result":{result_json}}}\n'.encode("ascii")


def error_line(request_id: RequestId | None, error_json: str) -> bytes:
    """An error reply line around an already encoded error object."""
    return f'{{"jsonrpc":"2.0","id":{_encode(request_id)},"error":{error_json}}}\n'.encode("ascii")


def notification_line(method: str, params: dict[str, Any] | None = None) -> bytes:
    """A notification line."""
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        body["params"] = params
    return (_encode(body) + "\n").encode("ascii")


def request_line(request_id: RequestId, method: str, params: dict[str, Any]) -> bytes:
    """A request line of ours to the client (legacy era only)."""
    body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return (_encode(body) + "\n").encode("ascii")
