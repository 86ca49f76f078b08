"""JSON-RPC batches, which protocol 2025-03-26 alone speaks."""

from __future__ import annotations

from collections.abc import Callable


class Batch:
    """Collects the replies of one batch; they leave together as one array when the last is there."""

    def __init__(self, expected: int, send: Callable[[bytes], None]) -> None:
        self._expected, self._send = expected, send
        self._lines: list[bytes] = []

    def reply(self, line: bytes | None) -> None:
        """One reply, or ``None`` for a message that gets none. An empty array is never sent."""
        self._expected -= 1
        if line is not None:
            self._lines.append(line.rstrip(b"\n"))
        if self._expected == 0 and self._lines:
            self._send(b"[" + b",".join(self._lines) + b"]\n")
