"""What the sessions with foreign clients share: a cloned repository and a fake door."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from fixtures.fake_door import FakeDoor
from tests.interop.contract import DOOR_CALLS, LOCAL_CALLS, ClientContract, JsonObject, run_session
from tests.support.wire import clean_environment

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of this very repository; a small one where there is no history to clone (an unpacked archive)."""
    path = tmp_path_factory.mktemp("interop") / "clone"
    command = ["git", "clone", "--quiet", str(_ROOT), str(path)]
    cloned = subprocess.run(command, capture_output=True, check=False)
    if cloned.returncode or not (path / "README.md").is_file():
        _small_repository(path)
    return path


def _small_repository(path: Path) -> None:
    path.mkdir(exist_ok=True)
    (path / "README.md").write_text("# A small repository\n\nTwo lines, one of them caf\u00e9.\n", encoding="utf-8")
    identity = ["-c", "user.name=interop", "-c", "user.email=interop@example.invalid"]
    for words in (["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "-m", "First"]):
        subprocess.run(["git", "-C", str(path), *words], check=True, capture_output=True)


@pytest.fixture(scope="session")
def door_url() -> Iterator[str]:
    """The address of a well-behaved fake door."""
    with FakeDoor(switch="ok") as door:
        yield door.url


def _contract(request: pytest.FixtureRequest) -> type[ClientContract]:
    asked = cast(pytest.Class, request.node)
    found: object = asked.obj
    assert isinstance(found, type) and issubclass(found, ClientContract)
    return found


@pytest.fixture(scope="class")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A fresh machine with the door off."""
    return clean_environment(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="class")
def session(request: pytest.FixtureRequest, workspace: Path, environment: dict[str, str]) -> JsonObject:
    """The report of the class's client on its session with the door off."""
    asked = _contract(request)
    return run_session(asked.peer_name, asked.mode, LOCAL_CALLS, workspace, environment)


@pytest.fixture(scope="class")
def door_session(
    request: pytest.FixtureRequest, workspace: Path, door_url: str, tmp_path_factory: pytest.TempPathFactory
) -> JsonObject:
    """The report of the class's client on its session with a door and a key for it."""
    asked, extra = _contract(request), {"HANZO_MCP_DOOR": door_url, "HANZO_API_KEY": "hk-test"}
    env = clean_environment(tmp_path_factory.mktemp("home"), extra)
    return run_session(asked.peer_name, asked.mode, DOOR_CALLS, workspace, env)
