"""The table 'Behaviour on the wire', rows 23 to 37: calls in flight, ends, children, sizes, floods, both eras."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from fixtures.fake_door import FakeDoor
from tests.support.talk import BILLING, KEY, Json, code, run, silent, start_engine, text, think
from tests.support.validate import check_notification, check_reply
from tests.support.watch import SLEEPER, Watched, Word, peak
from tests.support.wire import LEGACY, MODERN, TIMEOUT, Wire, initialize_params, modern_meta, server_command

MIB = 1 << 20


@contextmanager
def calling(switch: str, **options: Any) -> Generator[tuple[Wire, FakeDoor]]:
    """A server and its door, which answers calls as ``switch`` says."""
    with FakeDoor(switch, **options) as door, Wire(env={"HANZO_MCP_DOOR": door.url, **KEY}) as wire:
        yield wire, door


def at_door(door: FakeDoor, count: int = 1) -> None:
    door.wait_for(lambda door: len(door.called("tools/call")) >= count)


@contextmanager
def sleeping(command: Sequence[str] | None = None) -> Generator[tuple[Wire, list[Watched], Any]]:
    """A server, the processes of a command that runs in it, and the id of the call."""
    with Wire(command=command) as wire, Word(wire.cwd) as word:
        id = wire.post("tools/call", run(SLEEPER))
        yield wire, word.processes(), id


def all_ended(processes: Sequence[Watched]) -> bool:
    return all(process.ended() for process in processes)


def stdout_is_over(wire: Wire) -> list[Any]:
    """What was said and not received, once the server is gone."""
    wire.wait_exit()
    return wire.pending()


# -- 23, 24: cancel, ping


def test_row_23_a_cancelled_command_is_killed_and_never_answered() -> None:
    with sleeping() as (wire, processes, id):
        wire.notify("notifications/cancelled", {"requestId": id, "reason": "enough"})
        assert all_ended(processes)
        silent(wire)
        wire.close_stdin()
        assert stdout_is_over(wire) == []


def test_row_23_a_cancelled_forwarded_call_leaves_the_door_and_is_never_answered() -> None:
    with calling("slow_call") as (wire, door):
        kept, gone = wire.post("tools/call", BILLING, "kept"), wire.post("tools/call", BILLING, "gone")
        at_door(door, 2)
        wire.notify("notifications/cancelled", {"requestId": gone})
        door.wait_for(lambda door: door.departures == 1)
        silent(wire)
        door.release()
        check_reply("tools/call", LEGACY, wire.reply(kept), ours=False)
        wire.close_stdin()
        assert stdout_is_over(wire) == []


def test_row_23_an_id_of_another_type_cancels_nothing() -> None:
    with calling("slow_call") as (wire, door):
        wire.post("tools/call", BILLING, 70)
        at_door(door)
        for other in ("70", 70.0, True, None):
            wire.notify("notifications/cancelled", {"requestId": other})
        silent(wire)
        door.release()
        check_reply("tools/call", LEGACY, wire.reply(70), ours=False)
        assert door.departures == 0


def test_row_23_cancelled_in_the_same_write() -> None:
    with calling("slow_call") as (wire, _):
        call = {"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": BILLING}
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}}
        wire.send((json.dumps(call) + "\n" + json.dumps(cancel) + "\n").encode())
        silent(wire)
        assert think(wire, id="c")


def test_row_23_a_cancelled_member_of_a_batch_leaves_the_others() -> None:
    with calling("slow_call") as (wire, door):
        wire.initialize("2025-03-26")
        ping = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
        wire.send([{"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": BILLING}, ping])
        at_door(door)
        wire.notify("notifications/cancelled", {"requestId": "c"})
        assert wire.recv_any() == [{"jsonrpc": "2.0", "id": "p", "result": {}}]


def test_row_24_a_ping_during_a_long_call_is_answered_first() -> None:
    with calling("slow_call") as (wire, door):
        wire.post("tools/call", BILLING, "slow")
        at_door(door)
        silent(wire)
        door.release()
        check_reply("tools/call", LEGACY, wire.reply("slow"), ours=False)


def test_row_24_a_ping_during_a_command() -> None:
    with sleeping() as (wire, _, _id):
        silent(wire)


# -- 25 to 29: ends


@pytest.mark.parametrize("stage", ["unused", "boot", "engine"])
def test_row_25_end_of_input_when_idle(stage: str) -> None:
    with Wire() as wire:
        if stage != "unused":
            wire.initialize()
        if stage == "engine":
            start_engine(wire)
        wire.close_stdin()
        assert wire.wait_exit() == 0
        assert wire.pending() == []
        assert wire.stderr == ""


def test_row_26_end_of_input_kills_what_still_runs() -> None:
    with sleeping() as (wire, processes, _):
        wire.close_stdin()
        assert wire.wait_exit() == 0
        assert all_ended(processes)
        assert "Traceback" not in wire.stderr


def test_row_26_end_of_input_lets_a_call_finish() -> None:
    with calling("slow_call") as (wire, door):
        id = wire.post("tools/call", BILLING)
        at_door(door)
        wire.close_stdin()
        door.release()
        check_reply("tools/call", LEGACY, wire.reply(id), ours=False)
        assert wire.wait_exit() == 0


def test_row_26_end_of_input_leaves_the_door() -> None:
    with calling("slow_call") as (wire, door):
        wire.post("tools/call", BILLING)
        at_door(door)
        wire.close_stdin()
        assert wire.wait_exit() == 0
        door.wait_for(lambda door: door.departures == 1)
        assert "Traceback" not in wire.stderr


SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@SIGNALS
def test_row_27_a_signal_while_idle(number: signal.Signals) -> None:
    for stage in ("boot", "engine"):
        with Wire() as wire:
            wire.initialize()
            silent(wire)
            if stage == "engine":
                start_engine(wire)
            wire.signal(number)
            assert wire.wait_exit() in (128 + number, -number), stage
            assert wire.stderr == ""


@SIGNALS
def test_row_27_a_signal_kills_children(number: signal.Signals) -> None:
    with sleeping() as (wire, processes, _):
        wire.signal(number)
        assert wire.wait_exit() == 128 + number
        assert all_ended(processes)
        assert "Traceback" not in wire.stderr


THREADED_INPUT = """
from hanzo_mcp.server.input import Input
def refuse(self):
    raise NotImplementedError
