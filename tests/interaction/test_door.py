"""The door against a real HTTP endpoint with every switch (HIP-0300 §2, §4; door design)."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fixtures.fake_door import HOSTILE_METADATA, FakeDoor, dead_port
from hanzo_mcp.server.catalog import contract
from tests.support.wire import Wire

KEY = "hk-test-0123456789abcdef"
LOCAL = [tool["name"] for tool in contract()]
CALL: dict[str, Any] = {"name": "billing", "arguments": {"op": "list_invoices", "input": {}}}


@contextmanager
def served(url: str, home: Path, **env: str | None) -> Generator[Wire]:
    """A server with its door at ``url``; nothing it ever says may hold the key."""
    with Wire(env={"HANZO_MCP_DOOR": url, "HANZO_API_KEY": KEY, "HOME": str(home), **env}, cwd=home) as wire:
        wire.initialize()
        yield wire
        assert KEY not in wire.stderr
    for kept in home.rglob("*"):
        assert not kept.is_file() or KEY not in kept.read_text(errors="replace"), kept


def names(reply: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in reply["result"]["tools"]]


def text(reply: dict[str, Any]) -> str:
    return reply["result"]["content"][0]["text"]


def is_list_changed(message: dict[str, Any]) -> bool:
    return message.get("method") == "notifications/tools/list_changed"


# -- HIP-0300 §4: the four tests of each local server


def test_list_merge_with_local_winning(tmp_path: Path) -> None:
    with FakeDoor("ok") as door, served(door.url, tmp_path) as wire:
        merged = names(wire.request("tools/list"))
        assert merged == [*LOCAL, "describe", "billing", "agents", "echo"]
        status = wire.request("tools/call", {"name": "git", "arguments": {"op": "list_repositories"}})
        assert status["result"]["isError"] is True
        assert "unknown op" in text(status)
        assert not door.called("tools/call")


def test_call_forwarded_verbatim(tmp_path: Path) -> None:
    result = (
        '{ "content": [{"type":"text","text":"caf\\u00e9 \u2028 \U0001f600"},'
        ' {"type":"hologram","spin":null,"x":[[]]}],'
        '\n  "structuredContent": {"big": 1180591620717411303424, "tiny": 1e-400, "huge": 1e400, "exact": 0.10,'
        ' "none": null}, "unknownField": {"a": [1, {"b": null}]}, "isError": false, "_meta": {"x/y": true} }'
    )
    arguments = '{"op":"get","input":{"big":1180591620717411303424,"f":1.10,"n":null,"s":"\\ud83d\\ude00\\u0000"}}'
    line = (
        '{"jsonrpc":"2.0","id":"v","method":"tools/call","params":{"name":"billing","arguments":' + arguments + ","
        '"futureField":[1.0,null],"_meta":{"progressToken":0,"vendor/x":{"y":null}}}}\n'
    )
    with FakeDoor("raw_result", text=result) as door, served(door.url, tmp_path) as wire:
        wire.send(line.encode())
        reply = wire.reply("v")
        assert json.dumps(reply["result"]) == json.dumps(json.loads(result))
        body = door.called("tools/call")[0].body.decode()
        assert arguments in body
        assert '"futureField":[1.0,null]' in body
        assert door.called("tools/call")[0].params["_meta"]["vendor/x"] == {"y": None}
        assert door.called("tools/call")[0].params["_meta"]["progressToken"] == 0


def test_401_becomes_sign_in(tmp_path: Path) -> None:
    with FakeDoor("401") as door, served(door.url, tmp_path) as wire:
        reply = wire.request("tools/call", CALL)
        assert reply["result"]["isError"] is True
        assert "hanzo auth login" in text(reply)
        assert f"{door.origin}/.well-known/oauth-protected-resource" in text(reply)
        assert wire.request("tools/call", {"name": "think", "arguments": {"thought": "on"}})["result"]


def test_endpoint_down_is_local_only(tmp_path: Path) -> None:
    with served(dead_port(), tmp_path) as wire:
        assert names(wire.request("tools/list")) == LOCAL
        reply = wire.request("tools/call", CALL)
        assert reply["result"]["isError"] is True
        assert "127.0.0.1" in text(reply)
        assert "trying again is safe" in text(reply)
        assert len([line for line in wire.stderr.splitlines() if "not available" in line]) == 1


# -- the list


@pytest.mark.parametrize(
    "switch", ["403", "429", "500", "503", "404_html", "200_html", "rst", "truncated_json", "wrong_content_length"]
)
def test_a_failing_list_is_local_only_with_one_line(tmp_path: Path, switch: str) -> None:
    with FakeDoor(switch, on=None) as door, served(door.url, tmp_path) as wire:
        assert names(wire.request("tools/list")) == LOCAL
        assert len([line for line in wire.stderr.splitlines() if "not available" in line]) == 1
        assert names(wire.request("tools/list")) == LOCAL


@pytest.mark.parametrize("switch", ["hang_before_headers", "hang_mid_body", "drip"])
def test_a_hanging_list_costs_a_moment_and_arrives_later(tmp_path: Path, switch: str) -> None:
    with FakeDoor(switch) as door, served(door.url, tmp_path) as wire:
        listed = wire.post("tools/list")
        assert wire.request("ping")["result"] == {}
        assert names(wire.reply(listed)) == LOCAL
        assert "has not answered" in wire.stderr


def test_a_slow_first_list_is_announced(tmp_path: Path) -> None:
    with FakeDoor("slow_first_list", seconds=60) as door, served(door.url, tmp_path) as wire:
        assert names(wire.request("tools/list")) == LOCAL
        door.release()
        wire.until(is_list_changed)
        assert "billing" in names(wire.request("tools/list"))


def test_the_list_is_kept_for_the_next_start(tmp_path: Path) -> None:
    with FakeDoor("ok") as door:
        with served(door.url, tmp_path) as wire:
            first = wire.request("tools/list")["result"]
        asked = len(door.requests)
        with served(door.url, tmp_path) as wire:
            assert wire.request("tools/list")["result"] == first
        assert len(door.requests) == asked
    (cache,) = (tmp_path / ".cache" / "hanzo-mcp").glob("door-*.json")
    assert cache.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("junk", [b"", b"{", b"[]", b'{"format":"other"}', b"\xff\xfe", b"[" * 100_000])
def test_a_corrupt_cache_is_ignored(tmp_path: Path, junk: bytes) -> None:
    with FakeDoor("ok") as door:
        with served(door.url, tmp_path) as wire:
            wire.request("tools/list")
        (cache,) = (tmp_path / ".cache" / "hanzo-mcp").glob("door-*.json")
        cache.write_bytes(junk)
        with served(door.url, tmp_path) as wire:
            assert "billing" in names(wire.request("tools/list"))


def test_a_stale_list_is_served_and_its_change_announced_in_both_eras(tmp_path: Path) -> None:
    with FakeDoor("changed_list") as door:
        with served(door.url, tmp_path) as wire:
            old = names(wire.request("tools/list"))
        (cache,) = (tmp_path / ".cache" / "hanzo-mcp").glob("door-*.json")
        cache.write_text(json.dumps(json.loads(cache.read_text()) | {"expires": 0}))
        with served(door.url, tmp_path) as wire:
            wire.send(
                {
                    "jsonrpc": "2.0",
                    "id": "sub",
                    "method": "subscriptions/listen",
                    "params": {"notifications": {"toolsListChanged": True}, "_meta": _modern_meta()},
                }
            )
            acknowledged = wire.until(lambda m: m.get("method") == "notifications/subscriptions/acknowledged")
            assert acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "sub"
            assert names(wire.request("tools/list")) == old
            wire.until(lambda m: is_list_changed(m) and "params" not in m)
            wire.until(lambda m: is_list_changed(m) and "params" in m)
            assert names(wire.request("tools/list")) != old


def _modern_meta() -> dict[str, Any]:
    prefix = "io.modelcontextprotocol/"
    return {prefix + "protocolVersion": "2026-07-28", prefix + "clientCapabilities": {}}


def test_too_many_tools_are_shortened_and_describe_stays(tmp_path: Path) -> None:
    with FakeDoor("tools_1189") as door, served(door.url, tmp_path) as wire:
        result = wire.request("tools/list")["result"]
        assert len(result["tools"]) == 127
        assert result["tools"][len(LOCAL)]["name"] == "describe"
        assert result["_meta"]["hanzo.ai/shortened"]["over_client_limit"] > 1000


@pytest.mark.parametrize(
    ("switch", "options"), [("list_50mb", {"megabytes": 4}), ("list_20000", {}), ("gzip_bomb", {})]
)
def test_a_giant_list_never_costs_the_local_tools(tmp_path: Path, switch: str, options: dict[str, Any]) -> None:
    with FakeDoor(switch, **options) as door, served(door.url, tmp_path) as wire:
        assert names(wire.request("tools/list"))[: len(LOCAL)] == LOCAL


def test_a_list_over_the_cap_says_it_was_cut(tmp_path: Path) -> None:
    with FakeDoor("list_50mb", megabytes=4) as door, served(door.url, tmp_path) as wire:
        result = wire.request("tools/list")["result"]
        assert result["_meta"]["hanzo.ai/shortened"]["over_limits"]["bytes"] == 2 * 1024 * 1024


@pytest.mark.parametrize("switch", ["colliding_names", "duplicate_names", "bad_names"])
def test_names_are_unique_valid_and_local_ones_win(tmp_path: Path, switch: str) -> None:
    with FakeDoor(switch) as door, served(door.url, tmp_path) as wire:
        merged = names(wire.request("tools/list"))
        assert len({name.lower() for name in merged}) == len(merged)
        assert all(name.isascii() and " " not in name and len(name) <= 64 for name in merged)
        for disguised in ("FS", "fs ", "\uff46\uff53"):
            reply = wire.request("tools/call", {"name": disguised, "arguments": {}})
            assert reply["error"]["code"] == -32602
        assert not door.called("tools/call")


@pytest.mark.parametrize("switch", ["bad_schemas", "deep_schema", "null_description"])
def test_unusable_tools_are_left_out_and_counted(tmp_path: Path, switch: str) -> None:
    with FakeDoor(switch) as door, served(door.url, tmp_path) as wire:
        result = wire.request("tools/list")["result"]
        for tool in result["tools"]:
            assert tool["inputSchema"]["type"] == "object"
            assert isinstance(tool.get("description", ""), str)
        if switch != "null_description":
            assert result["_meta"]["hanzo.ai/shortened"]


def test_escapes_are_stripped_from_list_text(tmp_path: Path) -> None:
    with FakeDoor("esc_in_descriptions") as door, served(door.url, tmp_path) as wire:
        shown = json.dumps(wire.request("tools/list")["result"], ensure_ascii=False)
        for hidden in ("\x1b", "\\u001b", "\u202e", "\u200b", "\U000e0041", "\\u0000", "\x9b"):
            assert hidden not in shown


def test_notices_of_the_list_are_carried_through(tmp_path: Path) -> None:
    with FakeDoor("ok") as door, served(door.url, tmp_path) as wire:
        assert "hanzo.ai/refused" in wire.request("tools/list")["result"]["_meta"]


def test_a_paged_list_ends(tmp_path: Path) -> None:
    with FakeDoor("paged_list") as door, served(door.url, tmp_path) as wire:
        assert names(wire.request("tools/list"))[: len(LOCAL)] == LOCAL


# -- calls


def test_an_unknown_tool_is_the_endpoints_own_error(tmp_path: Path) -> None:
    with FakeDoor("ok") as door, served(door.url, tmp_path) as wire:
        reply = wire.request("tools/call", {"name": "no_such", "arguments": {}})
        assert reply["error"] == {"code": -32602, "message": "unknown tool: no_such"}
        missing = wire.request("tools/call", {"name": "billing", "arguments": {}})
        assert missing["error"]["code"] == -32602
        assert "billing needs" in missing["error"]["message"]


@pytest.mark.parametrize("variant", sorted(HOSTILE_METADATA))
def test_a_hostile_challenge_is_replaced(tmp_path: Path, variant: str) -> None:
    hostile = HOSTILE_METADATA[variant]
    with FakeDoor("401", resource_metadata=hostile) as door, served(door.url, tmp_path) as wire:
        said = text(wire.request("tools/call", CALL))
        assert hostile not in said
        assert f"{door.origin}/.well-known/oauth-protected-resource" in said


@pytest.mark.parametrize("status", [307, 308])
def test_another_origin_gets_nothing(tmp_path: Path, status: int) -> None:
    with FakeDoor("redirect_other_origin", status=status) as door, served(door.url, tmp_path) as wire:
        reply = wire.request("tools/call", CALL)
        assert reply["result"]["isError"] is True
        assert "not followed" in text(reply)
        assert door.other.requests == []
        assert door.other.connections == 0


def test_one_same_origin_308_is_followed(tmp_path: Path) -> None:
    with FakeDoor("308") as door, served(door.url, tmp_path) as wire:
        assert "inv_1" in text(wire.request("tools/call", CALL))
        assert [request.headers.get("authorization") for request in door.called("tools/call")][-1] == f"Bearer {KEY}"


def test_a_308_loop_ends(tmp_path: Path) -> None:
    with FakeDoor("308", loop=True) as door, served(door.url, tmp_path) as wire:
        assert wire.request("tools/call", CALL)["result"]["isError"] is True


@pytest.mark.parametrize(
    ("switch", "word"),
    [
        ("403", "403"),
        ("429", "Trying again later is safe"),
        ("500", "may have run"),
        ("503", "Trying again later is safe"),
        ("404_html", "404"),
        ("200_html", "200"),
        ("rst", "may have run"),
        ("truncated_json", "not JSON"),
        ("sse_dropped", "ended before the answer"),
        ("wrong_id", "no JSON-RPC response"),
    ],
)
def test_failures_say_what_happened(tmp_path: Path, switch: str, word: str) -> None:
    with FakeDoor(switch, on=("tools/call",)) as door, served(door.url, tmp_path) as wire:
        reply = wire.request("tools/call", CALL)
        assert reply["result"]["isError"] is True
        assert word in text(reply)
        assert door.origin in text(reply)
        assert len(door.called("tools/call")) == 1


def test_invalid_utf8_is_replaced(tmp_path: Path) -> None:
    with FakeDoor("invalid_utf8") as door, served(door.url, tmp_path) as wire:
        assert "\ufffd" in json.dumps(wire.request("tools/call", CALL), ensure_ascii=False)


@pytest.mark.parametrize("switch", ["sse", "sse_split"])
def test_an_event_stream_is_an_answer_and_relays_progress(tmp_path: Path, switch: str) -> None:
    with FakeDoor(switch) as door, served(door.url, tmp_path) as wire:
        plain = wire.request("tools/call", CALL, id="quiet")
        assert "result" in plain
        told = wire.request("tools/call", {**CALL, "_meta": {"progressToken": 0}}, id="loud")
        assert "result" in told
        if switch == "sse":
            progress = wire.until(lambda m: m.get("method") == "notifications/progress")
            assert progress["params"]["progressToken"] == 0
        assert not [m for m in wire.pending() if m.get("params", {}).get("progressToken") not in (0, None)]


def test_a_dropped_stream_is_resumed_not_repeated(tmp_path: Path) -> None:
    with FakeDoor("sse_dropped", resumable=True) as door, served(door.url, tmp_path) as wire:
        assert "isError" not in wire.request("tools/call", CALL)["result"]
        assert len(door.called("tools/call")) == 1


def test_a_legacy_endpoint_is_spoken_to_in_its_own_era(tmp_path: Path) -> None:
    with FakeDoor("ok_legacy") as door, served(door.url, tmp_path) as wire:
        assert "inv_1" in text(wire.request("tools/call", CALL))
        sent = door.called("tools/call")[0]
        assert not [key for key in sent.params.get("_meta", {}) if key.startswith("io.modelcontextprotocol/")]
        modern = wire.modern("tools/call", CALL)
        assert modern["result"]["resultType"] == "complete"


def test_routing_headers_of_the_modern_era(tmp_path: Path) -> None:
    with FakeDoor("param_headers") as door, served(door.url, tmp_path) as wire:
        wire.request("tools/list")
        assert "result" in wire.request("tools/call", CALL)
        headers = door.called("tools/call")[0].headers
        assert headers["mcp-method"] == "tools/call"
        assert headers["mcp-name"] == "billing"
        assert headers["mcp-protocol-version"] == "2026-07-28"


def test_input_required_goes_through_to_a_modern_client(tmp_path: Path) -> None:
    with FakeDoor("input_required") as door, served(door.url, tmp_path) as wire:
        first = wire.modern("tools/call", CALL)["result"]
        assert first["resultType"] == "input_required"
        responses: dict[str, Any] = {key: {"action": "accept", "content": {}} for key in first["inputRequests"]}
        again = {**CALL, "inputResponses": responses, "requestState": first["requestState"]}
        assert wire.modern("tools/call", again)["result"]["resultType"] == "complete"


def test_input_required_is_elicited_from_a_legacy_client(tmp_path: Path) -> None:
    env = {"HANZO_API_KEY": KEY, "HOME": str(tmp_path)}
    with FakeDoor("input_required") as door, Wire(env={**env, "HANZO_MCP_DOOR": door.url}, cwd=tmp_path) as wire:
        wire.initialize(elicitation={})
        call = wire.post("tools/call", CALL)
        asked = wire.until(lambda m: m.get("method") == "elicitation/create")
        wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {}}})
        assert "isError" not in wire.reply(call)["result"]


def test_input_required_is_said_to_a_client_that_cannot_be_asked(tmp_path: Path) -> None:
    with FakeDoor("input_required") as door, served(door.url, tmp_path) as wire:
        reply = wire.request("tools/call", CALL)["result"]
        assert reply["isError"] is True
        assert "cannot be asked" in reply["content"][0]["text"]


def test_cancel_closes_the_stream_and_gets_no_reply(tmp_path: Path) -> None:
    with FakeDoor("slow_call", seconds=600) as door, served(door.url, tmp_path) as wire:
        call = wire.post("tools/call", CALL)
        door.wait_for(lambda d: bool(d.called("tools/call")))
        wire.notify("notifications/cancelled", {"requestId": call})
        door.wait_for(lambda d: bool(d.departures))
        assert wire.request("ping")["result"] == {}
        assert not [m for m in wire.pending() if m.get("id") == call]


def test_a_refused_bearer_of_the_command_is_asked_for_once_more(tmp_path: Path) -> None:
    command = tmp_path / "bin" / "hanzo"
    command.parent.mkdir()
    command.write_text(
        '#!/bin/sh\necho x >> "$HOME/asked"\n'
        'test $(wc -l < "$HOME/asked") -gt 1 && echo fresh-token || echo stale-token\n'
    )
    command.chmod(0o755)
    path = f"{command.parent}:/usr/bin:/bin"
    with FakeDoor("401", accept="fresh-token") as door:
        with served(door.url, tmp_path, HANZO_API_KEY=None, PATH=path) as wire:
            assert "inv_1" in text(wire.request("tools/call", CALL))
            assert "inv_1" in text(wire.request("tools/call", CALL))
        sent = [request.headers.get("authorization") for request in door.called("tools/call")]
    assert sent == ["Bearer stale-token", "Bearer fresh-token", "Bearer fresh-token"]


def test_cookies_never_come_back_and_lists_carry_no_bearer(tmp_path: Path) -> None:
    with FakeDoor("set_cookie", on=None) as door, served(door.url, tmp_path) as wire:
        wire.request("tools/list")
        wire.request("tools/call", CALL)
        assert not [request for request in door.requests if "cookie" in request.headers]
        assert not [request for request in door.called("tools/list") if "authorization" in request.headers]


def test_a_bearer_in_an_answer_is_masked(tmp_path: Path) -> None:
    leak = json.dumps({"content": [{"type": "text", "text": f"Bearer {KEY}"}]})
    with FakeDoor("raw_result", text=leak) as door, served(door.url, tmp_path) as wire:
        assert text(wire.request("tools/call", CALL)) == "Bearer [redacted]"


def test_500_calls_in_flight_lose_nothing(tmp_path: Path) -> None:
    with FakeDoor("ok") as door, served(door.url, tmp_path) as wire:
        wire.send(
            b"".join(
                json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": _echo(n)}).encode() + b"\n"
                for n in range(1000, 1500)
            )
        )
        for n in range(1000, 1500):
            assert f'"n": {n}' in text(wire.reply(n, timeout=60))


def _echo(n: int) -> dict[str, Any]:
    return {"name": "echo", "arguments": {"op": "echo", "input": {"n": n}}}


def test_a_certificate_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    with FakeDoor("tls") as door, served(door.url, tmp_path) as wire:
        reply = wire.request("tools/call", CALL)
        assert reply["result"]["isError"] is True
        assert "certificate" in text(reply).lower()


def test_a_result_over_the_cap_is_refused(tmp_path: Path) -> None:
    with FakeDoor("big_result", megabytes=33) as door, served(door.url, tmp_path) as wire:
        assert "larger than" in text(wire.request("tools/call", CALL, timeout=60))


def test_remote_annotations_never_loosen_a_rule(tmp_path: Path) -> None:
    settings = tmp_path / ".config" / "hanzo" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"permissions": {"billing.*": "deny"}}')
    with FakeDoor("false_hints") as door, served(door.url, tmp_path) as wire:
        wire.request("tools/list")
        reply = wire.request("tools/call", {"name": "billing", "arguments": {"op": "delete_everything", "input": {}}})
        assert reply["result"]["structuredContent"]["error"] == {
            "code": "denied",
            "by": "policy",
            "message": text(reply),
        }
        assert not door.called("tools/call")


def test_a_project_cannot_choose_the_door(tmp_path: Path) -> None:
    """CVE-2026-21852: neither ``.env`` nor project settings decide where the bearer goes."""
    home, project = tmp_path / "home", tmp_path / "project"
    (project / ".hanzo").mkdir(parents=True)
    home.mkdir()
    with FakeDoor("ok") as attacker, FakeDoor("ok") as door:
        (project / ".env").write_text(f"export HANZO_MCP_DOOR='{attacker.url}'\n")
        (project / ".hanzo" / "settings.json").write_text(json.dumps({"door": {"url": attacker.url}}))
        env = {"HOME": str(home), "HANZO_API_KEY": KEY}
        with Wire(env={**env, "HANZO_MCP_DOOR": attacker.url, "HANZO_API_BASE": door.origin}, cwd=project) as wire:
            wire.initialize()
            assert "billing" in names(wire.request("tools/list"))
            assert "inv_1" in text(wire.request("tools/call", CALL))
            assert "HANZO_MCP_DOOR is ignored" in wire.stderr
        assert attacker.connections == 0


@pytest.mark.parametrize(
    "value", ["http://example.com/v1/mcp", "ftp://x", "https://u:p@x/v1/mcp", "nonsense", "https://a b"]
)
def test_an_unusable_address_is_said_and_costs_only_the_cloud(tmp_path: Path, value: str) -> None:
    with served(value, tmp_path) as wire:
        assert names(wire.request("tools/list")) == LOCAL
        assert "HANZO_MCP_DOOR" in wire.stderr
