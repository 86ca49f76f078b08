"""Running a child process: bounded in time and bytes, ended with everything it started.

The child gets no stdin of ours, no descriptor of ours and an environment built from an allow-list; the bearer is
never in it. Output is kept as head and tail, the rest is counted. What a finished run leaves in the background may
live on, but not longer than the server: ``kill_all``.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hanzo_mcp.errors import InvalidInput, NotFound, TooLarge, ToolError, from_oserror
from hanzo_mcp.sandbox.processes import MARK, Strays, Tree, adopt_orphans
from hanzo_mcp.sandbox.streams import Collector, Feeder, Output, Pipe, Ring

__all__ = ["GRACE", "KEEP", "Completed", "Launcher", "Output"]

KEEP = 64 * 1024
"""Bytes kept at the head and at the tail of each stream."""
GRACE = 2.0
"""Seconds between TERM and KILL, and the longest wait for a killed process."""
LINGER = 0.5
"""Seconds in which output is still read after the main process has ended."""
QUIET = 0.05
"""Seconds without output after which a background process that holds the pipe is not waited for."""
_PASSED = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "SYSTEMROOT", "PATHEXT")
_POLL = 0.02


@dataclass(frozen=True, slots=True)
class Completed:
    """How a child ended. ``code`` is ``None`` when a signal ended it; ``seconds`` is wall time.

    ``stopped`` when it was ended because its collector had enough; ``background`` are the pids it left running.
    """

    code: int | None
    signal: int | None
    stdout: Output
    stderr: Output
    seconds: float
    timed_out: bool
    stopped: bool = False
    background: tuple[int, ...] = ()


class Launcher:
    """Starts children for the tools. ``environ`` is the environment to pick allowed names from."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._base = {key: value for key, value in environ.items() if key in _PASSED or key.startswith(("LC_", "XDG_"))}
        self._base["PATH"] = _absolute(environ.get("PATH", os.defpath))
        self._running: dict[int, _Child] = {}
        self._left: set[_Child] = set()
        self._strays = Strays()
        self._numbers = itertools.count(1)

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """What a child sees: the allow-list, a dumb terminal, then ``extra``."""
        return {**self._base, "TERM": "dumb", "PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", **(extra or {})}

    async def run(  # noqa: PLR0913 - all by keyword but argv
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        timeout: float | None = None,
        keep: int = KEEP,
        stdout: Collector | None = None,
        on_output: Callable[[bytes], None] | None = None,
    ) -> Completed:
        """Run to the end, to ``timeout`` seconds or to cancellation; in the last two cases nothing of it is left.

        ``env`` replaces the environment when given. ``keep`` bytes of head and of tail are kept of each stream;
        ``stdout`` collects that one instead. ``on_output`` hears the bytes of both. Raises ``NotFound``,
        ``InvalidInput`` and the errors of the errno table when it cannot start.
        """
        adopt_orphans()
        mark = f"{os.getpid()}-{next(self._numbers)}"
        full = {**(self.environment() if env is None else env), MARK: mark}
        started = _spawn(argv, cwd, full, stdin is not None)
        child = _Child(started, mark, self._running, stdin, (stdout or Ring(keep), Ring(keep)), on_output)
        self._running[child.pid] = child
        child.when_gone(self._forget)
        return await child.finish(timeout)

    def _forget(self, child: _Child) -> None:
        """Called once the child's main process has been waited for."""
        self._running.pop(child.pid, None)
        self._strays.collect(self._running)
        self._keep_watch(child)

    def _keep_watch(self, child: _Child) -> None:
        """Remember what a run left behind, and collect each of it as it ends."""
        child.left = child.tree.alive()
        if not child.left:
            self._left.discard(child)
            return
        self._left.add(child)
        for pid in child.tree.adopted():
            child.watch(pid, lambda: self._keep_watch(child))

    def kill_all(self) -> None:
        """End every child and everything finished runs left in the background, for the server's own end."""
        doomed = pending = [*self._running.values(), *self._left]
        deadline = time.monotonic() + GRACE / 10
        while pending and time.monotonic() < deadline:
            for child in pending:
                child.tree.signal(signal.SIGKILL)
            time.sleep(0.002)
            pending = [child for child in pending if not child.is_over()]
        for child in doomed:
            child.close()
        self._left.clear()


