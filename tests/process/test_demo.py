"""``hanzo-mcp demo`` as a person runs it, and what it does when the server misbehaves."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from hanzo_mcp.demo import steps
from hanzo_mcp.demo.client import StdioClient
from hanzo_mcp.demo.show import KEY, Page, Show
from hanzo_mcp.errors import TimedOut, Unavailable
from tests.support.wire import JsonObject, clean_environment, server_command

DEADLINE = 120.0
PATIENCE = 20.0


def run_demo(cwd: Path, home: Path, **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        server_command("demo", "--no-color"),
        cwd=cwd,
        env=clean_environment(home, env),
        capture_output=True,
        timeout=DEADLINE,
        check=False,
    )


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A workspace that is a repository, and an empty HOME beside it."""
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    workspace.mkdir()
    home.mkdir()
    (workspace / "notes.txt").write_text("one line\n")
    subprocess.run(["git", "init", "-q", str(workspace)], check=True, timeout=DEADLINE, env=clean_environment(home))
    return workspace, home


def test_every_step_is_answered_and_nothing_stays(places: tuple[Path, Path]) -> None:
    workspace, home = places
    done = run_demo(workspace, home)
    shown = done.stdout.decode()
    assert done.returncode == 0, shown + done.stderr.decode()
    assert "Every step was answered as expected." in shown
    numbers = [int(number) for number in re.findall(r"^ ?(\d+)\. ", shown, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) == 3 + len(steps.calls(str(workspace), "http://127.0.0.1:1/v1/mcp"))
    assert list(home.iterdir()) == []
    assert sorted(path.name for path in workspace.iterdir()) == [".git", "notes.txt"]


def test_the_transcript_shows_each_kind_of_answer(places: tuple[Path, Path]) -> None:
    workspace, home = places
    shown = run_demo(workspace, home).stdout.decode()
    assert "notes.txt" in shown
    assert "hello from this machine" in shown
    assert '"amount": 4200' in shown
    assert "outside the workspace" in shown
    assert "error: unknown tool: no_such_tool" in shown
    assert "supportedVersions" in shown
    assert re.search(r"\| git +\| this machine \(hides the cloud's\) ", shown)
    assert re.search(r"\| billing +\| the cloud ", shown)
    assert re.search(r"Tools: \d+, of them \d+ of this machine and 4 of the cloud", shown)
    assert KEY not in shown
    assert "\x1b" not in shown


def test_output_that_knows_ascii_only(places: tuple[Path, Path]) -> None:
    workspace, home = places
    (workspace / "ключ.txt").write_text("x")
    done = run_demo(workspace, home, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    assert done.stdout.isascii()


def test_a_folder_that_is_no_repository(tmp_path: Path) -> None:
    workspace = tmp_path / "plain"
    workspace.mkdir()
    done = run_demo(workspace, tmp_path)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


def test_the_users_own_settings_play_no_part(places: tuple[Path, Path]) -> None:
    workspace, home = places
    settings = home / ".config" / "hanzo" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"permissions": {"*": "deny"}}')
    done = run_demo(workspace, home)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


def client(program: str, patience: float = PATIENCE, env: Mapping[str, str] | None = None) -> StdioClient:
    return StdioClient([sys.executable, "-c", program], env or os.environ, os.getcwd(), patience)


def test_a_server_that_dies_is_unavailable_with_its_last_words() -> None:
    with client("import sys; sys.stdin.readline(); sys.exit('out of luck')") as server:
        with pytest.raises(Unavailable, match="ended its output"):
            server.ask("ping")
        assert server.close() == 1
        assert "out of luck" in server.stderr()


def test_a_silent_server_meets_the_deadline() -> None:
    with client("import sys; sys.stdin.read()", patience=0.05) as server, pytest.raises(TimedOut, match="ping"):
        server.ask("ping")


def test_a_server_that_prints_is_caught() -> None:
    program = "import sys; sys.stdin.readline(); print('hi', flush=True)"
    with client(program) as server, pytest.raises(Unavailable, match="no JSON-RPC message"):
        server.ask("ping")


def test_other_messages_are_kept_for_later() -> None:
    program = (
        "import sys, json\n"
        "asked = json.loads(sys.stdin.readline())\n"
        "print(json.dumps({'jsonrpc': '2.0', 'method': 'notifications/x'}), flush=True)\n"
        "print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], 'result': {}}), flush=True)\n"
    )
    with client(program) as server:
        assert server.ask("ping").message["result"] == {}
        assert server.wait_for("notifications/x")["method"] == "notifications/x"
        assert server.close() == 0


LATE_CLOUD = """
import json, sys
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
local = [{"name": "think"}]
for tools in (local, [*local, {"name": "describe"}, {"name": "billing"}]):
    say(id=json.loads(sys.stdin.readline())["id"], result={"tools": tools})
    say(method="notifications/tools/list_changed")
sys.stdin.read()
"""


def test_a_list_the_cloud_was_late_for_is_asked_for_again(capsys: pytest.CaptureFixture[str]) -> None:
    with client(LATE_CLOUD) as server:
        show = Show(Page(color=False), server)
        names = [tool["name"] for tool in steps.tools_of(show.listed())]
    assert names == ["think", "describe", "billing"]
    assert show.failures == 0
    assert "3 tools" in capsys.readouterr().out


def test_a_server_that_breaks_is_a_failure_with_its_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with client("import sys; sys.stdin.readline(); sys.exit('out of luck')") as server:
        show = Show(Page(color=False), server)
        with pytest.raises(Unavailable) as caught:
            show.all("/nowhere", "http://127.0.0.1:1/v1/mcp")
        show.broke(caught.value)
        show.ending(server.close(), {"XDG_STATE_HOME": "/nowhere"})
    shown = capsys.readouterr().out
    assert show.failures == 2
    assert "stderr: out of luck" in shown
    assert "not answered as expected; the server ended with status 1" in shown


@pytest.mark.parametrize(
    ("reply", "wrong"),
    [
        ({"error": {"code": -32602, "message": "no"}}, None),
        ({"error": {"code": -32603, "message": "no"}}, "expected a JSON-RPC error -32602"),
        ({"result": {"content": []}}, "expected a JSON-RPC error -32602"),
    ],
)
def test_the_unknown_tool_must_be_a_protocol_error(reply: JsonObject, wrong: str | None) -> None:
    last = steps.calls("/nowhere", "http://127.0.0.1:1/v1/mcp")[-1]
    assert last.check(reply) == wrong


def test_a_refusal_must_be_a_denial() -> None:
    outside = next(step for step in steps.calls("/nowhere", "u") if "outside" in step.title)
    denied: JsonObject = {"isError": True, "structuredContent": {"error": {"code": "denied", "by": "sandbox"}}}
    assert outside.check({"result": denied}) is None
    assert outside.check({"result": {"content": [{"type": "text", "text": "root:x:0:0"}]}}) is not None
