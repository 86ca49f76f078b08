"""Narrowing untyped JSON: one cast per shape instead of one per use."""

from __future__ import annotations

from typing import Any, cast


def as_object(value: Any) -> dict[str, Any] | None:
    """``value`` when it is a JSON object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: Any) -> list[Any] | None:
    """``value`` when it is a JSON array."""
    return cast("list[Any]", value) if isinstance(value, list) else None
