"""'Modern facts' 1 to 9 of the protocol page: revision 2026-07-28, where each request speaks for itself."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from fixtures.fake_door import FakeDoor
from tests.support.talk import BILLING, KEY, Json, code, run, silent, start_engine, text, think
from tests.support.validate import SERVER_INFO, check_error, check_notification, check_reply
from tests.support.wire import LEGACY, MODERN, Wire, modern_meta

THINK: Json = {"name": "think", "arguments": {"thought": "x"}}
VERSIONS = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


@pytest.fixture(params=["boot", "engine"])
def wire(request: pytest.FixtureRequest) -> Generator[Wire]:
    with Wire() as wire:
        if request.param == "engine":
            start_engine(wire)
        yield wire


def settings(home: Path, source: str) -> Path:
    """Write the user's settings; gives the home."""
    (home / ".config" / "hanzo").mkdir(parents=True)
    (home / ".config" / "hanzo" / "settings.json").write_text(source)
    return home


def test_modern_01_what_meta_must_carry(wire: Wire) -> None:
    without: list[Json] = [{"clientCapabilities": None}, {"clientCapabilities": []}, {"protocolVersion": 7}]
    for method in ("server/discover", "tools/list", "tools/call", "subscriptions/listen"):
        params: Json = {**THINK, "notifications": {}} if method != "server/discover" else {}
        for meta in without:
            assert code(wire.modern(method, params, **meta), MODERN) == -32602, (method, meta)
        error = check_error(MODERN, wire.modern(method, params, protocolVersion="2099-01-01"))
        assert error["code"] == -32022, method
        assert error["data"] == {"supported": VERSIONS, "requested": "2099-01-01"}
        assert code(wire.modern(method, params, protocolVersion=LEGACY), MODERN) == -32022, method
    silent(wire)


def test_modern_01_discover_without_meta_and_client_info_left_out(wire: Wire) -> None:
    assert code(wire.request("server/discover"), MODERN) == -32602
    assert code(wire.request("server/discover", {"_meta": {}}), MODERN) == -32602
    check_reply("server/discover", MODERN, wire.modern("server/discover", clientInfo=None))
    check_reply("tools/call", MODERN, wire.modern("tools/call", THINK, clientInfo=None))


def test_modern_02_discover(wire: Wire) -> None:
    result = check_reply("server/discover", MODERN, wire.modern("server/discover"))
    assert result["supportedVersions"] == VERSIONS
    assert result["capabilities"]["tools"] == {"listChanged": True}
    assert str(wire.cwd) in result["instructions"]


def test_modern_03_every_result_names_its_type_and_server(wire: Wire) -> None:
    asked: list[tuple[str, Json]] = [("server/discover", {}), ("tools/list", {}), ("tools/call", THINK)]
    asked.append(("tools/call", {"name": "think", "arguments": {}}))
    for method, params in asked:
        result = check_reply(method, MODERN, wire.modern(method, params))
        assert result["resultType"] == "complete", method
        assert result["_meta"][SERVER_INFO]["name"] == "hanzo-mcp", method
        if method != "server/discover":
            old = check_reply(method, LEGACY, wire.request(method, params))
            assert SERVER_INFO not in old.get("_meta", {}), method


def test_modern_04_lists_say_how_long_they_hold(tmp_path: Path) -> None:
    with FakeDoor() as door, Wire(env={"HANZO_MCP_DOOR": door.url, **KEY}) as wire:
        for _ in range(2):
            listed = check_reply("tools/list", MODERN, wire.modern("tools/list"))
            assert 0 < listed["ttlMs"] <= 300_000
            assert "billing" in [tool["name"] for tool in listed["tools"]]
        check_reply("server/discover", MODERN, wire.modern("server/discover"))


def test_modern_04_a_list_that_waits_for_the_door_is_stale_at_once() -> None:
    with FakeDoor("slow_first_list") as door, Wire(env={"HANZO_MCP_DOOR": door.url}) as wire:
        assert check_reply("tools/list", MODERN, wire.modern("tools/list"))["ttlMs"] == 0
        door.release()