Input.resume = refuse
from hanzo_mcp.serve import serve
serve([])
"""


@SIGNALS
def test_row_27_a_signal_while_a_thread_blocks_in_stdin(number: signal.Signals) -> None:
    with sleeping([sys.executable, "-P", "-c", THREADED_INPUT]) as (wire, processes, _):
        wire.signal(number)
        assert wire.wait_exit() == 128 + number
        assert all_ended(processes)


PARENT = """
import os, subprocess, sys
server = subprocess.Popen(sys.argv[1:])
with open("word", "w") as word:
    word.write(f"{server.pid}\\n")
server.wait()
"""


def _claimed(server: Watched) -> None:
    """Wait until the server knows who its parent is: it takes its descriptors after that."""
    deadline = time.monotonic() + TIMEOUT
    while os.readlink(f"/proc/{server.pid}/fd/0") != os.devnull:
        assert time.monotonic() < deadline


@pytest.mark.parametrize("stage", ["unused", "boot", "engine"])
def test_row_28_a_dead_parent_is_noticed(tmp_path: Path, stage: str) -> None:
    with Word(tmp_path) as word, Wire(command=[sys.executable, "-c", PARENT, *server_command()], cwd=tmp_path) as wire:
        (server,) = word.processes()
        if stage == "unused":
            _claimed(server)
        else:
            wire.initialize()
        if stage == "engine":
            start_engine(wire)
        wire.signal(signal.SIGKILL)
        assert server.ended(3), "the server outlives its client"


def test_row_28_a_dead_parent_ends_the_children(tmp_path: Path) -> None:
    with Word(tmp_path) as word, Wire(command=[sys.executable, "-c", PARENT, *server_command()], cwd=tmp_path) as wire:
        servers = word.processes()
        wire.post("tools/call", run(SLEEPER))
        children = word.processes()
        wire.signal(signal.SIGKILL)
        assert all_ended([*servers, *children])


@pytest.mark.parametrize("stage", ["boot", "engine"])
def test_row_29_a_closed_stdout_is_a_quiet_exit(stage: str) -> None:
    with Wire() as wire:
        wire.initialize()
        if stage == "engine":
            start_engine(wire)
        wire.close_stdout()
        wire.post("tools/list")
        assert wire.wait_exit() == 0
        assert wire.stderr == ""


def test_row_29_a_closed_stdout_kills_children() -> None:
    with sleeping() as (wire, processes, _):
        wire.close_stdout()
        wire.post("ping")
        assert wire.wait_exit() == 0
        assert all_ended(processes)
        assert "Traceback" not in wire.stderr


# -- 30, 31: whose are the descriptors


STRAY = """
import os, subprocess, sys, warnings
import hanzo_mcp.tools.think as think
line = think._line
def stray(*args):
    print("stray print")
    sys.stdout.write("stray write\\n"); sys.stdout.flush()
    os.write(1, b"stray descriptor\\n")
    os.system("echo stray child; cat")
    subprocess.run(["sh", "-c", "echo stray subprocess; cat"])
    import ctypes
    libc = ctypes.CDLL(None); libc.puts(b"stray library"); libc.fflush(None)
    warnings.warn("stray warning")
    return line(*args)
