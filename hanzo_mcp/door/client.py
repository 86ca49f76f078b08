"""The door's protocol: which era the endpoint speaks, and messages in that era.

Found out once per address (``server/discover``, then ``initialize``) and remembered with the cached list. Our own
revision towards our client is never the endpoint's (HIP-0300 §2.3).
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from hanzo_mcp import __version__
from hanzo_mcp.core.messages import UNSUPPORTED_VERSION, encode
from hanzo_mcp.core.rawjson import members, one_line
from hanzo_mcp.core.shapes import as_list, as_object
from hanzo_mcp.door.exchange import Answer, Exchange, HttpRefusal, Notify
from hanzo_mcp.errors import Unavailable

MODERN = "2026-07-28"
LEGACY = "2025-06-18"
META = "io.modelcontextprotocol/"
CLIENT_INFO = {"name": "hanzo-mcp", "version": __version__}
MAX_LIST = 2 * 1024 * 1024
MAX_RESULT = 32 * 1024 * 1024
MAX_PAGES = 20
Json = dict[str, Any]


class Forwarded(NamedTuple):
    """A call to pass on: its params, the JSON sources of those other than ``_meta``, what the caller can be asked,
    and the ``Mcp-Param-*`` headers of the modern era."""

    params: Json
    texts: Mapping[str, str]
    capabilities: Json
    headers: Mapping[str, str]


class DoorClient:
    """Speaks to one endpoint. ``version`` may come from a cached list; ``None`` means not yet known."""

    def __init__(self, exchange: Exchange, version: str | None = None) -> None:
        self._exchange = exchange
        self.version = version
        self._session: str | None = None
        self._greeting = asyncio.Lock()
        self._count = 0

    async def tools(self) -> tuple[Json, str]:
        """The ``tools/list`` result, pages joined, and the era spoken. Raises like ``Exchange.ask``."""
        version = await self._greeted()
        result = await self._page(None)
        listed = as_list(result.get("tools")) or []
        for _ in range(MAX_PAGES):
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str):
                break
            result = await self._page(cursor)
            listed.extend(as_list(result.get("tools")) or [])
        return {**result, "tools": listed}, version

    async def call(self, forwarded: Forwarded, bearer: str | None, notify: Notify) -> Answer:
        """Forward ``tools/call``."""
        version = await self._greeted()
        answer = await self._forward(forwarded, bearer, notify)
        if version == MODERN and _refuses_version(answer):
            self.version = None
            await self._greeted()
            answer = await self._forward(forwarded, bearer, notify)
        return answer

    async def _forward(self, forwarded: Forwarded, bearer: str | None, notify: Notify) -> Answer:
        params, texts, capabilities, headers = forwarded
        given = as_object(params.get("_meta")) or {}
        meta = {key: value for key, value in given.items() if not key.startswith(META)}
        if self.version == MODERN:
            meta |= _envelope(capabilities)
        parts = [f"{encode(name)}:{text}" for name, text in texts.items()]
        if meta:
            parts.append(f'"_meta":{encode(meta)}')
        sent = {**self._headers("tools/call", str(params.get("name"))), **(headers if self.version == MODERN else {})}
        if bearer is not None:
            sent["authorization"] = f"Bearer {bearer}"
        return await self._ask("tools/call", "{" + ",".join(parts) + "}", sent, MAX_RESULT, notify)

    async def _page(self, cursor: str | None) -> Json:
        params: Json = {} if cursor is None else {"cursor": cursor}
        if self.version == MODERN:
            params["_meta"] = _envelope({})
        answer = await self._ask("tools/list", encode(params), self._headers("tools/list"), MAX_LIST)
        return _result(answer, "tools/list")

    async def _greeted(self) -> str:
        if self.version is None or (self.version == LEGACY and self._session is None):
            async with self._greeting:
                if self.version is None:
                    self.version = await self._discover() or LEGACY
                if self.version == LEGACY and self._session is None:
                    await self._initialize()
        return self.version

    async def _discover(self) -> str | None:
        headers = {"mcp-protocol-version": MODERN, "mcp-method": "server/discover"}
        params = encode({"_meta": _envelope({})})
        try:
            answer = await self._ask("server/discover", params, headers, MAX_LIST)
        except HttpRefusal as exc:
            if exc.status in (400, 404, 405, 406):
                return None
            raise
        result = as_object(answer.outcome.value) if answer.outcome.member == "result" else None
        return MODERN if result and MODERN in (as_list(result.get("supportedVersions")) or []) else None

    async def _initialize(self) -> None:
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT_INFO}
        answer = await self._ask("initialize", encode(params), {}, MAX_LIST)
        _result(answer, "initialize")
        self._session = answer.headers.get("mcp-session-id", "")
        told = encode({"jsonrpc": "2.0", "method": "notifications/initialized"})
        await self._exchange.tell(told, self._headers("notifications/initialized"))

    def _headers(self, method: str, name: str | None = None) -> dict[str, str]:
        if self.version != MODERN:
            session = {"mcp-session-id": self._session} if self._session else {}
            return {"mcp-protocol-version": LEGACY, **session}
        named = {"mcp-name": header_value(name)} if name is not None else {}
        return {"mcp-protocol-version": MODERN, "mcp-method": method, **named}

    async def _ask(
        self, method: str, params: str, headers: Mapping[str, str], limit: int, notify: Notify | None = None
    ) -> Answer:
        self._count += 1
        request_id = f"h{self._count}"
        content = f'{{"jsonrpc":"2.0","id":"{request_id}","method":"{method}","params":{params}}}'
        try:
            return await self._exchange.ask(request_id, content, headers, limit, notify)
        except HttpRefusal as exc:
            if exc.status == 404 and self._session:
                self._session = None  # the endpoint forgot the session; the next message greets it anew
            raise


def param_texts(source: str) -> dict[str, str]:
    """The JSON sources of a ``tools/call`` message's params other than ``_meta``, exactly as the caller wrote them."""
    params = members(source)["params"].text
    return {name: one_line(member.text) for name, member in members(params).items() if name != "_meta"}


