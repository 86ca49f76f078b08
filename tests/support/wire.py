"""A raw stdio driver: it spawns the server as a client would and sees every byte.

Synchronous and free of threads. Writing never blocks on a full pipe, because what the server says
meanwhile is read. Every line of stdout is asserted to be JSON-RPC: anything else fails the test that reads it.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shlex
import shutil
import signal as signals
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

JsonObject = dict[str, Any]

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
TIMEOUT = 20.0
"""Seconds a wait may take. Generous: it is a deadline for a broken server, never a measurement."""

SERVER_VARIABLE = "HANZO_TEST_SERVER"
"""Environment variable holding another command line to test in place of this interpreter's hanzo-mcp."""

_CHUNK = 1 << 16
_SPEC = "io.modelcontextprotocol/"
_ERA_KEYS = ("protocolVersion", "clientCapabilities", "clientInfo", "logLevel")


def server_command(*args: str) -> list[str]:
    """The command line of the server under test, with ``args`` after it."""
    override = os.environ.get(SERVER_VARIABLE)
    return [*(shlex.split(override) if override else _installed()), *args]


def _installed() -> list[str]:
    """The script users run. Never a bare ``python -m``: that would import a ``hanzo_mcp`` of the workspace."""
    script = shutil.which("hanzo-mcp", path=sysconfig.get_path("scripts"))
    return [script] if script else [sys.executable, "-P", "-m", "hanzo_mcp"]


