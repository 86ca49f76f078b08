"""What the way through our server adds to a call of the cloud endpoint.

Beside it: the same JSON posted by ``httpx.AsyncClient`` over a kept-alive connection from this process.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeVar

import httpx

from bench import messages, proc
from bench.contenders import KEY, Place, ours, place
from bench.driver import Flood, Server, ServerFailed, is_error
from bench.endpoint import CALLED, Endpoint
from bench.load import undisturbed
from bench.startup import Say, opened

BURST = 500
HOLDS = (0, 100)
"""Milliseconds the endpoint keeps each call of a burst."""
_KNOWN_WITHIN = 10.0
T = TypeVar("T")


@dataclass(slots=True)
class Burst:
    """``BURST`` calls at once; seconds. ``served`` is what the endpoint counted, ``at_once`` the most it had open."""

    totals: list[float] = field(default_factory=list[float])
    latencies: list[float] = field(default_factory=list[float])
    sent: int = 0
    lost: int = 0
    served: int = 0
    at_once: int = 0


@dataclass(slots=True)
class Way:
    """One way to the endpoint."""

    latencies: list[float] = field(default_factory=list[float])
    """One call at a time; seconds."""
    cpu: float = 0.0
    """CPU seconds of those calls: of the server, or of this process for the bare posts."""
    bursts: dict[int, Burst] = field(default_factory=lambda: {hold: Burst() for hold in HOLDS})


@dataclass(slots=True)
class Forwarding:
    """Both ways. ``rss`` is our memory in MiB with the endpoint's list fetched and before the first call."""

    bare: Way = field(default_factory=Way)
    through: Way = field(default_factory=Way)
    rss: float = 0.0


def hold(request_id: int | str, milliseconds: int) -> bytes:
    """A call that only the endpoint can answer."""
    return messages.call(request_id, CALLED, {"op": "hold", "input": {"ms": milliseconds}})


def await_door(server: Server) -> None:
    """Wait until the endpoint's tools are in our list. Raises ``ServerFailed``."""
    deadline = perf_counter() + _KNOWN_WITHIN
    while True:
        _, result = server.ask(messages.LIST, "list")
        if any(tool["name"] == CALLED for tool in result["tools"]):
            return
        if perf_counter() > deadline:
            raise ServerFailed(f"{_KNOWN_WITHIN:g} s after its start the list lacks the endpoint's tools")
        time.sleep(0.05)


class Bare:
    """Posts by httpx on a loop that lives as long as the client."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._runner = asyncio.Runner()
        self._client = httpx.AsyncClient(timeout=60, trust_env=False, headers={"Authorization": f"Bearer {KEY}"})

    def one_by_one(self, bodies: Sequence[bytes]) -> list[float]:
        """Seconds of each post."""
        return self._run(self._one_by_one(bodies))

    def at_once(self, bodies: Sequence[bytes]) -> list[float]:
        """Seconds of each of the posts, all started together."""
        return self._run(self._at_once(bodies))

    def close(self) -> None:
        self._run(self._client.aclose())
        self._runner.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    async def _one_by_one(self, bodies: Sequence[bytes]) -> list[float]:
        return [await self._post(body) for body in bodies]

    async def _at_once(self, bodies: Sequence[bytes]) -> list[float]:
        return await asyncio.gather(*(self._post(body) for body in bodies))

    async def _post(self, body: bytes) -> float:
        begin = perf_counter()
        response = await self._client.post(self._url, content=body, headers={"Content-Type": "application/json"})
        took = perf_counter() - begin
        if is_error(json.loads(response.content)):
            raise ServerFailed(f"the endpoint answered {response.text[:200]}")
        return took


def measure(turns: int, calls: int, say: Say) -> Forwarding:
    """``turns`` of ``calls`` one by one and of a burst each, the two ways taking turns."""
    with Endpoint() as endpoint, place(HANZO_MCP_DOOR=endpoint.url) as where:
        return _measure(endpoint, where, turns, calls, say)


def _measure(endpoint: Endpoint, where: Place, turns: int, calls: int, say: Say) -> Forwarding:
    samples, bare = Forwarding(), Bare(endpoint.url)
    try:
        with where.spawn(ours()) as server:
            opened(server)
            await_door(server)
            samples.rss = proc.rss(server.pid)
            server.flood(lambda number: hold(number, 0), 50, 1, 30)
            bare.one_by_one([hold(number, 0) for number in range(50)])
            for turn in range(turns):
                say(f"forwarded calls {turn + 1}/{turns}")
                _one_by_one(samples, bare, server, calls)
            for turn in range(turns):
                for milliseconds in HOLDS:
                    say(f"{BURST} forwarded calls at once, {milliseconds} ms each, {turn + 1}/{turns}")
                    _bursts(samples, bare, server, endpoint, milliseconds)
    finally:
        bare.close()
    return samples


def _one_by_one(samples: Forwarding, bare: Bare, server: Server, calls: int) -> None:
    with undisturbed():
        used = time.process_time()
        samples.bare.latencies += bare.one_by_one([hold(number, 0) for number in range(calls)])
        samples.bare.cpu += time.process_time() - used
    with undisturbed():
        used = proc.cpu(server.pid)
        flood = server.flood(lambda number: hold(number, 0), calls, 1, 60)
        samples.through.cpu += proc.cpu(server.pid) - used
    if flood.errors:
        raise ServerFailed(f"{len(flood.errors)} forwarded calls failed, first: {flood.errors[0]}")
    samples.through.latencies += flood.latencies


def _bursts(samples: Forwarding, bare: Bare, server: Server, endpoint: Endpoint, milliseconds: int) -> None:
    def posted() -> Flood:
        bodies = [hold(number, milliseconds) for number in range(BURST)]
        begin = perf_counter()
        latencies = bare.at_once(bodies)
        return Flood(latencies, perf_counter() - begin, [])

    def forwarded() -> Flood:
        return server.flood(lambda number: hold(number, milliseconds), BURST, BURST, 60)

    _burst(samples.bare.bursts[milliseconds], endpoint, posted)
    _burst(samples.through.bursts[milliseconds], endpoint, forwarded)


def _burst(burst: Burst, endpoint: Endpoint, run: Callable[[], Flood]) -> None:
    endpoint.stats()
    with undisturbed():
        flood = run()
    served, at_once = endpoint.stats()
    burst.totals.append(flood.elapsed)
    burst.latencies += flood.latencies
    burst.sent += BURST
    burst.lost += len(flood.errors)
    burst.served += served
    burst.at_once = max(burst.at_once, at_once)
