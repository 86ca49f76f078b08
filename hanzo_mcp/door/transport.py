"""HTTP to the endpoint: keep-alive, capped, never redirected to another origin (RFC 9110, MCP streamable HTTP).

``httpx`` is imported with the first request, in a thread. Its connection pool scans every open request at each step,
which costs seconds at 500 in flight; so requests are spread over lanes, small clients of ``LANE`` connections each.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hanzo_mcp import __version__
from hanzo_mcp.core.text import one_line
from hanzo_mcp.errors import TooLarge, Unavailable

if TYPE_CHECKING:
    import ssl

    import httpx

LANE = 8
CONNECT_SECONDS = 5.0
ACCEPT = "application/json, text/event-stream"


@dataclass(slots=True)
class Reply:
    """A response whose body is still to be read."""

    status: int
    headers: Mapping[str, str]
    _response: httpx.Response

    @property
    def kind(self) -> str:
        """The media type, lower case, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises ``Unavailable`` when the connection breaks."""
        import httpx

        try:
            async for chunk in self._response.aiter_raw():
                yield chunk
        except (httpx.HTTPError, httpx.StreamError) as exc:
            raise Unavailable(f"the connection broke in the middle of the answer ({_why(exc)})") from exc

    async def body(self, limit: int) -> bytes:
        """The whole body. Raises ``TooLarge`` past ``limit`` bytes, before they are read."""
        parts: list[bytes] = []
        size = 0
        async for chunk in self.chunks():
            size += len(chunk)
            if size > limit:
                raise TooLarge(f"the answer is larger than {limit} bytes")
            parts.append(chunk)
        return b"".join(parts)


@dataclass(slots=True)
class _Lane:
    client: httpx.AsyncClient
    busy: int = 0


@dataclass(slots=True)
class Transport:
    """``url`` is the endpoint. ``post`` and ``get`` are context managers: leaving closes the stream."""

    url: str
    _lanes: list[_Lane] = field(default_factory=list[_Lane])
    _context: ssl.SSLContext | None = None
    _loading: asyncio.Lock = field(default_factory=asyncio.Lock)

    def post(self, content: str, headers: Mapping[str, str]) -> contextlib.AbstractAsyncContextManager[Reply]:
        """Send one message. Raises ``Unavailable``; ``retryable`` when nothing can have run."""
        sent = {"content-type": "application/json", "accept": ACCEPT, **headers}
        return self._send("POST", content.encode("utf-8", "surrogatepass"), sent)

    def get(self, headers: Mapping[str, str]) -> contextlib.AbstractAsyncContextManager[Reply]:
        """Resume a stream."""
        return self._send("GET", b"", {"accept": "text/event-stream", **headers})

    @contextlib.asynccontextmanager
    async def _send(self, method: str, content: bytes, headers: Mapping[str, str]) -> AsyncGenerator[Reply]:
        lane = await self._lane()
        lane.busy += 1
        try:
            response = await self._follow(lane.client, method, content, headers)
            try:
                yield Reply(response.status_code, response.headers, response)
            finally:
                await response.aclose()
        finally:
            lane.busy -= 1

    async def _follow(
        self, client: httpx.AsyncClient, method: str, content: bytes, headers: Mapping[str, str]
    ) -> httpx.Response:
        """One same-origin 308 is followed, method and body kept (the framework's ``/mcp`` answers it)."""
        response = await self._once(client, method, content, headers)
        location = response.headers.get("location", "")
        if response.status_code != 308 or not location:
            return response
        target = response.request.url.join(location)
        if not _same_origin(target, response.request.url):
            return response
        await response.aclose()
        self.url = str(target)
        return await self._once(client, method, content, headers)

    async def _once(
        self, client: httpx.AsyncClient, method: str, content: bytes, headers: Mapping[str, str]
    ) -> httpx.Response:
        client.cookies.clear()  # the request takes the jar's content when it is built
        return await _sent(client, client.build_request(method, self.url, content=content, headers=headers))

    async def _lane(self) -> _Lane:
        for lane in self._lanes:
            if lane.busy < LANE:
                return lane
        if self._context is None:
            async with self._loading:
                if self._context is None:
                    self._context = await asyncio.to_thread(_load, self.url)
        lane = _Lane(_client(self._context))
        self._lanes.append(lane)
        return lane

    async def close(self) -> None:
        """Drop every connection."""
        for lane in self._lanes:
            await lane.client.aclose()
        self._lanes.clear()


def _load(url: str) -> ssl.SSLContext:
    """Import what the first request needs; the TLS context is built once for all lanes, an empty one for plain http."""
    import ssl

    import httpx

    return httpx.create_ssl_context() if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _client(context: ssl.SSLContext) -> httpx.AsyncClient:
    import httpx

    return httpx.AsyncClient(
        verify=context,
        trust_env=False,  # a proxy or .netrc of the environment must not see or add credentials
        follow_redirects=False,
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
        limits=httpx.Limits(max_connections=LANE, max_keepalive_connections=LANE, keepalive_expiry=30.0),
        headers={"user-agent": f"hanzo-mcp/{__version__}", "accept-encoding": "identity"},
    )


async def _sent(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    import httpx

    try:
        return await client.send(request, stream=True)
    except (httpx.ConnectError, httpx.ConnectTimeout) as exc:
        raise Unavailable(f"no connection ({_why(exc)})", retryable=True) from exc
    except httpx.HTTPError as exc:
        raise Unavailable(f"no answer ({_why(exc)})") from exc


def _same_origin(one: Any, other: Any) -> bool:
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)


def _why(exc: Exception) -> str:
    return one_line(str(exc), 160) or type(exc).__name__
