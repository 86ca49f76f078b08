"""The table 'Behaviour on the wire', rows 1 to 22: framing, envelopes, ids, errors. Rows 23 on: ``test_wire_life.py``.

``wire`` meets each row twice: as the first thing the start-up loop sees, and after a call has started the engine.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest

from fixtures.fake_door import FakeDoor, dead_port
from tests.support.talk import BILLING, KEY, Json, code, run, silent, start_engine, text, think
from tests.support.validate import check_error, check_reply
from tests.support.wire import LEGACY, MODERN, Wire, modern_meta


def lines(wire: Wire) -> list[str]:
    return wire.stderr.splitlines()


@pytest.fixture(params=["boot", "engine"])
def wire(request: pytest.FixtureRequest) -> Generator[Wire]:
    with Wire() as wire:
        if request.param == "engine":
            start_engine(wire)
        yield wire


def test_row_01_junk_is_one_line_on_stderr_and_no_reply(wire: Wire) -> None:
    for count, junk in enumerate((b"{oops", b"\xff\xfe\x00", b"nonsense", b'"text"', b"17", b"{", b"[1", b"NaN"), 1):
        wire.send(junk + b"\n")
        silent(wire)
        assert len(lines(wire)) == count, (junk, wire.stderr)
    assert think(wire)


def test_row_01_junk_with_a_plain_id_is_answered_to_that_id(wire: Wire) -> None:
    wire.send(b'{"jsonrpc":"2.0","id":"q","method":"ping","params":{oops}}\n')
    assert code(wire.reply("q")) == -32700


def test_row_02_blank_lines_are_ignored(wire: Wire) -> None:
    wire.send(b"\n\n  \n\t\r\n\n")
    silent(wire)
    assert wire.stderr == ""


@pytest.mark.parametrize("method", ["ping", "tools/call"])
def test_row_03_a_byte_order_mark_before_the_first_message(method: str) -> None:
    params = {"name": "think", "arguments": {"thought": "x"}}
    with Wire() as wire:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        wire.send(b"\xef\xbb\xbf" + body.encode() + b"\n")
        check_reply(method, LEGACY, wire.reply(1))


def test_row_04_carriage_return_line_feed(wire: Wire) -> None:
    wire.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n{"jsonrpc":"2.0","id":2,"method":"tools/list"}\r\n')
    check_reply("ping", LEGACY, wire.reply(1))
    check_reply("tools/list", LEGACY, wire.reply(2))
    assert b"\r" not in wire.raw
    assert wire.raw.endswith(b"}\n")


def test_row_05_lines_end_at_0x0a_only(wire: Wire) -> None:
    arguments = '{"thought":"a\u2028b\u0085c\u2029d"}'
    message = (
        f'{{"jsonrpc":"2.0",\r"id":1,\r"method":"tools/call","params":{{"name":"think","arguments":{arguments}}}}}'
    )
    wire.send(message.encode() + b"\n")
    assert "a\u2028b\u0085c\u2029d" in text(wire.reply(1))


def test_row_06_invalid_utf8_inside_a_string(wire: Wire) -> None:
    wire.send(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"think","arguments":{"thought":"a\xff\xc3("}}}\n'
    )
    assert "a\ufffd\ufffd(" in text(wire.reply(1))


def test_row_07_a_lone_surrogate(wire: Wire) -> None:
    wire.send(
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"tools/call",'
        b'"params":{"name":"think","arguments":{"thought":"a\\udfffb"}}}\n'
    )
    reply = wire.recv()
    assert reply["id"] == "\ud800"
    assert "isError" not in reply["result"]
    assert b'"id":"\\ud800"' in wire.raw
    assert b"a\\udfffb" in wire.raw


def test_row_07_a_lone_surrogate_in_a_method_and_a_path(wire: Wire) -> None:
    wire.send(b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}\n')
    assert code(wire.reply(1)) == -32601
    wire.send(
        b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fs","arguments":{"op":"read","path":"\\ud800"}}}\n'
    )
    assert wire.reply(2)["result"]["isError"] is True


def test_row_08_nul_is_passed_on_and_paths_refuse_it(wire: Wire) -> None:
    assert "a\0b" in think(wire, "a\0b")["content"][0]["text"]
    denied = wire.request("tools/call", {"name": "fs", "arguments": {"op": "read", "path": "a\0b"}})
    assert check_reply("tools/call", LEGACY, denied)["isError"] is True
    assert "NUL" in text(denied)


def test_row_08_nul_reaches_the_door() -> None:
    with FakeDoor() as door, Wire(env={"HANZO_MCP_DOOR": door.url, **KEY}) as wire:
        arguments = {"op": "echo", "input": {"a\0": "b\0c"}}
        reply = wire.request("tools/call", {"name": "echo", "arguments": arguments})
        assert json.loads(text(reply)) == arguments
        assert door.called("tools/call")[0].params["arguments"] == arguments


def test_row_09_ids_are_echoed_exactly(wire: Wire) -> None:
    ids: list[Any] = [0, -1, "", "0", 2**70, -(2**70), 1, "\u2028\0é"]
    for id in ids:
        check_reply("ping", LEGACY, wire.request("ping", id=id))
    for id in ids:
        assert think(wire, id=id)


@pytest.mark.parametrize("method", ["ping", "tools/call", "nowhere"])
def test_row_10_an_unusable_id_is_refused_with_null(wire: Wire, method: str) -> None:
    for id in ("null", "true", "false", "{}", "[]", '["a"]'):
        wire.send(f'{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{}}}}\n'.encode())
        reply = wire.recv()
        assert reply.get("id", "left out") is None, id
        assert code(reply) == -32600, id
    silent(wire)


def test_row_10_a_fraction_is_refused_and_echoed(wire: Wire) -> None:
    wire.send(b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n')
    reply = wire.recv()
    assert reply["id"] == 1.5
    assert reply["error"]["code"] == -32600


@pytest.mark.parametrize("id", [b"1e400", b"-1e400"])
def test_row_10_a_number_beyond_every_range_is_refused(wire: Wire, id: bytes) -> None:
    wire.send(b'{"jsonrpc":"2.0","id":' + id + b',"method":"ping"}\n')
    wire.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert wire.recv(5)["error"]["code"] == -32600
    assert wire.recv(5)["id"] == 1


def test_row_10_an_unusable_id_is_no_notification(wire: Wire) -> None:
    mark = wire.cwd / "mark"
    call = run(f"touch {mark}")
    wire.send({"jsonrpc": "2.0", "id": None, "method": "tools/call", "params": call})
    assert wire.recv()["error"]["code"] == -32600
    silent(wire)
    assert not mark.exists()


def test_row_11_a_batch_is_answered_as_a_batch_under_2025_03_26(wire: Wire) -> None:
    check_reply("initialize", "2025-03-26", wire.initialize("2025-03-26"))
    calls = [
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": "b",
            "method": "tools/call",
            "params": {"name": "think", "arguments": {"thought": "x"}},
        },
        {"jsonrpc": "2.0", "id": "c", "method": "nowhere"},
        {"jsonrpc": "1.0", "id": "d", "method": "ping"},
    ]
    wire.send(calls)
    answers = {answer["id"]: answer for answer in wire.recv_any()}
    assert set(answers) == {"a", "b", "c", "d"}
    check_reply("ping", "2025-03-26", answers["a"])
    check_reply("tools/call", "2025-03-26", answers["b"])
    assert (code(answers["c"]), code(answers["d"])) == (-32601, -32600)


def test_row_11_a_batch_of_notifications_is_not_answered(wire: Wire) -> None:
    wire.initialize("2025-03-26")
    wire.send([{"jsonrpc": "2.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "method": "x"}])
    silent(wire)


def test_row_11_an_empty_batch_is_refused(wire: Wire) -> None:
    wire.initialize("2025-03-26")
    wire.send(b"[]\n")
    silent(wire)
    assert len(lines(wire)) == 1


@pytest.mark.parametrize("version", [None, "2024-11-05", "2025-06-18", "2025-11-25"])
def test_row_11_no_other_revision_speaks_batches(wire: Wire, version: str | None) -> None:
    if version:
        wire.initialize(version)
    mark = wire.cwd / "mark"
    call = run(f"touch {mark}")
    wire.send([{"jsonrpc": "2.0", "id": 90, "method": "tools/call", "params": call}])
    silent(wire)
    assert len(lines(wire)) == 1
    assert not mark.exists()


def test_row_12_a_bad_envelope_is_refused_with_its_id(wire: Wire) -> None:
    cases: list[tuple[Json, int]] = [
        ({"id": 1, "method": "ping"}, -32600),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, -32600),
        ({"jsonrpc": 2.0, "id": 1, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": 7}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": None}, -32600),
        ({"jsonrpc": "2.0", "id": 1}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": 0}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": "x"}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": []}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 7}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "loud"}}, -32602),
    ]
    for message, wanted in cases:
        wire.send(message)
        assert code(wire.reply(1)) == wanted, message
        silent(wire)


def test_row_13_null_is_as_absent(wire: Wire) -> None:
    given: list[Json] = [{"params": None}, {"params": {"_meta": None}}, {"params": {"cursor": None}}, {}]
    for params in given:
        for id, method in enumerate(("ping", "tools/list", "initialize"), 1):
            wire.send({"jsonrpc": "2.0", "id": id, "method": method} | params)
            check_reply(method, LEGACY, wire.reply(id))
        wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"} | params)
        silent(wire)


def test_row_14_an_unknown_method(wire: Wire) -> None:
    for method in ("nowhere", "tools/run", "", "TOOLS/LIST", "sampling/createMessage", "x" * 10_000):
        assert code(wire.request(method)) == -32601, method
        assert code(wire.modern(method), MODERN) == -32601, method


def test_row_14_a_notification_is_never_answered(wire: Wire) -> None:
    for method in ("notifications/nothing", "nowhere", "ping", "tools/list", "initialize"):
        wire.notify(method, {})
        silent(wire)


def test_row_14_a_call_without_an_id_does_nothing(wire: Wire) -> None:
    mark = wire.cwd / "mark"
    wire.notify("tools/call", run(f"touch {mark}"))
    silent(wire)
    think(wire)
    assert not mark.exists()


def test_row_15_an_unknown_tool_with_the_door_off(wire: Wire) -> None:
    params: Json = {"name": "nowhere", "arguments": {}}
    for reply, version in ((wire.request("tools/call", params), LEGACY), (wire.modern("tools/call", params), MODERN)):
        error = check_error(version, reply)
        assert error["code"] == -32602
        assert error["message"] == "Unknown tool: nowhere"


def test_row_15_an_unknown_tool_the_door_does_not_know_either() -> None:
    params: Json = {"name": "nowhere", "arguments": {}}
    with FakeDoor("ok") as door, Wire(env={"HANZO_MCP_DOOR": door.url, **KEY}) as wire:
        wanted = {"code": -32602, "message": "unknown tool: nowhere"}
        assert check_error(LEGACY, wire.request("tools/call", params)) == wanted
        assert check_error(MODERN, wire.modern("tools/call", params)) == wanted
        assert len(door.called("tools/call")) == 2


def test_row_15_an_unknown_tool_with_the_door_down() -> None:
    url = dead_port()
    params: Json = {"name": "nowhere", "arguments": {}}
    with Wire(env={"HANZO_MCP_DOOR": url, **KEY}) as wire:
        for reply, version in (
            (wire.request("tools/call", params), LEGACY),
            (wire.modern("tools/call", params), MODERN),
        ):
            assert check_reply("tools/call", version, reply)["isError"] is True
            assert url.removesuffix("/v1/mcp") in text(reply)


WRONG: list[tuple[str, Any, tuple[str, ...]]] = [
    ("think", {}, ("thought",)),
    ("think", {"thought": {"a": 1}}, ("thought",)),
    ("think", [], ("object",)),
    ("think", None, ("thought",)),
    ("fs", {}, ("op", "read", "write")),
    ("fs", {"op": "explode"}, ("explode", "read")),
    ("fs", {"op": "read"}, ("path",)),
    ("fs", {"op": "read", "path": {"a": 1}}, ("path",)),
    ("exec", {"op": "run"}, ("command", "argv")),
    ("git", {"op": "status", "nowhere": 1}, ("nowhere",)),
]


def test_row_16_wrong_arguments_are_a_result_that_helps(wire: Wire) -> None:
    for name, arguments, words in WRONG:
        params = {"name": name, "arguments": arguments}
        for ask, version in ((wire.request, LEGACY), (wire.modern, MODERN)):
            reply = ask("tools/call", params)
            assert check_reply("tools/call", version, reply)["isError"] is True, params
            assert all(word in text(reply) for word in words), text(reply)


def test_row_17_a_bad_cursor(wire: Wire) -> None:
    cursors: list[Any] = ["", "x", "2", 7, {}, False]
    for cursor in cursors:
        assert code(wire.request("tools/list", {"cursor": cursor})) == -32602, cursor
        assert code(wire.modern("tools/list", {"cursor": cursor}), MODERN) == -32602, cursor


def test_row_18_stray_answers_and_cancellations_are_ignored(wire: Wire) -> None:
    stray: list[Json] = [
        {"id": "hanzo-1", "result": {}},
        {"id": 999, "error": {"code": -1, "message": "no"}},
        {"id": 999, "error": "no"},
        {"id": None, "error": {"code": -32700, "message": "no"}},
        {"method": "notifications/cancelled", "params": {"requestId": 999}},
        {"method": "notifications/cancelled", "params": {"requestId": {"a": []}}},
        {"method": "notifications/cancelled", "params": {"requestId": True}},
        {"method": "notifications/cancelled", "params": {"requestId": 1.5}},
        {"method": "notifications/cancelled"},
    ]
    for message in stray:
        wire.send({"jsonrpc": "2.0", **message})
        silent(wire)
    assert think(wire)


def test_row_19_the_list_before_initialize(wire: Wire) -> None:
    listed = check_reply("tools/list", LEGACY, wire.request("tools/list"))
    names = [tool["name"] for tool in listed["tools"]]
    assert {"fs", "exec", "git", "fetch", "think"} <= set(names)
    assert len(names) == len(set(names))
    wire.initialize()
    assert wire.request("tools/list")["result"] == listed


def test_row_20_initialize_twice_and_initialized_before_it(wire: Wire) -> None:
    wire.notify("notifications/initialized")
    for version in ("2024-11-05", "2025-11-25"):
        result = check_reply("initialize", version, wire.initialize(version))
        assert result["protocolVersion"] == version
    silent(wire)


def test_row_20_an_unknown_version_gets_our_newest_legacy_one(wire: Wire) -> None:
    for asked in ("2026-07-28", "1999-01-01", "", None, 7, ["2025-06-18"]):
        reply = wire.request("initialize", {"protocolVersion": asked, "capabilities": {}})
        assert check_reply("initialize", LEGACY, reply)["protocolVersion"] == LEGACY, asked


def test_row_21_requests_of_one_write_run_at_once() -> None:
    with FakeDoor("slow_call") as door, Wire(env={"HANZO_MCP_DOOR": door.url, **KEY}) as wire:
        slow = [{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": BILLING} for id in ("a", "b", "c")]
        messages = [*slow, {"jsonrpc": "2.0", "id": "p", "method": "ping"}]
        wire.send("".join(json.dumps(message) + "\n" for message in messages).encode())
        door.wait_for(lambda door: len(door.called("tools/call")) == 3)
        check_reply("ping", LEGACY, wire.reply("p"))
        assert not wire.pending()
        door.release()
        for id in ("a", "b", "c"):
            check_reply("tools/call", LEGACY, wire.reply(id), ours=False)


def test_row_22_an_id_already_in_flight() -> None:
    ids: list[Any] = [1, "x", 0, "", "1", 2**70]
    with FakeDoor("slow_call") as door, Wire(env={"HANZO_MCP_DOOR": door.url, **KEY}) as wire:
        for id in ids:
            wire.post("tools/call", BILLING, id)
        door.wait_for(lambda door: len(door.called("tools/call")) == len(ids))
        for id in ids:
            for method in ("tools/call", "ping", "tools/list"):
                assert code(wire.request(method, BILLING if method == "tools/call" else {}, id)) == -32600, (method, id)
        door.release()
        for id in ids:
            check_reply("tools/call", LEGACY, wire.reply(id), ours=False)
            check_reply("ping", LEGACY, wire.request("ping", id=id))
        assert len(door.called("tools/call")) == len(ids)


def test_row_22_a_subscription_holds_its_id() -> None:
    with Wire() as wire:
        wire.post("subscriptions/listen", {"notifications": {}, "_meta": modern_meta()}, "s")
        wire.until(lambda message: message.get("method") == "notifications/subscriptions/acknowledged")
        assert code(wire.request("ping", id="s")) == -32600
