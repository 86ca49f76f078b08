"""Is a start the same whatever becomes of the cloud endpoint?"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from bench.contenders import Place, ours, place
from bench.driver import Server
from bench.endpoint import Endpoint
from bench.forwarding import await_door
from bench.startup import Say, opened

STATES = ("off", "ok", "hang", "dead", "slow", "redirect")
_REST = 0.6
"""Seconds before the end of input where the exit is measured, so that a refresh of the list is under way."""
_REST_EVERY = 4


@dataclass(slots=True)
class Starts:
    """Samples with the endpoint in one state; seconds since the spawn, exits since the end of input."""

    initialize: list[float] = field(default_factory=list[float])
    listed: list[float] = field(default_factory=list[float])
    """With the endpoint's list in the cache, and stale."""
    exit: list[float] = field(default_factory=list[float])
    first_listed: list[float] = field(default_factory=list[float])
    """In an empty home."""
    first_exit: list[float] = field(default_factory=list[float])


def measure(warm: int, first: int, say: Say) -> dict[str, Starts]:
    """``warm`` rounds over all states with a warm cache, then ``first`` rounds in empty homes."""
    samples = {state: Starts() for state in STATES}
    with Endpoint() as endpoint, place(HANZO_MCP_DOOR=endpoint.url) as where:
        _fill_cache(where)
        for number in range(warm):
            say(f"start by the door's state, warm {number + 1}/{warm}")
            for state in STATES:
                _warm(endpoint, where, state, samples[state], number % _REST_EVERY == 0)
        for number in range(first):
            say(f"start by the door's state, first ever {number + 1}/{first}")
            for state in STATES:
                _first_ever(endpoint, state, samples[state])
    return samples


def _fill_cache(where: Place) -> None:
    with where.spawn(ours()) as server:
        opened(server)
        await_door(server)
        # The list is written behind the answer; the next start must find it.
        time.sleep(_REST)
        server.leave()


def _warm(endpoint: Endpoint, where: Place, state: str, samples: Starts, rests: bool) -> None:
    with _entered(endpoint, where, state).spawn(ours()) as server:
        initialize, listed = opened(server)
        samples.initialize.append(initialize)
        samples.listed.append(listed)
        if rests:
            samples.exit.append(_left(server))


def _first_ever(endpoint: Endpoint, state: str, samples: Starts) -> None:
    with place(HANZO_MCP_DOOR=endpoint.url) as where, _entered(endpoint, where, state).spawn(ours()) as server:
        initialize, listed = opened(server)
        samples.initialize.append(initialize)
        samples.first_listed.append(listed)
        samples.first_exit.append(_left(server))


def _entered(endpoint: Endpoint, where: Place, state: str) -> Place:
    """Put the endpoint into a state; the place to start a server in."""
    endpoint.switch("ok" if state == "off" else state)
    return Place(where.root, {} if state == "off" else where.settings)


def _left(server: Server) -> float:
    time.sleep(_REST)
    return server.leave()
