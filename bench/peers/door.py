"""A fast local stand-in for the cloud endpoint: HTTP/1.1 keep-alive, JSON-RPC, one process, standard library only.

Prints its URL, then obeys words on stdin, answering each with one line of JSON:

``ok`` answer at once · ``slow`` answer after a second · ``hang`` accept and never answer · ``redirect`` 302 to
another origin · ``dead`` nothing listens · ``stats`` ``{"calls", "most_at_once"}`` since the last ``stats``.
End of file ends it. The port stays the same throughout.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

Json = dict[str, Any]

SLOW = 1.0
"""Seconds before each answer in mode ``slow``."""
LISTED = 32
"""Tools in its list, about half a kilobyte each."""
ELSEWHERE = "http://127.0.0.1:9/v1/mcp"
CALLED = "bench_hold"


def described(number: int) -> Json:
    """A tool as the cloud describes one."""
    properties = {
        "op": {"type": "string", "enum": ["get", "list", "create", "update", "delete"], "description": "Operation"},
        "input": {"type": "object", "description": "Fields of the operation, as describe {op} gives them"},
    }
    return {
        "name": f"subsystem{number}",
        "description": f"Subsystem {number} of the cloud. " + "It keeps records and answers questions on them. " * 3,
        "inputSchema": {"type": "object", "properties": properties, "required": ["op"]},
    }


TOOLS = [{**described(0), "name": CALLED}, *(described(number) for number in range(1, LISTED))]


def answer(message: Json) -> Json:
    """The ``result`` or ``error`` member of the reply. The list is stale at once, so every start asks again."""
    method = message["method"]
    if method == "tools/call":
        return {"result": {"content": [{"type": "text", "text": "held"}]}}
    if method == "tools/list":
        return {"result": {"tools": TOOLS, "ttlMs": 1}}
    if method == "initialize":
        info = {"name": "bench-door", "version": "1"}
        return {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}}
    if method == "ping":
        return {"result": {}}
    return {"error": {"code": -32601, "message": f"Unknown method: {method}"}}


def held(message: Json) -> float:
    """Seconds the caller wants this call held: ``{"op": "hold", "input": {"ms": 100}}``."""
    params: Json = message.get("params") or {}
    arguments: Json = params.get("arguments") or {}
    given: Json = arguments.get("input") or {}
    return given.get("ms", 0) / 1000


class Door:
    """Mode, counters and the listening socket."""

    def __init__(self) -> None:
        self.mode = "ok"
        self.connections: set[Connection] = set()
        self.calls = self.open = self.most_at_once = 0
        self._port = 0
        self._server: asyncio.Server | None = None

    async def listen(self) -> str:
        """Listen on the same port as before; the URL."""
        if self._server is None:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(lambda: Connection(self), "127.0.0.1", self._port, backlog=1024)
            self._port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{self._port}/v1/mcp"

    async def switch(self, mode: str) -> Json:
        """Enter a mode; connections of the one before are cut."""
        self.mode = mode
        for connection in list(self.connections):
            connection.cut()
        if mode != "dead":
            await self.listen()
        elif self._server is not None:
            self._server.close()
            self._server = None
        return {"mode": mode}

    def stats(self) -> Json:
        """Counters since they were last read."""
        counted = {"calls": self.calls, "most_at_once": self.most_at_once}
        self.calls = self.most_at_once = 0
        return counted


class Connection(asyncio.Protocol):
    """One keep-alive connection; requests on it are answered in order."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._buffer = b""
        self._busy = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._door.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's shape
        self._transport = None
        self._door.connections.discard(self)

    def cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._busy:
            self._next()

    def _next(self) -> None:
        """Take one whole request from the buffer, if there is one."""
        head, mark, rest = self._buffer.partition(b"\r\n\r\n")
        if not mark:
            return
        length = content_length(head)
        if length is None:
            self._respond(b"411 Length Required", b"{}")
        elif len(rest) >= length:
            self._buffer = rest[length:]
            self._busy = True
            self._take(rest[:length])

    def _take(self, body: bytes) -> None:
        door = self._door
        if door.mode == "hang":
            return
        if door.mode == "redirect":
            self._respond(b"302 Found\r\nLocation: " + ELSEWHERE.encode(), b"")
            return
        message: Json = json.loads(body)
        if "id" not in message:
            self._respond(b"202 Accepted", b"{}")
            return
        seconds = SLOW if door.mode == "slow" else held(message)
        door.open += 1
        door.most_at_once = max(door.most_at_once, door.open)
        if seconds:
            asyncio.get_running_loop().call_later(seconds, self._reply, message)
        else:
            self._reply(message)

    def _reply(self, message: Json) -> None:
        self._door.open -= 1
        self._door.calls += message["method"] == "tools/call"
        reply = {"jsonrpc": "2.0", "id": message["id"], **answer(message)}
        self._respond(b"200 OK", json.dumps(reply, separators=(",", ":")).encode())

    def _respond(self, status: bytes, body: bytes) -> None:
        self._busy = False
        if self._transport is None:
            return
        head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
        self._transport.write(head + body)
        if self._buffer:
            asyncio.get_running_loop().call_soon(self._next)


def content_length(head: bytes) -> int | None:
    """Bytes of the body: 0 for a request that has none, ``None`` for one whose length is not stated."""
    lower = head.lower()
    if b"\r\ntransfer-encoding:" in lower:
        return None
    _, mark, after = lower.partition(b"\r\ncontent-length:")
    return int(after.partition(b"\r\n")[0]) if mark else 0


async def main() -> None:
    """Obey stdin until end of file."""
    door = Door()
    print(await door.listen(), flush=True)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        word = line.decode().strip()
        reply = door.stats() if word == "stats" else await door.switch(word)
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
