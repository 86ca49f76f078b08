"""exec.run: what a model sees of a command."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from hanzo_mcp.core.tool import RESULT_META, Result
from hanzo_mcp.errors import Denied, InvalidInput, NotFound, TooLarge
from hanzo_mcp.tools import exec as tool
from tests.support.local import LocalTools


@pytest.fixture
def tools(tmp_path: Path) -> LocalTools:
    return LocalTools(tmp_path, environ={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SHELL": "/bin/sh"})


def body(result: Result) -> list[str]:
    """The lines before the last."""
    return str(result.content[0]["text"]).split("\n")[:-1]


def ending(result: Result) -> str:
    return str(result.content[0]["text"]).split("\n")[-1]


def facts(result: Result) -> dict[str, Any]:
    return result.meta[RESULT_META]


def test_a_success(tools: LocalTools) -> None:
    result = tools.call("exec", command="echo one; echo two")
    assert body(result) == ["one", "two"]
    assert ending(result).startswith("[exit code 0; ")
    assert not result.is_error
    assert result.structured is None
    assert facts(result) | {"duration_ms": 0} == {
        "exit_code": 0,
        "signal": None,
        "timed_out": False,
        "duration_ms": 0,
        "stdout_bytes": 8,
        "stderr_bytes": 0,
    }


def test_a_failure_is_an_error_with_both_streams(tools: LocalTools) -> None:
    result = tools.call("exec", command="echo out; echo err >&2; exit 3")
    assert body(result) == ["out", "[stderr]", "err"]
    assert ending(result).startswith("[exit code 3; ")
    assert result.is_error
    assert facts(result)["exit_code"] == 3


def test_a_signal_has_its_name(tools: LocalTools) -> None:
    result = tools.call("exec", command="kill -SEGV $$")
    assert ending(result).startswith("[killed by SIGSEGV; ")
    assert (facts(result)["exit_code"], facts(result)["signal"]) == (None, "SIGSEGV")
    assert result.is_error


def test_a_timeout_keeps_what_was_written(tools: LocalTools) -> None:
    result = tools.call("exec", command="echo before; sleep 777", timeout=0.3)
    assert body(result) == ["before"]
    assert ending(result).startswith("[timed out after 0.3 s, killed with everything it started; ")
    assert facts(result)["timed_out"] is True
    assert result.is_error


@pytest.mark.parametrize(
    "given", [{"argv": ["printf", "%s|", "a b", "$HOME"]}, {"command": ["printf", "%s|", "a b", "$HOME"]}]
)
def test_an_argument_list_goes_to_no_shell(tools: LocalTools, given: dict[str, Any]) -> None:
    assert body(tools.call("exec", **given)) == ["a b|$HOME|"]


def test_a_command_may_begin_with_a_dash(tools: LocalTools) -> None:
    result = tools.call("exec", command="-x; echo still a command")
    assert "still a command" in body(result)


def test_stdin_is_empty_unless_given(tools: LocalTools) -> None:
    assert body(tools.call("exec", command="cat")) == []
    assert body(tools.call("exec", command="cat", stdin="grüß\ndich")) == ["grüß", "dich"]


def test_cwd_and_env(tools: LocalTools, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    result = tools.call("exec", command='pwd; echo "$A"', cwd="sub", env={"A": "x y"})
    assert body(result) == [str(tmp_path / "sub"), "x y"]


def test_a_background_process_is_named(tools: LocalTools) -> None:
    result = tools.call("exec", command="sleep 0.4 & echo $!")
    (pid,) = facts(result)["background"]
    assert body(result) == [str(pid)]
    assert ending(result).endswith(f"still running in the background: {pid}]")


def test_long_output_is_cut_in_the_middle_and_says_so(tools: LocalTools) -> None:
    result = tools.call("exec", command="seq 1 200000")
    lines = body(result)
    assert (lines[0], lines[-1]) == ("1", "200000")
    assert "bytes left out" in str(result.content[0]["text"])
    assert "output cut in the middle" in ending(result)
    assert facts(result)["truncated"] is True
    assert facts(result)["stdout_bytes"] == 1_288_895


def test_what_a_terminal_would_show(tools: LocalTools) -> None:
    command = r"for i in 10 50 100; do printf '\r%s%%' $i; done; printf '\n\033[31mred\033[0m\007 caf\351\n'"
    assert body(tools.call("exec", command=command)) == ["100%", "red caf\ufffd"]


def test_binary_output_is_described(tools: LocalTools) -> None:
    command = "head -c 3000 /dev/zero | tr '\\0' '\\200'; echo text >&2"
    assert body(tools.call("exec", command=command)) == [
        "(binary, 3000 bytes, not shown; redirect it to a file)",
        "[stderr]",
        "text",
    ]


@pytest.mark.parametrize("name", ["LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "HANZO_API_KEY", "hanzo_api_key"])
def test_some_variables_are_refused_with_a_reason(tools: LocalTools, name: str) -> None:
    with pytest.raises(Denied, match=f"{name} may not be set: it "):
        tools.call("exec", command="env", env={name: "x"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "give either command"),
        ({"command": "x", "argv": ["x"]}, "give either command"),
        ({"command": "  "}, "command is empty"),
        ({"argv": [""]}, "names the program"),
        ({"command": "a\0b"}, "NUL"),
        ({"command": "x", "env": {"A-B": "1"}}, "no variable name"),
        ({"command": "x", "env": {"A": "\0"}}, "NUL"),
        ({"command": "x", "timeout": 0}, "greater than 0"),
        ({"command": "x", "timeout": 120_000}, "less than or equal to 3600"),
        ({"command": "x", "cwd": "file"}, "must be a folder"),
        ({"command": "x", "timeout_ms": 5}, "did you mean 'timeout'"),
    ],
)
def test_wrong_arguments_are_named(tools: LocalTools, tmp_path: Path, given: dict[str, Any], said: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match=said):
        tools.call("exec", **given)


def test_what_cannot_start(tools: LocalTools) -> None:
    with pytest.raises(NotFound, match="no-such-program: command not found"):
        tools.call("exec", argv=["no-such-program"])
    with pytest.raises(TooLarge):
        tools.call("exec", command="#" * 200_000)
    assert facts(tools.call("exec", command="no-such-program"))["exit_code"] == 127


@pytest.mark.parametrize(
    ("shell", "used"), [("/bin/bash", "/bin/bash"), ("/bin/false", "/bin/sh"), ("bash", "/bin/sh"), ("", "/bin/sh")]
)
def test_the_shell_is_the_users_when_it_is_known(tmp_path: Path, shell: str, used: str) -> None:
    tools = LocalTools(tmp_path, environ={"PATH": os.environ["PATH"], "SHELL": shell})
    assert body(tools.call("exec", command='echo "$0"')) == [used]


def test_progress_tells_the_last_line_and_stops_with_the_result(tools: LocalTools) -> None:
    async def go() -> None:
        await tools.acall(
            "exec", command="printf '10%%\\r20%%\\rhalf\\n\\n'; while [ ! -e go ]; do sleep 0.01; done; seq 1 50000"
        )
        count = len(tools.client.progressed)
        await asyncio.sleep(2 * 0.2)  # longer than the pause between two notifications
        assert len(tools.client.progressed) == count

    async def release() -> None:
        while not tools.client.progressed:
            await asyncio.sleep(0.001)
        (Path(tools.files.roots[0].path) / "go").touch()

    async def both() -> None:
        async with asyncio.timeout(20):
            await asyncio.gather(go(), release())

    asyncio.run(both())
    assert tools.client.progressed[0] == (14, None, "half")
    assert len(tools.client.progressed) <= 3, "bounded by time, not by output"


def test_the_tool_fits_its_budget() -> None:
    import json

    from hanzo_mcp.docgen import entry

    assert len(json.dumps(entry(tool.TOOL), separators=(",", ":"))) <= 0.71 * 1024
