"""A small MCP client over stdio, for ``hanzo-mcp demo``: one process, one question at a time, every wait bounded."""

from __future__ import annotations

import json
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import IO, Any, NamedTuple, Self

from hanzo_mcp.core.shapes import as_object
from hanzo_mcp.errors import ProtocolError, TimedOut, Unavailable

EXIT_SECONDS = 5.0
_INTERNAL = -32603
Json = dict[str, Any]


class Answer(NamedTuple):
    """A reply: the whole message, its size on the wire in bytes, and the seconds from asking to reading it."""

    message: Json
    size: int
    seconds: float


class StdioClient:
    """Starts ``command`` as a client would. Every wait ends after ``patience`` seconds.

    Raises ``TimedOut`` when the server is silent, ``Unavailable`` when it is gone or answers with something else
    than JSON-RPC.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], cwd: str, patience: float) -> None:
        self._patience = patience
        self._started = time.monotonic()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        self._lines: queue.Queue[tuple[bytes, float]] = queue.Queue()
        self._others: list[Json] = []
        self._last_id = 0
        self._reader = threading.Thread(target=self._read, name="demo-client", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self._stderr.close()

    @property
    def age(self) -> float:
        """Seconds since the process was started."""
        return time.monotonic() - self._started

    def ask(self, method: str, params: Json | None = None) -> Answer:
        """Send a request and wait for its reply; a JSON-RPC error is a reply too."""
        self._last_id += 1
        asked = time.monotonic()
        message: Json = {"jsonrpc": "2.0", "id": self._last_id, "method": method}
        self._send(message if params is None else {**message, "params": params})
        wanted = self._last_id
        return self._take(lambda found: "method" not in found and found.get("id") == wanted, asked, method)

    def tell(self, method: str) -> None:
        """Send a notification."""
        self._send({"jsonrpc": "2.0", "method": method})

    def wait_for(self, method: str) -> Json:
        """The next notification called ``method``, one that came earlier included."""
        for index, known in enumerate(self._others):
            if known.get("method") == method:
                return self._others.pop(index)
        return self._take(lambda found: found.get("method") == method, time.monotonic(), method).message

    def close(self) -> int:
        """End of input, and the exit status; a server that stays is killed. Idempotent."""
        pipe = _pipe(self._process.stdin)
        if not pipe.closed:
            try:
                pipe.close()
            except BrokenPipeError:  # it left first, with unread bytes
                self._process.kill()
        try:
            return self._process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
        finally:
            self._reader.join(EXIT_SECONDS)

    def stderr(self) -> str:
        """What the server has said on stderr."""
        self._stderr.seek(0)
        return self._stderr.read().decode("utf-8", "replace")

    def _send(self, message: Json) -> None:
        pipe = _pipe(self._process.stdin)
        try:
            pipe.write(json.dumps(message).encode() + b"\n")
            pipe.flush()
        except (BrokenPipeError, ValueError) as exc:
            raise Unavailable("the server is gone") from exc

    def _read(self) -> None:
        """The reader's thread; an empty line marks the end of output."""
        with _pipe(self._process.stdout) as pipe:
            for line in pipe:
                self._lines.put((line, time.monotonic()))
        self._lines.put((b"", time.monotonic()))

    def _take(self, fits: Callable[[Json], bool], since: float, what: str) -> Answer:
        deadline = time.monotonic() + self._patience
        while True:
            line, at = self._next(deadline, what)
            message = _message(line)
            if fits(message):
                return Answer(message, len(line), at - since)
            self._others.append(message)

    def _next(self, deadline: float, what: str) -> tuple[bytes, float]:
        try:
            line, at = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise TimedOut(f"{what}: no answer within {self._patience:g} s") from None
        if not line:
            raise Unavailable(f"{what}: the server ended its output before answering")
        return line, at


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise ProtocolError(_INTERNAL, "the server has no pipe")
    return stream


def _message(line: bytes) -> Json:
    try:
        message = as_object(json.loads(line))
    except ValueError:
        message = None
    if message is None:
        raise Unavailable(f"the server wrote a line that is no JSON-RPC message: {line[:80]!r}")
    return message
