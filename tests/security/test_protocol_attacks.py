"""What a hostile or broken client can do on the wire, row by row of the attack corpus (area protocol)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fixtures.fake_door import FakeDoor
from tests.support.talk import BILLING, KEY, code, run, silent, text, think
from tests.support.validate import check_reply
from tests.support.watch import SLEEPER, Word, peak
from tests.support.wire import LEGACY, Wire

ATTACKS = Path(__file__).parents[2] / "fixtures" / "attacks" / "protocol.jsonl"
MIB = 1 << 20


def oversize_line(home: Path) -> None:
    """200 MB without a newline: memory stays bounded by the cap of 32 MiB, the next line is read again."""
    with Wire() as wire:
        for start in (b"{", b'{"jsonrpc":"2.0","id":"big","method":"'):
            silent(wire)
            before = peak(wire.pid)
            wire.send(start)
            for _ in range(100):
                wire.send(b"a" * (2 * MIB))
            assert peak(wire.pid) - before < 100 * MIB
            wire.send(b"\n")
            if b"big" in start:
                assert code(wire.reply("big")) == -32600
            silent(wire)
        assert len(wire.stderr.splitlines()) == 2
        assert think(wire)


def oversize_line_without_end(home: Path) -> None:
    """The same, and the client leaves in the middle of it."""
    with Wire() as wire:
        for _ in range(100):
            wire.send(b"a" * (2 * MIB))
        assert peak(wire.pid) < 160 * MIB
        wire.close_stdin()
        assert wire.wait_exit() == 0
        assert wire.pending() == []


def bad_utf8_and_surrogates(home: Path) -> None:
    surrogate = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fs",'
        b'"arguments":{"action":"read","path":"\\ud800"}}}\n'
    )
    with Wire() as wire:
        wire.send(b"\xff\xfe\xc0\xaf\xed\xa0\x80\n\x00\n" + surrogate)
        assert check_reply("tools/call", LEGACY, wire.reply(1))["isError"] is True
        wire.send(surrogate.replace(b"action", b"op"))
        assert check_reply("tools/call", LEGACY, wire.reply(1))["isError"] is True
        for method in (b"\\udfff", b"tools/\xed\xa0\x80"):
            wire.send(b'{"jsonrpc":"2.0","id":"\\udc80","method":"' + method + b'"}\n')
            assert code(wire.reply("\udc80")) == -32601
        wire.send(b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"\\ud800"}}\n')
        assert code(wire.reply(2)) == -32602
        assert wire.raw.isascii()
        silent(wire)


STRAY = """
import ctypes, os, subprocess, sys, warnings
def noise(where):
    print(f"{where}: print")
    sys.stdout.write(f"{where}: write\\n"); sys.stdout.flush()
    os.write(1, f"{where}: descriptor\\n".encode())
    subprocess.run(["sh", "-c", f"echo {where}: child; echo {where}: child >&2"])
    libc = ctypes.CDLL(None); libc.puts(f"{where}: library".encode()); libc.fflush(None)
    warnings.warn(f"{where}: warning")
import hanzo_mcp.tools.think as think
from hanzo_mcp.server import handshake
line, listed = think._line, handshake.Handshake.tools_list
def noisy_line(*args):
    noise("handler")
    return line(*args)
def noisy_list(*args):
    noise("boot")
    return listed(*args)