def param_headers(schema: Any, arguments: Any) -> dict[str, str]:
    """``Mcp-Param-*`` headers for properties annotated with ``x-mcp-header`` (2026-07-28)."""
    found: dict[str, str] = {}
    given = as_object(arguments) or {}
    for name, property_schema in (as_object((as_object(schema) or {}).get("properties")) or {}).items():
        token = (as_object(property_schema) or {}).get("x-mcp-header")
        if isinstance(token, str) and _TOKEN.match(token) and given.get(name) is not None:
            value = given[name]
            if isinstance(value, bool):
                found[f"mcp-param-{token.lower()}"] = "true" if value else "false"
            elif isinstance(value, (str, int)):
                found[f"mcp-param-{token.lower()}"] = header_value(str(value))
        elif as_object(given.get(name)) is not None:
            found |= param_headers(property_schema, given[name])
    return found


_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?\Z")


def header_value(value: str) -> str:
    """``value`` as an HTTP field value; base64 in the protocol's wrapper when it would not survive as it is."""
    if _PLAIN.match(value) and not value.startswith("=?base64?"):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


def _envelope(capabilities: Json) -> Json:
    return {
        META + "protocolVersion": MODERN,
        META + "clientInfo": CLIENT_INFO,
        META + "clientCapabilities": capabilities,
    }


def _refuses_version(answer: Answer) -> bool:
    error = as_object(answer.outcome.value)
    return answer.outcome.member == "error" and error is not None and error.get("code") == UNSUPPORTED_VERSION


def _result(answer: Answer, method: str) -> Json:
    value = as_object(answer.outcome.value)
    if answer.outcome.member == "error" or value is None:
        raise Unavailable(f"{method} was answered with {json.dumps(answer.outcome.value)[:200]}")
    return value
