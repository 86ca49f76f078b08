"""The MCP SDK's models as the judge of every message the server sends.

The SDK is never in the server's way; here it decides whether what we emit is the protocol, by revision.
"""

from __future__ import annotations

from typing import Any, cast

from mcp_types import methods
from mcp_types.jsonrpc import JSONRPCError, jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

JsonObject = dict[str, Any]

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
RETIRED_CODES = (-32002, -32042)
SPEC_CODES = (-32020, -32021, -32022)
CACHEABLE = ("server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list")


def check_reply(method: str, version: str, message: JsonObject, *, ours: bool = True) -> JsonObject:
    """Assert that ``message`` answers ``method`` rightly under ``version``; returns its result or error object.

    Pydantic's ``ValidationError`` names the field. ``ours=False`` is for a result forwarded verbatim from
    elsewhere: only its shape is judged, not what our own server has to add.
    """
    jsonrpc_message_adapter.validate_python(message)
    if "error" in message:
        return check_error(version, message)
    result = cast(JsonObject, message["result"])
    methods.parse_server_result(method, version, result)
    if version in MODERN_PROTOCOL_VERSIONS:
        _check_modern(method, result, ours)
    elif ours:
        assert version in HANDSHAKE_PROTOCOL_VERSIONS
        assert "resultType" not in result, f"a {version} result has no resultType: {result}"
    return result


def _check_modern(method: str, result: JsonObject, ours: bool) -> None:
    assert result.get("resultType") in ("complete", "input_required"), f"no resultType: {result}"
    if ours:
        name = result.get("_meta", {}).get(SERVER_INFO, {}).get("name")
        assert name, f"no {SERVER_INFO} in _meta: {result.get('_meta')}"
    if method in CACHEABLE or method == "resources/read":
        ttl = result.get("ttlMs")
        assert isinstance(ttl, int) and ttl >= 0, f"ttlMs is {ttl!r}"
        assert result.get("cacheScope") in ("public", "private"), f"cacheScope is {result.get('cacheScope')!r}"


def check_error(version: str, message: JsonObject) -> JsonObject:
    """Assert that ``message`` is an error response whose code the revision allows; returns its error object."""
    JSONRPCError.model_validate(message)
    error = cast(JsonObject, message["error"])
    code = error["code"]
    assert isinstance(code, int) and not isinstance(code, bool), f"error code {code!r}"
    assert error["message"], "an error without words"
    assert code not in RETIRED_CODES, f"{code} is retired and never emitted"
    if -32099 <= code <= -32020:
        assert version in MODERN_PROTOCOL_VERSIONS and code in SPEC_CODES, f"{code} belongs to the specification"
    if code == -32022:
        assert set(error["data"]) >= {"supported", "requested"}, f"data of -32022: {error.get('data')}"
    if code == -32021:
        assert "requiredCapabilities" in error["data"], f"data of -32021: {error.get('data')}"
    return error


def check_notification(version: str, message: JsonObject) -> JsonObject:
    """Assert that ``message`` is a notification a server may send under ``version``; returns its params."""
    jsonrpc_message_adapter.validate_python(message)
    assert "id" not in message, f"a notification with an id: {message}"
    methods.parse_server_notification(message["method"], version, message.get("params"))
    return cast(JsonObject, message.get("params") or {})


def check_request(version: str, message: JsonObject) -> JsonObject:
    """Assert that ``message`` is a request a server may send under ``version`` (legacy only); returns its params."""
    jsonrpc_message_adapter.validate_python(message)
    assert "id" in message, f"a request without an id: {message}"
    methods.parse_server_request(message["method"], version, message.get("params"))
    return cast(JsonObject, message.get("params") or {})
