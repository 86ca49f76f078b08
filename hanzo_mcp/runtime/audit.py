"""The audit log: one JSON line per decision (HIP-0301 §7). Argument hashes, never argument values.

Writing is one ``write`` to a file opened for appending; a failure costs one line on stderr and never a call.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Record:
    """What is known of a call while it passes; written at its end, cancelled calls too."""

    session_id: str
    tool_name: str
    subject: str = ""
    source: str = ""
    mode: str = ""
    rule_matched: str | None = None
    tier: str | None = None
    decided_by: str = ""
    outcome: str = "cancelled"
    reason: str | None = None
    args_sha256: str = ""


def fingerprint(arguments: Any) -> str:
    """sha256 over canonical JSON of the arguments."""
    canonical = json.dumps(arguments, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


class Audit:
    """Appends to ``<directory>/audit.jsonl`` (0600)."""

    def __init__(self, directory: str, warn: Callable[[str], None], redact: Callable[[str], str]) -> None:
        self._path = os.path.join(directory, "audit.jsonl")
        self._warn, self._redact = warn, redact
        self._fd: int | None = None
        self._broken = False

    def write(self, record: Record, started: float) -> None:
        """``started`` is a ``time.monotonic()``."""
        if self._broken:
            return
        entry: dict[str, Any] = {
            "timestamp": time.time(),
            "duration_ms": round((time.monotonic() - started) * 1000, 3),
            **{name: getattr(record, name) for name in Record.__slots__ if getattr(record, name) is not None},
        }
        try:
            os.write(self._open(), (self._redact(json.dumps(entry)) + "\n").encode())
        except OSError as exc:
            self._broken = True
            self._warn(f"the audit log {self._path} cannot be written ({exc.strerror}); going on without it.")

    def _open(self) -> int:
        if self._fd is None:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            # Non-blocking: a FIFO in its place is an error and not a wait for a reader.
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
            self._fd = os.open(self._path, flags, 0o600)
        return self._fd

    def close(self) -> None:
        """Release the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
