"""Faults found by attacking the server from outside; each stays mended."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fixtures.fake_door import FakeDoor
from tests.support.wire import Wire, clean_environment, server_command

KEY = "hk-test-0123456789abcdef"


def _call(wire: Wire, tool: str, **arguments: Any) -> dict[str, Any]:
    return wire.request("tools/call", {"name": tool, "arguments": arguments})


def _said(reply: dict[str, Any]) -> str:
    return str(reply["result"]["content"][0]["text"])


def _settings(home: Path, text: str) -> None:
    folder = home / ".config" / "hanzo"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(text)


def test_a_command_finds_no_key_in_the_servers_environment(tmp_path: Path) -> None:
    with Wire(env={"HANZO_API_KEY": KEY, "HOME": str(tmp_path)}, cwd=tmp_path) as wire:
        command = "tr '\\0' '\\n' < /proc/$PPID/environ | rev; env | rev"
        said = _said(_call(wire, "exec", op="run", command=command))
        assert "=EMOH" in said
        assert KEY[::-1] not in said


def test_a_repository_that_includes_the_environment_learns_nothing(tmp_path: Path) -> None:
    repository = tmp_path / "r"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    subprocess.run(["git", "-C", str(repository), "config", "include.path", "/proc/self/environ"], check=True)
    with Wire(env={"HANZO_API_KEY": KEY, "HOME": str(tmp_path)}, cwd=tmp_path) as wire:
        for op in ("log", "diff", "status"):
            assert KEY not in str(_call(wire, "git", op=op, path="r"))
        assert KEY not in wire.stderr
        assert "Traceback" not in wire.stderr


@pytest.mark.parametrize(
    "trick", ["alternates", "borrowed", "refs", "objects", "packed-refs", "shallow", "loose", "one object"]
)
def test_nothing_inside_a_repository_leads_out(tmp_path: Path, trick: str) -> None:
    out, inside = tmp_path / "out", tmp_path / "ws" / "r"
    for folder in (out, inside):
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(
            ["git", "-C", str(folder), *identity, "commit", "-q", "--allow-empty", "-m", folder.name], check=True
        )
    (out / "file").write_text("S3CRET")
    git, other = inside / ".git", out / ".git"
    if trick == "alternates":
        (git / "objects" / "info" / "alternates").write_text(f"{other / 'objects'}\n")
    elif trick == "borrowed":
        store = tmp_path / "ws" / "store" / "info"
        store.mkdir(parents=True)
        (store / "alternates").write_text(f"{other / 'objects'}\n")
        (git / "objects" / "info" / "alternates").write_text(f"{store.parent}\n")
    elif trick == "one object":
        (git / "objects" / "aa").mkdir(exist_ok=True)
        (git / "objects" / "aa" / ("b" * 38)).symlink_to(out / "file")
    elif trick == "loose":
        name = next(entry for entry in os.listdir(other / "objects") if len(entry) == 2)
        subprocess.run(["rm", "-rf", str(git / "objects" / name)], check=True)
        (git / "objects" / name).symlink_to(other / "objects" / name)
    else:
        subprocess.run(["rm", "-rf", str(git / trick)], check=True)
        (git / trick).symlink_to(out / "file" if trick in ("shallow", "packed-refs") else other / trick)
    with Wire(env={"HOME": str(tmp_path)}, cwd=tmp_path / "ws") as wire:
        for op in ("log", "diff", "status"):
            reply = _call(wire, "git", op=op, path="r")
            assert reply["result"]["isError"] is True
            assert "S3CRET" not in _said(reply)
            assert "outside the workspace" in _said(reply)


def test_a_stderr_nobody_reads_stops_nothing(tmp_path: Path) -> None:
    server = subprocess.Popen(
        server_command("serve"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(tmp_path),
        cwd=tmp_path,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stderr is not None
    with server, server.stdin, server.stdout, server.stderr:
        server.stdin.write(b"garbage that is no JSON at all\n" * 5000)
        server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        server.stdin.flush()
        assert b'"id":1' in server.stdout.readline()
        server.stdin.close()
        assert server.wait(20) == 0


@pytest.mark.parametrize(
    "text",
    [
        '{"hooks": {"event": "pre_tool_use", "tool_pattern": "exec.*", "command": "exit 2"}}',
        '{"hooks": "exit 2"}',
        '{"hooks": [{"event": "pre_tool_use", "tool_pattern": 5, "command": "exit 2"}]}',
        '{"hooks": [{"event": "pre_tool_use", "tool_pattern": "exec", "command": "exit 2"}]}',
        '{"permissions": {"exec": "deny"}}',
        '{"permissions": {"exec.[run": "deny"}}',
        '{"permissions": {" exec.*": "deny"}}',
        '{"permissions": {"exec.*": "never"}}',
        "[" * 100_000,
        "{",
        '{"permissions": {}, "permissions": {}}',
    ],
)
def test_settings_never_fail_open(tmp_path: Path, text: str) -> None:
    _settings(tmp_path, text)
    with Wire(env={"HOME": str(tmp_path)}, cwd=tmp_path) as wire:
        reply = _call(wire, "exec", op="run", command="echo RAN > mark")
        assert reply["result"]["isError"] is True
        assert not (tmp_path / "mark").exists()


def test_settings_of_nobody_in_particular_decide_nothing(tmp_path: Path) -> None:
    _settings(tmp_path, '{"permissions": {"*": "allow"}}')
    (tmp_path / ".config" / "hanzo" / "settings.json").chmod(0o666)
    with Wire(env={"HOME": str(tmp_path)}, cwd=tmp_path) as wire:
        assert _call(wire, "exec", op="run", command="echo RAN")["result"]["isError"] is True
        assert "can be written by anybody" in wire.stderr


def test_an_unknown_setting_is_named(tmp_path: Path) -> None:
    _settings(tmp_path, '{"permisions": {"exec.*": "deny"}}')
    with Wire(env={"HOME": str(tmp_path)}, cwd=tmp_path) as wire:
        _call(wire, "think", thought="x")
        assert '"permisions" is no setting' in wire.stderr


@pytest.mark.parametrize(("length", "asked"), [(500, True), (5000, False)])
def test_an_approval_shows_the_whole_command_or_is_denied(tmp_path: Path, length: int, asked: bool) -> None:
    _settings(tmp_path, '{"permissions": {"exec.*": "prompt"}}')
    command = f"echo {'a' * length}; echo EVIL > pwn"
    with Wire(env={"HOME": str(tmp_path)}, cwd=tmp_path) as wire:
        wire.initialize(elicitation={})
        call = wire.post("tools/call", {"name": "exec", "arguments": {"op": "run", "command": command}})
        if asked:
            question = wire.until(lambda message: message.get("method") == "elicitation/create")
            assert "EVIL > pwn" in question["params"]["message"]
            wire.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": [1]}})
        assert wire.reply(call)["result"]["isError"] is True
        assert not (tmp_path / "pwn").exists()


@pytest.mark.parametrize("text", ['{"content":[],"x":NaN}', "5", "null", "[]", '{"content":[],"x":-Infinity}'])
def test_what_is_no_result_is_not_passed_on(tmp_path: Path, text: str) -> None:
    env = {"HANZO_API_KEY": KEY, "HOME": str(tmp_path)}
    with FakeDoor("raw_result", text=text) as door, Wire(env={**env, "HANZO_MCP_DOOR": door.url}, cwd=tmp_path) as wire:
        reply = _call(wire, "billing", op="list_invoices", input={})
        assert reply["result"]["isError"] is True
        assert door.origin in _said(reply)


def test_escapes_in_alternates_cannot_be_judged(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "r")], check=True)
    (tmp_path / "r" / ".git" / "objects" / "info" / "alternates").write_text('"\\057etc"\n')
    with Wire(cwd=tmp_path) as wire:
        assert "quoted path" in _said(_call(wire, "git", op="log", path="r"))


def test_a_repository_with_links_that_stay_inside_is_read(tmp_path: Path) -> None:
    repository = tmp_path / "r"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    (repository / ".git" / "hooks" / "outside").symlink_to("/etc")
    os.rename(repository / ".git" / "objects", tmp_path / "objects")
    (repository / ".git" / "objects").symlink_to(tmp_path / "objects")
    with Wire(cwd=tmp_path) as wire:
        assert "isError" not in _call(wire, "git", op="status", path="r")["result"]


def test_an_audit_log_that_is_a_fifo_holds_nothing_up(tmp_path: Path) -> None:
    folder = tmp_path / ".local" / "state" / "hanzo-mcp"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "audit.jsonl")
    with Wire(env={"HOME": str(tmp_path)}, cwd=tmp_path) as wire:
        assert "1. x" in _said(_call(wire, "think", thought="x"))
        assert "audit log" in wire.stderr


def test_a_key_spelled_with_escapes_is_masked(tmp_path: Path) -> None:
    spelled = "".join(f"\\u{ord(char):04x}" for char in KEY)
    env = {"HANZO_API_KEY": KEY, "HOME": str(tmp_path)}
    result = f'{{"content":[{{"type":"text","text":"{spelled}"}}]}}'
    with (
        FakeDoor("raw_result", text=result) as door,
        Wire(env={**env, "HANZO_MCP_DOOR": door.url}, cwd=tmp_path) as wire,
    ):
        assert _said(_call(wire, "billing", op="list_invoices", input={})) == "[redacted]"
