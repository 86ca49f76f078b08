"""Rules and the glob dialect (HIP-0301 §7)."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanzo_mcp.core.glob import matches
from hanzo_mcp.core.permissions import PermissionMode, PermissionPolicy, PermissionRule


def test_first_match_wins_and_prompt_is_the_default() -> None:
    policy = PermissionPolicy(
        [
            PermissionRule("fs.write", PermissionMode.DENY),
            PermissionRule("fs.*", PermissionMode.ALLOW),
            PermissionRule("fs.read", PermissionMode.DENY),
        ]
    )
    assert policy.evaluate("fs.write") is PermissionMode.DENY
    assert policy.evaluate("fs.read") is PermissionMode.ALLOW
    assert policy.evaluate("exec.run") is PermissionMode.PROMPT
    assert policy.explain("exec.run").rule is None


@pytest.mark.parametrize(
    ("pattern", "subject", "wanted"),
    [
        ("*", "", True),
        ("mcp__*", "mcp__github__create_issue", True),
        ("fs.?rite", "fs.write", True),
        ("fs.[rw]*", "fs.write", True),
        ("fs.[!rw]*", "fs.write", False),
        ("fs.[a-r]*", "fs.read", True),
        ("FS.*", "fs.read", False),
        ("fs.read", "fs.read2", False),
        ("[", "[", True),
    ],
)
def test_glob(pattern: str, subject: str, wanted: bool) -> None:
    assert matches(pattern, subject) is wanted


@given(st.text(alphabet="ab*?", max_size=12), st.text(alphabet="ab.", max_size=16))
def test_glob_equals_fnmatch_where_the_dialects_meet(pattern: str, subject: str) -> None:
    assert matches(pattern, subject) == fnmatchcase(subject, pattern)


def test_a_hostile_pattern_is_cheap() -> None:
    assert not matches("*a" * 2000 + "b", "a" * 2000)