def clean_environment(home: str | Path, env: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """The environment of a fresh machine: an empty HOME, the door off, PATH. ``env`` overrides; ``None`` removes."""
    base: dict[str, str | None] = {"HOME": str(home), "PATH": os.environ.get("PATH", os.defpath)}
    base |= {"HANZO_MCP_DOOR": "off", "TMPDIR": os.environ.get("TMPDIR"), "LANG": "C.UTF-8"}
    return {key: value for key, value in (base | dict(env or {})).items() if value is not None}


def modern_meta(**extra: Any) -> JsonObject:
    """The ``_meta`` of a 2026-07-28 request.

    The era's own keys (``protocolVersion``, ``clientCapabilities``, ``clientInfo``, ``logLevel``) are given
    without their prefix, others as they are; ``None`` leaves a key out.
    """
    meta: JsonObject = {"protocolVersion": MODERN, "clientCapabilities": {}}
    meta |= {"clientInfo": {"name": "wire", "version": "1"}} | extra
    return {(_SPEC + key if key in _ERA_KEYS else key): value for key, value in meta.items() if value is not None}


def initialize_params(version: str = LEGACY, **capabilities: Any) -> JsonObject:
    """The params of a legacy ``initialize``."""
    return {
        "protocolVersion": version,
        "capabilities": capabilities,
        "clientInfo": {"name": "wire", "version": "1"},
    }


class Closed(AssertionError):
    """The server closed stdout, or went away, before what was waited for."""


class Wire:
    """One server process and its three pipes. A context manager; leaving it ends the process by its pid.

    ``home`` is a fresh directory that goes away with the driver; ``cwd`` is an empty directory in it by default.
    Waits raise ``TimeoutError`` at their deadline and ``Closed`` at end of output, both with the stderr so far.
    """

    def __init__(
        self,
        args: Sequence[str] = ("serve",),
        env: Mapping[str, str | None] | None = None,
        cwd: str | Path | None = None,
        command: Sequence[str] | None = None,
    ) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="wire-"))
        self.cwd = Path(cwd) if cwd is not None else self.home / "workspace"
        if cwd is None:
            self.cwd.mkdir()
        self.raw = bytearray()
        """Every byte of stdout so far."""
        self._unread: deque[Any] = deque()
        self._line = bytearray()
        self._stderr = bytearray()
        self._last_id = 0
        self._process = subprocess.Popen(
            [*(command or server_command()), *args],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.cwd,
            env=clean_environment(self.home, env),
        )
        self._select = selectors.DefaultSelector()
        self._register()

    def _register(self) -> None:
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._in, self._out, self._err = (
            self._process.stdin.fileno(),
            self._process.stdout.fileno(),
            self._process.stderr.fileno(),
        )
        for fd in (self._in, self._out, self._err):
            os.set_blocking(fd, False)
        self._open = {self._out, self._err}
        for fd in self._open:
            self._select.register(fd, selectors.EVENT_READ)

    # What the process is

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit status, ``None`` while the server runs."""
        return self._process.poll()

    @property
    def stderr(self) -> str:
        """Text of stderr so far."""
        self._pump(0)
        return self._stderr.decode("utf-8", "replace")

    # Sending

    def send(self, message: Any, timeout: float = TIMEOUT) -> None:
        """Write bytes as they are, anything else as one line of JSON."""
        data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        deadline = time.monotonic() + timeout
        self._select.register(self._in, selectors.EVENT_WRITE)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._write(rest, deadline) :]
        finally:
            self._select.unregister(self._in)

    def _write(self, data: memoryview, deadline: float) -> int:
        if self._in not in self._pump(self._left(deadline, "stdin to take what is sent")):
            return 0
        try:
            return os.write(self._in, data)
        except BlockingIOError:
            return 0
        except BrokenPipeError as exc:
            raise Closed(self._story("stdin is closed at the other end")) from exc

    def notify(self, method: str, params: JsonObject | None = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params}))

    def post(self, method: str, params: JsonObject | None = None, id: Any = None) -> Any:
        """Send a request without waiting; its id is returned, a fresh integer unless given."""
        if id is None:
            self._last_id += 1
            id = self._last_id
        body: JsonObject = {"jsonrpc": "2.0", "id": id, "method": method}
        self.send(body if params is None else body | {"params": params})
        return id

    def request(
        self, method: str, params: JsonObject | None = None, id: Any = None, timeout: float = TIMEOUT
    ) -> JsonObject:
        """Send a request and return its reply, the whole message. Other messages stay to be received."""
        return self.reply(self.post(method, params, id), timeout)

    def modern(self, method: str, params: JsonObject | None = None, id: Any = None, **meta: Any) -> JsonObject:
        """``request`` in the 2026-07-28 era; ``meta`` goes to ``modern_meta``."""
        return self.request(method, {**(params or {}), "_meta": modern_meta(**meta)}, id)

    def initialize(self, version: str = LEGACY, **capabilities: Any) -> JsonObject:
        """The legacy handshake; returns the reply to ``initialize``."""
        reply = self.request("initialize", initialize_params(version, **capabilities))
        self.notify("notifications/initialized")
        return reply

    # Receiving

    def recv(self, timeout: float = TIMEOUT) -> JsonObject:
        """The next message."""
        message = self.recv_any(timeout)
        assert isinstance(message, dict), f"a batch where one message was expected: {message!r}"
        return cast(JsonObject, message)

    def recv_any(self, timeout: float = TIMEOUT) -> Any:
        """The next line's value: a message, or the list of them that answers a batch."""
        return self._take(lambda _message: True, timeout)

    def reply(self, id: Any, timeout: float = TIMEOUT) -> JsonObject:
        """The response to request ``id``, compared with its type."""

        def fits(message: JsonObject) -> bool:
            return "method" not in message and type(message.get("id")) is type(id) and message["id"] == id

        return self.until(fits, timeout)

    def until(self, predicate: Callable[[JsonObject], bool], timeout: float = TIMEOUT) -> JsonObject:
        """The first message that fits, those before it staying to be received in order."""
        return self._take(lambda message: isinstance(message, dict) and predicate(cast(JsonObject, message)), timeout)

    def pending(self) -> list[Any]:
        """What has arrived and was not received yet, without waiting."""
        self._pump(0)
        return list(self._unread)

    def _take(self, fits: Callable[[Any], bool], timeout: float) -> Any:
        deadline, seen = time.monotonic() + timeout, 0
        while True:
            for index in range(seen, len(self._unread)):
                if fits(self._unread[index]):
                    found = self._unread[index]
                    del self._unread[index]
                    return found
            seen = len(self._unread)
            if self._out not in self._open:
                raise Closed(self._story("stdout ended before the message waited for"))
            self._pump(self._left(deadline, "a message"))

    # Ending

    def close_stdin(self) -> None:
        """End of file for the server."""
        if self._process.stdin:
            self._process.stdin.close()

    def close_stdout(self) -> None:
        """Stop reading: the server's next write gets EPIPE."""
        if self._out in self._open:
            self._drop(self._out)
        if self._process.stdout:
            self._process.stdout.close()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait_exit(self, timeout: float = TIMEOUT) -> int:
        """Wait for the end of the process, reading on; the exit status."""
        deadline = time.monotonic() + timeout
        while self._open:
            # Short turns: a descendant of the server may hold the pipes long after it.
            ready = self._pump(min(0.02, self._left(deadline, "the end of the output")))
            if not ready and self._process.poll() is not None:
                break
        try:
            return self._process.wait(self._left(deadline, "the exit"))
        except subprocess.TimeoutExpired as exc:
            raise TimeoutError(self._story("still running after its output ended")) from exc

    def close(self) -> None:
        """End the process and clean up. Idempotent."""
        with contextlib.suppress(BrokenPipeError):
            self.close_stdin()
        if self._process.poll() is None:
            try:
                self._process.wait(1)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signals.SIGKILL)
        self._process.wait(TIMEOUT)
        self._select.close()
        for stream in (self._process.stdout, self._process.stderr):
            if stream:
                stream.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # The pump

    def _left(self, deadline: float, what: str) -> float:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(self._story(f"no time left waiting for {what}"))
        return left

    def _story(self, what: str) -> str:
        tail = self._stderr[-4000:].decode("utf-8", "replace")
        return f"{what}; exit status {self._process.poll()}; stderr:\n{tail}"

    def _pump(self, timeout: float) -> set[int]:
        """Wait for one event and read what is there; the descriptors that were ready."""
        if not self._select.get_map():
            return set()
        ready = {int(key.fd) for key, _ in self._select.select(timeout)}
        for fd in ready & self._open:
            self._read(fd)
        return ready

    def _read(self, fd: int) -> None:
        data = os.read(fd, _CHUNK)
        if not data:
            self._drop(fd)
            assert fd != self._out or not self._line, f"unfinished last line on stdout: {bytes(self._line[:200])!r}"
        elif fd == self._err:
            self._stderr += data
        else:
            self.raw += data
            self._split(data)

    def _drop(self, fd: int) -> None:
        self._select.unregister(fd)
        self._open.discard(fd)

    def _split(self, data: bytes) -> None:
        *ends, rest = data.split(b"\n")
        for end in ends:
            line = bytes(self._line) + end
            self._line.clear()
            self._unread.append(message_of(line))
        self._line += rest


