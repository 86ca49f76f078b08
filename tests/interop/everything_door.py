"""A door that has the tools the conformance suite asks for, so that its server scenarios test what is forwarded."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

JsonObject = dict[str, Any]

# The smallest PNG and WAV there are.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="

TEXT: JsonObject = {"type": "text", "text": "This is a simple text response for testing."}
IMAGE: JsonObject = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO: JsonObject = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}
RESOURCE: JsonObject = {
    "type": "resource",
    "resource": {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "An embedded resource."},
}
MIXED_RESOURCE: JsonObject = {
    "type": "resource",
    "resource": {"uri": "test://mixed", "mimeType": "application/json", "text": '{"test":"data","value":123}'},
}

RESULTS: dict[str, JsonObject] = {
    "test_simple_text": {"content": [TEXT]},
    "test_image_content": {"content": [IMAGE]},
    "test_audio_content": {"content": [AUDIO]},
    "test_embedded_resource": {"content": [RESOURCE]},
    "test_multiple_content_types": {"content": [TEXT, IMAGE, MIXED_RESOURCE]},
    "test_error_handling": {"content": [TEXT], "isError": True},
    "test_tool_with_progress": {"content": [TEXT]},
}
SCHEMA_2020: JsonObject = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}
SERVER: JsonObject = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "everything", "version": "1"},
}
APART = 0.05
"""Seconds between events. TypeScript clients (1.32.2 and 2.4.0, so the bridge too) lose progress that arrives in one
read with its result: they run notification handlers a turn later than response handlers."""


def tools() -> list[JsonObject]:
    """Its list."""
    empty: JsonObject = {"type": "object", "properties": {}}
    plain = [{"name": name, "description": "A test.", "inputSchema": empty} for name in RESULTS]
    return [*plain, {"name": "json_schema_2020_12_tool", "description": "A test.", "inputSchema": SCHEMA_2020}]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing on stderr."""

    def do_GET(self) -> None:
        self._send(405, b"")

    def do_POST(self) -> None:
        message = cast(JsonObject, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        if "id" not in message:
            return self._send(202, b"{}")
        if message["method"] == "tools/call" and message["params"]["name"] == "test_tool_with_progress":
            return self._progress(message)
        return self._send(200, json.dumps(self._reply(message)).encode())

    def _reply(self, message: JsonObject) -> JsonObject:
        method, params = message["method"], cast(JsonObject, message.get("params") or {})
        reply: JsonObject = {"jsonrpc": "2.0", "id": message["id"]}
        if method == "initialize":
            return reply | {"result": SERVER}
        if method == "tools/list":
            return reply | {"result": {"tools": tools()}}
        if method == "tools/call" and params["name"] in RESULTS:
            return reply | {"result": RESULTS[params["name"]]}
        return reply | {"error": {"code": -32601, "message": f"unknown: {method}"}}

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _progress(self, message: JsonObject) -> None:
        """Three notifications and the result as an event stream, in separate reads for whoever relays them."""
        meta = cast(JsonObject, message["params"].get("_meta") or {})
        token: object = meta.get("progressToken")
        steps: list[JsonObject] = [
            {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            for params in ({"progressToken": token, "progress": step, "total": 100} for step in (0, 50, 100))
        ]
        events = [*(steps if token is not None else []), self._reply(message)]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(f"event: message\ndata: {json.dumps(event)}\n\n".encode())
            time.sleep(APART)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client may leave
            super().handle_error(request, client_address)


@contextmanager
def everything_door() -> Generator[str]:
    """The address of the running door."""
    server = _Server(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/mcp"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
