"""The MCP Inspector's command line: strict lists in both eras, calls, and a load of 200 calls, 16 at once."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.interop.contract import FROM_THE_DOOR, TIMEOUT, need
from tests.support.wire import clean_environment, server_command

pytestmark = pytest.mark.interop

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


class Outcome(NamedTuple):
    status: int
    value: dict[str, Any]
    stderr: str


def inspect(home: Path, workspace: Path, era: str, *words: str, **variables: str) -> Outcome:
    """One run of the inspector's CLI; ``variables`` go to the server's environment."""
    program = need("inspector").command("the inspector", "mcp-inspector")
    env = clean_environment(home)
    pairs = [word for key, value in (env | variables).items() for word in ("-e", f"{key}={value}")]
    options = ["--cwd", str(workspace), "--protocol-era", era, "--format", "json", *pairs, *words]
    done = subprocess.run(
        [*program, "--cli", *options, *server_command("serve")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT,
        check=False,
        env=env,
        cwd=home,
    )
    said = done.stdout or done.stderr
    try:
        return Outcome(done.returncode, json.loads(said.strip().splitlines()[-1]), done.stderr)
    except (ValueError, IndexError):
        raise AssertionError(f"exit {done.returncode}, no JSON:\n{done.stdout}\n{done.stderr}") from None


def call(home: Path, workspace: Path, era: str, tool: str, arguments: dict[str, Any], **variables: str) -> Outcome:
    words = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)]
    return inspect(home, workspace, era, *words, **variables)


@ERAS
def test_strict_list(tmp_path: Path, workspace: Path, era: str) -> None:
    done = inspect(tmp_path, workspace, era, "--method", "tools/list", "--strict")
    assert done.status == 0, done.stderr
    assert {"think", "fs", "git", "exec", "fetch"} <= {tool["name"] for tool in done.value["result"]["tools"]}
    assert "portability" not in done.stderr, done.stderr


@ERAS
def test_strict_list_with_door(tmp_path: Path, workspace: Path, era: str, door_url: str) -> None:
    done = inspect(tmp_path, workspace, era, "--method", "tools/list", "--strict", HANZO_MCP_DOOR=door_url)
    assert done.status == 0, done.stderr
    names = [tool["name"] for tool in done.value["result"]["tools"]]
    assert names[-len(FROM_THE_DOOR) :] == FROM_THE_DOOR


@ERAS
def test_calls(tmp_path: Path, workspace: Path, era: str) -> None:
    done = call(tmp_path, workspace, era, "fs", {"op": "read", "path": "README.md"})
    assert done.status == 0, done
    first = (workspace / "README.md").read_text(encoding="utf-8").splitlines()[0]
    assert first in done.value["result"]["content"][0]["text"]


@ERAS
def test_forwarded_call(tmp_path: Path, workspace: Path, era: str, door_url: str) -> None:
    given = {"op": "echo", "input": {"nothing": None}}
    done = call(tmp_path, workspace, era, "echo", given, HANZO_MCP_DOOR=door_url, HANZO_API_KEY="hk-test")
    assert done.status == 0, done
    assert json.loads(done.value["result"]["content"][0]["text"]) == given


@ERAS
def test_bad_arguments(tmp_path: Path, workspace: Path, era: str) -> None:
    done = call(tmp_path, workspace, era, "fs", {"op": "no_such_op"})
    assert done.value["result"]["isError"] is True
    assert "no_such_op" in done.value["result"]["content"][0]["text"]


@ERAS
def test_unknown_tool(tmp_path: Path, workspace: Path, era: str) -> None:
    done = call(tmp_path, workspace, era, "no_such_tool", {})
    assert done.status != 0
    assert "no_such_tool" in done.value["error"]["message"]


@ERAS
def test_load(tmp_path: Path, workspace: Path, era: str) -> None:
    words = ["--method", "tools/call", "--tool-name", "think", "--tool-args-json", '{"thought":"x"}']
    load = ["--load", "--load-requests", "200", "--load-concurrency", "16"]
    done = inspect(tmp_path, workspace, era, *words, *load)
    assert done.status == 0, done
    counted = {key: done.value["result"][key] for key in ("requests", "ok", "toolErrors", "errors")}
    assert counted == {"requests": 200, "ok": 200, "toolErrors": 0, "errors": 0}, done.value
