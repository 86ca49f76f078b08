"""What every client has to see, whoever wrote it: one plan of a session and the assertions over its report."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from tests.interop.peers import Peer, PeerMissing, peer
from tests.support.wire import MODERN, Wire, server_command

JsonObject = dict[str, Any]

HERE = Path(__file__).parent
DEADLINE = 25.0
"""Seconds a session may take before the client's script gives up and says where it was."""
TIMEOUT = 60.0
THOUGHT = "caf\u00e9 \u2028 \U0001f600 \u0085 end"
ECHOED: JsonObject = {"op": "echo", "input": {"text": THOUGHT, "nothing": None, "list": [1, 2.5, {}]}, "unknown": True}
TOGETHER = 16
FROM_THE_DOOR = ["describe", "billing", "agents", "echo"]
"""What a good fake door adds to the list; its ``git`` gives way to the local one."""

LOCAL_CALLS: dict[str, JsonObject] = {
    "think": {"name": "think", "arguments": {"thought": THOUGHT}},
    "read": {"name": "fs", "arguments": {"op": "read", "path": "README.md"}},
    "status": {"name": "git", "arguments": {"op": "status"}},
    "run": {"name": "exec", "arguments": {"op": "run", "command": "echo hi"}},
    "unknown": {"name": "no_such_tool", "arguments": {}},
    "missing": {"name": "think", "arguments": {}},
    "wrong op": {"name": "fs", "arguments": {"op": "no_such_op", "path": "README.md"}},
    "outside": {"name": "fs", "arguments": {"op": "read", "path": "/etc/passwd"}},
}
DOOR_CALLS: dict[str, JsonObject] = {
    "echo": {"name": "echo", "arguments": ECHOED},
    "no op": {"name": "billing", "arguments": {}},
    "unknown": {"name": "no_such_tool", "arguments": {}},
    "local wins": {"name": "git", "arguments": {"op": "status"}},
}


def need(name: str) -> Peer:
    """The peer, or a skip that says why it is not there."""
    try:
        return peer(name)
    except PeerMissing as exc:
        pytest.skip(str(exc))


def text_of(outcome: JsonObject) -> str:
    """The text of a call's result; facts about it may follow in a block of their own."""
    assert "result" in outcome, f"an error where a result was expected: {outcome}"
    blocks = outcome["result"]["content"]
    assert blocks, outcome
    assert {block["type"] for block in blocks} == {"text"}, blocks
    return str(blocks[0]["text"])


