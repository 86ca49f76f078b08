"""The permission data model (HIP-0301 §2, §7): pure rules, no prompting and no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from hanzo_mcp.core.glob import matches


class PermissionMode(Enum):
    """What a rule says."""

    ALLOW = "allow"
    DENY = "deny"
    PROMPT = "prompt"


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """``tool_pattern`` is a glob over subjects such as ``fs.write``; ``tier`` names the settings file it came from."""

    tool_pattern: str
    mode: PermissionMode
    reason: str | None = None
    tier: str = "user"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A mode and the rule that gave it; ``rule`` is ``None`` when the default applied."""

    mode: PermissionMode
    rule: PermissionRule | None


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The call must not run, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Escalate:
    """Nobody here can decide; someone above must."""


PermissionDecision = Allow | Deny | Escalate


def covers(pattern: str, subject: str) -> bool:
    """Does a pattern mean a subject? A bare tool name means the tool with all its operations."""
    return matches(pattern, subject) or ("." not in pattern and matches(pattern + ".*", subject))


class PermissionPolicy:
    """First matching rule wins; no match is PROMPT (HIP-0301 §7)."""

    def __init__(self, rules: Sequence[PermissionRule] = ()) -> None:
        self.rules = tuple(rules)

    def evaluate(self, tool_name: str) -> PermissionMode:
        """The mode for a subject."""
        return self.explain(tool_name).mode

    def explain(self, tool_name: str) -> Evaluation:
        """The mode and the rule behind it."""
        for rule in self.rules:
            if covers(rule.tool_pattern, tool_name):
                return Evaluation(rule.mode, rule)
        return Evaluation(PermissionMode.PROMPT, None)
