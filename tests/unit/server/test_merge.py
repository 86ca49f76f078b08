"""The merged list (HIP-0300 §2.2)."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hanzo_mcp.core.merge import MAX_TOOLS, SHORTENED, Listing, merge

LOCAL: list[dict[str, Any]] = [{"name": "fs", "ours": True}, {"name": "git", "ours": True}]


def tools(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


def names(listing: Listing) -> list[str]:
    return [tool["name"] for tool in listing.tools]


def test_local_alone() -> None:
    assert merge(LOCAL, None) == Listing(LOCAL, {})
    assert merge(LOCAL, None).to_wire() == {"tools": LOCAL}


def test_local_names_win_and_order_stays() -> None:
    remote = Listing(tools("describe", "Git", "billing", "fs", "agents"), {"hanzo.ai/refused": {"count": 2}})
    merged = merge(LOCAL, remote)
    assert names(merged) == ["fs", "git", "describe", "billing", "agents"]
    assert merged.tools[:2] == LOCAL
    assert merged.to_wire()["_meta"] == {"hanzo.ai/refused": {"count": 2}}


def test_at_most_what_clients_keep_with_describe_among_it() -> None:
    remote = Listing(tools(*(f"t{n}" for n in range(200)), "describe"), {SHORTENED: {"bad_name": 3}, "x": 1})
    merged = merge(LOCAL, remote)
    assert len(merged.tools) == MAX_TOOLS
    assert names(merged)[2:5] == ["describe", "t0", "t1"]
    assert merged.meta == {SHORTENED: {"bad_name": 3, "over_client_limit": 203 - MAX_TOOLS}, "x": 1}
    assert remote.meta == {SHORTENED: {"bad_name": 3}, "x": 1}, "the door's own list is left as it was"


def test_exactly_what_fits_is_not_shortened() -> None:
    remote = Listing(tools(*(f"t{n}" for n in range(MAX_TOOLS - 2))), {})
    assert len(merge(LOCAL, remote).tools) == MAX_TOOLS
    assert merge(LOCAL, remote).meta == {}


@given(st.lists(st.from_regex(r"[A-Za-z0-9_-]{1,4}", fullmatch=True), unique_by=str.lower, max_size=200))
def test_always(remote: list[str]) -> None:
    merged = merge(LOCAL, Listing(tools(*remote), {}))
    found = [name.lower() for name in names(merged)]
    assert len(found) == len(set(found)) <= MAX_TOOLS
    assert merged.tools[:2] == LOCAL
    dropped = merged.meta.get(SHORTENED, {}).get("over_client_limit", 0)
    free = [name for name in remote if name.lower() not in ("fs", "git")]
    assert len(merged.tools) + dropped == len(LOCAL) + len(free)
