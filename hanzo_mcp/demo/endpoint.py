"""``POST /v1/mcp`` as pure functions: the right answer to every request, no I/O.

Both eras (2026-07-28 per request, 2025-06-18 after ``initialize``). Source: HIP-0300 §1; where it is silent, the choice
made here is named in a comment. Header names are looked up in lower case.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hanzo_mcp.core.shapes import as_object
from hanzo_mcp.demo.subsystems import BY_NAME, DESCRIBE, OPERATIONS, SUBSYSTEMS, Json, text_result

PATH = "/v1/mcp"
FRAMEWORK_PATH = "/mcp"
METADATA_PATH = "/.well-known/oauth-protected-resource"
ISSUER = "https://hanzo.id"
MODERN, LEGACY = "2026-07-28", "2025-06-18"
META = "io.modelcontextprotocol/"
SERVER_INFO = {"name": "hanzo-cloud", "title": "Hanzo Cloud (demo)", "version": "0"}
REFUSED = {"count": 2, "rule": "discloses a bearer secret or mutates an identity or authority object"}
TTL_MS = 300_000
JSON_TYPE = "application/json"

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022
# HIP-0300 names no code for the challenge's body; this one is from the range MCP leaves to servers.
UNAUTHENTICATED = -32001


class Reply(NamedTuple):
    """An HTTP response. ``body`` is a JSON object, a page as text, or nothing."""

    status: int
    headers: dict[str, str]
    body: Json | str | None

    def encoded(self) -> bytes:
        """The body as bytes: JSON in ASCII, so that any string survives."""
        if self.body is None:
            return b""
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body).encode("ascii")


class Refused(Exception):
    """A JSON-RPC error as the answer to one request."""

    def __init__(self, code: int, message: str, *, status: int = 200, data: Any = None) -> None:
        super().__init__(message)
        self.status = status
        self.error: Json = {"code": code, "message": message} | ({} if data is None else {"data": data})


def json_reply(body: Json, status: int = 200, **headers: str) -> Reply:
    """A JSON response; ``headers`` are written with underscores for dashes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, {"content-type": JSON_TYPE, **named}, body)


def error_reply(request_id: Any, refused: Refused, **headers: str) -> Reply:
    """A JSON-RPC error response."""
    return json_reply({"jsonrpc": "2.0", "id": request_id, "error": refused.error}, refused.status, **headers)


def html_reply(status: int = 200) -> Reply:
    """What paths nobody serves answer: the console's page."""
    return Reply(status, {"content-type": "text/html; charset=utf-8"}, "<!doctype html><title>Hanzo</title><p>Console")


def respond(method: str, path: str, headers: Mapping[str, str], body: bytes, *, origin: str) -> Reply:
    """The right response to any HTTP request."""
    path = path.partition("?")[0]
    if method == "GET" and path in (METADATA_PATH, METADATA_PATH + PATH):
        return json_reply({"resource": origin, "authorization_servers": [ISSUER]})
    if path == FRAMEWORK_PATH:
        return Reply(308, {"location": PATH}, None)
    if path != PATH:
        return html_reply()
    if method != "POST":
        return Reply(405, {"allow": "POST"}, None)
    return _post(headers, body, origin)


def _post(headers: Mapping[str, str], body: bytes, origin: str) -> Reply:
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        return error_reply(None, Refused(PARSE_ERROR, "parse error"))
    message = as_object(request)
    if message is None:
        return error_reply(None, Refused(INVALID_REQUEST, "one JSON-RPC message per POST"))
    return answer(message, headers, origin=origin)


def answer(request: Json, headers: Mapping[str, str], *, origin: str, modern: bool = True) -> Reply:
    """The right response to one JSON-RPC message; with ``modern`` off, that of an endpoint of the older era only."""
    if "id" not in request or "method" not in request:
        return json_reply({}, 202)
    request_id, method = request["id"], request["method"]
    if method == "tools/call" and not credential(headers):
        challenge = f'Bearer resource_metadata="{origin}{METADATA_PATH}"'
        refused = Refused(UNAUTHENTICATED, "authentication required", status=401)
        return error_reply(request_id, refused, www_authenticate=challenge)
    try:
        params = as_object(request.get("params") or {})
        if params is None:
            raise Refused(INVALID_PARAMS, "params must be an object")
        result = _result(method, params, headers, modern)
    except Refused as refused:
        return error_reply(request_id, refused)
    return json_reply({"jsonrpc": "2.0", "id": request_id, "result": result})


def credential(headers: Mapping[str, str]) -> bool:
    """Absence is all the endpoint knows (HIP-0300 §1.6): whether any credential came, not whether it is good."""
    return any(headers.get(name) for name in ("authorization", "x-authorization", "cookie"))


