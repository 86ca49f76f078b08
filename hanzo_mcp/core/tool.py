"""What a call is and what it gives: the values that pass through the pipeline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Any, Protocol

JsonObject = dict[str, Any]
RESULT_META = "hanzo.ai/result"


class Access(Flag):
    """What an operation touches; ``REMOTE`` is decided by somebody else's server."""

    READ = auto()
    WRITE = auto()
    EXECUTE = auto()
    NETWORK = auto()
    REMOTE = auto()


@dataclass(frozen=True, slots=True)
class Result:
    """An answer of ours.

    ``content`` holds MCP content blocks; ``structured`` any JSON value, or ``None`` for none; ``meta`` goes to
    ``_meta``. An operation whose value is text fills ``content`` alone, one whose value is data fills both.
    """

    content: list[JsonObject]
    structured: Any = None
    is_error: bool = False
    meta: JsonObject = field(default_factory=dict[str, Any])

    @classmethod
    def text(cls, text: str, facts: JsonObject | None = None, structured: Any = None) -> Result:
        """Text for a reader; ``facts`` (hash, totals, cursor, exit code) travel in ``_meta["hanzo.ai/result"]``."""
        return cls([{"type": "text", "text": text}], structured, meta={RESULT_META: facts} if facts else {})

    @classmethod
    def failure(cls, text: str, details: JsonObject | None = None, meta: JsonObject | None = None) -> Result:
        """An ``isError`` answer; ``details`` becomes ``structuredContent.error``."""
        structured = {"error": {**details, "message": text}} if details else None
        return cls([{"type": "text", "text": text}], structured, True, meta or {})

    def to_wire(self) -> JsonObject:
        """A ``CallToolResult`` (MCP 2025-11-25 §tools; 2026-07-28 adds ``resultType`` on top)."""
        wire: JsonObject = {"content": self.content}
        if self.structured is not None:
            wire["structuredContent"] = self.structured
        if self.is_error:
            wire["isError"] = True
        if self.meta:
            wire["_meta"] = self.meta
        return wire


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Somebody else's answer, as JSON source on one line. ``member`` is ``result`` or ``error``."""

    member: str
    text: str
    value: Any


@dataclass(frozen=True, slots=True)
class InputRequired:
    """We need the client's user first (2026-07-28 multi round trip; by elicitation in the legacy era)."""

    requests: JsonObject
    state: str | None = None


Outcome = Result | Verbatim | InputRequired


class ClientPort(Protocol):
    """What a call may ask of the client that made it."""

    @property
    def modern(self) -> bool:
        """True when this call speaks 2026-07-28."""
        ...

    def can_elicit(self) -> bool:
        """Can the user be asked now?"""
        ...

    async def elicit(self, params: JsonObject) -> JsonObject:
        """Legacy ``elicitation/create``; gives ``{"action": ..., "content"?: ...}``."""
        ...

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the caller how far the work is; nothing is sent when it did not ask."""
        ...

    def relay(self, method: str, params: JsonObject) -> None:
        """Pass on a notification that belongs to this call."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """A ``tools/call`` as it came in. ``source`` is the JSON text of the whole ``params`` object."""

    tool: str
    arguments: Any
    params: JsonObject
    source: str
    session_id: str
    client: ClientPort


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that has been looked up and validated, and can be judged and run.

    ``subject`` is what policy, hooks and audit match (``fs.write``, ``billing.get_invoice``).
    """

    subject: str
    access: Access
    arguments: JsonObject
    run: Callable[[], Awaitable[Outcome]]


class ToolSource(Protocol):
    """Where tools come from: local, packs, upstream servers or the door."""

    @property
    def name(self) -> str:
        """Short word for the audit log."""
        ...

    def has(self, tool: str) -> bool:
        """Does this source answer calls of ``tool``?"""
        ...

    async def ready(self, tool: str) -> None:
        """Load what answering ``tool`` needs, off the loop; at once when it is loaded."""
        ...

    def prepare(self, call: Call, arguments: Any) -> Prepared:
        """Validate ``arguments``. Raises ``InvalidInput``; must not block."""
        ...
