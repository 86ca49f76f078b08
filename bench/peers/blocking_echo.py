"""The floor for any Python server: the same echo as a blocking loop with json and sys alone.

One message at a time, so a call that waits keeps every other message waiting too.
"""

from __future__ import annotations

import json
import sys
import time
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
        arguments: Json = params["arguments"]
        if "seconds" in arguments:
            time.sleep(arguments["seconds"])
        return {"result": {"content": [{"type": "text", "text": arguments["thought"]}]}}
    if method == "tools/list":
        return {"result": {"tools": [TOOL]}}
    if method == "initialize":
        info = {"name": "blocking-echo", "version": "1"}
        version = params["protocolVersion"]
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
    if method == "ping":
        return {"result": {}}
    return {"error": {"code": -32601, "message": f"Unknown method: {method}"}}


def main() -> None:
    """Serve until end of file."""
    output = sys.stdout.buffer
    for line in sys.stdin.buffer:
        message: Json = json.loads(line)
        if "id" in message:
            reply = {"jsonrpc": "2.0", "id": message["id"], **answer(message)}
            output.write(json.dumps(reply, separators=(",", ":")).encode() + b"\n")
            output.flush()


if __name__ == "__main__":
    main()
