"""The requirement manifest: each clause has tests that exist, or says that it is not built yet."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest

from hanzo_mcp.demo import subsystems
from tests.contract.source import ROOT, functions, modules

MANIFEST: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "tests/contract/requirements.toml").read_text("utf-8"))
CLAUSES = {
    *(f"hip-0300-2-{n}" for n in ("1", "2", "3")),
    "hip-0300-4",
    *(f"hip-0301-{n}" for n in range(1, 11)),
}


def _tests() -> set[str]:
    return {
        f"{path}::{function.name}"
        for path, tree in modules(ROOT / "tests")
        for function in functions(tree)
        if function.name.startswith("test_")
    }


def test_every_clause_is_listed() -> None:
    for clause in CLAUSES:
        assert any(re.fullmatch(rf"{clause}(-.*)?", key) for key in MANIFEST), clause


@pytest.mark.parametrize("key", MANIFEST)
def test_a_clause_is_held_or_says_why_not(key: str) -> None:
    entry = MANIFEST[key]
    assert entry["clause"].startswith("HIP-")
    assert bool(entry.get("tests")) != bool(entry.get("later"))
    missing = [test for test in entry.get("tests", []) if test not in _tests()]
    assert not missing


def test_no_cloud_operation_is_written_down() -> None:
    """HIP-0300 §2.2: outside the demo's fake endpoint no operation of the cloud is named anywhere in the package."""
    contract = json.loads((ROOT / "hanzo_mcp/contract.json").read_text("utf-8"))
    local = {tool["name"] for tool in contract["tools"]}
    operations = {name for name in subsystems.OPERATIONS if "_" in name} - local
    assert len(operations) > 3
    for path, _ in modules(ROOT / "hanzo_mcp"):
        if not path.startswith("hanzo_mcp/demo/"):
            text = (ROOT / path).read_text(encoding="utf-8")
            assert not [operation for operation in operations if f'"{operation}"' in text], path
