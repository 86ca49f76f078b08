"""Placeholder, replaced by the fetch worker."""

from __future__ import annotations


class Http:
    """The guarded way to the web."""
