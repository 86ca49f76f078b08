"""One HTTP/1.1 request over one connection to an address that has been checked (RFC 9112).

No name is resolved here and nothing is read from the environment. Everything that comes in is counted. Imported with
the first fetch, because httpcore costs a tenth of a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import httpcore

from hanzo_mcp.core import coding
from hanzo_mcp.core.text import one_line
from hanzo_mcp.core.weburl import WebUrl
from hanzo_mcp.errors import TooLarge, Unavailable
from hanzo_mcp.sandbox.net import Answer, Limits, Progress, Request

Dial = Callable[[str, int, float], Awaitable[httpcore.AsyncNetworkStream]]
"""Connects to ``(address, port)`` within seconds."""
_FRAMING = 1024 * 1024
"""Bytes of chunk headers and trailers allowed beside the body."""


class Route(NamedTuple):
    """Where to connect, and how: the first of ``addresses`` that answers; TLS for https only."""

    addresses: Sequence[str]
    dial: Dial
    tls: ssl.SSLContext | None


async def send(url: WebUrl, request: Request, route: Route, limits: Limits, progress: Progress) -> Answer:
    """The answer, decoded, its body empty when it only redirects.

    Raises ``Unavailable`` for every network fault and ``TooLarge`` for headers beyond their limit.
    """
    try:
        stream = _Counted(url, await _connected(url, route, limits, progress), limits.headers)
        connection = httpcore.AsyncHTTP11Connection(_origin(url), stream)
        async with contextlib.aclosing(connection):
            progress.doing = f"waiting for {url.server} to answer"
            response = await connection.handle_async_request(_request(url, request))
            stream.room, stream.what = limits.wire + _FRAMING, "chunk headers"
            return await _answer(url, response, limits, progress)
    except httpcore.TimeoutException:
        raise Unavailable(f"{url}: {url.server} did not accept a connection in time.", retryable=True) from None
    except (httpcore.NetworkError, httpcore.ProtocolError) as exc:
        raise Unavailable(
            f"{url}: {_fault(exc)}.", retryable=not isinstance(exc, httpcore.LocalProtocolError)
        ) from None


async def dial(address: str, port: int, seconds: float) -> httpcore.AsyncNetworkStream:
    """A TCP connection to a literal address."""
    backend = cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())
    return await backend.connect_tcp(address, port, timeout=seconds)


async def _connected(url: WebUrl, route: Route, limits: Limits, progress: Progress) -> httpcore.AsyncNetworkStream:
    progress.doing = f"connecting to {url.server}"
    last = len(route.addresses) - 1
    for number, address in enumerate(route.addresses):
        try:
            stream = await route.dial(address, url.port, limits.seconds if number == last else limits.connect)
            break
        except (httpcore.ConnectError, httpcore.ConnectTimeout):
            if number == last:
                raise
    else:
        raise httpcore.ConnectError(f"{url.host} has no address")
    if route.tls is None:
        return stream
    progress.doing = f"securing the connection to {url.server}"
    try:
        return await stream.start_tls(route.tls, url.host, limits.seconds)
    except BaseException:  # httpcore leaves the socket open when it is cancelled here
        await stream.aclose()
        raise


def _origin(url: WebUrl) -> httpcore.Origin:
    return httpcore.Origin(url.scheme.encode(), url.host.encode(), url.port)


def _request(url: WebUrl, request: Request) -> httpcore.Request:
    target = httpcore.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target)
    headers = {"host": url.authority, **request.headers, "accept-encoding": coding.OFFERED, "connection": "close"}
    if request.body is not None:
        headers["content-length"] = str(len(request.body))
    return httpcore.Request(request.method, target, headers=list(headers.items()), content=request.body)


async def _answer(url: WebUrl, response: httpcore.Response, limits: Limits, progress: Progress) -> Answer:
    headers: dict[str, str] = {}
    for raw_name, raw_value in response.headers:
        name, value = raw_name.decode("ascii").lower(), _text(raw_value)
        headers[name] = f"{headers[name]}, {value}" if name in headers and name != "location" else value
    answer = Answer(response.status, headers, b"", "")
    if response.status == 101:
        raise Unavailable(f"{url}: the server wants to switch to another protocol.")
    if answer.location is not None:
        return answer
    raw, cut = await _read(response, limits, progress)
    try:
        name = coding.single(headers.get("content-encoding", ""))
        if name is None:
            return replace(answer, body=raw, cut=cut)
        body, short = await asyncio.to_thread(coding.decode, raw, name, limits.decoded)
    except coding.Undecodable as exc:
        raise Unavailable(f"{url}: {exc}.") from None
    return replace(answer, body=body, cut=cut or short)


async def _read(response: httpcore.Response, limits: Limits, progress: Progress) -> tuple[bytes, str]:
    """The body as it came, at most ``limits.wire`` bytes, and why it is not whole."""
    found = bytearray()
    async with contextlib.aclosing(cast("AsyncGenerator[bytes]", response.aiter_stream())) as chunks:
        async for chunk in chunks:
            found += chunk
            progress.doing = f"reading the answer, {len(found)} bytes so far"
            if len(found) > limits.wire:
                del found[limits.wire :]
                return bytes(found), f"it is longer than {limits.wire} bytes"
    return bytes(found), ""


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _fault(exc: Exception) -> str:
    """What went wrong, in words for a reader; ``exc`` is httpcore's."""
    text = one_line(str(exc), 200)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return f"the server's certificate is not trusted ({text.partition('CERTIFICATE_VERIFY_FAILED] ')[2] or text})"
    if isinstance(exc, httpcore.ConnectError):
        return f"no connection ({text or 'the server closed it'})"
    if isinstance(exc, httpcore.ProtocolError):
        return f"the server does not keep to HTTP ({text})" if text else "the server does not keep to HTTP"
    return f"the connection broke ({text})" if text else "the connection broke"


class _Counted(httpcore.AsyncNetworkStream):
    """A stream that gives at most ``room`` bytes; ``what`` says of which part of the answer they are."""

    def __init__(self, url: WebUrl, inner: httpcore.AsyncNetworkStream, room: int) -> None:
        self._url, self._inner, self.room, self.what = url, inner, room, "headers"

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self.room <= 0:
            raise TooLarge(f"{self._url}: the {self.what} of the answer exceed their limit; nothing was kept.")
        data = await self._inner.read(min(max_bytes, self.room), timeout)
        self.room -= len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
