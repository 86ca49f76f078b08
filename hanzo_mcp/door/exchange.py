"""One JSON-RPC message and its answer over HTTP, as JSON or as an event stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from hanzo_mcp.core.rawjson import Member, members, one_line
from hanzo_mcp.core.shapes import as_object
from hanzo_mcp.core.sse import SseFrame, SseFrameBuffer, SseTooLarge
from hanzo_mcp.core.text import one_line as plain
from hanzo_mcp.core.tool import Verbatim
from hanzo_mcp.door.transport import Reply, Transport
from hanzo_mcp.errors import TooLarge, Unavailable

RESUMES = 3
RESUME_SECONDS = 10.0
EXCERPT = 300
Notify = Callable[[str, dict[str, Any]], None]


class HttpRefusal(Exception):
    """An HTTP status that carries no JSON-RPC answer."""

    def __init__(self, status: int, headers: Mapping[str, str], excerpt: str) -> None:
        super().__init__(f"HTTP {status}")
        self.status, self.headers, self.excerpt = status, headers, excerpt


@dataclass(frozen=True, slots=True)
class Answer:
    """The endpoint's ``result`` or ``error`` and the response's headers."""

    outcome: Verbatim
    headers: Mapping[str, str]


class Exchange:
    """Sends messages through a ``Transport``. ``limit`` caps an answer in bytes."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def ask(
        self, request_id: str, content: str, headers: Mapping[str, str], limit: int, notify: Notify | None = None
    ) -> Answer:
        """The answer to request ``request_id``. Raises ``HttpRefusal``, ``Unavailable``, ``TooLarge``."""
        async with self._transport.post(content, headers) as reply:
            if reply.status == 200 and reply.kind == "text/event-stream":
                return await self._stream(reply, request_id, headers, limit, notify)
            return Answer(await _json_answer(reply, request_id, limit), reply.headers)

    async def tell(self, content: str, headers: Mapping[str, str]) -> None:
        """Send a notification; whatever is answered is dropped."""
        async with self._transport.post(content, headers) as reply:
            await reply.body(64 * 1024)

    async def _stream(
        self, reply: Reply, request_id: str, headers: Mapping[str, str], limit: int, notify: Notify | None
    ) -> Answer:
        """Read events; a stream that ends early is resumed by its last event id, the call itself never repeated."""
        buffer = SseFrameBuffer(limit)
        found = await _read_events(reply, buffer, request_id, notify)
        for _ in range(RESUMES):
            if found is not None or not buffer.last_event_id:
                break
            await asyncio.sleep(min((buffer.retry or 0) / 1000, RESUME_SECONDS))
            again = {**headers, "last-event-id": buffer.last_event_id}
            found = await self._resumed(self._transport.get(again), buffer, request_id, notify)
        if found is None:
            raise Unavailable("the event stream ended before the answer")
        return Answer(found, reply.headers)

    async def _resumed(
        self,
        stream: AbstractAsyncContextManager[Reply],
        buffer: SseFrameBuffer,
        request_id: str,
        notify: Notify | None,
    ) -> Verbatim | None:
        async with stream as reply:
            if reply.status != 200 or reply.kind != "text/event-stream":
                return None
            return await _read_events(reply, buffer, request_id, notify)


async def _read_events(reply: Reply, buffer: SseFrameBuffer, request_id: str, notify: Notify | None) -> Verbatim | None:
    try:
        async for chunk in reply.chunks():
            for frame in buffer.feed(chunk):
                found = _event(frame, request_id, notify)
                if found is not None:
                    return found
    except SseTooLarge as exc:
        raise TooLarge(str(exc)) from None
    except Unavailable:
        if not buffer.last_event_id:
            raise
    return None


def _event(frame: SseFrame, request_id: str, notify: Notify | None) -> Verbatim | None:
    if not frame.data.strip():
        return None
    message = _members(frame.data)
    if "method" in message:
        params = as_object(message["params"].value) if "params" in message else None
        if notify is not None and "id" not in message:
            notify(str(message["method"].value), params or {})
        return None
    return _matching(message, request_id)


async def _json_answer(reply: Reply, request_id: str, limit: int) -> Verbatim:
    """A JSON body that answers us. A 4xx with a JSON-RPC error counts (MCP 2026-07-28), except 401 and 403."""
    if reply.status in (401, 403) or reply.status >= 500 or reply.kind != "application/json":
        raise await _refusal(reply)
    text = (await reply.body(limit)).decode("utf-8", "replace")
    if reply.status != 200 and not 400 <= reply.status < 500:
        raise HttpRefusal(reply.status, reply.headers, plain(text, EXCERPT))
    try:
        found = _matching(_members(text), request_id, any_error=reply.status != 200)
    except Unavailable:
        if reply.status != 200:
            raise HttpRefusal(reply.status, reply.headers, plain(text, EXCERPT)) from None
        raise
    if found is None or (reply.status != 200 and found.member != "error"):
        if reply.status != 200:
            raise HttpRefusal(reply.status, reply.headers, plain(text, EXCERPT))
        raise Unavailable(f"the answer is no JSON-RPC response to our request: {plain(text, 120)}")
    return found


async def _refusal(reply: Reply) -> HttpRefusal:
    try:
        body = await reply.body(64 * 1024)
    except (TooLarge, Unavailable):
        body = b""
    return HttpRefusal(reply.status, reply.headers, plain(body.decode("utf-8", "replace"), EXCERPT))


def _members(text: str) -> dict[str, Member]:
    try:
        return members(text)
    except RecursionError:
        raise TooLarge("the answer is nested too deep to be read") from None
    except ValueError as exc:
        raise Unavailable(f"the answer is not JSON ({plain(str(exc), 100)}): {plain(text, 120)}") from None


def _matching(message: dict[str, Member], request_id: str, any_error: bool = False) -> Verbatim | None:
    """``result`` or ``error`` when the id is ours; an error without an id is ours too, as one POST asks one thing."""
    known = message["id"].value if "id" in message else None
    for name in ("result", "error"):
        if name in message and (known == request_id or (name == "error" and (known is None or any_error))):
            value, text = message[name]
            if as_object(value) is None or (name == "error" and not isinstance(value.get("code"), int)):
                raise Unavailable(f"the answer's {name} is not what JSON-RPC and MCP ask for: {plain(text, 120)}")
            return Verbatim(name, one_line(text), value)
    return None
