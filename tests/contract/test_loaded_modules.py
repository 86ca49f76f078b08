"""What is imported when: a heavy package comes with the first call that needs it, never with the start.

The server leaves by ``os._exit``; the program below does it the same way, after noting every module loaded by then.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fixtures.fake_door import FakeDoor
from tests.support.talk import BILLING, KEY, run, text
from tests.support.validate import check_reply
from tests.support.watch import Word
from tests.support.wire import LEGACY, Wire, initialize_params

PROGRAM = """
import os, sys
before, leave = set(sys.modules), os._exit
def note(status):
    with open("modules", "w") as file:
        for name in sorted(set(sys.modules) - before):
            file.write(f"{name}\\t{getattr(sys.modules[name], '__file__', None) or ''}\\n")
    leave(status)
os._exit = note
from hanzo_mcp import serve
engine = serve._engine
def noted(*args):
    if os.path.exists("word"):
        with open("word", "w") as word:
            word.write(f"{os.getpid()}\\n")
    return engine(*args)
serve._engine = noted
note(serve.serve([]))
"""
HEAVY_STDLIB = {
    *(
        "asyncio",
        "argparse",
        "concurrent",
        "ctypes",
        "dataclasses",
        "datetime",
        "decimal",
        "difflib",
        "email",
        "fractions",
    ),
    *("hashlib", "hmac", "html", "http", "importlib.metadata", "inspect", "ipaddress", "logging"),
    *(
        "multiprocessing",
        "pathlib",
        "pickle",
        "platform",
        "pprint",
        "queue",
        "random",
        "secrets",
        "shutil",
        "socket",
        "sqlite3",
        "ssl",
    ),
    *("statistics", "subprocess", "tempfile", "threading", "tomllib", "traceback", "unittest", "urllib", "uuid", "xml"),
    *("zipfile", "zoneinfo"),
}
"""Each costs a start milliseconds or drags others in."""
THINK = {"name": "think", "arguments": {"thought": "x"}}


def start(**env: str | None) -> Wire:
    return Wire(command=[sys.executable, "-P", "-c", PROGRAM], args=(), env=env)


def line(method: str, params: dict[str, Any], id: int | str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"


class Loaded:
    """The modules of a server that has left."""

    def __init__(self, wire: Wire) -> None:
        wire.close_stdin()
        assert wire.wait_exit() == 0, wire.stderr
        rows = (wire.cwd / "modules").read_text(encoding="utf-8").splitlines()
        self.files = dict(row.split("\t") for row in rows)
        self.tops = {name.partition(".")[0] for name in self.files}

    def third_party(self) -> set[str]:
        """Top names of what was installed beside the standard library and ourselves."""
        own = {"hanzo_mcp", "__main__"}
        places = ("site-packages", "dist-packages")
        return {
            name.partition(".")[0]
            for name, file in self.files.items()
            if any(place in Path(file).parts for place in places)
        } - own

    def heavy(self) -> set[str]:
        return {name for name in self.files if name in HEAVY_STDLIB or name.partition(".")[0] in HEAVY_STDLIB}


def test_handshake_and_list_load_next_to_nothing() -> None:
    with start() as wire:
        # All in one write, and the end with it: no idle moment in which the engine would start.
        requests = (line("initialize", initialize_params(), "i"), line("tools/list", {}, "l"), line("ping", {}, "p"))
        wire.send(b"".join(requests))
        wire.close_stdin()
        check_reply("initialize", LEGACY, wire.reply("i"))
        check_reply("tools/list", LEGACY, wire.reply("l"))
        loaded = Loaded(wire)
    assert loaded.third_party() == set()
    assert loaded.heavy() == set()
    own = {name for name in loaded.files if name.startswith("hanzo_mcp.")}
    assert not {name for name in own if name.startswith(("hanzo_mcp.tools", "hanzo_mcp.sandbox", "hanzo_mcp.runtime"))}
    assert not {"hanzo_mcp.cli", "hanzo_mcp.app", "hanzo_mcp.server.engine", "hanzo_mcp.demo"} & own


def test_modern_discover_and_list_load_no_more() -> None:
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    with start() as wire:
        wire.send(line("server/discover", {"_meta": meta}, "d") + line("tools/list", {"_meta": meta}, "l"))
        loaded = Loaded(wire)
    assert loaded.third_party() == set()
    assert loaded.heavy() == set()


def test_the_engine_started_by_idle_loads_no_package() -> None:
    with start() as wire, Word(wire.cwd) as word:
        wire.initialize()
        word.processes()
        loaded = Loaded(wire)
    assert "asyncio" in loaded.tops, "the engine did start"
    assert loaded.third_party() == set()
    # asyncio itself brings subprocess and ssl.
    assert not {"email", "http", "ctypes", "argparse"} & {*loaded.files}


def test_the_first_local_call_loads_pydantic_alone() -> None:
    with start() as wire:
        check_reply("tools/call", LEGACY, wire.request("tools/call", THINK))
        loaded = Loaded(wire)
    assert "pydantic" in loaded.tops
    assert not {"httpx", "httpcore", "anyio", "git", "gitdb", "mcp", "mcp_types", "rich", "jsonschema"} & loaded.tops
    assert not {"html_to_markdown", "platformdirs", "certifi"} & loaded.tops
    assert not {name for name in loaded.files if name.startswith("hanzo_mcp.tools.")} - {"hanzo_mcp.tools.think"}


def test_a_command_loads_no_other_tool() -> None:
    with start() as wire:
        assert text(wire.request("tools/call", run("echo hi"))).startswith("hi\n")
        loaded = Loaded(wire)
    assert not {"httpx", "httpcore", "anyio", "git", "gitdb", "mcp", "mcp_types", "rich"} & loaded.tops
    assert not {"hanzo_mcp.tools.git", "hanzo_mcp.tools.fs", "hanzo_mcp.tools.fetch"} & {*loaded.files}


def test_a_forwarded_call_loads_httpx_and_no_tool() -> None:
    with FakeDoor() as door, start(HANZO_MCP_DOOR=door.url, **KEY) as wire:
        check_reply("tools/call", LEGACY, wire.request("tools/call", BILLING), ours=False)
        loaded = Loaded(wire)
    assert "httpx" in loaded.tops
    assert not {"mcp", "mcp_types", "git", "gitdb", "pydantic", "html_to_markdown"} & loaded.tops
    assert not {name for name in loaded.files if name.startswith("hanzo_mcp.tools.")}


def test_the_sdk_and_the_command_line_never_load_in_a_server() -> None:
    with FakeDoor() as door, start(HANZO_MCP_DOOR=door.url, **KEY) as wire:
        wire.initialize()
        for call in (THINK, BILLING, run("true"), {"name": "fs", "arguments": {"op": "list", "path": "."}}):
            check_reply("tools/call", LEGACY, wire.request("tools/call", call), ours=False)
        wire.request("tools/call", {"name": "git", "arguments": {"op": "status"}})
        loaded = Loaded(wire)
    assert not {"mcp", "mcp_types", "argparse", "hypothesis", "pytest"} & loaded.tops
    assert not {"hanzo_mcp.cli", "hanzo_mcp.demo"} & {*loaded.files}
