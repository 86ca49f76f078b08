"""Asking a fake door: over a client, and over a bare socket where the bytes matter."""

from __future__ import annotations

import json
import socket
from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from fixtures.fake_door import FakeDoor
from hanzo_mcp.demo.endpoint import META, MODERN, PATH

ECHO = {"name": "echo", "arguments": {"op": "echo", "input": {"big": 2**70, "nothing": None}}}
BEARER = {"authorization": "Bearer good"}
MODERN_META: dict[str, Any] = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}


def proves(*switches: str) -> pytest.MarkDecorator:
    """Parametrises over switches; a test finds by these marks that no switch is left unproven."""
    return pytest.mark.parametrize("switch", switches)


def post(client: httpx.Client, door: FakeDoor, method: str, **params: Any) -> httpx.Response:
    return client.post(door.url, json={"jsonrpc": "2.0", "id": 7, "method": method, "params": params})


def call(client: httpx.Client, door: FakeDoor, **more: Any) -> httpx.Response:
    return post(client, door, "tools/call", **ECHO, **more)


def listed(client: httpx.Client, door: FakeDoor) -> list[Any]:
    response = post(client, door, "tools/list")
    assert response.status_code == 200
    return response.json()["result"]["tools"]


def described(tools: list[Any], name: str) -> Any:
    return next(tool for tool in tools if tool["name"] == name)


@contextmanager
def raw(door: FakeDoor, method: str = "tools/list") -> Generator[socket.socket]:
    """A socket with a request already sent."""
    where = urlsplit(door.origin)
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": ECHO}).encode()
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\nContent-Length: {len(body)}\r\n\r\n"
    with closing(socket.create_connection((where.hostname, where.port or 0), timeout=5)) as connection:
        connection.sendall(head.encode() + body)
        yield connection


def in_flight(door: FakeDoor) -> bool:
    return bool(door.requests)
