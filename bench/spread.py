"""Samples and what is printed of them."""

from __future__ import annotations

import math
from collections.abc import Sequence


def rank(samples: Sequence[float], share: float) -> float:
    """The smallest sample that at least ``share`` (0 to 1) of them do not exceed (nearest rank)."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def p50(samples: Sequence[float]) -> float:
    """The median sample."""
    return rank(samples, 0.5)


def p99(samples: Sequence[float]) -> float:
    """The sample that 99 % do not exceed."""
    return rank(samples, 0.99)


def short(value: float) -> str:
    """Three significant digits, whole numbers from a hundred on, thousands set apart."""
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"
