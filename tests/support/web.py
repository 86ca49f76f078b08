"""A small web server on loopback whose pages misbehave, for what fetches from it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType

Page = Callable[["Visit"], Awaitable[None]]


@dataclass(slots=True)
class Visit:
    """One request, and the way to answer it with any bytes."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def raw(self, data: bytes) -> None:
        """Exactly these bytes."""
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, body: bytes | str = b"", status: int = 200, **headers: str) -> None:
        """A well-formed answer; header names are given with underscores."""
        data = body.encode() if isinstance(body, str) else body
        given = {"content-length": str(len(data)), **{k.replace("_", "-"): v for k, v in headers.items()}}
        head = "".join(f"{name}: {value}\r\n" for name, value in given.items() if value)
        await self.raw(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode("latin-1") + data)

    async def gone(self) -> None:
        """Waits until the client has closed the connection or the server is stopped."""
        closed = asyncio.ensure_future(self.reader.read())
        stopped = asyncio.ensure_future(self.ended.wait())
        await asyncio.wait((closed, stopped), return_when=asyncio.FIRST_COMPLETED)
        for waiting in (closed, stopped):
            waiting.cancel()


class WebServer:
    """``with WebServer(pages) as web``: serves ``pages`` by path from its own thread, and remembers the ``visits``."""

    def __init__(self, pages: dict[str, Page], tls: ssl.SSLContext | None = None) -> None:
        self.pages = pages
        self.visits: list[Visit] = []
        self.port = 0
        self._tls = tls
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> WebServer:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        assert not self._thread.is_alive()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"{'https' if self._tls else 'http'}://{self.host}{path}"

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._visit, "127.0.0.1", 0, ssl=self._tls, limit=1 << 20)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        for visit in self.visits:
            visit.ended.set()
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if tasks:
            await asyncio.wait(tasks, timeout=5)

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            visit = await _request(reader, writer)
            self.visits.append(visit)
            page = self.pages.get(visit.target.partition("?")[0])
            await (page(visit) if page else visit.answer("nothing here", 404, content_type="text/plain"))
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()


async def _request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Visit:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Visit(method, target, headers, body, reader, writer)


def fixed(body: bytes | str = b"", status: int = 200, **headers: str) -> Page:
    """A page that always answers the same."""

    async def page(visit: Visit) -> None:
        await visit.answer(body, status, **headers)

    return page


def html(body: str) -> Page:
    """An HTML page in UTF-8."""
    return fixed(body, content_type="text/html; charset=utf-8")


def redirect(location: str, status: int = 302) -> Page:
    """An answer that leads elsewhere."""
    return fixed("moved", status, location=location)


async def hang(visit: Visit) -> None:
    """Takes the request and never answers."""
    await visit.gone()


async def hang_in_body(visit: Visit) -> None:
    """Promises a body and sends its beginning."""
    await visit.raw(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 1000\r\n\r\nbeginning")
    await visit.gone()


async def drip(visit: Visit) -> None:
    """Answers for ever, a byte at a time."""
    await visit.raw(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
    while not visit.ended.is_set():
        await visit.raw(b".")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(visit.ended.wait(), 0.01)


async def too_short(visit: Visit) -> None:
    """Promises more than it sends, and closes."""
    await visit.answer("only this", content_type="text/plain", content_length="1000")


async def endless_headers(visit: Visit) -> None:
    """One header after the other."""
    await visit.raw(b"HTTP/1.1 200 OK\r\n")
    while not visit.ended.is_set():
        await visit.raw(b"x-more: " + b"y" * 1000 + b"\r\n")


async def hundred_megabytes(visit: Visit) -> None:
    """Real text, far more than anybody reads."""
    await visit.raw(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 104857600\r\n\r\n")
    for _ in range(1600):
        await visit.raw(b"0123456789abcde\n" * 4096)


async def not_http(visit: Visit) -> None:
    """Speaks something else."""
    await visit.raw(b"SSH-2.0-OpenSSH_9.9\r\n")
