"""Calls on servers that are up: one at a time, many at once, and pings beside a slow call.

All servers are up throughout and take turns, so that a drift of the machine hits all alike.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from time import perf_counter

from bench import messages, proc
from bench.contenders import Contender, Place
from bench.driver import Server, ServerFailed
from bench.startup import Say, opened

IN_FLIGHT = (1, 16, 256)
_SLOW = "slow"
_PAUSE = 0.002
"""Seconds between two pings: a client that asks now and then, not a flood."""


@dataclass(slots=True)
class Level:
    """Calls at one degree of concurrency; seconds."""

    latencies: list[float] = field(default_factory=list[float])
    elapsed: float = 0.0
    cpu: float = 0.0
    """CPU seconds the server used."""

    @property
    def per_second(self) -> float:
        """Calls answered per second."""
        return len(self.latencies) / self.elapsed

    @property
    def cpu_per_call(self) -> float:
        """CPU seconds of the server for one call."""
        return self.cpu / len(self.latencies)


@dataclass(slots=True)
class Loads:
    """What one server did. ``rss`` in MiB after all of it."""

    levels: dict[int, Level] = field(default_factory=lambda: {count: Level() for count in IN_FLIGHT})
    pings: list[float] = field(default_factory=list[float])
    rss: float = 0.0


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured: ``turns`` of ``calls`` each, none longer than ``seconds``."""

    turns: int
    calls: int
    seconds: float


@contextmanager
def undisturbed() -> Generator[None]:
    """No garbage collection of ours in the middle of a measurement."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def measure(contenders: Sequence[Contender], place: Place, size: Size, say: Say) -> dict[str, Loads]:
    """Every level and the pings, on every server."""
    samples = {one.name: Loads() for one in contenders}
    with ExitStack() as stack:
        servers = [(one, stack.enter_context(place.spawn(one.command))) for one in contenders]
        for _, server in servers:
            opened(server)
            server.flood(messages.think, 100, 4, size.seconds)
        for in_flight in IN_FLIGHT:
            say(f"{in_flight} in flight")
            for _ in range(size.turns):
                for one, server in servers:
                    _turn(server, samples[one.name].levels[in_flight], in_flight, size)
        for one, server in servers:
            say(f"pings beside a slow call, {one.name}")
            samples[one.name].rss = proc.rss(server.pid)
            for _ in range(size.turns):
                samples[one.name].pings += pings_beside(server, one.slow)
    return samples


def _turn(server: Server, level: Level, in_flight: int, size: Size) -> None:
    used = proc.cpu(server.pid)
    with undisturbed():
        flood = server.flood(messages.think, size.calls, in_flight, size.seconds)
    if flood.errors:
        raise ServerFailed(f"{len(flood.errors)} calls were answered with errors, first: {flood.errors[0]}")
    level.cpu += proc.cpu(server.pid) - used
    level.latencies += flood.latencies
    level.elapsed += flood.elapsed


def pings_beside(server: Server, slow: Callable[[int | str], bytes]) -> list[float]:
    """Seconds each ping took until the slow call was answered."""
    took: list[float] = []
    server.send(slow(_SLOW))
    busy = True
    while busy:
        name = f"ping{len(took)}"
        begin = perf_counter()
        server.send(messages.ping(name))
        waiting = True
        while waiting:
            now, data = server.lines()
            for message in map(json.loads, data.splitlines()):
                if message.get("id") == name:
                    took.append(now - begin)
                    waiting = False
                elif message.get("id") == _SLOW:
                    server.result(message)
                    busy = False
        time.sleep(_PAUSE)
    return took
