"""The floor for a concurrent server: a standard-library asyncio MCP echo over stdio.

It checks nothing and knows one tool, ``think``, that answers its ``thought``. ``seconds`` makes it wait first.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

Json = dict[str, Any]

TOOL: Json = {
    "name": "think",
    "description": "Answers the thought.",
    "inputSchema": {
        "type": "object",
        "properties": {"thought": {"type": "string"}, "seconds": {"type": "number"}},
        "required": ["thought"],
    },
}


def answer(message: Json) -> Json:
    """The ``result`` or ``error`` member of the reply."""
    method: str = message["method"]
    params: Json = message.get("params") or {}
    if method == "tools/call":
        return {"result": {"content": [{"type": "text", "text": params["arguments"]["thought"]}]}}
    if method == "tools/list":
        return {"result": {"tools": [TOOL]}}
    if method == "initialize":
        info = {"name": "asyncio-echo", "version": "1"}
        version = params["protocolVersion"]
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
    if method == "ping":
        return {"result": {}}
    return {"error": {"code": -32601, "message": f"Unknown method: {method}"}}


class Echo:
    """One connection. A call that waits gets a task, every other message is answered in place."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._waiting: set[asyncio.Task[None]] = set()

    def receive(self, line: bytes) -> None:
        message: Json = json.loads(line)
        if "id" not in message:
            return
        params: Json = message.get("params") or {}
        arguments: Json = params.get("arguments") or {}
        seconds: float | None = arguments.get("seconds")
        if seconds is None:
            self._reply(message)
            return
        task = asyncio.create_task(self._later(message, seconds))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _later(self, message: Json, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._reply(message)

    def _reply(self, message: Json) -> None:
        reply = {"jsonrpc": "2.0", "id": message["id"], **answer(message)}
        self._writer.write(json.dumps(reply, separators=(",", ":")).encode() + b"\n")


async def main() -> None:
    """Serve until end of file."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    echo = Echo(writer)
    while line := await reader.readline():
        echo.receive(line)
        await writer.drain()


if __name__ == "__main__":
    asyncio.run(main())
