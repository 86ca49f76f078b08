"""Somebody else's tool list made safe to show: stripped, capped, and honest about what was left out.

A tool that no client API would accept is left out and counted; it can still be called by name.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hanzo_mcp.core.merge import SHORTENED, Listing
from hanzo_mcp.core.messages import depth
from hanzo_mcp.core.names import VALID, folded
from hanzo_mcp.core.shapes import as_list, as_object
from hanzo_mcp.core.text import clean

MAX_TOOL = 16 * 1024
MAX_LIST = 2 * 1024 * 1024
MAX_SCHEMA_DEPTH = 64
MAX_KEPT = 2000
Json = dict[str, Any]


def cleaned(result: Any) -> Listing:
    """A ``tools/list`` result -> what may be merged. Never raises."""
    source = as_object(result) or {}
    kept: dict[str, Json] = {}
    dropped: Counter[str] = Counter()
    for tool in as_list(source.get("tools")) or []:
        problem, safe = _judged(tool)
        if problem is None and folded(safe["name"]) in kept:
            problem = "duplicate_name"
        if problem is None and len(kept) >= MAX_KEPT:
            problem = "over_list_limit"
        if problem is not None:
            dropped[problem] += 1
            continue
        kept[folded(safe["name"])] = safe
    described = kept.pop("describe", None)
    tools = [described, *kept.values()] if described else list(kept.values())
    return Listing(tools, _meta(as_object(source.get("_meta")) or {}, dropped))


def unreadable() -> Listing:
    """What is left of a list over the cap in bytes, or nested too deep for any parser."""
    return Listing([], {SHORTENED: {"over_limits": {"bytes": MAX_LIST, "depth": MAX_SCHEMA_DEPTH}}})


def _judged(value: Any) -> tuple[str | None, Json]:
    tool = as_object(value)
    if tool is None:
        return "not_an_object", {}
    name, schema = tool.get("name"), as_object(tool.get("inputSchema"))
    if not isinstance(name, str) or not VALID.match(name):
        return "invalid_name", {}
    if depth(tool) > MAX_SCHEMA_DEPTH:
        return "too_deep", {}
    if schema is None or schema.get("type") != "object":
        return "no_object_schema", {}
    if len(json.dumps(tool)) > MAX_TOOL:
        return "too_large", {}
    safe = _stripped(tool)
    if not isinstance(safe.get("description", ""), str):
        del safe["description"]
    return None, safe


def _stripped(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if (inner := as_object(value)) is not None:
        return {clean(key): _stripped(item) for key, item in inner.items()}
    if (items := as_list(value)) is not None:
        return [_stripped(item) for item in items]
    return value


def _meta(meta: Json, dropped: Counter[str]) -> Json:
    """The endpoint's own notices (``hanzo.ai/refused``, ``hanzo.ai/unavailable``) and ours."""
    carried = {
        key: _stripped(value)
        for key, value in meta.items()
        if key.startswith("hanzo.ai/") and depth(value) <= MAX_SCHEMA_DEPTH and len(json.dumps(value)) <= MAX_TOOL
    }
    return {**carried, SHORTENED: dict(dropped)} if dropped else carried


def changes(old: Listing, new: Listing) -> list[str]:
    """Names of known tools whose description is another one now (a rug pull would look like this)."""
    before = {tool["name"]: tool.get("description") for tool in old.tools}
    return [
        tool["name"] for tool in new.tools if tool["name"] in before and tool.get("description") != before[tool["name"]]
    ]
