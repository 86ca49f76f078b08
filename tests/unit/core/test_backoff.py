"""Backoff (HIP-0301 §16)."""

from __future__ import annotations

from hanzo_mcp.core.backoff import Backoff


def test_caps_double_and_saturate() -> None:
    backoff = Backoff(base_ms=100, max_ms=1500, rng=lambda: 1.0)
    assert [backoff.next_ms() for _ in range(6)] == [100, 200, 400, 800, 1500, 1500]
    for _ in range(1000):
        backoff.next_ms()
    assert backoff.cap_ms() == 1500


def test_jitter_is_full_and_reset_starts_over() -> None:
    backoff = Backoff(base_ms=100, max_ms=1500, rng=lambda: 0.0)
    assert [backoff.next_ms(), backoff.next_ms()] == [0, 0]
    assert backoff.cap_ms() == 400
    backoff.reset()
    assert backoff.cap_ms() == 100
