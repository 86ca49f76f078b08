"""Handshake and lists: pure functions from request to result, shared by start-up and engine.

Both eras are decided per request: one that carries ``_meta["io.modelcontextprotocol/protocolVersion"]`` is modern
(2026-07-28), any other legacy (``initialize``, 2024-11-05 to 2025-11-25).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hanzo_mcp import __version__
from hanzo_mcp.core.messages import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    UNSUPPORTED_VERSION,
    Request,
)
from hanzo_mcp.errors import ProtocolError

if TYPE_CHECKING:
    from hanzo_mcp.server.catalog import Catalog
    from hanzo_mcp.server.session import Session

MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
META = "io.modelcontextprotocol/"
META_VERSION = META + "protocolVersion"
META_CAPABILITIES = META + "clientCapabilities"
META_SERVER_INFO = META + "serverInfo"
META_SUBSCRIPTION = META + "subscriptionId"
SERVER_INFO = {"name": "hanzo-mcp", "title": "Hanzo MCP", "version": __version__}
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
TTL_MS = 300_000

Json = dict[str, Any]


class NeedsEngine(Exception):
    """This request cannot be answered from what start-up knows."""


def is_modern(params: Json) -> bool:
    """Does this request speak the per-request era?"""
    return META_VERSION in (params.get("_meta") or {})


def check_modern(params: Json) -> None:
    """The MUSTs of a modern request's ``_meta``. Raises ``ProtocolError``."""
    meta: Json = params.get("_meta") or {}
    version = meta.get(META_VERSION)
    if not isinstance(version, str):
        raise ProtocolError(INVALID_PARAMS, f"_meta must carry {META_VERSION} as a string")
    if version != MODERN:
        supported = [MODERN, *LEGACY]
        raise ProtocolError(
            UNSUPPORTED_VERSION,
            f"Protocol version {version[:40]!r} is not spoken here",
            {"supported": supported, "requested": version},
        )
    if not isinstance(meta.get(META_CAPABILITIES), dict):
        raise ProtocolError(INVALID_PARAMS, f"_meta must carry {META_CAPABILITIES} as an object")


def complete(result: Json) -> Json:
    """A modern result: ``resultType`` and our ``serverInfo`` on top."""
    meta: Json = {**(result.get("_meta") or {}), META_SERVER_INFO: SERVER_INFO}
    return {"resultType": "complete", **result, "_meta": meta}


class Handshake:
    """Answers what needs no tool to run."""

    def __init__(self, session: Session, catalog: Catalog, instructions: str) -> None:
        self._session, self._catalog, self._instructions = session, catalog, instructions
        self._legacy: dict[str, Callable[[Json], Json]] = {
            "initialize": self.initialize,
            "ping": _nothing,
            "tools/list": self.tools_list,
            "logging/setLevel": self.set_level,
        }
        self._modern: dict[str, Callable[[Json], Json]] = {
            "server/discover": self.discover,
            "tools/list": self.tools_list_modern,
        }

    def answer(self, request: Request) -> Json:
        """The result. Raises ``ProtocolError``, or ``NeedsEngine`` for what only the engine can do."""
        if is_modern(request.params) or request.method == "server/discover":
            check_modern(request.params)
            methods = self._modern
        else:
            methods = self._legacy
        if request.method in ENGINE_METHODS:
            raise NeedsEngine
        try:
            method = methods[request.method]
        except KeyError:
            raise ProtocolError(METHOD_NOT_FOUND, f"Unknown method: {request.method[:100]}") from None
        return method(request.params)

    def initialize(self, params: Json) -> Json:
        """MCP lifecycle (legacy); a version we do not know gets our newest legacy one."""
        asked = params.get("protocolVersion")
        capabilities = params.get("capabilities")
        self._session.version = asked if asked in LEGACY else LEGACY[0]
        self._session.capabilities = capabilities if isinstance(capabilities, dict) else {}
        return {
            "protocolVersion": self._session.version,
            "capabilities": {"logging": {}, "tools": {"listChanged": True}},
            "serverInfo": SERVER_INFO,
            "instructions": self._instructions,
        }

    def discover(self, params: Json) -> Json:  # noqa: ARG002 - one shape for all methods
        """``server/discover`` (2026-07-28)."""
        return complete(
            {
                "supportedVersions": [MODERN, *LEGACY],
                "capabilities": {"tools": {"listChanged": True}},
                "instructions": self._instructions,
                "ttlMs": TTL_MS,
                "cacheScope": "private",
            }
        )

    def tools_list(self, params: Json) -> Json:
        """The merged list, when the door's part is known here and now."""
        if params.get("cursor") is not None:
            raise ProtocolError(INVALID_PARAMS, "Unknown cursor: the whole list is one page")
        listing = self._catalog.ready()
        if listing is None:
            raise NeedsEngine
        return listing.to_wire()

    def tools_list_modern(self, params: Json) -> Json:
        """The same with caching directives; a list still waiting for the door is stale at once."""
        wire = self.tools_list(params)
        return complete({**wire, "ttlMs": self._catalog.ttl_ms(), "cacheScope": "private"})

    def set_level(self, params: Json) -> Json:
        """``logging/setLevel`` (legacy)."""
        level = params.get("level")
        if level not in LOG_LEVELS:
            raise ProtocolError(INVALID_PARAMS, f"level must be one of {', '.join(LOG_LEVELS)}")
        self._session.log_level = level
        return {}


def _nothing(params: Json) -> Json:  # noqa: ARG001 - one shape for all methods
    return {}


ENGINE_METHODS = frozenset({"tools/call", "subscriptions/listen"})
"""Methods that start the engine. ``subscriptions/listen`` is refused there when the request is legacy."""
