"""The start-up loop's words and state, before anything is read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hanzo_mcp.config.workspace import Choice
from hanzo_mcp.core.messages import INVALID_REQUEST, Broken
from hanzo_mcp.errors import ProtocolError
from hanzo_mcp.server import boot

CHOICE = Choice(("/some/where", "/else"), "the current directory", False)


@pytest.fixture
def fds() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for fd in ends:
        os.close(fd)


def test_instructions_name_the_workspace_and_the_cloud() -> None:
    on, off = boot.instructions(CHOICE, "https://door.example/v1/mcp"), boot.instructions(CHOICE, None)
    for told in (on, off):
        assert "Workspace: /some/where, /else (the current directory)." in told
    assert "{op, input}" in on
    assert "describe" in on
    assert "switched off" in off
    assert "describe" not in off


def test_instructions_say_why_a_stand_in() -> None:
    told = boot.instructions(Choice(("/home/ada/hanzo",), "/ is too wide; use --workspace DIR", True), None)
    assert "--workspace DIR" in told


def test_prepare_with_the_door_off(fds: tuple[int, int], tmp_path: Path) -> None:
    start = boot.prepare(CHOICE, {"HOME": str(tmp_path), "HANZO_MCP_DOOR": "off"}, fds)
    assert start.door is None
    assert start.session.version is None
    assert start.backlog == []
    assert start.catalog.ready() is not None
    assert list(tmp_path.iterdir()) == [], "nothing is written at start"


def test_prepare_with_the_door_on(fds: tuple[int, int], tmp_path: Path) -> None:
    start = boot.prepare(CHOICE, {"HOME": str(tmp_path), "HANZO_MCP_DOOR": "http://127.0.0.1:9/v1/mcp"}, fds)
    assert start.door == "http://127.0.0.1:9/v1/mcp"
    assert start.catalog.ready() is None, "the first list ever deserves a moment for the door"


def test_an_unusable_address_costs_only_the_cloud(
    fds: tuple[int, int], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    start = boot.prepare(CHOICE, {"HOME": str(tmp_path), "HANZO_MCP_DOOR": "ftp://nowhere"}, fds)
    assert start.door is None
    assert "Serving the local tools only" in capfd.readouterr().err


@pytest.mark.parametrize("answered", [True, False])
def test_a_refusal_is_one_line_and_answered_when_it_can_be(capfd: pytest.CaptureFixture[str], answered: bool) -> None:
    reply = boot.refusal(Broken("a", ProtocolError(INVALID_REQUEST, "no good"), answered))
    assert (reply is not None) is answered
    told = capfd.readouterr().err
    assert told.count("\n") == 1
    assert "no good" in told
