"""What a server says beside its answers, as foreign clients hear it: changed lists, progress, questions; and cancel.

A door decides when each of these happens, so nothing here waits for time to pass.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fixtures.fake_door import FakeDoor
from tests.interop.contract import FROM_THE_DOOR, JsonObject, need, run_session, text_of
from tests.support.wire import clean_environment

pytestmark = pytest.mark.interop

Client = tuple[str, str]
"""A peer and its mode."""
LEGACY = [("python-sdk", "legacy"), ("ts-sdk", "legacy"), ("ts-client", "legacy")]
MODERN = [("python-sdk", "auto"), ("ts-client", "auto")]
EVERY_CLIENT = pytest.mark.parametrize("client", [*LEGACY, *MODERN], ids="-".join)
LEGACY_CLIENT = pytest.mark.parametrize("client", LEGACY, ids="-".join)

GIVEN: JsonObject = {"op": "echo", "input": {"text": "x"}}
ECHO: JsonObject = {"name": "echo", "arguments": GIVEN}
WAIT = 20.0


class Conversation:
    """A session with a door behind it. The door acts while the session goes on; then there is its report."""

    def __init__(self, door: FakeDoor, client: Client, home: Path, plan: dict[str, Any]) -> None:
        self._door = door
        env = clean_environment(home, {"HANZO_MCP_DOOR": door.url, "HANZO_API_KEY": "hk-test"})
        self._pool = ThreadPoolExecutor(1)
        self._session = self._pool.submit(run_session, *client, plan.pop("calls", {}), home, env, **plan)

    def await_calls(self, count: int, departures: int = 0) -> None:
        """Until the door has seen this many calls, and this many of their callers leave."""
        try:
            self._door.wait_for(
                lambda door: (len(door.called("tools/call")), door.departures) == (count, departures), WAIT
            )
        except TimeoutError:
            if self._session.done():
                self._session.result()  # how it failed says more
            raise

    def report(self) -> JsonObject:
        """Let everything go on that the door still holds; what the client saw."""
        self._door.release()
        return self._session.result()

    def close(self) -> None:
        self._door.release()
        self._pool.shutdown()


@contextmanager
def conversation(client: Client, home: Path, door: FakeDoor, **plan: Any) -> Generator[Conversation]:
    need(client[0])
    with door:
        conversing = Conversation(door, client, home, plan)
        try:
            yield conversing
        finally:
            conversing.close()


def names(tools: list[JsonObject]) -> list[str]:
    return [tool["name"] for tool in tools]


@EVERY_CLIENT
def test_list_changed_is_heard_when_a_slow_door_answers(client: Client, tmp_path: Path) -> None:
    door = FakeDoor("slow_first_list", seconds=None)
    with conversation(client, tmp_path, door, calls={"listed": ECHO}, hears=True) as going:
        going.await_calls(1)  # the client has its first list
        report = going.report()
    assert not set(FROM_THE_DOOR) & set(names(report["tools"]))
    assert names(report["changed"]) == [*names(report["tools"]), *FROM_THE_DOOR]
    assert json.loads(text_of(report["calls"]["listed"])) == GIVEN
    assert report["problems"] == []


@EVERY_CLIENT
def test_progress_of_the_door_is_relayed(client: Client, tmp_path: Path) -> None:
    door = FakeDoor("sse", progress=3, pause=True)
    with conversation(client, tmp_path, door, twice=ECHO, first="go on") as going:
        going.await_calls(2)  # the client has seen the last step
        told = going.report()["twice"]
    assert told["progress"] == [{"progress": n, "total": 3, "message": f"step {n}"} for n in (1, 2, 3)]
    assert json.loads(text_of(told["first"])) == GIVEN
    assert json.loads(text_of(told["second"])) == GIVEN


@EVERY_CLIENT
def test_cancelling_closes_the_stream_at_the_door(client: Client, tmp_path: Path) -> None:
    door = FakeDoor("sse", progress=1, pause=True)
    with conversation(client, tmp_path, door, twice=ECHO, first="abort") as going:
        going.await_calls(2, departures=1)
        report = going.report()
    assert "error" in report["twice"]["first"]
    assert json.loads(text_of(report["twice"]["second"])) == GIVEN
    assert report["problems"] == []


@EVERY_CLIENT
def test_a_question_of_the_door_is_asked(client: Client, tmp_path: Path) -> None:
    door = FakeDoor("input_required")
    with conversation(client, tmp_path, door, calls={"asks": ECHO}, answer={"yes": True}) as going:
        report = going.report()
    (asked,) = report["elicited"]
    assert asked["message"] == "Deploy to production?"
    assert asked["requestedSchema"]["required"] == ["yes"]
    echoed, answered = report["calls"]["asks"]["result"]["content"]
    assert json.loads(echoed["text"]) == GIVEN
    assert json.loads(answered["text"]) == {"confirm": {"action": "accept", "content": {"yes": True}}}


@LEGACY_CLIENT
def test_a_question_nobody_can_be_asked_is_said(client: Client, tmp_path: Path) -> None:
    door = FakeDoor("input_required")
    with conversation(client, tmp_path, door, calls={"asks": ECHO}) as going:
        outcome = going.report()["calls"]["asks"]
    assert outcome["result"]["isError"] is True
    assert "Deploy to production?" in text_of(outcome)