@dataclass(frozen=True, slots=True)
class _Started:
    """A process and our ends of its pipes."""

    process: subprocess.Popen[bytes]
    stdout: int
    stderr: int
    stdin: int | None


def _spawn(argv: Sequence[str], cwd: str, env: dict[str, str], feeding: bool) -> _Started:
    (out, out_child), (err, err_child), *more = _pipes(3 if feeding else 2, argv[0])
    in_child, feed = more[0] if more else (subprocess.DEVNULL, None)
    try:
        process = subprocess.Popen(
            list(argv), cwd=cwd, env=env, stdin=in_child, stdout=out_child, stderr=err_child, start_new_session=True
        )
    except (OSError, ValueError) as exc:
        _close(out, err, feed)
        raise _refusal(exc, argv[0], cwd) from exc
    finally:
        _close(out_child, err_child, in_child if feeding else None)
    return _Started(process, out, err, feed)


def _pipes(count: int, program: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    try:
        for _ in range(count):
            found.append(os.pipe())  # noqa: PERF401 - those made must be closed
    except OSError as exc:
        _close(*(fd for pair in found for fd in pair))
        raise from_oserror(exc, program) from exc
    return found


def _close(*fds: int | None) -> None:
    for fd in fds:
        if fd is not None:
            os.close(fd)


def _refusal(exc: OSError | ValueError, program: str, cwd: str) -> ToolError:
    """Why a process could not start."""
    if not isinstance(exc, OSError):
        return InvalidInput(f"{program}: {exc}")
    if exc.filename == cwd:
        return from_oserror(exc, cwd)
    if isinstance(exc, FileNotFoundError):
        return NotFound(f"{program}: command not found.")
    if exc.errno == errno.ENOEXEC:
        return InvalidInput(f"{program}: not a program and has no #! line; name its interpreter.")
    if exc.errno == errno.E2BIG:
        return TooLarge("The arguments and the environment are too long for the system (one argument: 128 KB).")
    return from_oserror(exc, program)


class _Child:
    """A started process and its streams, watched by the running loop."""

    def __init__(
        self,
        started: _Started,
        mark: str,
        leaders: Mapping[int, _Child],
        stdin: bytes | None,
        collectors: tuple[Collector, Collector],
        on_output: Callable[[bytes], None] | None,
    ) -> None:
        self._process, self.pid = started.process, started.process.pid
        self.tree = Tree(self.pid, mark, leaders)
        self._loop = asyncio.get_running_loop()
        self._started = time.monotonic()
        self._on_output, self._stopped = on_output, False
        self.left = False
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._watched: dict[int, int] = {}
        self._out = Pipe(started.stdout, collectors[0], self._hear)
        self._err = Pipe(started.stderr, collectors[1], self._hear)
        self._feeder = Feeder(started.stdin, stdin or b"") if started.stdin is not None else None
        self._then: Callable[[_Child], None] | None = None
        if not self.watch(self.pid, self._collect):
            self._waiting = asyncio.create_task(self._wait_in_thread())

    def when_gone(self, then: Callable[[_Child], None]) -> None:
        """``then`` is called when the main process has been waited for."""
        self._then = then

    def watch(self, pid: int, then: Callable[[], None]) -> bool:
        """Call ``then`` when ``pid``, a child of ours, ends. False where the system has no pidfd."""
        if pid in self._watched or self._loop.is_closed():
            return True
        try:
            fd = os.pidfd_open(pid)
        except (AttributeError, OSError):  # not Linux, or an old kernel
            return False
        self._watched[pid] = fd
        self._loop.add_reader(fd, self._unwatch, pid, then)
        return True

    def _unwatch(self, pid: int, then: Callable[[], None] | None = None) -> None:
        fd = self._watched.pop(pid)
        if not self._loop.is_closed():
            self._loop.remove_reader(fd)
        os.close(fd)
        if then is not None:
            then()

    async def _wait_in_thread(self) -> None:
        await asyncio.to_thread(self._process.wait)
        self._collect()

    def _collect(self) -> None:
        self._process.wait()
        self.tree.leader_gone = True
        if not self._gone.done():
            self._gone.set_result(None)
        if self._then is not None:
            self._then(self)

    def _hear(self, data: bytes, more: bool) -> None:
        if self._on_output is not None:
            self._on_output(data)
        if not more and not self._stopped:
            self._stopped = True
            self.tree.signal(signal.SIGKILL)

    async def finish(self, timeout: float | None) -> Completed:
        """Wait for the end; whatever way this is left, nobody is waiting for the streams any more."""
        timed_out = False
        try:
            ended, _ = await asyncio.wait([self._gone], timeout=timeout)
            if not ended:
                timed_out = True
                await self._end()
            elif self._stopped:
                await self._kill()
            await self._drain()
            return self._completed(timed_out)
        except asyncio.CancelledError:
            await self._kill()
            raise
        finally:
            self._let_go()

    async def _end(self) -> None:
        """TERM, and after the grace KILL, to the whole tree."""
        self.tree.signal(signal.SIGTERM)
        deadline = self._loop.time() + GRACE
        while self._loop.time() < deadline and (not self._gone.done() or self.tree.alive()):  # noqa: ASYNC110 - no event
            await asyncio.sleep(_POLL)
        await self._kill()

    async def _kill(self) -> None:
        """KILL until nothing is left; a process the kernel cannot end is given up after the grace."""
        deadline = self._loop.time() + GRACE
        while self._loop.time() < deadline:
            self.tree.signal(signal.SIGKILL)
            await asyncio.wait([self._gone], timeout=_POLL)
            if self._gone.done() and not self.tree.alive():
                return
            await asyncio.sleep(_POLL / 10)

    async def _drain(self) -> None:
        """Read what is left; a background process that keeps a pipe open is not waited for once it is quiet."""
        deadline = self._loop.time() + LINGER
        seen = -1
        while self._loop.time() < deadline and seen != self._out.seen + self._err.seen:
            seen = self._out.seen + self._err.seen
            _, open_ = await asyncio.wait([self._out.ended, self._err.ended], timeout=QUIET)
            if not open_:
                return

    def _completed(self, timed_out: bool) -> Completed:
        code = self._process.returncode
        code = -signal.SIGKILL if code is None else code  # the kernel still holds it
        return Completed(
            code if code >= 0 else None,
            -code if code < 0 else None,
            self._out.output(),
            self._err.output(),
            time.monotonic() - self._started,
            timed_out,
            self._stopped,
            tuple(self.tree.members()) if self.left else (),
        )

    def _let_go(self) -> None:
        self._on_output = None
        if self._feeder is not None:
            self._feeder.close()
        self._out.ignore()
        self._err.ignore()

    def is_over(self) -> bool:
        """Has all of it ended? Collects what has."""
        if not self.tree.leader_gone and self._process.poll() is not None:
            self._collect()
        return self.tree.leader_gone and not self.tree.alive()

    def close(self) -> None:
        """Let go of every descriptor."""
        if self._feeder is not None:
            self._feeder.close()
        self._out.close()
        self._err.close()
        for pid in tuple(self._watched):
            self._unwatch(pid)


def _absolute(path: str) -> str:
    """PATH without relative entries: what a command means must not depend on the folder it runs in."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if os.path.isabs(entry))
