"""The tool list as start-up and engine see it: the committed contract and the door's cached list."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

from hanzo_mcp.core.merge import Listing, merge
from hanzo_mcp.door.cache import CachedList

CONTRACT = os.path.join(os.path.dirname(os.path.dirname(__file__)), "contract.json")


def contract() -> list[dict[str, Any]]:
    """The local tools as generated into ``contract.json`` (``make gen``)."""
    with open(CONTRACT, encoding="utf-8") as file:
        return json.load(file)["tools"]


class Catalog:
    """``load`` reads the door's cache from disk; it is called once, with the first list."""

    def __init__(self, load: Callable[[], CachedList | None] | None) -> None:
        self._local = contract()
        self._load = load
        self._remote: CachedList | None = None
        self._gave_up = load is None
        self.served = False

    @property
    def local_names(self) -> list[str]:
        """Names that win."""
        return [tool["name"] for tool in self._local]

    @property
    def remote(self) -> CachedList | None:
        """The door's list as far as it is known."""
        return self._remote

    def ready(self) -> Listing | None:
        """The merged list, or ``None`` when the door has never been heard and deserves a moment."""
        self._read_cache()
        if self._remote is None and not self._gave_up:
            return None
        self.served = True
        return merge(self._local, self._remote.listing if self._remote else None)

    def stale(self) -> bool:
        """Should the door be asked again behind this answer?"""
        return self._load is not None and (self._remote is None or self._remote.expires <= time.time())

    def ttl_ms(self) -> int:
        """How long a client may keep the list: what is left of the door's time, 0 while it is missing."""
        if self._load is None:
            return 300_000
        return max(0, int((self._remote.expires - time.time()) * 1000)) if self._remote else 0

    def adopt(self, remote: CachedList) -> bool:
        """Take a fresh list; True when clients were served another one before."""
        before = self._remote.listing.to_wire() if self._remote else Listing([], {}).to_wire()
        self._gave_up, self._remote = True, remote
        return self.served and before != remote.listing.to_wire()

    def give_up(self) -> None:
        """The door had its moment: answer local-only until it is heard."""
        self._gave_up = True

    def _read_cache(self) -> None:
        if self._remote is None and self._load is not None and not self._gave_up:
            self._remote = self._load()
