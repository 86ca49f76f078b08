"""The bytes that are sent, the same to every server."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]

THOUGHT = "Measure first, then change one thing."


def line(body: Json) -> bytes:
    """One message as one line."""
    return json.dumps({"jsonrpc": "2.0", **body}, separators=(",", ":")).encode() + b"\n"


INITIALIZE = line(
    {
        "id": "initialize",
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    }
)
LIST = line({"id": "list", "method": "tools/list"})
INITIALIZED_AND_LIST = line({"method": "notifications/initialized"}) + LIST
"""What a client sends on the reply to ``initialize``, in one write."""


def call(request_id: int | str, name: str, arguments: Json) -> bytes:
    """A ``tools/call``."""
    return line({"id": request_id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})


def think(request_id: int | str) -> bytes:
    """The call every server here answers."""
    return call(request_id, "think", {"thought": THOUGHT})


def ping(request_id: int | str) -> bytes:
    """A ``ping``."""
    return line({"id": request_id, "method": "ping"})
