"""Running a child process: bounded in time and bytes, killed with everything it started.

The child gets no stdin of ours, no descriptor of ours and an environment built from an allow-list; the bearer is
never in it. Output is kept as head and tail, the rest is counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hanzo_mcp.errors import InvalidInput, NotFound, from_oserror

KEEP = 64 * 1024
"""Bytes kept at the head and at the tail of each stream."""
GRACE = 2.0
"""Seconds between TERM and KILL."""
LINGER = 0.5
"""Seconds in which output is still read after the main process has ended."""
_PASSED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "SYSTEMROOT", "PATHEXT")


@dataclass(frozen=True, slots=True)
class Output:
    """One stream: ``head`` and ``tail`` with ``dropped`` bytes between them."""

    head: bytes
    tail: bytes
    dropped: int

    def text(self) -> str:
        """The stream as text, with a line where bytes were dropped."""
        head, tail = (part.decode("utf-8", "replace") for part in (self.head, self.tail))
        return f"{head}\n… {self.dropped} bytes left out …\n{tail}" if self.dropped else head + tail


@dataclass(frozen=True, slots=True)
class Completed:
    """How a child ended. ``code`` is ``None`` when a signal ended it; ``seconds`` is wall time."""

    code: int | None
    signal: int | None
    stdout: Output
    stderr: Output
    seconds: float
    timed_out: bool


class _Ring:
    """Head and tail of a stream of any length in bounded memory."""

    def __init__(self, keep: int) -> None:
        self._keep, self._head, self._tail, self.total = keep, bytearray(), bytearray(), 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._keep - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._keep:
            del self._tail[: -self._keep]

    def output(self) -> Output:
        tail = bytes(self._tail[-self._keep :])
        return Output(bytes(self._head), tail, self.total - len(self._head) - len(tail))


class Launcher:
    """Starts children for the tools. ``environ`` is the environment to pick allowed names from."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._base = {
            key: value for key, value in environ.items() if key in _PASSED or key.startswith(("LC_", "XDG_RUNTIME"))
        }
        self._running: set[_Child] = set()

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """What a child sees: the allow-list, a dumb terminal, then ``extra``."""
        return {**self._base, "TERM": "dumb", "PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", **(extra or {})}

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        timeout: float | None = None,
        keep: int = KEEP,
        on_output: Callable[[bytes], None] | None = None,
    ) -> Completed:
        """Run to the end, to ``timeout`` seconds or to cancellation; then nothing of it is left.

        ``env`` replaces the environment when given. Raises ``NotFound`` and ``InvalidInput`` when it cannot start.
        """
        child = _Child(_spawn(argv, cwd, dict(env) if env is not None else self.environment(), stdin), keep, on_output)
        self._running.add(child)
        try:
            return await child.finish(stdin, timeout)
        finally:
            self._running.discard(child)

    def kill_all(self) -> None:
        """End every running child at once, for the server's own end."""
        for child in tuple(self._running):
            child.kill_tree(signal.SIGKILL)


def _spawn(argv: Sequence[str], cwd: str, env: dict[str, str], stdin: bytes | None) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except FileNotFoundError as exc:
        if exc.filename == cwd:
            raise NotFound(f"{cwd}: the working directory does not exist.") from None
        raise NotFound(f"{argv[0]}: command not found.") from None
    except ValueError as exc:
        raise InvalidInput(f"{argv[0]}: {exc}") from None
    except OSError as exc:
        raise from_oserror(exc, str(argv[0])) from exc


class _Child:
    """A started process and its two streams, watched by the running loop."""

    def __init__(self, process: subprocess.Popen[bytes], keep: int, on_output: Callable[[bytes], None] | None) -> None:
        assert process.stdout is not None and process.stderr is not None  # noqa: S101 - always piped, see _spawn
        self._process = process
        self._started = time.monotonic()
        self._on_output = on_output
        self._out = _Stream(process.stdout.fileno(), keep, self._notify)
        self._err = _Stream(process.stderr.fileno(), keep, self._notify)

    def _notify(self, data: bytes) -> None:
        if self._on_output is not None:
            self._on_output(data)

    async def finish(self, stdin: bytes | None, timeout: float | None) -> Completed:
        feeding = asyncio.create_task(self._feed(stdin or b""))
        timed_out = False
        try:
            async with asyncio.timeout(timeout):
                await self._exited()
            await self._drain(LINGER)
        except TimeoutError:
            timed_out = True
            await self._end()
            await self._drain(LINGER)
        except asyncio.CancelledError:
            self.kill_tree(signal.SIGKILL)
            raise
        finally:
            feeding.cancel()
            self._out.close()
            self._err.close()
            self._process.stdout.close()  # type: ignore[union-attr]
            self._process.stderr.close()  # type: ignore[union-attr]
            self._process.poll()
        return self._completed(timed_out)

    def _completed(self, timed_out: bool) -> Completed:
        code = self._process.returncode or 0
        return Completed(
            code if code >= 0 else None,
            -code if code < 0 else None,
            self._out.ring.output(),
            self._err.ring.output(),
            time.monotonic() - self._started,
            timed_out,
        )

    async def _feed(self, data: bytes) -> None:
        stream = self._process.stdin
        if stream is None:
            return
        os.set_blocking(stream.fileno(), False)
        view = memoryview(data)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while view:
                try:
                    view = view[os.write(stream.fileno(), view) :]
                except BlockingIOError:
                    await _writable(stream.fileno())
        stream.close()

    async def _exited(self) -> None:
        if self._process.poll() is not None:
            return
        try:
            fd = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):  # not Linux, or an old kernel
            await asyncio.to_thread(self._process.wait)
            return
        try:
            await _readable(fd)
        finally:
            os.close(fd)
        self._process.wait()

    async def _drain(self, seconds: float) -> None:
        """Read what is left; a background grandchild that keeps the pipe open is not waited for."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._out.ended
                await self._err.ended

    async def _end(self) -> None:
        self.kill_tree(signal.SIGTERM)
        try:
            async with asyncio.timeout(GRACE):
                await self._exited()
        except TimeoutError:
            pass
        self.kill_tree(signal.SIGKILL)
        await self._exited()

    def kill_tree(self, number: signal.Signals) -> None:
        """Signal the child's whole group and every descendant that left it."""
        for pid in _descendants(self._process.pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


class _Stream:
    """One pipe of a child, read whenever it has something."""

    def __init__(self, fd: int, keep: int, on_data: Callable[[bytes], None]) -> None:
        self.ring = _Ring(keep)
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._fd, self._on_data = fd, on_data
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, 256 * 1024)
        except BlockingIOError:
            return
        if not data:
            self.close()
            return
        self.ring.add(data)
        self._on_data(data)

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        if not self.ended.done():
            self.ended.set_result(None)


async def _readable(fd: int) -> None:
    await _ready(fd, "reader")


async def _writable(fd: int) -> None:
    await _ready(fd, "writer")


async def _ready(fd: int, way: str) -> None:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    add, remove = (loop.add_reader, loop.remove_reader) if way == "reader" else (loop.add_writer, loop.remove_writer)
    add(fd, lambda: done.done() or done.set_result(None))
    try:
        await done
    finally:
        remove(fd)


def _descendants(pid: int) -> list[int]:
    """Every process below ``pid``, from /proc; empty where there is none."""
    found: list[int] = []
    pending = [pid]
    while pending:
        parent = pending.pop()
        try:
            with open(f"/proc/{parent}/task/{parent}/children") as file:
                children = [int(word) for word in file.read().split()]
        except OSError:
            continue
        found.extend(children)
        pending.extend(children)
    return found