def run_session(
    name: str, mode: str, calls: Mapping[str, JsonObject], workspace: Path, env: Mapping[str, str], **more: Any
) -> JsonObject:
    """Let the client ``name`` hold one session with the server; its report, ``calls`` by their key.

    ``more`` may tell it to answer questions with ``answer``, to wait for a changed list (``hears``), and to make a
    call ``twice`` (``first``: ``abort`` or ``go on``).
    """
    found = need(name)
    together = [{"name": "think", "arguments": {"thought": str(n), "branch": str(n)}} for n in range(TOGETHER)]
    plan: JsonObject = {"peer": name, "mode": mode, "command": server_command("serve"), "cwd": str(workspace)}
    plan |= {"deadline": DEADLINE, "env": dict(env), "calls": list(calls.values()), "together": together, **more}
    script = HERE / "session_python.py" if name == "python-sdk" else HERE / "node" / "session.mjs"
    # A script on stdin resolves packages from the working directory, which is the peer's.
    flags = ["-I"] if name == "python-sdk" else ["--input-type=module"]
    done = subprocess.run(
        [str(found.program), *flags, "-", json.dumps(plan)],
        input=script.read_text(encoding="utf-8"),
        cwd=found.home,
        env=dict(env),
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, f"{name} ({mode}) failed:\n{done.stderr}\n{done.stdout}"
    report = cast(JsonObject, json.loads(done.stdout))
    assert "Traceback" not in report["stderr"], report["stderr"]
    report["calls"] = dict(zip(calls, report["calls"], strict=True))
    return report


def listed_raw(workspace: Path, env: Mapping[str, str], *, modern: bool) -> list[JsonObject]:
    """``tools/list`` as it stands on the wire."""
    with Wire(env=env, cwd=workspace) as wire:
        if not modern:
            wire.initialize()
        reply = wire.modern("tools/list") if modern else wire.request("tools/list")
    return reply["result"]["tools"]


@pytest.mark.interop
class ClientContract:
    """Inherited by one class per client and era; ``peer_name`` and ``mode`` say which. Fixtures are in conftest."""

    peer_name: ClassVar[str]
    mode: ClassVar[str]
    version: ClassVar[str | None]
    """The revision the client says was negotiated; ``None`` when it does not tell."""

    def test_connects(self, session: JsonObject) -> None:
        assert session["version"] == self.version
        assert session["server"]["name"] == "hanzo-mcp"
        assert session["server"]["version"]
        assert "tools" in session["capabilities"]
        assert session["problems"] == []

    def test_stderr_is_quiet(self, session: JsonObject) -> None:
        assert "rror" not in session["stderr"]

    def test_lists_what_is_on_the_wire(self, session: JsonObject, workspace: Path, environment: dict[str, str]) -> None:
        raw = listed_raw(workspace, environment, modern=self.version == MODERN)
        assert {"think", "fs", "git", "exec", "fetch"} <= {tool["name"] for tool in raw}
        assert session["tools"] == raw

    def test_think(self, session: JsonObject) -> None:
        assert text_of(session["calls"]["think"]) == f"1. {THOUGHT}"

    def test_reads_a_file_of_the_clone(self, session: JsonObject, workspace: Path) -> None:
        read = text_of(session["calls"]["read"])
        lines = (workspace / "README.md").read_text(encoding="utf-8").splitlines()
        assert lines
        assert "\n".join(lines[:50]) in read

    def test_git_status_of_the_clone(self, session: JsonObject, workspace: Path) -> None:
        head = subprocess.run(
            ["git", "-C", str(workspace), "branch", "--show-current"], capture_output=True, text=True, check=True
        )
        outcome = session["calls"]["status"]
        assert not outcome["result"].get("isError"), outcome
        assert head.stdout.strip() in text_of(outcome)

    def test_runs_a_command(self, session: JsonObject) -> None:
        outcome = session["calls"]["run"]
        assert not outcome["result"].get("isError"), outcome
        assert text_of(outcome).splitlines()[0] == "hi"

    def test_unknown_tool_is_a_protocol_error(self, session: JsonObject) -> None:
        error = session["calls"]["unknown"]["error"]
        assert error["code"] == -32602
        assert "no_such_tool" in error["message"]

    @pytest.mark.parametrize(
        ("call", "word"), [("missing", "thought"), ("wrong op", "no_such_op"), ("outside", "/etc/passwd")]
    )
    def test_bad_arguments_are_a_result(self, session: JsonObject, call: str, word: str) -> None:
        outcome = session["calls"][call]
        assert outcome["result"]["isError"] is True
        assert word in text_of(outcome)

    def test_calls_in_flight_together(self, session: JsonObject) -> None:
        assert [text_of(outcome) for outcome in session["together"]] == [f"1. {n}" for n in range(TOGETHER)]

    def test_door_list_is_merged(self, session: JsonObject, door_session: JsonObject) -> None:
        local = session["tools"]
        assert door_session["tools"][: len(local)] == local
        assert [tool["name"] for tool in door_session["tools"][len(local) :]] == FROM_THE_DOOR

    def test_forwarded_call(self, door_session: JsonObject) -> None:
        outcome = door_session["calls"]["echo"]
        assert json.loads(text_of(outcome)) == ECHOED
        assert outcome["result"]["structuredContent"] == self.expected(ECHOED)

    def expected(self, value: JsonObject) -> JsonObject:
        """How the client's own models show ``value``."""
        return value

    def test_errors_of_the_door_come_through(self, door_session: JsonObject) -> None:
        assert door_session["calls"]["no op"]["error"]["code"] == -32602
        assert "billing needs" in door_session["calls"]["no op"]["error"]["message"]
        assert door_session["calls"]["unknown"]["error"]["code"] == -32602
        assert "unknown tool: no_such_tool" in door_session["calls"]["unknown"]["error"]["message"]

    def test_a_local_name_wins(self, session: JsonObject, door_session: JsonObject) -> None:
        assert text_of(door_session["calls"]["local wins"]) == text_of(session["calls"]["status"])
