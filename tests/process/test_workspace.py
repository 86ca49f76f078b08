"""Which folder is the workspace, as a client meets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.wire import Wire


def _read(wire: Wire, path: str) -> dict[str, Any]:
    call = {"name": "fs", "arguments": {"op": "read", "path": path}}
    result: dict[str, Any] = wire.request("tools/call", call)["result"]
    return result


def test_the_current_directory(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "here.txt").write_text("found")
    with Wire(env={"HOME": str(tmp_path)}, cwd=tmp_path / "ws") as wire:
        assert str(tmp_path / "ws") in wire.initialize()["result"]["instructions"]
        assert "found" in _read(wire, "here.txt")["content"][0]["text"]


@pytest.mark.parametrize("where", ["/", "home", "above"])
def test_a_place_too_wide_is_never_opened(tmp_path: Path, where: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "id_rsa").write_text("S3CRET")
    cwd = {"/": Path("/"), "home": home, "above": tmp_path}[where]
    with Wire(env={"HOME": str(home)}, cwd=cwd) as wire:
        assert str(home / "hanzo") in wire.initialize()["result"]["instructions"]
        for path in ("id_rsa", str(home / "id_rsa"), "../id_rsa"):
            answer = _read(wire, path)
            assert answer["isError"] is True
            assert "S3CRET" not in str(answer)


def test_workspace_options_win_and_repeat(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text(name)
    args = ("serve", "--workspace", str(tmp_path / "one"), "--workspace", str(tmp_path / "two"))
    with Wire(args, env={"HOME": str(tmp_path)}, cwd=tmp_path) as wire:
        wire.initialize()
        assert "one" in _read(wire, "one.txt")["content"][0]["text"]
        assert "two" in _read(wire, str(tmp_path / "two" / "two.txt"))["content"][0]["text"]


def test_a_workspace_that_does_not_exist_is_said_at_once(tmp_path: Path) -> None:
    with Wire(("serve", "--workspace", str(tmp_path / "nowhere")), cwd=tmp_path) as wire:
        assert wire.wait_exit() == 2
        assert "no such directory" in wire.stderr


@pytest.mark.parametrize("before_the_engine", [True, False])
def test_the_clients_roots_replace_the_stand_in(tmp_path: Path, before_the_engine: bool) -> None:
    home, project = tmp_path / "home", tmp_path / "a project"
    home.mkdir()
    project.mkdir()
    (project / "here.txt").write_text("found")
    with Wire(env={"HOME": str(home)}, cwd=home) as wire:
        if not before_the_engine:
            wire.send(b"[]\n")  # a batch starts the engine
        wire.initialize(roots={})
        asked = wire.until(lambda m: m.get("method") == "roots/list")
        call = wire.post("tools/call", {"name": "fs", "arguments": {"op": "read", "path": "here.txt"}})
        roots = [{"uri": project.as_uri()}, {"uri": home.as_uri()}, {"uri": "file:///"}, {"uri": "https://x/"}, 7]
        wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": roots}})
        assert "found" in wire.reply(call)["result"]["content"][0]["text"]
        denied = _read(wire, str(home))
        assert denied["isError"] is True


def test_roots_never_widen_a_chosen_workspace(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    with Wire(env={"HOME": str(tmp_path)}, cwd=tmp_path / "ws") as wire:
        wire.initialize(roots={})
        assert _read(wire, "nothing")["isError"] is True
        assert not [m for m in wire.pending() if m.get("method") == "roots/list"]
