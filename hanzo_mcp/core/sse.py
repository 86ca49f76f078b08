"""Server-sent events, byte for byte as WHATWG HTML §9.2.6 says (HIP-0301 §3)."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

MAX_EVENT = 16 * 1024 * 1024
_MAX_RETRY = 2**53 - 1


@dataclass(frozen=True, slots=True)
class SseFrame:
    """A dispatched event. ``id`` and ``retry`` are the fields of this block alone; ``retry`` is in milliseconds."""

    event: str | None
    data: str
    id: str | None
    retry: int | None


class SseTooLarge(ValueError):
    """One event is larger than the cap."""


class SseFrameBuffer:
    """Fed chunks of any size, gives complete frames; each frame comes with the chunk that completes it."""

    def __init__(self, limit: int = MAX_EVENT) -> None:
        self.last_event_id = ""
        self.retry: int | None = None
        self._limit = limit
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line: list[str] = []
        self._size = 0
        self._skip_lf = False
        self._started = False
        self._block = _Block()

    def feed(self, chunk: str | bytes) -> list[SseFrame]:
        """The frames completed by ``chunk``. Raises ``SseTooLarge``."""
        text = self._decoder.decode(chunk) if isinstance(chunk, bytes) else chunk
        if not text:
            return []
        if not self._started:
            self._started = True
            text = text.removeprefix("\ufeff")
        if self._skip_lf and text:
            self._skip_lf = False
            text = text.removeprefix("\n")
        if text.endswith("\r"):
            # A CR ends a line at once; an LF in the next chunk then belongs to it.
            self._skip_lf = True
        *ends, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        frames: list[SseFrame] = []
        for end in ends:
            self._add(end)
            frame = self._end_line()
            if frame is not None:
                frames.append(frame)
        self._add(rest)
        return frames

    def close(self) -> list[SseFrame]:
        """The end of the stream: an incomplete block is dropped, as the standard says."""
        self._line.clear()
        self._block = _Block()
        return []

    def _add(self, part: str) -> None:
        if part:
            self._line.append(part)
            self._size += len(part)
            if self._size > self._limit:
                raise SseTooLarge(f"an event is larger than {self._limit} characters")

    def _end_line(self) -> SseFrame | None:
        line = "".join(self._line)
        self._line.clear()
        if line:
            self._field(line)
            return None
        self._size = 0
        block, self._block = self._block, _Block()
        if block.id is not None:
            self.last_event_id = block.id
        if block.data is None:
            return None
        return SseFrame(block.event or None, "\n".join(block.data), block.id, block.retry)

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        block = self._block
        if name == "data":
            if block.data is None:
                block.data = []
            block.data.append(value)
        elif name == "event":
            block.event = value
        elif name == "id" and "\0" not in value:
            block.id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            block.retry = self.retry = min(int(value[:20]), _MAX_RETRY)


class _Block:
    __slots__ = ("data", "event", "id", "retry")

    def __init__(self) -> None:
        self.event: str | None = None
        self.data: list[str] | None = None
        self.id: str | None = None
        self.retry: int | None = None
