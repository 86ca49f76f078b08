"""The bench's driver, endpoint and tables work. Nothing here looks at a clock."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator

import pytest
from rich.console import Console

from bench import load, messages, proc, report, spread, startup, tables
from bench.__main__ import main
from bench.contenders import ASYNCIO, BLOCKING, OURS, PEERS, SDK, contenders, place
from bench.doorstates import STATES
from bench.doorstates import Starts as DoorStarts
from bench.driver import Server, ServerFailed
from bench.endpoint import Endpoint
from bench.forwarding import Bare, Burst, Forwarding, Way, hold

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the bench reads /proc and waits on pidfds")

ECHO = (sys.executable, str(PEERS / "blocking_echo.py"))


@pytest.fixture
def echo() -> Iterator[Server]:
    """The blocking echo, up and introduced."""
    with place() as where, where.spawn(ECHO) as server:
        startup.opened(server)
        yield server


def test_handshake_and_call() -> None:
    with place() as where, where.spawn(ECHO) as server:
        initialized, listed = startup.opened(server)
        _, result = server.ask(messages.think("one"), "one")
        assert result == {"content": [{"type": "text", "text": messages.THOUGHT}]}
        assert 0 < initialized < listed
        assert server.leave() > 0


@pytest.mark.parametrize("in_flight", [1, 16, 700])
def test_flood_answers_every_call(echo: Server, in_flight: int) -> None:
    """700 calls are more than a pipe holds: writing must not wait for the server alone."""
    flood = echo.flood(messages.think, 700, in_flight, 60)
    assert len(flood.latencies) == 700
    assert flood.errors == []
    assert min(flood.latencies) > 0


def test_flood_stops_sending_when_its_time_is_up(echo: Server) -> None:
    assert len(echo.flood(messages.think, 100, 4, 0).latencies) == 4


def test_flood_collects_errors(echo: Server) -> None:
    flood = echo.flood(lambda number: messages.line({"id": number, "method": "no/such"}), 3, 2, 60)
    assert [error.count("-32601") for error in flood.errors] == [1, 1, 1]


def test_a_server_that_ends_is_reported_with_its_stderr() -> None:
    dying = (sys.executable, "-c", "import sys; sys.exit('no such thing')")
    with place() as where, where.spawn(dying) as server, pytest.raises(ServerFailed, match="no such thing"):
        startup.opened(server)


def test_an_error_reply_is_not_a_result(echo: Server) -> None:
    with pytest.raises(ServerFailed, match="-32601"):
        echo.ask(messages.line({"id": 1, "method": "no/such"}), 1)


def test_pings_beside_a_slow_call(echo: Server) -> None:
    def slow(number: int | str) -> bytes:
        return messages.call(number, "think", {"thought": "", "seconds": 0.01})

    assert load.pings_beside(echo, slow)


def test_memory_and_cpu_of_a_process(echo: Server) -> None:
    assert list(proc.family(echo.pid)) == [echo.pid]
    assert proc.rss(echo.pid) > 1
    before = proc.cpu(echo.pid)
    echo.flood(messages.think, 50, 1, 60)
    assert proc.cpu(echo.pid) > before


def test_memory_counts_children() -> None:
    parent = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]])"
    with place() as where, where.spawn((sys.executable, "-c", parent, ECHO[1])) as server:
        startup.opened(server)
        assert len(list(proc.family(server.pid))) == 2


def test_endpoint_answers_and_counts() -> None:
    with Endpoint() as endpoint:
        bare = Bare(endpoint.url)
        try:
            assert len(bare.one_by_one([hold(number, 0) for number in range(3)])) == 3
            assert len(bare.at_once([hold(number, 20) for number in range(5)])) == 5
            assert endpoint.stats() == (8, 5)
            assert endpoint.stats() == (0, 0)
        finally:
            bare.close()


@pytest.mark.parametrize("state", ["redirect", "dead"])
def test_endpoint_keeps_its_port_through_its_states(state: str) -> None:
    import httpx

    with Endpoint() as endpoint:
        endpoint.switch(state)
        if state == "dead":
            with pytest.raises(httpx.ConnectError):
                httpx.post(endpoint.url, content=hold(1, 0), trust_env=False)
        else:
            assert httpx.post(endpoint.url, content=hold(1, 0), trust_env=False).status_code == 302
        endpoint.switch("ok")
        assert httpx.post(endpoint.url, content=hold(1, 0), trust_env=False).json()["id"] == 1


def test_ours_can_be_another_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANZO_BENCH_COMMAND", "other 'two words'")
    assert [one.name for one in contenders()] == [OURS, ASYNCIO, BLOCKING, SDK]
    assert contenders()[0].command == ("other", "two words")


def test_a_broken_server_ends_the_bench_with_its_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HANZO_BENCH_COMMAND", f"{sys.executable} -c \"import sys; sys.exit('broken here')\"")
    assert main(["--quick", "--only", "start"]) == 1
    assert "broken here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("share", "expected"), [(0, 1), (0.5, 2), (0.51, 3), (0.99, 4), (1, 4)], ids=["min", "p50", "p51", "p99", "max"]
)
def test_nearest_rank(share: float, expected: float) -> None:
    assert spread.rank([3, 1, 4, 2], share) == expected


@pytest.mark.parametrize(
    ("value", "text"), [(0.0512, "0.05"), (9.996, "10.0"), (24.06, "24.1"), (99.96, "100"), (43210.9, "43,211")]
)
def test_three_digits(value: float, text: str) -> None:
    assert spread.short(value) == text


def starts_of(seconds: float, mebibytes: float) -> startup.Starts:
    """Equal samples throughout."""
    times = [seconds, seconds, seconds]
    sizes = [mebibytes]
    return startup.Starts(times, times, [seconds / 100], times, sizes, times, times, sizes, times, times, sizes, times)


def test_table_of_starts_judges_ours() -> None:
    samples = {OURS: starts_of(0.060, 24), ASYNCIO: starts_of(0.050, 19), BLOCKING: starts_of(0.02, 10)}
    table = tables.starts({**samples, SDK: starts_of(0.600, 64)})
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["spawn → initialize reply, ms"] == [
        "60.0 (60.0-60.0)",
        "50.0 (50.0-50.0)",
        "20.0 (20.0-20.0)",
        "600 (600-600)",
        "1.20x",
        "0.10x",
        "≤ 1x asyncio (aim 50)",
        "short",
    ]
    assert rows["RSS on the list, MiB"][-1] == "ok"
    assert rows["end of input → exit, after a call, ms"][-1] == "short"
    assert rows["CPU time to the list, ms"][-2:] == ["", ""]


def loads_of(latency: float) -> load.Loads:
    """Ten calls at each level."""
    levels = {count: load.Level([latency] * 10, 10 * latency / count, latency) for count in load.IN_FLIGHT}
    return load.Loads(levels, [latency], 20.0)


def test_table_of_calls_judges_ours() -> None:
    samples = {OURS: loads_of(0.0002), ASYNCIO: loads_of(0.0001), BLOCKING: loads_of(0.00005), SDK: loads_of(0.0007)}
    rows = {row[0]: row[1:] for row in tables.loads(samples).rows}
    assert rows["think, 1 in flight, ms"][0] == "0.20 / 0.20"
    assert rows["think, 1 in flight, ms"][-1] == "ok"
    assert rows["think, 256 in flight, calls/s"][-1] == "short"
    assert rows["ping while a call takes 1 s, ms"][-1] == "ok"


def test_table_of_forwarding_judges_ours() -> None:
    samples = Forwarding(
        through=Way([0.0025], 0.001, {500: Burst([0.5], [0.5], 500, 1, 499, 100)}),
        bare=Way([0.001], 0.001, {500: Burst([0.4], [0.4], 500, 0, 500, 100)}),
    )
    rows = {row[0]: row[1:] for row in tables.forwarding(samples).rows}
    assert rows["one at a time, p50, ms"] == ["2.50", "1.00", "1.50", "2.50x", "added ≤ 1", "short"]
    assert rows["500 at once, held 500 ms: lost"][0] == "1 of 500, 499 served"
    assert rows["500 at once, held 500 ms: lost"][-1] == "short"


def test_table_of_door_states_judges_ours() -> None:
    same = [0.05]
    samples = {state: DoorStarts(same, same, [0.01], same, [0.01]) for state in STATES}
    samples["hang"] = DoorStarts(same, same, [0.01], [9.0], [0.01])
    assert [row[-1] for row in tables.states(samples).rows] == ["ok", "ok", "short", "ok", "ok", "ok"]


def test_markdown_and_terminal_show_every_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    table = report.Table("Title", ("figure", "a|b", ""), note="A note.")
    table.add("row [x]", "1", "ok")
    assert report.markdown([table]) == (
        "## Title\n\nA note.\n\n| figure | a&#124;b |  |\n| --- | ---: | ---: |\n| row [x] | 1 | ok |\n"
    )
    console = Console(width=120, record=True, file=io.StringIO())
    monkeypatch.setattr("rich.console.Console", lambda: console)
    report.show("Header", [table])
    shown = console.export_text()
    assert all(text in shown for text in ("Header", "Title", "A note.", "figure", "a|b", "row [x]", "ok"))


def test_a_row_must_fill_its_table() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        report.Table("Title", ("a", "b")).add("x")
