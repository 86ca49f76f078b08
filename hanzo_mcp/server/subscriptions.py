"""Telling clients that the tool list changed: pushed in the legacy era, by subscription in the modern one.

``subscriptions/listen`` (2026-07-28): the acknowledgement comes first, each notification carries the subscription
id, ``notifications/cancelled`` ends it silently and the server's end closes it with a result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hanzo_mcp.core.messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    Request,
    RequestId,
    encode,
    notification_line,
    result_line,
)
from hanzo_mcp.core.shapes import as_object
from hanzo_mcp.errors import ProtocolError
from hanzo_mcp.server.handshake import META_SUBSCRIPTION, complete
from hanzo_mcp.server.session import Session

LIST_CHANGED = "notifications/tools/list_changed"
MOST = 64


class Subscriptions:
    """The open subscriptions of one connection."""

    def __init__(self, session: Session, send: Callable[[bytes], None]) -> None:
        self._session, self._send = session, send
        self._open: dict[RequestId, bool] = {}

    def __contains__(self, request_id: RequestId) -> bool:
        return request_id in self._open

    def listen(self, request: Request) -> None:
        """Open a subscription and acknowledge what of it is honoured. Raises ``ProtocolError``."""
        wanted = as_object(request.params.get("notifications"))
        if wanted is None:
            raise ProtocolError(INVALID_PARAMS, "params.notifications must be an object")
        if len(self._open) >= MOST:
            raise ProtocolError(INVALID_REQUEST, f"More than {MOST} subscriptions are open; cancel some first")
        tools = wanted.get("toolsListChanged") is True
        self._open[request.id] = tools
        honoured = {"toolsListChanged": True} if tools else {}
        self._tell(request.id, "notifications/subscriptions/acknowledged", {"notifications": honoured})

    def cancel(self, request_id: RequestId) -> None:
        """Forget a subscription."""
        self._open.pop(request_id, None)

    def tools_changed(self) -> None:
        """The merged list is another one now."""
        if self._session.version is not None:
            self._send(notification_line(LIST_CHANGED))
        for request_id, tools in self._open.items():
            if tools:
                self._tell(request_id, LIST_CHANGED, {})

    def close(self) -> None:
        """The server ends: each subscription gets its result."""
        for request_id in self._open:
            result = complete({"_meta": {META_SUBSCRIPTION: request_id}})
            self._send(result_line(request_id, encode(result)))
        self._open.clear()

    def _tell(self, request_id: RequestId, method: str, params: dict[str, Any]) -> None:
        self._send(notification_line(method, {**params, "_meta": {META_SUBSCRIPTION: request_id}}))
