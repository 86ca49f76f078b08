"""A client that costs next to nothing: one process, raw reads and writes on its pipes, no event loop, no threads.

The hot loop of ``flood`` notes times and counts lines; replies are parsed and checked when it is over.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from types import TracebackType
from typing import Any, Self

Json = dict[str, Any]

DEADLINE = 30.0
"""Seconds without a byte after which a server is called broken."""
_CHUNK = 1 << 18


class ServerFailed(Exception):
    """A server ended, fell silent or answered with an error. The text ends with its stderr."""


@dataclass(slots=True)
class Flood:
    """Seconds from the write of each call to the read of its reply, and of the whole; what errors were answered."""

    latencies: list[float]
    elapsed: float
    errors: list[str]


@dataclass(slots=True)
class _Log:
    """What the hot loop notes: when each call was sent, and each chunk of whole lines with its time."""

    sent: list[float] = field(default_factory=list[float])
    chunks: list[tuple[float, bytes]] = field(default_factory=list[tuple[float, bytes]])


def is_error(message: Json) -> bool:
    """Is this reply a JSON-RPC error or a tool's ``isError``?"""
    result: Json | None = message.get("result")
    return result is None or bool(result.get("isError"))


class Server:
    """A server process as a client has it. A context manager; leaving it ends the process by its pid.

    ``started`` is the ``perf_counter`` reading just before the spawn.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], cwd: str) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._rest = b""
        self._next_id = 0
        self.started = perf_counter()
        self._process = subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=cwd,
            env=environ,
        )
        assert self._process.stdin and self._process.stdout
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        self._readable = select.poll()
        self._readable.register(self._out, select.POLLIN)
        self._writable = select.poll()
        self._writable.register(self._in, select.POLLOUT)
        self._writable.register(self._out, select.POLLIN)

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, data: bytes) -> None:
        """Write bytes that fit into the pipe at once."""
        try:
            written = os.write(self._in, data)
        except (BrokenPipeError, BlockingIOError) as exc:
            raise self._failure("no longer reads") from exc
        if written < len(data):
            raise self._failure("does not read fast enough for one write")

    def speaks(self, seconds: float) -> bool:
        """Does it say something, or end, within ``seconds``? Reads nothing."""
        return bool(self._readable.poll(seconds * 1000))

    def lines(self, deadline: float = DEADLINE) -> tuple[float, bytes]:
        """The next whole line or lines, with the time they were read. Raises ``ServerFailed``."""
        while True:
            if not self._readable.poll(deadline * 1000):
                raise self._failure(f"said nothing for {deadline:g} s")
            data = os.read(self._out, _CHUNK)
            now = perf_counter()
            if not data:
                raise self._failure("closed its output")
            whole, mark, self._rest = (self._rest + data).rpartition(b"\n")
            if mark:
                return now, whole + mark

    def reply(self, request_id: int | str, deadline: float = DEADLINE) -> tuple[float, Json]:
        """Read up to the reply to a request, other messages dropped; its arrival and its ``result``."""
        return self.replies([request_id], deadline)[request_id]

    def replies(
        self, request_ids: Sequence[int | str], deadline: float = DEADLINE
    ) -> dict[int | str, tuple[float, Json]]:
        """The same for several requests, answered in any order."""
        found: dict[int | str, tuple[float, Json]] = {}
        while len(found) < len(request_ids):
            now, data = self.lines(deadline)
            for message in map(json.loads, data.splitlines()):
                if message.get("id") in request_ids and "method" not in message:
                    found[message["id"]] = now, self.result(message)
        return found

    def ask(self, request: bytes, request_id: int | str) -> tuple[float, Json]:
        """Send one request and wait; seconds from write to reply, and the ``result``."""
        begin = perf_counter()
        self.send(request)
        now, result = self.reply(request_id)
        return now - begin, result

    def flood(self, make: Callable[[int], bytes], count: int, in_flight: int, seconds: float) -> Flood:
        """Keep ``in_flight`` calls open until ``count`` are answered; no more are sent after ``seconds`` and a reply.

        ``make`` gives the line of a call with a certain id. Error replies are collected. Raises ``ServerFailed``
        when a reply is missing or double.
        """
        first, self._next_id = self._next_id, self._next_id + count
        calls = [make(number) for number in range(first, first + count)]
        begin = perf_counter()
        log = self._pump(calls, in_flight, begin + seconds)
        errors: list[str] = []
        latencies = self._checked(log, first, errors)
        return Flood(latencies, log.chunks[-1][0] - begin, errors)

    def _pump(self, calls: Sequence[bytes], in_flight: int, end: float) -> _Log:
        log, pending, answered, now = _Log(), b"", 0, 0.0
        while answered < len(log.sent) or (now < end and len(log.sent) < len(calls)):
            batch = calls[len(log.sent) : answered + in_flight] if now < end else ()
            if batch:
                pending += b"".join(batch)
                log.sent += [perf_counter()] * len(batch)
            if pending:
                pending = self._write_some(pending)
            if not pending or self._output_waits():
                now, data = self.lines()
                log.chunks.append((now, data))
                answered += data.count(b"\n") - data.count(b'"method":')
        return log

    def _write_some(self, data: bytes) -> bytes:
        try:
            return data[os.write(self._in, data) :]
        except BlockingIOError:
            return data
        except BrokenPipeError as exc:
            raise self._failure("no longer reads") from exc

    def _output_waits(self) -> bool:
        """With more to write: wait until either pipe moves; is it the output?"""
        ready = self._writable.poll(DEADLINE * 1000)
        if not ready:
            raise self._failure(f"neither read nor wrote for {DEADLINE:g} s")
        return any(fd == self._out for fd, _ in ready)

    def _checked(self, log: _Log, first: int, errors: list[str]) -> list[float]:
        found: dict[int, float] = {}
        for now, data in log.chunks:
            for message in map(json.loads, data.splitlines()):
                if "method" in message:
                    continue
                if message["id"] in found:
                    raise self._failure(f"answered call {message['id']} twice")
                found[message["id"]] = now
                if is_error(message):
                    errors.append(json.dumps(message)[:500])
        if sorted(found) != list(range(first, first + len(log.sent))):
            raise self._failure(f"answered {len(found)} of {len(log.sent)} calls")
        return [found[number] - sent for number, sent in enumerate(log.sent, first)]

    def result(self, message: Json) -> Json:
        """The ``result`` of a reply. Raises ``ServerFailed`` for an error of either kind."""
        if is_error(message):
            raise self._failure(f"answered with an error: {json.dumps(message)[:500]}")
        return message["result"]

    def leave(self, deadline: float = DEADLINE) -> float:
        """Close its stdin; seconds until the process has ended."""
        assert self._process.stdin
        pidfd = os.pidfd_open(self.pid)
        try:
            begin = perf_counter()
            self._process.stdin.close()
            if not select.select([pidfd], [], [], deadline)[0]:
                raise self._failure(f"still runs {deadline:g} s after the end of its input")
            took = perf_counter() - begin
        finally:
            os.close(pidfd)
        self._process.wait()
        return took

    def _failure(self, what: str) -> ServerFailed:
        fd = self._stderr.fileno()
        # pread: the server shares the offset of this file.
        said = os.pread(fd, 2000, max(0, os.fstat(fd).st_size - 2000)).decode("utf-8", "replace")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)
        return ServerFailed(f"{' '.join(self._command())}: {what} (exit status {self._process.returncode})\n{said}")

    def _command(self) -> list[str]:
        args = self._process.args
        return [args] if isinstance(args, str) else [str(word) for word in args]  # type: ignore[union-attr]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.close()
