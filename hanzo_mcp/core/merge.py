"""The merged tool list (HIP-0300 §2.2): local tools, then the cloud's whose names are not local."""

from __future__ import annotations

from typing import Any, NamedTuple

Json = dict[str, Any]
MAX_TOOLS = 127
"""Clients keep at most 128 tools; stay below and say what was left out."""
SHORTENED = "hanzo.ai/shortened"


class Listing(NamedTuple):
    """A tools/list answer: tools in order and the result's ``_meta``."""

    tools: list[Json]
    meta: Json

    def to_wire(self) -> Json:
        """``{"tools": [...], "_meta"?: {...}}``."""
        return {"tools": self.tools, "_meta": self.meta} if self.meta else {"tools": self.tools}


def merge(local: list[Json], remote: Listing | None) -> Listing:
    """Local names win; ``describe`` stays first among the remote ones; at most ``MAX_TOOLS`` in all.

    Remote names are already valid (``[A-Za-z0-9_-]``), so lower case is the whole of folding them.
    """
    if remote is None:
        return Listing(local, {})
    taken = {tool["name"].lower() for tool in local}
    free = [tool for tool in remote.tools if tool["name"].lower() not in taken]
    room = MAX_TOOLS - len(local)
    if len(free) <= room:
        return Listing([*local, *free], remote.meta)
    described = [tool for tool in free if tool["name"] == "describe"]
    others = [tool for tool in free if tool["name"] != "describe"]
    kept = [*described, *others][:room]
    return Listing([*local, *kept], _say_shortened(remote.meta, len(free) - room))


def _say_shortened(meta: Json, dropped: int) -> Json:
    known: Json = meta.get(SHORTENED) or {}
    reasons = {**known, "over_client_limit": dropped}
    return {**meta, SHORTENED: reasons}
