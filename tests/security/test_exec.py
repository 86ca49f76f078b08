"""What a command can do to the server, row by row of the attack corpus (area exec)."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hanzo_mcp.core.tool import RESULT_META, Result
from hanzo_mcp.errors import Denied, InvalidInput
from hanzo_mcp.sandbox.launcher import Launcher
from hanzo_mcp.sandbox.processes import below, children
from tests.support.local import LocalTools

ATTACKS = Path(__file__).parents[2] / "fixtures" / "attacks" / "exec.jsonl"
PATH = {"PATH": os.environ["PATH"]}


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    before = set(children(os.getpid()))
    yield
    assert set(children(os.getpid())) <= before


@pytest.fixture
def tools(tmp_path: Path) -> LocalTools:
    (tmp_path / "ws").mkdir()
    (tmp_path / "out").mkdir()
    return LocalTools(tmp_path / "ws", environ=PATH)


def text(result: Result) -> str:
    return str(result.content[0]["text"])


def facts(result: Result) -> dict[str, Any]:
    return result.meta[RESULT_META]


def test_secrets_of_the_environment_stay_here(tmp_path: Path) -> None:
    secrets = {
        "HANZO_API_KEY": "hk-T",
        "AWS_SECRET_ACCESS_KEY": "aws-T",
        "GITHUB_TOKEN": "gh-T",
        "SSH_AUTH_SOCK": "/sock-T",
        "LD_PRELOAD": "/preload-T.so",
        "BASH_ENV": "/bashenv-T",
        "NODE_OPTIONS": "--require=/node-T",
        "PYTHONSTARTUP": "/python-T",
        "GIT_SSH_COMMAND": "ssh-T",
    }
    kept = {"HOME": "/home/ada", "LANG": "de_DE.UTF-8", "SHELL": "/bin/sh", **PATH}
    shown = text(LocalTools(tmp_path, environ=secrets | kept).call("exec", command="env"))
    lines = shown.split("\n")
    assert not [
        name for name, value in secrets.items() if value in shown or any(x.startswith(f"{name}=") for x in lines)
    ]
    assert {f"PATH={PATH['PATH']}", "HOME=/home/ada", "LANG=de_DE.UTF-8", "TERM=dumb"} <= set(lines)


def test_standard_input_is_not_ours(tools: LocalTools) -> None:
    reader, writer = os.pipe()
    saved = os.dup(0)
    os.dup2(reader, 0)
    try:
        os.write(writer, b'{"jsonrpc": "2.0"}\n')
        result = tools.call("exec", command="cat; read x < /dev/tty; echo got=$x", timeout=10)
        assert os.read(0, 100) == b'{"jsonrpc": "2.0"}\n', "no protocol byte was taken"
    finally:
        os.dup2(saved, 0)
        for fd in (reader, writer, saved):
            os.close(fd)
    assert "got=\n" in text(result)
    assert "jsonrpc" not in text(result)
    assert facts(result)["timed_out"] is False


def test_descriptors_are_not_inherited(tools: LocalTools, tmp_path: Path) -> None:
    held = [os.open(tmp_path / "out" / "f", os.O_RDWR | os.O_CREAT), os.open(tmp_path / "out", os.O_RDONLY)]
    left, right = socket.socketpair()
    held += [left.detach(), right.detach()]
    try:
        for fd in held:
            os.set_inheritable(fd, True)
        result = tools.call("exec", command="ls -l /proc/self/fd")
    finally:
        for fd in held:
            os.close(fd)
    names = [line.split(" -> ")[0].split()[-1] for line in text(result).split("\n") if " -> " in line]
    assert names == ["0", "1", "2", "3"], "the last is the folder ls reads"


def test_ignoring_term_does_not_help(tools: LocalTools) -> None:
    result = tools.call("exec", command="trap '' TERM INT HUP; while :; do sleep 1; done", timeout=1)
    assert facts(result)["signal"] == "SIGKILL"
    assert "timed out after 1 s" in text(result)


def test_a_cancelled_call_leaves_nothing(tools: LocalTools) -> None:
    async def go() -> None:
        async with asyncio.timeout(20):
            before = set(below(os.getpid()))
            call = asyncio.create_task(tools.acall("exec", command="sleep 300 | sleep 300"))
            while len(new := set(below(os.getpid())) - before) < 3:
                await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert not any(Path(f"/proc/{pid}").exists() for pid in new)
            assert text(await tools.acall("exec", command="echo alive")).startswith("alive")

    asyncio.run(go())


def test_the_working_directory_stays_inside(tools: LocalTools, tmp_path: Path) -> None:
    (tmp_path / "ws" / "way").symlink_to(tmp_path / "out")
    for cwd in (str(tmp_path / "out"), "../out", "way", "sub/../../out"):
        with pytest.raises(Denied):
            tools.call("exec", command="touch here", cwd=cwd)
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("switch", ["dangerouslyDisableSandbox", "sandbox", "isolation"])
def test_there_is_no_switch_to_turn_it_off(tools: LocalTools, tmp_path: Path, switch: str) -> None:
    with pytest.raises(InvalidInput, match=f"unknown argument '{switch}'"):
        tools.call("exec", command=f"touch {tmp_path}/out/x", **{switch: "off"})
    assert not (tmp_path / "out" / "x").exists()


def test_a_flood_is_bounded_and_others_are_served(tools: LocalTools) -> None:
    async def go() -> Result:
        async with asyncio.timeout(60):
            flood = asyncio.create_task(tools.acall("exec", command="yes | head -c 5000000000", timeout=2))
            served = 0
            while not flood.done():
                async with asyncio.timeout(10):
                    assert text(await tools.acall("exec", command="echo ok")).startswith("ok")
                served += 1
            assert served > 1
            return await flood

    tracemalloc.start()
    try:
        result = asyncio.run(go())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000
    assert facts(result)["truncated"] is True
    assert facts(result)["stdout_bytes"] > 10_000_000
    assert "bytes left out" in text(result)
    assert len(text(result)) < 140_000


def test_output_cannot_steer_a_terminal(tools: LocalTools) -> None:
    command = r"printf '\033]52;c;ZXZpbA==\a\033[2J\033]0;title\a\xff\xfe\000\342\200\256\302\205x'"
    result = tools.call("exec", argv=["/bin/bash", "-c", command])
    wire = json.dumps(result.to_wire(), ensure_ascii=False)
    assert text(result).split("\n")[0] == "\ufffd\ufffd␀x"
    assert not {"\x1b", "\x07", "\x9b", "\x00", "\u202e"} & set(text(result))
    assert json.loads(wire)["content"][0]["text"] == text(result)


def test_the_servers_end_is_the_end_of_what_it_started(tmp_path: Path) -> None:
    launcher = Launcher(dict(os.environ))
    command = "setsid nohup sh -c 'sleep 60; touch mark' >/dev/null 2>&1 & sleep 61 & echo started"

    async def go() -> tuple[int, ...]:
        async with asyncio.timeout(20):
            return (await launcher.run(["/bin/sh", "-c", command], cwd=str(tmp_path))).background

    left = asyncio.run(go())
    assert len(left) >= 2
    launcher.kill_all()
    assert not any(Path(f"/proc/{pid}").exists() for pid in left)


MET: dict[str, Callable[..., None]] = {
    "exec-08-env-scrub": test_secrets_of_the_environment_stay_here,
    "exec-12-steal-stdin": test_standard_input_is_not_ours,
    "exec-13-inherited-fds": test_descriptors_are_not_inherited,
    "exec-17-trap-term": test_ignoring_term_does_not_help,
    "exec-18-cancel": test_a_cancelled_call_leaves_nothing,
    "exec-23-cwd-outside": test_the_working_directory_stays_inside,
    "exec-24-disable-flag": test_there_is_no_switch_to_turn_it_off,
    "exec-28-output-flood": test_a_flood_is_bounded_and_others_are_served,
    "exec-29-output-bytes": test_output_cannot_steer_a_terminal,
}


def test_every_attack_of_the_corpus_has_its_test() -> None:
    rows = [json.loads(line) for line in ATTACKS.read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in rows] == list(MET)