def is_modern(params: Json) -> bool:
    """Does this request carry the per-request envelope?"""
    meta = params.get("_meta")
    return isinstance(meta, dict) and META + "protocolVersion" in meta


def _result(method: Any, params: Json, headers: Mapping[str, str], modern: bool) -> Json:
    if modern and (is_modern(params) or method == "server/discover"):
        check_envelope(method, params, headers)
        return complete(_method(_MODERN_METHODS, method)(params))
    return _method(_LEGACY_METHODS, method)(params)


def _method(table: Mapping[str, Callable[[Json], Json]], method: Any) -> Callable[[Json], Json]:
    found = table.get(method) if isinstance(method, str) else None
    if found is None:
        raise Refused(METHOD_NOT_FOUND, f"unknown method: {method}")
    return found


def complete(result: Json) -> Json:
    """A modern result: ``resultType`` and ``serverInfo``."""
    return {"resultType": "complete", **result, "_meta": {**result.get("_meta", {}), META + "serverInfo": SERVER_INFO}}


def check_envelope(method: Any, params: Json, headers: Mapping[str, str]) -> None:
    """The MUSTs of a modern request over HTTP. Raises ``Refused`` with status 400."""
    meta = as_object(params.get("_meta")) or {}
    version = meta.get(META + "protocolVersion")
    if not isinstance(version, str) or not isinstance(meta.get(META + "clientCapabilities"), dict):
        raise Refused(INVALID_PARAMS, "_meta needs protocolVersion and clientCapabilities", status=400)
    mirrored = {"mcp-protocol-version": version, "mcp-method": method}
    if method == "tools/call":
        mirrored["mcp-name"] = params.get("name")
    for header, value in mirrored.items():
        if decoded(headers.get(header)) != value:
            raise Refused(HEADER_MISMATCH, f"header {header} does not match the body", status=400)
    if version != MODERN:
        data = {"supported": [MODERN], "requested": version}
        raise Refused(UNSUPPORTED_VERSION, "unsupported protocol version", status=400, data=data)


def decoded(value: str | None) -> str | None:
    """A mirrored header's value: as it is, or out of ``=?base64?...?=`` (UTF-8)."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _initialize(params: Json) -> Json:  # noqa: ARG001 - one shape for all methods
    return {"protocolVersion": LEGACY, "capabilities": {"tools": {}}, "serverInfo": SERVER_INFO}


def _discover(params: Json) -> Json:  # noqa: ARG001
    return _cacheable({"supportedVersions": [MODERN, LEGACY], "capabilities": {"tools": {}}})


def _ping(params: Json) -> Json:  # noqa: ARG001
    return {}


def _list(params: Json) -> Json:
    if params.get("cursor") is not None:
        raise Refused(INVALID_PARAMS, "unknown cursor")
    return {"tools": tools(), "_meta": {"hanzo.ai/refused": REFUSED}}


def tools() -> list[Json]:
    """The list: ``describe`` first, so that a client which shortens it keeps that (HIP-0300 §1.3)."""
    return [DESCRIBE, *(subsystem.tool() for subsystem in SUBSYSTEMS)]


def _cacheable(result: Json) -> Json:
    return {**result, "ttlMs": TTL_MS, "cacheScope": "public"}


def _call(params: Json) -> Json:
    name, given = params.get("name"), as_object(params.get("arguments")) or {}
    if not isinstance(name, str) or (name != DESCRIBE["name"] and name not in BY_NAME):
        raise Refused(INVALID_PARAMS, f"unknown tool: {name}")
    op = given.get("op")
    if not isinstance(op, str) or not op:
        raise Refused(INVALID_PARAMS, f'{name} needs {{"op":"<operation>","input":{{}}}}')
    if name == DESCRIBE["name"]:
        return _describe(op)
    for operation in BY_NAME[name].operations:
        if operation.name == op:
            return operation.run(given)
    raise _unknown(op)


def _describe(op: str) -> Json:
    if op not in OPERATIONS:
        raise _unknown(op)
    operation = OPERATIONS[op]
    described = {"name": op, "description": operation.description, "inputSchema": operation.input_schema}
    return text_result(described)


def _unknown(op: str) -> Refused:
    """A withheld operation is answered as a tool that never existed (HIP-0300, Security Considerations)."""
    return Refused(INVALID_PARAMS, f"unknown tool: {op}")


_LEGACY_METHODS: Mapping[str, Callable[[Json], Json]] = {
    "initialize": _initialize,
    "ping": _ping,
    "tools/list": _list,
    "tools/call": _call,
}
# ``ping`` is gone from 2026-07-28, but HIP-0300 has it open in general: answered in both.
_MODERN_METHODS: Mapping[str, Callable[[Json], Json]] = {
    "server/discover": _discover,
    "ping": _ping,
    "tools/list": lambda params: _cacheable(_list(params)),
    "tools/call": _call,
}
