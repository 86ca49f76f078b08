"""Placeholder, replaced by the fetch worker."""

from __future__ import annotations

from collections.abc import Sequence


class Http:
    """The guarded way to the web."""

    def __init__(self, allow_hosts: Sequence[str] = ()) -> None:
        self.allow_hosts = tuple(allow_hosts)
