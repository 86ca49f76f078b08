"""Samples -> tables, each figure beside what is wanted of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bench import doorstates, load, startup
from bench.contenders import ASYNCIO, BLOCKING, OURS, SDK
from bench.forwarding import BURST, Forwarding
from bench.report import Table, verdict
from bench.spread import p50, p99, short

S = TypeVar("S")
NAMES = (OURS, ASYNCIO, BLOCKING, SDK)
COLUMNS = ("figure", *NAMES, "ours ÷ asyncio", "ours ÷ SDK", "wanted", "")
_MS = 1e3
_US = 1e6


@dataclass(frozen=True, slots=True)
class Figure:
    """What a cell shows and the number that ratios are made of."""

    text: str
    value: float


def spread(samples: Sequence[float], scale: float = _MS) -> Figure:
    """``p50 (min-max)``; the value is the p50."""
    low, middle, high = (value * scale for value in (min(samples), p50(samples), max(samples)))
    return Figure(f"{short(middle)} ({short(low)}-{short(high)})", middle)


def tail(samples: Sequence[float], scale: float = _MS) -> Figure:
    """``p50 / p99``; the value is the p50."""
    middle, high = p50(samples) * scale, p99(samples) * scale
    return Figure(f"{short(middle)} / {short(high)}", middle)


def single(value: float) -> Figure:
    """One number."""
    return Figure(short(value), value)


def ratio(one: float, other: float) -> str:
    """``2.1x``."""
    return f"{short(one / other)}x"


class Side(Table):
    """A table of the four servers."""

    def figure(
        self,
        label: str,
        samples: Mapping[str, S],
        of: Callable[[S], Figure],
        wanted: str = "",
        met: Callable[[dict[str, float]], bool] | None = None,
    ) -> None:
        """A row: the figure of each server, the ratios, and whether ours is as wanted."""
        figures = {name: of(samples[name]) for name in NAMES}
        values = {name: figure.value for name, figure in figures.items()}
        self.add(
            label,
            *(figures[name].text for name in NAMES),
            ratio(values[OURS], values[ASYNCIO]),
            ratio(values[OURS], values[SDK]),
            wanted,
            verdict(met(values) if met else None),
        )


def starts(samples: Mapping[str, startup.Starts]) -> Table:
    """Spawn to reply, memory, exit."""
    table = Side("Start, memory, exit", COLUMNS, note="p50 (min-max); MiB are VmRSS of the process and its children.")
    add = table.figure

    def below(limit: float) -> Callable[[dict[str, float]], bool]:
        return lambda values: values[OURS] <= limit

    add(
        "spawn → initialize reply, ms",
        samples,
        lambda one: spread(one.initialize),
        "≤ 1x asyncio (aim 50)",
        lambda values: values[OURS] <= values[ASYNCIO],
    )
    add("spawn → tools/list reply, ms", samples, lambda one: spread(one.listed))
    add("initialize reply → tools/list reply, ms", samples, lambda one: spread(one.list_alone), "≤ 5", below(5))
    add("CPU time to the list, ms", samples, lambda one: spread(one.cpu))
    add("spawn → first call's reply, called at once, ms", samples, lambda one: spread(one.called))
    add("first call after 1 s of rest, ms", samples, lambda one: spread(one.idle_call))
    add(
        "ping at most 5 ms after that call was sent, ms",
        samples,
        lambda one: spread(one.idle_ping),
        "< 10",
        lambda values: values[OURS] < 10,
    )
    add("RSS on the list, MiB", samples, lambda one: spread(one.rss, 1), "≤ 25", below(25))
    add("RSS after 1 s of rest, MiB", samples, lambda one: spread(one.rss_idle, 1), "≤ 25", below(25))
    add("RSS after the first call, MiB", samples, lambda one: spread(one.rss_called, 1))
    add("end of input → exit, after the list, ms", samples, lambda one: spread(one.exit_listed), "< 50", below(50))
    add("end of input → exit, after a call, ms", samples, lambda one: spread(one.exit_called), "< 50", below(50))
    return table


def loads(samples: Mapping[str, load.Loads]) -> Table:
    """Calls of ``think`` and pings."""
    table = Side("Calls", COLUMNS, note="Latency is p50 / p99. More is better for calls/s, less for everything else.")
    for in_flight in load.IN_FLIGHT:
        _level(table, samples, in_flight)
    table.figure(
        "ping while a call takes 1 s, ms",
        samples,
        lambda one: tail(one.pings),
        "p99 < 10",
        lambda _: p99(samples[OURS].pings) * _MS < 10,
    )
    table.figure("RSS after all calls, MiB", samples, lambda one: single(one.rss))
    return table


def _level(table: Side, samples: Mapping[str, load.Loads], in_flight: int) -> None:
    many = in_flight > 1
    table.figure(
        f"think, {in_flight} in flight, ms",
        samples,
        lambda one: tail(one.levels[in_flight].latencies),
        "" if many else "p50 ≤ 3x asyncio",
        None if many else lambda values: values[OURS] <= 3 * values[ASYNCIO],
    )
    table.figure(
        f"think, {in_flight} in flight, calls/s",
        samples,
        lambda one: single(one.levels[in_flight].per_second),
        "≥ 5x SDK" if many else "",
        (lambda values: values[OURS] >= 5 * values[SDK]) if many else None,
    )
    table.figure(
        f"think, {in_flight} in flight, CPU of the server per call, µs",
        samples,
        lambda one: single(one.levels[in_flight].cpu_per_call * _US),
    )


def forwarding(samples: Forwarding) -> Table:
    """The cloud endpoint through us and without us."""
    table = Table(
        "Door: a forwarded call beside a bare httpx POST",
        ("figure", "through hanzo-mcp", "bare httpx", "added", "ratio", "wanted", ""),
        note="Latency is p50 / p99. The endpoint is local and answers at once unless told to hold a call.",
    )
    through, bare = samples.through, samples.bare
    for label, of, limit in (("p50", p50, 1.0), ("p99", p99, None)):
        ours, theirs = of(through.latencies) * _MS, of(bare.latencies) * _MS
        met = None if limit is None else ours - theirs <= limit
        wanted = "" if limit is None else "added ≤ 1"
        added = short(ours - theirs)
        table.add(
            f"one at a time, {label}, ms", short(ours), short(theirs), added, ratio(ours, theirs), wanted, verdict(met)
        )
    ours, theirs = (way.cpu / len(way.latencies) * _US for way in (through, bare))
    used = [short(value) for value in (ours, theirs, ours - theirs)]
    table.add("one at a time, CPU of the server or poster per call, µs", *used, ratio(ours, theirs), "", "")
    table.add("RSS with the list fetched, MiB", short(samples.rss), "", "", "", "≤ 25", verdict(samples.rss <= 25))
    for milliseconds in through.bursts:
        _burst_rows(table, samples, milliseconds)
    return table


def _burst_rows(table: Table, samples: Forwarding, milliseconds: int) -> None:
    through, bare = samples.through.bursts[milliseconds], samples.bare.bursts[milliseconds]
    label = f"{BURST} at once, held {milliseconds} ms"
    ours, theirs = spread(through.totals), spread(bare.totals)
    added = short(ours.value - theirs.value)
    table.add(f"{label}: total, ms", ours.text, theirs.text, added, ratio(ours.value, theirs.value), "", "")
    table.add(f"{label}: latency, ms", tail(through.latencies).text, tail(bare.latencies).text, "", "", "", "")
    table.add(f"{label}: open at the endpoint", str(through.at_once), str(bare.at_once), "", "", "", "")
    lost = through.lost + abs(through.sent - through.served)
    counted = [f"{way.lost} of {way.sent}, {way.served} served" for way in (through, bare)]
    table.add(f"{label}: lost", *counted, "", "", "0, all served once", verdict(lost == 0))


def states(samples: Mapping[str, doorstates.Starts]) -> Table:
    """Starts by what the endpoint does."""
    table = Table(
        "Door: start-up by what the endpoint does",
        ("door", "initialize", "÷ off", "list, warm", "÷ off", "exit, warm", "first list ever", "exit, first", ""),
        note="p50 (min-max) in ms since the spawn, exit since the end of input. Warm: its list is in the cache and "
        "stale. The ratios are of the minimum, the spawn that was disturbed least. Wanted: both ≤ 1.1x off, first list "
        "ever ≤ off + 1.6 s, every exit < 50 ms.",
    )
    off = samples["off"]
    for state, one in samples.items():
        initialize, listed, first = spread(one.initialize), spread(one.listed), spread(one.first_listed)
        met = (
            min(one.initialize) <= 1.1 * min(off.initialize)
            and min(one.listed) <= 1.1 * min(off.listed)
            and p50(one.first_listed) <= p50(off.first_listed) + 1.6
            and max(p50(one.exit), p50(one.first_exit)) < 0.050
        )
        table.add(
            state,
            initialize.text,
            ratio(min(one.initialize), min(off.initialize)),
            listed.text,
            ratio(min(one.listed), min(off.listed)),
            spread(one.exit).text,
            first.text,
            spread(one.first_exit).text,
            verdict(met),
        )
    return table
