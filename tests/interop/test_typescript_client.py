"""The TypeScript client of the second generation, by its own choice of era and by the legacy handshake."""

from __future__ import annotations

from tests.interop.contract import ClientContract
from tests.support.wire import LEGACY, MODERN


class TestAuto(ClientContract):
    peer_name, mode, version = "ts-client", "auto", MODERN


class TestLegacy(ClientContract):
    peer_name, mode, version = "ts-client", "legacy", LEGACY
