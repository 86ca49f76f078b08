"""What one stdio connection knows about its client."""

from __future__ import annotations

import os
from typing import Any


class Session:
    """Legacy state (set by ``initialize``) and the identity used in audit records.

    A process is not a conversation in the modern era: nothing modern is kept here.
    """

    def __init__(self) -> None:
        self.id = os.urandom(8).hex()
        self.version: str | None = None
        self.capabilities: dict[str, Any] = {}
        self.log_level: str | None = None
        self.ready = False

    @property
    def batches(self) -> bool:
        """JSON-RPC batches exist in 2025-03-26 only."""
        return self.version == "2025-03-26"
