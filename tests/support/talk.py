"""Short sentences of a test with a server on the wire."""

from __future__ import annotations

from typing import Any

from tests.support.validate import check_error, check_reply
from tests.support.wire import LEGACY, Wire

Json = dict[str, Any]
KEY = {"HANZO_API_KEY": "hk-test-0123456789abcdef"}
BILLING: Json = {"name": "billing", "arguments": {"op": "list_invoices", "input": {}}}
"""A call that only the cloud can answer."""


def think(wire: Wire, thought: str = "hm", id: Any = None) -> Json:
    """A call answered by the engine; its result."""
    reply = wire.request("tools/call", {"name": "think", "arguments": {"thought": thought}}, id)
    return check_reply("tools/call", LEGACY, reply)


def start_engine(wire: Wire) -> None:
    """A call that nobody can answer: it starts the engine and loads no tool (the door is off)."""
    reply = wire.request("tools/call", {"name": "nowhere"}, id="engine")
    assert code(reply) == -32602


def run(command: str) -> Json:
    """The params of a call that runs a shell line."""
    return {"name": "exec", "arguments": {"op": "run", "command": command}}


def code(reply: Json, version: str = LEGACY) -> int:
    """The code of an error reply."""
    return check_error(version, reply)["code"]


def text(reply: Json) -> str:
    """The first text block of a call's reply."""
    return reply["result"]["content"][0]["text"]


def silent(wire: Wire) -> None:
    """Assert that nothing was said before the answer to this ping."""
    id = wire.post("ping")
    assert wire.recv() == {"jsonrpc": "2.0", "id": id, "result": {}}
