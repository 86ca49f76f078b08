"""What ``hanzo-mcp demo`` asks the server, and what it must answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from hanzo_mcp.core.shapes import as_list, as_object
from hanzo_mcp.demo.client import Answer
from hanzo_mcp.demo.endpoint import META, MODERN

Json = dict[str, Any]
Check = Callable[[Json], str | None]
"""Takes the reply (the whole message) and says what is wrong with it, or ``None``."""

LEGACY = "2025-11-25"
UNKNOWN_TOOL = "no_such_tool"
_INVALID_PARAMS = -32602
_CLIENT = {"name": "hanzo-mcp-demo", "version": "1"}


class Step(NamedTuple):
    """One request. ``title`` says what it shows."""

    title: str
    method: str
    params: Json
    check: Check


def initialize() -> Step:
    """The handshake of the older era."""
    params: Json = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _CLIENT}
    return Step("handshake", "initialize", params, _named_hanzo)


def listing() -> Step:
    """The merged list."""
    return Step("the merged tool list", "tools/list", {}, _has_both_kinds)


def calls(root: str, door: str) -> list[Step]:
    """One call of each kind. ``root`` is the workspace, ``door`` the URL of the stand-in cloud on loopback."""
    return [
        _call("list the workspace", "fs", {"op": "list", "path": "."}, _worked),
        _call("run a command", "exec", {"op": "run", "command": "echo hello from this machine"}, _says("hello from")),
        _git_status(root),
        _call("think", "think", {"thought": "Look before writing."}, _says("Look before writing.")),
        _call(
            "a cloud tool, forwarded",
            "billing",
            {"op": "get_invoice", "input": {"id": "inv_1"}},
            _says('"amount": 4200'),
        ),
        _call("a path outside the workspace", "fs", {"op": "read", "path": "../outside.txt"}, _refused("denied")),
        _call("a web page on loopback", "fetch", {"url": door}, _refused("denied")),
        _call("a tool nobody has", UNKNOWN_TOOL, {}, _error(_INVALID_PARAMS)),
    ]


def discover() -> Step:
    """The same process, asked in the era of 2026-07-28, which has no handshake."""
    return Step("the era of 2026-07-28", "server/discover", {"_meta": _envelope()}, _speaks_modern)


def _git_status(root: str) -> Step:
    arguments = {"op": "status"}
    if os.path.exists(os.path.join(root, ".git")):
        return _call("the state of this repository", "git", arguments, _worked)
    return _call("the state of a repository (this folder may be none)", "git", arguments, _answered)


def _call(title: str, tool: str, arguments: Json, check: Check) -> Step:
    return Step(title, "tools/call", {"name": tool, "arguments": arguments}, check)


def _envelope() -> Json:
    return {META + "protocolVersion": MODERN, META + "clientInfo": _CLIENT, META + "clientCapabilities": {}}


def result_of(message: Json) -> Json:
    """The reply's ``result``, empty when it has none."""
    return as_object(message.get("result")) or {}


def text_of(message: Json) -> str:
    """What a reply says: the text blocks of a call's result, or the error's message."""
    error = as_object(message.get("error"))
    if error is not None:
        return str(error.get("message", ""))
    blocks = [as_object(block) or {} for block in as_list(result_of(message).get("content")) or []]
    return "\n".join(str(block["text"]) for block in blocks if "text" in block)


def tools_of(answer: Answer) -> list[Json]:
    """The tools of a ``tools/list`` reply."""
    return [tool for entry in as_list(result_of(answer.message).get("tools")) or [] if (tool := as_object(entry))]


def _named_hanzo(message: Json) -> str | None:
    info = as_object(result_of(message).get("serverInfo")) or {}
    return None if info.get("name") == "hanzo-mcp" else "expected serverInfo.name to be hanzo-mcp"


def _has_both_kinds(message: Json) -> str | None:
    names = {tool.get("name") for tool in map(as_object, as_list(result_of(message).get("tools")) or []) if tool}
    missing = {"think", "describe", "billing"} - names
    return f"expected these in the list too: {', '.join(sorted(missing))}" if missing else None


def _worked(message: Json) -> str | None:
    result = result_of(message)
    return None if "content" in result and result.get("isError") is not True else "expected a result without isError"


def _answered(message: Json) -> str | None:
    return None if "content" in result_of(message) else "expected a result"


def _says(words: str) -> Check:
    def check(message: Json) -> str | None:
        return _worked(message) or (None if words in text_of(message) else f"expected an answer with {words!r}")

    return check


def _refused(code: str) -> Check:
    def check(message: Json) -> str | None:
        result = result_of(message)
        error = as_object((as_object(result.get("structuredContent")) or {}).get("error")) or {}
        refused = result.get("isError") is True and error.get("code") == code
        return None if refused else f"expected isError with the code {code!r}"

    return check


def _error(code: int) -> Check:
    def check(message: Json) -> str | None:
        error = as_object(message.get("error")) or {}
        return None if error.get("code") == code else f"expected a JSON-RPC error {code}"

    return check


def _speaks_modern(message: Json) -> str | None:
    versions = as_list(result_of(message).get("supportedVersions")) or []
    return None if MODERN in versions else f"expected {MODERN} among supportedVersions"
