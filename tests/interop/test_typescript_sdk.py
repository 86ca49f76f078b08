"""The TypeScript SDK of the first generation, which most desktop clients ship."""

from __future__ import annotations

from tests.interop.contract import ClientContract


class TestLegacy(ClientContract):
    peer_name, mode, version = "ts-sdk", "legacy", None
