"""Permission, hooks and audit on the path of a call (HIP-0301 §7, §9)."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from hanzo_mcp.core.permissions import PermissionMode, PermissionPolicy, PermissionRule
from hanzo_mcp.core.text import Redactor
from hanzo_mcp.core.tool import Call, JsonObject, Outcome, Result
from hanzo_mcp.hooks.runner import HookConfig, HookRunner
from hanzo_mcp.runtime.audit import Audit
from hanzo_mcp.runtime.pipeline import Gates, Pipeline
from hanzo_mcp.runtime.redact import redaction
from hanzo_mcp.sandbox.launcher import Launcher
from tests.support.local import LocalTools, SilentClient

ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/"}


class Asked(SilentClient):
    """A client whose user answers ``answer``."""

    def __init__(self, answer: JsonObject) -> None:
        super().__init__()
        self.answer = answer
        self.questions: list[JsonObject] = []

    def can_elicit(self) -> bool:
        return True

    async def elicit(self, params: JsonObject) -> JsonObject:
        self.questions.append(params)
        return self.answer


class Passage:
    """A pipeline over the think tool with rules and hooks."""

    def __init__(
        self, folder: Path, rules: list[PermissionRule] | None = None, hooks: list[HookConfig] | None = None
    ) -> None:
        self.log: list[str] = []
        self.folder = folder
        launcher = Launcher(ENVIRON)
        runner = HookRunner(hooks or [], launcher, "/", "s1", self.log.append)
        audit = Audit(str(folder / "state"), self.log.append, str)
        gates = Gates(PermissionPolicy(rules or []), runner, audit)
        source = LocalTools(folder).source
        self.pipeline = Pipeline([source], ["think"], gates, redaction(Redactor()))

    def call(self, client: SilentClient | None = None, **arguments: Any) -> Result:
        call = Call("think", arguments, {"name": "think", "arguments": arguments}, "", "s1", client or SilentClient())

        async def run() -> Outcome:
            return await self.pipeline.call(call)

        outcome = asyncio.run(run())
        assert isinstance(outcome, Result)
        return outcome

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "state" / "audit.jsonl").read_text().splitlines()]


def rule(mode: str, pattern: str = "think.*") -> PermissionRule:
    return PermissionRule(pattern, PermissionMode(mode))


def test_every_decision_is_on_record(tmp_path: Path) -> None:
    path = Passage(tmp_path, [rule("deny", "think.think")])
    assert path.call(thought="a secret thought").is_error
    assert Passage(tmp_path).call(thought="fine").is_error is False
    denied, passed = path.records()
    assert (denied["outcome"], denied["mode"], denied["rule_matched"]) == ("denied", "deny", "think.think")
    assert (passed["outcome"], passed["decided_by"]) == ("ok", "host")
    assert {"timestamp", "session_id", "tool_name", "args_sha256", "duration_ms"} <= set(denied)
    assert "secret" not in json.dumps([denied, passed])
    assert (tmp_path / "state" / "audit.jsonl").stat().st_mode & 0o777 == 0o600


def test_an_audit_log_that_cannot_be_written_costs_one_line(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    path = Passage(tmp_path)
    assert not path.call(thought="1").is_error
    assert not path.call(thought="2").is_error
    assert len(path.log) == 1


def test_a_prompt_rule_asks_by_elicitation(tmp_path: Path) -> None:
    path = Passage(tmp_path, [rule("prompt")])
    yes = Asked({"action": "accept", "content": {"allow": True}})
    assert not path.call(yes, thought="x").is_error
    assert "think.think" in yes.questions[0]["message"]
    for answer in ({"action": "decline"}, {"action": "cancel"}, {"action": "accept", "content": {"allow": False}}, {}):
        assert path.call(Asked(answer), thought="x").is_error


def test_a_prompt_rule_without_anybody_to_ask_denies(tmp_path: Path) -> None:
    refused = Passage(tmp_path, [rule("prompt")]).call(thought="x")
    assert refused.is_error
    assert '"think.think": "allow"' in refused.content[0]["text"]


@pytest.mark.parametrize(
    ("script", "allowed", "word"),
    [
        ("exit 0", True, ""),
        ("echo not today >&2; exit 2", False, "not today"),
        ("echo oops >&2; exit 1", False, "exit 1"),
        ("exit 127", False, "exit 127"),
        ("kill -9 $$", False, "signal 9"),
        ("exec sleep 60", False, "no answer"),
        ("no-such-program-here", False, "exit 127"),
    ],
)
def test_a_pre_hook_decides_by_its_exit_code(tmp_path: Path, script: str, allowed: bool, word: str) -> None:
    path = Passage(tmp_path, hooks=[HookConfig("pre_tool_use", script, "think.*", timeout_ms=500)])
    result = path.call(thought="x")
    assert result.is_error is not allowed
    assert word in result.content[0]["text"] + "".join(path.log)


def test_a_hook_gets_the_call_on_stdin_and_in_the_environment(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    script = f'cat > {seen}; echo "$HANZO_TOOL_NAME|$HANZO_SESSION_ID|$HANZO_TOOL_INPUT" > {seen}.env'
    path = Passage(tmp_path, hooks=[HookConfig("pre_tool_use", script, "*")])
    assert not path.call(thought="$(touch /nowhere)").is_error
    given = json.loads(seen.read_text())
    assert given["tool_name"] == "think.think"
    assert given["input"]["thought"] == "$(touch /nowhere)"
    assert (tmp_path / "seen.env").read_text().startswith("think.think|s1|{")


def test_a_deny_holds_for_input_larger_than_an_environment(tmp_path: Path) -> None:
    path = Passage(tmp_path, hooks=[HookConfig("pre_tool_use", "cat >/dev/null; exit 2", "*")])
    assert path.call(thought="x" * 300_000).is_error


def test_hooks_of_other_tools_do_not_run(tmp_path: Path) -> None:
    path = Passage(tmp_path, hooks=[HookConfig("pre_tool_use", "exit 2", "fs.*")])
    assert not path.call(thought="x").is_error


def test_a_post_hook_never_blocks(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    hooks = [
        HookConfig("post_tool_use", f"cat > {seen}; exit 2", "*"),
        HookConfig("post_tool_use", "exec sleep 60", "*", 200),
    ]
    path = Passage(tmp_path, hooks=hooks)
    assert not path.call(thought="x").is_error
    assert json.loads(seen.read_text())["output"]["content"][0]["text"] == "1. x"
    assert len(path.log) == 2


def test_a_record_says_how_long(tmp_path: Path) -> None:
    before = time.time()
    path = Passage(tmp_path)
    path.call(thought="x")
    record = path.records()[0]
    assert before <= record["timestamp"] <= time.time()
    assert record["duration_ms"] >= 0
