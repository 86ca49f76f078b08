"""The Python SDK's client, by the legacy handshake and by its own choice of era."""

from __future__ import annotations

from tests.interop.contract import ClientContract
from tests.support.wire import LEGACY, MODERN


class TestLegacy(ClientContract):
    peer_name, mode, version = "python-sdk", "legacy", LEGACY


class TestAuto(ClientContract):
    peer_name, mode, version = "python-sdk", "auto", MODERN
