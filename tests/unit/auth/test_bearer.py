"""The bearer for the door (HIP-0300 §2.2)."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path

import pytest

from hanzo_mcp.auth.bearer import FAILURE, MARGIN, UNDATED, Bearer, good_until
from hanzo_mcp.sandbox.launcher import Launcher


def _command(folder: Path, script: str) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    command = folder / "hanzo"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(folder)}


def _take(environ: dict[str, str], key: str | None = None, times: int = 1) -> tuple[list[str | None], list[str]]:
    secrets: list[str] = []

    async def run() -> list[str | None]:
        bearer = Bearer(key, environ, Launcher(environ), secrets.append)
        return [await bearer.take() for _ in range(times)]

    return asyncio.run(run()), secrets


def test_the_key_wins(tmp_path: Path) -> None:
    environ = _command(tmp_path / "bin", 'touch "$HOME/asked"; echo token')
    assert _take(environ, key="the-key") == (["the-key"], ["the-key"])
    assert not (tmp_path / "bin" / "asked").exists()


def test_the_command_is_asked_once_and_its_token_kept(tmp_path: Path) -> None:
    environ = _command(
        tmp_path / "bin", 'test "$1 $2" = "auth token" || exit 9; echo x >> "$HOME/asked"; echo the-token'
    )
    assert _take(environ, times=3) == (["the-token"] * 3, ["the-token"])
    assert (tmp_path / "bin" / "asked").read_text() == "x\n"


@pytest.mark.parametrize("script", ["exit 1", "echo two words", "echo", "printf 'a\\001b'", "cat; exit 3"])
def test_a_failing_command_gives_no_bearer_and_is_not_asked_again_soon(tmp_path: Path, script: str) -> None:
    environ = _command(tmp_path / "bin", f'echo x >> "$HOME/asked"; {script}')
    assert _take(environ, times=2) == ([None, None], [])
    assert (tmp_path / "bin" / "asked").read_text() == "x\n"
    assert FAILURE < UNDATED


def test_no_command_is_no_bearer(tmp_path: Path) -> None:
    assert _take({"PATH": str(tmp_path), "HOME": str(tmp_path)}) == ([None], [])


def _jwt(claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.sig"


@pytest.mark.parametrize(
    ("token", "wanted"),
    [
        (_jwt({"exp": 5000}), 5000 - MARGIN),
        (_jwt({"exp": True}), 100 + UNDATED),
        (_jwt([1]), 100 + UNDATED),
        ("a.b.c", 100 + UNDATED),
        ("opaque", 100 + UNDATED),
    ],
)
def test_a_token_is_used_until_a_minute_before_it_expires(token: str, wanted: float) -> None:
    assert good_until(token, now=lambda: 100.0) == wanted
