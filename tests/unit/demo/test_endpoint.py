"""The stand-in endpoint answers what HIP-0300 §1 and MCP 2026-07-28 say."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from mcp_types import _v2026_07_28 as modern

from hanzo_mcp.demo.endpoint import META, MODERN, PATH, Reply, answer, respond
from hanzo_mcp.demo.serve_door import serve_door

ORIGIN = "https://api.example"
BEARER = {"authorization": "Bearer x"}
META_KEYS: dict[str, Any] = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}


def ask(method: str, params: Any = None, headers: dict[str, str] | None = None) -> Reply:
    request: dict[str, Any] = {"jsonrpc": "2.0", "id": 2**70, "method": method, "params": params or {}}
    return answer(request, BEARER if headers is None else headers, origin=ORIGIN)


def ask_modern(method: str, headers: dict[str, str] | None = None, **params: Any) -> Reply:
    mirrored = {"mcp-protocol-version": MODERN, "mcp-method": method}
    if "name" in params:
        mirrored["mcp-name"] = params["name"]
    return ask(method, {"_meta": META_KEYS, **params}, {**BEARER, **mirrored, **(headers or {})})


def body(reply: Reply) -> dict[str, Any]:
    assert isinstance(reply.body, dict)
    return reply.body


def result(reply: Reply) -> dict[str, Any]:
    assert reply.status == 200
    return body(reply)["result"]


def called(name: str, arguments: Any) -> Reply:
    return ask("tools/call", {"name": name, "arguments": arguments})


def test_the_list_needs_no_credential_and_starts_with_describe() -> None:
    listed = result(ask("tools/list", headers={}))
    tools = {tool["name"]: tool for tool in listed["tools"]}
    assert list(tools) == ["describe", "billing", "agents", "git", "echo"]
    assert tools["billing"]["annotations"] == {"readOnlyHint": True}
    assert "annotations" not in tools["agents"]
    assert tools["billing"]["inputSchema"]["properties"]["op"]["enum"] == ["list_invoices", "get_invoice"]
    assert set(listed["_meta"]["hanzo.ai/refused"]) == {"count", "rule"}


def test_a_call_without_credential_is_challenged() -> None:
    reply = ask("tools/call", {"name": "billing", "arguments": {"op": "list_invoices"}}, headers={})
    challenge = 'Bearer resource_metadata="https://api.example/.well-known/oauth-protected-resource"'
    assert (reply.status, reply.headers["www-authenticate"]) == (401, challenge)
    assert body(reply)["id"] == 2**70 and body(reply)["error"]["message"]


def test_results_and_errors_of_calls() -> None:
    assert json.loads(result(called("billing", {"op": "get_invoice", "input": {"id": "inv_1"}}))["content"][0]["text"])
    assert result(called("billing", {"op": "get_invoice"}))["isError"] is True
    assert result(called("agents", {"op": "deploy_agent", "input": {"name": "a"}}))["content"]
    assert result(called("agents", {"op": "deploy_agent"}))["isError"] is True
    assert result(called("agents", {"op": "list_agents"}))["content"]
    assert result(called("git", {"op": "list_repositories"}))["content"]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("nothing", {"op": "x"}, "unknown tool: nothing"),
        (None, {"op": "x"}, "unknown tool: None"),
        ("billing", {"input": {}}, 'billing needs {"op":"<operation>","input":{}}'),
        ("billing", None, 'billing needs {"op":"<operation>","input":{}}'),
        ("billing", {"op": "delete_everything"}, "unknown tool: delete_everything"),
        ("describe", {"op": "delete_everything"}, "unknown tool: delete_everything"),
    ],
)
def test_calls_refused(name: Any, arguments: Any, message: str) -> None:
    assert body(called(name, arguments))["error"] == {"code": -32602, "message": message}


def test_echo_returns_the_arguments_as_received() -> None:
    arguments = {"op": "echo", "big": 2**70, "nothing": None, "text": "\ud800\u2028", "deep": [{"x": [0.5, True]}]}
    reply = called("echo", arguments)
    assert json.loads(reply.encoded())["result"]["structuredContent"] == arguments
    assert json.loads(result(reply)["content"][0]["text"]) == arguments


def test_describe_gives_the_operations_schema() -> None:
    described = json.loads(result(called("describe", {"op": "get_invoice"}))["content"][0]["text"])
    assert set(described) == {"name", "description", "inputSchema"}
    assert described["inputSchema"]["required"] == ["id"]


def test_legacy_methods() -> None:
    assert result(ask("initialize", {"protocolVersion": "2024-11-05"}))["protocolVersion"] == "2025-06-18"
    assert result(ask("ping")) == {}
    assert body(ask("nothing"))["error"]["code"] == -32601
    assert body(ask("tools/list", {"cursor": "x"}))["error"]["code"] == -32602
    assert body(ask("tools/list", [1]))["error"]["code"] == -32602


def test_notifications_and_stray_responses_are_accepted() -> None:
    notification: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    response: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "result": {}}
    for message in (notification, response):
        assert answer(message, {}, origin=ORIGIN)[::2] == (202, {})


@pytest.mark.parametrize(
    ("reply", "model"),
    [
        (lambda: ask_modern("server/discover"), modern.DiscoverResult),
        (lambda: ask_modern("tools/list"), modern.ListToolsResult),
        (lambda: ask_modern("tools/call", name="git", arguments={"op": "list_repositories"}), modern.CallToolResult),
    ],
)
def test_modern_results_parse_in_the_sdks_models(reply: Callable[[], Reply], model: Any) -> None:
    value = result(reply())
    model.model_validate(value)
    assert value["resultType"] == "complete"
    assert value["_meta"][META + "serverInfo"]["name"] == "hanzo-cloud"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"mcp-protocol-version": "2025-06-18"}, -32020),
        ({"mcp-method": "tools/list"}, -32020),
        ({"mcp-name": "git"}, -32020),
        ({"mcp-name": "=?base64?Z2l0?="}, -32020),
        ({"mcp-name": "=?base64?!?="}, -32020),
    ],
)
def test_modern_headers_must_match_the_body(headers: dict[str, str], code: int) -> None:
    reply = ask_modern("tools/call", headers, name="echo", arguments={"op": "echo"})
    assert (reply.status, body(reply)["error"]["code"]) == (400, code)
    encoded = {"mcp-name": "=?base64?ZWNobw==?="}
    assert result(ask_modern("tools/call", encoded, name="echo", arguments={"op": "echo"}))


def test_modern_envelope_is_checked() -> None:
    for meta in (None, 5, META + "protocolVersion", [1]):
        assert body(ask("server/discover", {"_meta": meta}))["error"]["code"] == -32602
    version = {"mcp-protocol-version": "2030-01-01"}
    reply = ask_modern("ping", version, _meta={**META_KEYS, META + "protocolVersion": "2030-01-01"})
    assert reply.status == 400
    assert body(reply)["error"]["code"] == -32022
    assert body(reply)["error"]["data"] == {"supported": [MODERN], "requested": "2030-01-01"}


def test_paths_and_bodies() -> None:
    def get(path: str) -> Reply:
        return respond("GET", path, {}, b"", origin=ORIGIN)

    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/v1/mcp"):
        assert body(get(path)) == {"resource": ORIGIN, "authorization_servers": ["https://hanzo.id"]}
    assert (get("/v1/iam/nothing").status, get("/v1/iam/nothing").headers["content-type"][:9]) == (200, "text/html")
    assert (get("/mcp").status, get("/mcp").headers["location"]) == (308, PATH)
    assert get(PATH).status == 405
    for data, code in ((b"{oops", -32700), (b"\xff", -32700), (b"[" * 100_000, -32700), (b"[1]", -32600)):
        reply = respond("POST", PATH, {}, data, origin=ORIGIN)
        assert (reply.status, body(reply)["id"], body(reply)["error"]["code"]) == (200, None, code)


def test_it_is_served_on_a_loopback_port() -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with serve_door() as url, httpx.Client(follow_redirects=True, timeout=5) as client:
        assert url.endswith(PATH)
        assert client.post(url.replace(PATH, "/mcp"), json=ping).json()["result"] == {}
        assert client.get(url.replace(PATH, "/.well-known/oauth-protected-resource")).json()["resource"] in url
        assert client.post(url, content=iter([b"{}"])).status_code == 411
        assert client.post(url, json=ping).status_code == 200
