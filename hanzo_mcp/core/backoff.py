"""Retry delays: exponential with full jitter (HIP-0301 §16)."""

from __future__ import annotations

import random
from collections.abc import Callable


class Backoff:
    """Delays in milliseconds: uniform in ``[0, min(max_ms, base_ms * 2**attempt)]``."""

    def __init__(self, base_ms: int = 500, max_ms: int = 60_000, rng: Callable[[], float] = random.random) -> None:
        self._base, self._max, self._rng = base_ms, max_ms, rng
        self._attempt = 0

    def cap_ms(self) -> int:
        """The upper bound of the next delay."""
        if self._attempt >= 63:
            return self._max
        return min(self._max, self._base << self._attempt)

    def next_ms(self) -> int:
        """The next delay; each call counts as one more failed attempt."""
        cap = self.cap_ms()
        self._attempt = min(self._attempt + 1, 63)
        return int(self._rng() * cap)

    def reset(self) -> None:
        """After a success."""
        self._attempt = 0
