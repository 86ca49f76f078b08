"""The committed contract: equal to the code, small, and acceptable to every client (architecture §4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hanzo_mcp import docgen
from hanzo_mcp.core.names import VALID
from tests.contract.source import ROOT

CONTRACT = json.loads((ROOT / "hanzo_mcp" / "contract.json").read_text(encoding="utf-8"))
TOOLS: list[dict[str, Any]] = CONTRACT["tools"]
BUDGET = 6 * 1024
"""Bytes of tools/list for the five tools there are now; twelve may take 12 KB."""


@pytest.mark.parametrize("path", sorted(docgen.files()))
def test_generated_files_are_up_to_date(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == docgen.files()[path]


def test_the_list_is_small() -> None:
    assert len(json.dumps(CONTRACT, separators=(",", ":"))) <= BUDGET


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool["name"])
def test_a_tool_is_acceptable_to_clients(tool: dict[str, Any]) -> None:
    assert VALID.match(tool["name"])
    assert tool["title"]
    assert tool["description"]
    schema = tool["inputSchema"]
    assert schema["type"] == "object"
    assert not {"oneOf", "anyOf", "allOf", "$ref"} & set(schema)
    for name, shown in schema["properties"].items():
        assert isinstance(shown["type"], str), name
        assert shown["description"], name
        assert not {"anyOf", "oneOf", "$ref", "title", "default"} & set(shown), name


def test_read_only_hints_are_earned() -> None:
    hinted = {tool["name"] for tool in TOOLS if tool.get("annotations", {}).get("readOnlyHint")}
    assert "think" in hinted
    assert not hinted & {"fs", "exec", "fetch"}