def test_modern_05_input_required_of_the_door_passes_untouched() -> None:
    with FakeDoor("input_required") as door, Wire(env={"HANZO_MCP_DOOR": door.url, **KEY}) as wire:
        able: Json = {"elicitation": {}}
        first = check_reply(
            "tools/call", MODERN, wire.modern("tools/call", BILLING, clientCapabilities=able), ours=False
        )
        assert first["resultType"] == "input_required"
        assert first["inputRequests"]["confirm"]["method"] == "elicitation/create"
        answers = {"confirm": {"action": "accept", "content": {"yes": True}}}
        again = {**BILLING, "inputResponses": answers, "requestState": first["requestState"]}
        done = check_reply("tools/call", MODERN, wire.modern("tools/call", again, clientCapabilities=able), ours=False)
        assert done["resultType"] == "complete"
        assert json.loads(done["content"][-1]["text"]) == answers
        silent(wire)


def test_modern_05_a_rule_that_asks_never_sends_a_request(tmp_path: Path) -> None:
    home = settings(tmp_path, '{"permissions": {"exec.run": "prompt"}}')
    with Wire(env={"HOME": str(home)}) as wire:
        wire.initialize(elicitation={})
        mark = wire.cwd / "mark"
        denied = check_reply("tools/call", MODERN, wire.modern("tools/call", run(f"touch {mark}")))
        assert denied["isError"] is True
        assert "settings.json" in denied["content"][0]["text"]
        silent(wire)
        assert not mark.exists()


@pytest.mark.xfail(strict=True, reason="asking a modern client comes with the prompters; until then it is a denial")
def test_modern_05_a_rule_that_asks_does_it_by_input_required(tmp_path: Path) -> None:
    home = settings(tmp_path, '{"permissions": {"exec.run": "prompt"}}')
    able: Json = {"elicitation": {}}
    with Wire(env={"HOME": str(home)}) as wire:
        call, other = run(f"touch {wire.cwd / 'mark'}"), run(f"touch {wire.cwd / 'other'}")
        asked = check_reply("tools/call", MODERN, wire.modern("tools/call", call, clientCapabilities=able), ours=False)
        assert asked["resultType"] == "input_required", asked
        (key,) = asked["inputRequests"]
        yes = {"inputResponses": {key: {"action": "accept", "content": {"allow": True}}}}
        state = asked["requestState"]
        bad: list[Json] = [{**other, **yes, "requestState": state}, {**call, **yes, "requestState": state[:-2] + "xx"}]
        for retry in [*bad, {**call, **yes}]:
            refused = wire.modern("tools/call", retry, clientCapabilities=able)
            assert refused.get("result", {}).get("resultType") != "complete" or refused["result"]["isError"] is True
        assert not list(wire.cwd.iterdir())
        retry = {**call, **yes, "requestState": state}
        done = check_reply("tools/call", MODERN, wire.modern("tools/call", retry, clientCapabilities=able))
        assert "isError" not in done
        assert [path.name for path in wire.cwd.iterdir()] == ["mark"]


def is_acknowledged(message: Json) -> bool:
    return message.get("method") == "notifications/subscriptions/acknowledged"


def test_modern_06_a_subscription() -> None:
    with FakeDoor("slow_first_list") as door, Wire(env={"HANZO_MCP_DOOR": door.url}) as wire:
        for id, wanted in (("s", {"toolsListChanged": True}), (0, {"toolsListChanged": True}), ("none", {})):
            wire.post("subscriptions/listen", {"notifications": wanted, "_meta": modern_meta()}, id)
            told = check_notification(MODERN, wire.recv())
            assert told["notifications"] == wanted
            assert told["_meta"][SUBSCRIPTION] == id
        wire.notify("notifications/cancelled", {"requestId": 0})
        wire.modern("tools/list")
        door.release()
        changed = wire.recv()
        assert changed["method"] == "notifications/tools/list_changed"
        assert check_notification(MODERN, changed)["_meta"][SUBSCRIPTION] == "s"
        silent(wire)
        wire.close_stdin()
        assert wire.wait_exit() == 0
        ends = {message["id"]: message for message in wire.pending()}
        assert set(ends) == {"s", "none"}
        for id, end in ends.items():
            assert check_reply("subscriptions/listen", MODERN, end)["_meta"][SUBSCRIPTION] == id