think._line = stray
from hanzo_mcp.serve import serve
serve([])
"""


def test_row_30_stray_output_lands_on_stderr() -> None:
    with Wire(command=[sys.executable, "-P", "-c", STRAY], args=()) as wire:
        wire.initialize()
        think(wire)
        silent(wire)
        wire.close_stdin()
        assert stdout_is_over(wire) == []
        for word in ("print", "write", "descriptor", "child", "subprocess", "library", "warning"):
            assert f"stray {word}" in wire.stderr


def test_row_31_a_child_that_reads_stdin_eats_no_protocol_byte() -> None:
    with Wire() as wire:
        pings = [{"jsonrpc": "2.0", "id": id, "method": "ping"} for id in range(60)]
        call = {"jsonrpc": "2.0", "id": "cat", "method": "tools/call", "params": run("cat; read x; echo over=$x")}
        wire.send("".join(json.dumps(message) + "\n" for message in [*pings[:20], call, *pings[20:]]).encode())
        for ping in pings:
            check_reply("ping", LEGACY, wire.reply(ping["id"]))
        assert text(wire.reply("cat")).startswith("over=\n")


def test_row_31_a_child_that_runs_beside_pings_eats_none() -> None:
    with Wire() as wire, Word(wire.cwd) as word:
        id = wire.post("tools/call", run("echo $$ > word; cat; cat <&1; sleep 300"))
        word.processes()
        for _ in range(60):
            silent(wire)
        wire.notify("notifications/cancelled", {"requestId": id})
        silent(wire)


# -- 32, 33: sizes


@pytest.mark.parametrize("stage", ["boot", "engine"])
def test_row_32_long_lines_are_processed(stage: str) -> None:
    with Wire() as wire:
        if stage == "engine":
            start_engine(wire)
        for id, size in enumerate((64 << 10, MIB, 16 * MIB), 1):
            wire.send(b'{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"pad":"%b"}}\n' % (id, b"x" * size))
            check_reply("ping", LEGACY, wire.reply(id))
        assert think(wire, "y" * MIB)


@pytest.mark.parametrize("stage", ["boot", "engine"])
def test_row_32_a_line_beyond_the_cap_is_refused_and_skipped(stage: str) -> None:
    with Wire() as wire:
        if stage == "engine":
            start_engine(wire)
        silent(wire)
        before = peak(wire.pid)
        for start, answered in (
            (b'{"jsonrpc":"2.0","id":"big","method":"ping","params":{"pad":"', True),
            (b"{", False),
        ):
            wire.send(start)
            for _ in range(96):
                wire.send(b"a" * MIB)
            wire.send(b'"}}\n')
            if answered:
                assert code(wire.reply("big")) == -32600
            silent(wire)
        assert peak(wire.pid) - before < 100 * MIB
        assert think(wire)


@pytest.mark.parametrize("stage", ["boot", "engine"])
def test_row_33_deep_nesting_is_refused(stage: str) -> None:
    with Wire() as wire:
        if stage == "engine":
            start_engine(wire)
        for depth in (300, 10_000, 100_000):
            deep = "[" * depth + "]" * depth
            objects = '{"a":' * depth + "1" + "}" * depth
            for value in (deep, objects):
                wire.send(f'{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"a":{value}}}}}\n'.encode())
                assert code(wire.reply(7)) == -32600
            wire.send(deep.encode() + b"\n" + b"[" * depth + b"\n" + b'{"a":' * depth + b"\n")
            silent(wire)
        silent(wire)
        assert think(wire, "[{" * 50_000)["content"], "brackets in a string nest nothing"


# -- 34 to 37


def test_row_34_progress_keeps_the_type_of_its_token() -> None:
    tokens: list[Any] = [0, "a", "", 2**60]
    eras: list[tuple[Json, str]] = [({}, LEGACY), (modern_meta(), MODERN)]
    with calling("sse", progress=3) as (wire, _):
        for token, (meta, version) in product(tokens, eras):
            id = wire.post("tools/call", {**BILLING, "_meta": {**meta, "progressToken": token}})
            heard: list[Json] = []
            while "result" not in (message := wire.recv()):
                heard.append(check_notification(version, message))
            assert message["id"] == id
            assert [json.dumps(params["progressToken"]) for params in heard] == [json.dumps(token)] * 3
            rising = [params["progress"] for params in heard]
            assert rising == sorted(set(rising))
        silent(wire)
        wire.close_stdin()
        assert stdout_is_over(wire) == []


def test_row_34_no_token_no_progress() -> None:
    with calling("sse", progress=3) as (wire, _):
        id = wire.post("tools/call", BILLING)
        assert wire.recv()["id"] == id


def test_row_35_a_thousand_calls_in_one_write() -> None:
    with Wire() as wire:
        calls = [("tools/call", {"name": "think", "arguments": {"thought": str(id)}}) for id in range(1000)]
        lines = [json.dumps({"jsonrpc": "2.0", "id": id, "method": m, "params": p}) for id, (m, p) in enumerate(calls)]
        wire.send(("\n".join(lines) + "\n").encode())
        replies = [wire.recv() for _ in calls]
        assert sorted(reply["id"] for reply in replies) == list(range(1000))
        assert all("isError" not in reply["result"] for reply in replies)
        silent(wire)


def test_row_35_a_thousand_forwarded_calls_are_bounded() -> None:
    with calling("slow_call") as (wire, door):
        line = '{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{}}}\n'
        ids = range(1000, 2000)
        wire.send("".join(line.format(id, json.dumps(BILLING)) for id in ids).encode())
        at_door(door, 16)
        silent(wire)
        door.release()
        assert sorted(wire.recv()["id"] for _ in ids) == list(ids)
        assert len(door.called("tools/call")) == 1000
        assert door.connections <= 512


@pytest.mark.parametrize("stage", ["boot", "engine"])
@pytest.mark.parametrize("method", ["ping", "tools/call"])
def test_row_36_an_unterminated_last_line(stage: str, method: str) -> None:
    params = {"name": "think", "arguments": {"thought": "x"}}
    with Wire() as wire:
        if stage == "engine":
            start_engine(wire)
        wire.send(json.dumps({"jsonrpc": "2.0", "id": "last", "method": method, "params": params}).encode())
        wire.close_stdin()
        check_reply(method, LEGACY, wire.reply("last"))
        assert wire.wait_exit() == 0


def test_row_37_legacy_modern_legacy_on_one_process() -> None:
    think_x = {"name": "think", "arguments": {"thought": "x"}}
    with Wire() as wire:
        for _ in range(2):
            check_reply("initialize", "2025-06-18", wire.request("initialize", initialize_params("2025-06-18")))
            check_reply("tools/list", "2025-06-18", wire.request("tools/list"))
            check_reply("tools/call", "2025-06-18", wire.request("tools/call", think_x))
            check_reply("server/discover", MODERN, wire.modern("server/discover"))
            check_reply("tools/list", MODERN, wire.modern("tools/list"))
            check_reply("tools/call", MODERN, wire.modern("tools/call", think_x))
            check_reply("ping", "2025-06-18", wire.request("ping"))
            assert code(wire.modern("ping"), MODERN) == -32601


def test_row_37_both_eras_in_flight_at_once() -> None:
    with calling("slow_call") as (wire, door):
        old = wire.post("tools/call", BILLING)
        new = wire.post("tools/call", {**BILLING, "_meta": modern_meta()})
        at_door(door, 2)
        door.release()
        check_reply("tools/call", LEGACY, wire.reply(old), ours=False)
        check_reply("tools/call", MODERN, wire.reply(new), ours=False)
