"""Spawns: how long until a server is of use, what it weighs, how fast it leaves.

Spawns are interleaved (A B C D A B C D ...), so that a drift of the machine hits all alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import perf_counter

from bench import messages, proc
from bench.contenders import Contender, Place
from bench.driver import Server

IDLE = 1.0
"""Seconds without a message after which memory is called idle."""
_SETTLED = 0.3
_BESIDE = 0.005

Say = Callable[[str], None]


@dataclass(slots=True)
class Starts:
    """Samples of one server. Times in seconds since the spawn unless said otherwise, memory in MiB."""

    initialize: list[float] = field(default_factory=list[float])
    listed: list[float] = field(default_factory=list[float])
    list_alone: list[float] = field(default_factory=list[float])
    """From the reply to ``initialize`` to the list."""
    cpu: list[float] = field(default_factory=list[float])
    """CPU seconds up to the list."""
    rss: list[float] = field(default_factory=list[float])
    """On the list's arrival."""
    exit_listed: list[float] = field(default_factory=list[float])
    """End of input right after the list, to the end of the process."""
    called: list[float] = field(default_factory=list[float])
    """The first call sent at once after the list."""
    rss_idle: list[float] = field(default_factory=list[float])
    idle_call: list[float] = field(default_factory=list[float])
    """The first call after ``IDLE`` seconds of quiet, from its write to its reply."""
    idle_ping: list[float] = field(default_factory=list[float])
    """A ping sent on the reply to that call, or ``_BESIDE`` seconds after its write if there is none by then."""
    rss_called: list[float] = field(default_factory=list[float])
    exit_called: list[float] = field(default_factory=list[float])
    """End of input with nothing to do, to the end of the process, after a call was served."""


def opened(server: Server) -> tuple[float, float]:
    """The legacy handshake and the list; arrival of both replies in seconds since the spawn."""
    server.send(messages.INITIALIZE)
    first, _ = server.reply("initialize")
    server.send(messages.INITIALIZED_AND_LIST)
    second, _ = server.reply("list")
    return first - server.started, second - server.started


def measure(contenders: Sequence[Contender], place: Place, rounds: tuple[int, int, int], say: Say) -> dict[str, Starts]:
    """``rounds`` of plain spawns, of spawns with a call at once, and of spawns with a call after a rest.

    One round before them warms the page cache and the byte code and is not counted.
    """
    warm_up = {one.name: Starts() for one in contenders}
    _each(contenders, place, warm_up, _called_at_once)
    samples = {one.name: Starts() for one in contenders}
    plain, at_once, rested = rounds
    for number in range(plain):
        say(f"start-up {number + 1}/{plain}")
        _each(contenders, place, samples, _plain)
    for number in range(at_once):
        say(f"first call {number + 1}/{at_once}")
        _each(contenders, place, samples, _called_at_once)
    for number in range(rested):
        say(f"memory {number + 1}/{rested}")
        _rested(contenders, place, samples)
    return samples


def _each(
    contenders: Sequence[Contender],
    place: Place,
    samples: dict[str, Starts],
    one: Callable[[Server, Starts], None],
) -> None:
    for contender in contenders:
        with place.spawn(contender.command) as server:
            one(server, samples[contender.name])


def _plain(server: Server, samples: Starts) -> None:
    initialize, listed = opened(server)
    samples.cpu.append(proc.cpu(server.pid))
    samples.rss.append(proc.rss(server.pid))
    samples.initialize.append(initialize)
    samples.listed.append(listed)
    samples.list_alone.append(listed - initialize)
    samples.exit_listed.append(server.leave())


def _called_at_once(server: Server, samples: Starts) -> None:
    opened(server)
    server.send(messages.think("first"))
    arrived, _ = server.reply("first")
    samples.called.append(arrived - server.started)
    server.leave()


def _rested(contenders: Sequence[Contender], place: Place, samples: dict[str, Starts]) -> None:
    """All of them rest at the same time, then each is called alone."""
    with ExitStack() as stack:
        servers = [(one.name, stack.enter_context(place.spawn(one.command))) for one in contenders]
        for _, server in servers:
            opened(server)
        time.sleep(IDLE)
        for name, server in servers:
            _first_call(server, samples[name])
        time.sleep(_SETTLED)
        for name, server in servers:
            samples[name].exit_called.append(server.leave())


def _first_call(server: Server, samples: Starts) -> None:
    samples.rss_idle.append(proc.rss(server.pid))
    called = perf_counter()
    server.send(messages.think("first"))
    arrived = server.replies(["first"]) if server.speaks(_BESIDE) else {}
    pinged = perf_counter()
    server.send(messages.ping("ping"))
    arrived |= server.replies([name for name in ("first", "ping") if name not in arrived])
    samples.idle_call.append(arrived["first"][0] - called)
    samples.idle_ping.append(arrived["ping"][0] - pinged)
    samples.rss_called.append(proc.rss(server.pid))