def test_modern_06_listen_as_it_must_not_be(wire: Wire) -> None:
    assert code(wire.request("subscriptions/listen", {"notifications": {}})) == -32601
    wrong: list[Any] = [None, [], 7]
    for wanted in wrong:
        assert code(wire.modern("subscriptions/listen", {"notifications": wanted}), MODERN) == -32602, wanted
    silent(wire)


def test_modern_06_a_legacy_client_gets_the_push_without_a_subscription() -> None:
    with FakeDoor("slow_first_list") as door, Wire(env={"HANZO_MCP_DOOR": door.url}) as wire:
        wire.initialize()
        wire.request("tools/list")
        door.release()
        changed = wire.recv()
        assert changed["method"] == "notifications/tools/list_changed"
        assert SUBSCRIPTION not in check_notification(LEGACY, changed).get("_meta", {})


def test_modern_07_what_is_gone(wire: Wire) -> None:
    for method in ("ping", "logging/setLevel", "initialize", "notifications/initialized"):
        assert code(wire.modern(method, {"level": "debug"}), MODERN) == -32601, method
    wire.notify("notifications/roots/list_changed", {"_meta": modern_meta()})
    wire.notify("notifications/initialized", {"_meta": modern_meta()})
    silent(wire)


@pytest.mark.parametrize("asks", [True, False])
def test_modern_07_no_message_unless_asked(tmp_path: Path, asks: bool) -> None:
    home = settings(tmp_path, "{broken")
    with Wire(env={"HOME": str(home)}) as wire:
        if asks:
            wire.initialize()
            check_reply("logging/setLevel", LEGACY, wire.request("logging/setLevel", {"level": "info"}))
            id = wire.post("tools/call", THINK)
            told = wire.recv()
            assert told["method"] == "notifications/message"
            assert "settings.json" in check_notification(LEGACY, told)["data"]
            assert wire.recv()["id"] == id
        else:
            check_reply("tools/call", MODERN, wire.modern("tools/call", THINK))
            silent(wire)
        assert "settings.json" in wire.stderr


def test_modern_08_the_list_is_the_same_for_everybody() -> None:
    lists: list[Any] = []
    for _ in range(2):
        with Wire() as wire:
            lists.append(wire.modern("tools/list")["result"]["tools"])
            lists.append(wire.modern("tools/list", clientCapabilities={"elicitation": {}})["result"]["tools"])
            wire.initialize("2024-11-05", roots={}, sampling={})
            lists.append(wire.request("tools/list")["result"]["tools"])
            think(wire)
            lists.append(wire.modern("tools/list", clientInfo={"name": "other", "version": "2"})["result"]["tools"])
    assert all(listed == lists[0] for listed in lists)
    assert len({json.dumps(listed) for listed in lists}) == 1, "the order varies"


def test_modern_08_structured_content_is_any_value() -> None:
    with FakeDoor() as door, Wire(env={"HANZO_MCP_DOOR": door.url, **KEY}) as wire:
        for value in ("[1,null]", "7", '"text"', "null", "false", '{"a":{}}'):
            result = f'{{"content":[],"structuredContent":{value}}}'
            door.use("raw_result", text=result)
            reply = check_reply("tools/call", MODERN, wire.modern("tools/call", BILLING), ours=False)
            assert reply == {"resultType": "complete", **json.loads(result)}


def test_modern_09_a_process_is_no_conversation() -> None:
    with Wire() as wire:
        wire.modern("tools/call", run("cd /; export KEPT=yes; umask 000"))
        told = text(wire.modern("tools/call", run("pwd; echo kept=$KEPT")))
        assert told.startswith(f"{wire.cwd}\nkept=\n"), told


def test_modern_09_thoughts_of_one_client_are_not_shown_to_another() -> None:
    with Wire() as wire:
        for name in ("one", "two"):
            info = {"name": name, "version": "1"}
            call = {"name": "think", "arguments": {"thought": f"of {name}", "branch": name}}
            told = text(wire.modern("tools/call", call, clientInfo=info))
        assert told == "1. of two"


def test_modern_09_legacy_state_is_not_touched(wire: Wire) -> None:
    wire.initialize("2025-03-26")
    check_reply("tools/call", MODERN, wire.modern("tools/call", THINK))
    wire.modern("server/discover")
    wire.send([{"jsonrpc": "2.0", "id": "b", "method": "ping"}])
    assert wire.recv_any() == [{"jsonrpc": "2.0", "id": "b", "result": {}}]