def message_of(line: bytes) -> Any:
    """A line of stdout -> its value, asserted to be one JSON-RPC message (or a batch of responses) in ASCII."""
    assert line.isascii(), f"stdout carries bytes outside ASCII: {line[:200]!r}"
    assert b"\r" not in line, f"stdout carries a carriage return: {line[:200]!r}"
    try:
        value: object = json.loads(line)
    except ValueError as exc:
        raise AssertionError(f"stdout carries a line that is no JSON: {line[:200]!r}") from exc
    messages = cast(list[object], value) if isinstance(value, list) else [value]
    assert messages, "an empty batch"
    for message in messages:
        _check(message, line)
    return cast(Any, value)


def _check(value: object, line: bytes) -> None:
    assert isinstance(value, dict), f"not a message: {line[:200]!r}"
    message = cast(JsonObject, value)
    assert message.get("jsonrpc") == "2.0", f"no jsonrpc 2.0: {line[:200]!r}"
    if "method" in message:
        assert isinstance(message["method"], str), f"method is no string: {line[:200]!r}"
        assert "id" not in message or isinstance(message["id"], (str, int)), f"bad id: {line[:200]!r}"
        return
    assert ("result" in message) != ("error" in message), f"neither or both of result, error: {line[:200]!r}"
    assert message.get("id") is not None or _refuses_the_id(message), f"a response without an id: {line[:200]!r}"


def _refuses_the_id(message: JsonObject) -> bool:
    """An invalid request whose id is neither string nor number can only be answered with null, never a parse error."""
    return "id" in message and message.get("error", {}).get("code") == -32600
