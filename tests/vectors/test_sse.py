"""Every recorded stream of ``fixtures/vectors/sse-frames.json`` (WHATWG HTML §9.2.6), in three ways of cutting it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from hanzo_mcp.core.sse import SseFrameBuffer, SseTooLarge
from tests.contract.source import ROOT

VECTORS: list[dict[str, Any]] = json.loads((ROOT / "fixtures" / "vectors" / "sse-frames.json").read_text("utf-8"))


def _chunks(vector: dict[str, Any]) -> list[bytes]:
    if vector["encoding"] == "base64":
        return [base64.b64decode(chunk) for chunk in vector["chunks"]]
    return [chunk.encode("utf-8", "surrogatepass") for chunk in vector["chunks"]]


def _frames(buffer: SseFrameBuffer, chunks: list[bytes]) -> tuple[list[dict[str, Any]], list[int]]:
    frames: list[dict[str, Any]] = []
    eager: list[int] = []
    for chunk in chunks:
        frames += [{"event": f.event, "data": f.data, "id": f.id, "retry": f.retry} for f in buffer.feed(chunk)]
        eager.append(len(frames))
    assert buffer.close() == []
    return frames, eager


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vector(vector: dict[str, Any]) -> None:
    buffer = SseFrameBuffer()
    frames, eager = _frames(buffer, _chunks(vector))
    assert frames == vector["frames"]
    assert eager == vector["eager_counts"]
    assert {"last_event_id": buffer.last_event_id, "retry": buffer.retry} == vector["final"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_cutting_changes_nothing(vector: dict[str, Any]) -> None:
    whole = b"".join(_chunks(vector))
    assert _frames(SseFrameBuffer(), [whole])[0] == vector["frames"]
    assert _frames(SseFrameBuffer(), [whole[at : at + 1] for at in range(len(whole))])[0] == vector["frames"]


def test_an_endless_event_is_refused() -> None:
    buffer = SseFrameBuffer(limit=1000)
    with pytest.raises(SseTooLarge):
        for _ in range(2000):
            buffer.feed("data: x\n")
