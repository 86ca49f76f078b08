"""What one call may ask of the client that made it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from hanzo_mcp.core.messages import INTERNAL_ERROR, RequestId, Response, notification_line, request_line
from hanzo_mcp.core.shapes import as_object
from hanzo_mcp.errors import ProtocolError
from hanzo_mcp.server.handshake import META_CAPABILITIES
from hanzo_mcp.server.session import Session

Json = dict[str, Any]
_ELICITING = ("2025-06-18", "2025-11-25")
ELICIT_SECONDS = 300.0


class Outgoing:
    """Requests of ours to a legacy client, and their answers."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._open: dict[RequestId, asyncio.Future[Response]] = {}
        self._count = 0

    async def ask(self, method: str, params: Json, seconds: float) -> Json:
        """The result object. Raises ``ProtocolError`` for an error answer and ``TimeoutError``."""
        self._count += 1
        request_id = f"hanzo-{self._count}"
        answer = self._open[request_id] = asyncio.get_running_loop().create_future()
        try:
            self._send(request_line(request_id, method, params))
            async with asyncio.timeout(seconds):
                response = await answer
        finally:
            del self._open[request_id]
        if response.error is not None:
            raise ProtocolError(INTERNAL_ERROR, str(response.error.get("message", "the client refused")))
        return as_object(response.result) or {}

    def settle(self, response: Response) -> None:
        """Hand an answer to its asker; a stray one is ignored."""
        waiting = self._open.get(response.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(response)


class CallPort:
    """A ``ClientPort``. Silent once the call is over: nothing follows a result."""

    def __init__(
        self, send: Callable[[bytes], None], outgoing: Outgoing, session: Session, params: Json, modern: bool
    ) -> None:
        self._send, self._outgoing = send, outgoing
        meta: Json = params.get("_meta") or {}
        self._token: Any = meta.get("progressToken")
        self._last = float("-inf")
        self._modern = modern
        self._capabilities: Json = meta.get(META_CAPABILITIES) or {} if modern else session.capabilities
        self._version = session.version
        self._over = False

    @property
    def modern(self) -> bool:
        return self._modern

    def can_elicit(self) -> bool:
        return "elicitation" in self._capabilities and (self._modern or self._version in _ELICITING)

    async def elicit(self, params: Json) -> Json:
        return await self._outgoing.ask("elicitation/create", params, ELICIT_SECONDS)

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self._token is None or progress <= self._last:
            return
        self._last = progress
        told: Json = {"progressToken": self._token, "progress": progress}
        if total is not None:
            told["total"] = total
        if message is not None:
            told["message"] = message
        self.relay("notifications/progress", told)

    def relay(self, method: str, params: Json) -> None:
        if not self._over and not (method == "notifications/progress" and self._token is None):
            self._send(notification_line(method, params))

    def close(self) -> None:
        """The result is about to leave."""
        self._over = True