think._line, handshake.Handshake.tools_list = noisy_line, noisy_list
from hanzo_mcp.serve import serve
serve([])
"""


def stdout_purity(home: Path) -> None:
    with Wire(command=[sys.executable, "-P", "-c", STRAY], args=()) as wire:
        wire.request("tools/list")
        think(wire)
        wire.request("tools/call", run("echo of a command; echo of a command >&2; echo x >/proc/self/fd/0"))
        silent(wire)
        wire.close_stdin()
        wire.wait_exit()
        assert wire.pending() == []
        for kind in ("print", "write", "descriptor", "child", "library", "warning"):
            assert f"boot: {kind}" in wire.stderr
            assert f"handler: {kind}" in wire.stderr


def prompt_without_prompter(home: Path) -> None:
    (home / ".config" / "hanzo").mkdir(parents=True)
    (home / ".config" / "hanzo" / "settings.json").write_text('{"permissions": {"exec.run": "prompt"}}')
    with Wire(env={"HOME": str(home)}) as wire:
        mark = wire.cwd / "mark"
        wire.initialize()
        for call in (
            run(f"touch {mark}"),
            {"name": "exec", "arguments": {"command": f"touch {mark}"}},
            {"name": "exec", "arguments": {"op": "run", "input": {"argv": ["touch", str(mark)]}}},
        ):
            for ask in (wire.request, wire.modern):
                reply = ask("tools/call", call)
                assert reply["result"]["isError"] is True, call
                assert '"exec.run": "allow"' in text(reply)
                assert "settings.json" in text(reply)
        silent(wire)
        assert not mark.exists()


def prompt_answered_with_no(home: Path) -> None:
    """Whatever is no clear yes is a no; a clear yes runs it, once."""
    (home / ".config" / "hanzo").mkdir(parents=True)
    (home / ".config" / "hanzo" / "settings.json").write_text('{"permissions": {"exec.run": "prompt"}}')
    yes: dict[str, Any] = {"result": {"action": "accept", "content": {"allow": True}}}
    refusals: list[dict[str, Any]] = [
        {"result": {"action": "decline"}},
        {"result": {"action": "cancel"}},
        {"result": {"action": "accept"}},
        {"result": {"action": "accept", "content": {"allow": False}}},
        {"result": {"action": "accept", "content": {"allow": "true"}}},
        {"result": {"action": "accept", "content": None}},
        {"result": {"action": "accept", "content": [1]}},
        {"result": {"action": "accept", "content": "allow"}},
        {"result": None},
        {"error": {"code": -1, "message": "no"}},
        {"error": "no"},
    ]
    with Wire(env={"HOME": str(home)}) as wire:
        mark = wire.cwd / "mark"
        wire.initialize(elicitation={})
        for answer in [*refusals, yes]:
            assert not mark.exists()
            id = wire.post("tools/call", run(f"touch {mark}"))
            asked = wire.recv()
            assert asked["method"] == "elicitation/create"
            assert str(mark) in asked["params"]["message"]
            wire.send({"jsonrpc": "2.0", "id": asked["id"], **answer})
            reply = wire.reply(id)
            assert reply.get("result", {}).get("isError", False) is (answer is not yes), (answer, reply)
        assert mark.exists()


def flood(home: Path) -> None:
    """A thousand calls among garbage, duplicates, unknown cancellations and a batch, before any handshake."""
    with FakeDoor("slow_call") as door, Wire(env={"HANZO_MCP_DOOR": door.url, **KEY}) as wire:
        lines: list[Any] = []
        for number in range(1000):
            call = BILLING if number % 10 == 0 else {"name": "think", "arguments": {"thought": "x"}}
            lines.append({"jsonrpc": "2.0", "id": f"n{number}", "method": "tools/call", "params": call})
        lines[1:1] = [{**lines[0], "method": "ping"}, lines[0]]
        noise: list[Any] = [
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "never"}},
            [{"jsonrpc": "2.0", "id": "batched", "method": "ping"}],
            {"jsonrpc": "2.0", "method": "notifications/nothing", "params": {}},
            {"jsonrpc": "2.0", "id": None, "method": "tools/list"},
        ]
        for place, item in zip(range(7, 1000, 40), noise * 6, strict=False):
            lines.insert(place, item)
        wire.send("".join(json.dumps(line) + "\n" for line in lines).encode())
        door.wait_for(lambda door: len(door.called("tools/call")) >= 16)
        door.release()
        # Six refused ids (null), two duplicates of n0, and each of the thousand exactly once.
        replies = [wire.recv() for _ in range(1000 + 6 + 2)]
        silent(wire)
        refused = [reply for reply in replies if reply["id"] is None]
        assert [code(reply) for reply in refused] == [-32600] * 6
        doubled = [reply for reply in replies if reply["id"] == "n0"]
        assert sorted("error" in reply for reply in doubled) == [False, True, True]
        assert {code(reply) for reply in doubled if "error" in reply} == {-32600}
        answered = [reply["id"] for reply in replies if "result" in reply]
        assert sorted(answered) == sorted(f"n{number}" for number in range(1000))
        assert len(door.called("tools/call")) == 100
        wire.close_stdin()
        assert wire.wait_exit() == 0


def broken_pipe(home: Path) -> None:
    with FakeDoor("slow_call") as door, Wire(env={"HANZO_MCP_DOOR": door.url, **KEY}) as wire, Word(wire.cwd) as word:
        for _ in range(20):
            wire.post("tools/call", BILLING)
        wire.post("tools/call", run(SLEEPER))
        children = word.processes()
        door.wait_for(lambda door: len(door.called("tools/call")) >= 10)
        wire.close_stdout()
        door.release()
        assert wire.wait_exit() == 0
        assert all(child.ended() for child in children)
        assert "Traceback" not in wire.stderr
        assert len(wire.stderr.splitlines()) <= 1


PROOFS: dict[str, tuple[Callable[[Path], None], ...]] = {
    "protocol-01-oversize-line": (oversize_line, oversize_line_without_end),
    "protocol-03-bad-utf8-surrogate": (bad_utf8_and_surrogates,),
    "protocol-04-stdout-purity": (stdout_purity,),
    "protocol-05-prompt-without-prompter": (prompt_without_prompter, prompt_answered_with_no),
    "protocol-08-flood": (flood,),
    "protocol-09-broken-pipe": (broken_pipe,),
}


def test_every_row_has_a_proof() -> None:
    rows = [json.loads(line) for line in ATTACKS.read_text(encoding="utf-8").splitlines()]
    assert {row["id"] for row in rows} == set(PROOFS)
    assert {row["area"] for row in rows} == {"protocol"}


@pytest.mark.parametrize(
    "proof",
    [pytest.param(proof, id=f"{row}:{proof.__name__}") for row, proofs in PROOFS.items() for proof in proofs],
)
def test_attack(proof: Callable[[Path], None], tmp_path: Path) -> None:
    proof(tmp_path)
