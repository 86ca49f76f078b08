"""The stand-in endpoint on a loopback port, for ``hanzo-mcp demo``: standard library, one thread per connection."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hanzo_mcp.demo.endpoint import PATH, respond

MAX_BODY = 32 * 1024 * 1024


@contextmanager
def serve_door(host: str = "127.0.0.1") -> Generator[str]:
    """Serve while the context is open; yields the endpoint's URL, which ends in ``/v1/mcp``."""
    server = _Server((host, 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="demo-door", daemon=True)
    thread.start()
    try:
        yield server.origin + PATH
    finally:
        server.shutdown()
        server.hang_up()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    # Joined at close: hang_up() has ended every idle connection by then.
    daemon_threads = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self.origin = f"http://{address[0]}:{self.server_address[1]}"
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        # Noted before its thread starts, so that hang_up() misses none.
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """End the connections kept alive, so that their threads end."""
        with self._lock:
            for connection in self._connections:
                with suppress(OSError):  # the client was faster
                    connection.shutdown(socket.SHUT_RD)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up early is no news; the rest is."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride] - the one server it is made for

    def do_GET(self) -> None:
        self._respond(b"")

    def do_POST(self) -> None:
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > MAX_BODY:
            self.close_connection = True
            self.send_error(411 if not length.isdecimal() else 413)
            return
        self._respond(self.rfile.read(int(length)))

    def _respond(self, body: bytes) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = respond(self.command, self.path, headers, body, origin=self.server.origin)
        payload = reply.encoded()
        self.send_response(reply.status)
        for name, value in {**reply.headers, "content-length": str(len(payload))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: stderr belongs to the demo's transcript."""
