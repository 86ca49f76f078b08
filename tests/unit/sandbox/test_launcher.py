"""Children: bounded, deaf to our descriptors, and ended with everything they started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import tracemalloc
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hanzo_mcp.errors import InvalidInput, NotFound, TooLarge, Unavailable
from hanzo_mcp.sandbox import processes
from hanzo_mcp.sandbox.launcher import Completed, Launcher
from hanzo_mcp.sandbox.processes import below, children
from hanzo_mcp.sandbox.streams import Output, Ring, Window

DEADLINE = 20


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    launcher = Launcher(dict(os.environ))
    before = set(children(os.getpid()))
    yield launcher
    launcher.kill_all()
    assert set(children(os.getpid())) <= before, "a process or zombie is left"


def run(body: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(DEADLINE):
            await body()

    asyncio.run(bounded())


def shell(launcher: Launcher, command: str, cwd: Path, timeout: float | None = None) -> Completed:
    found: list[Completed] = []

    async def body() -> None:
        found.append(await launcher.run(["/bin/sh", "-c", command], cwd=str(cwd), timeout=timeout))

    run(body)
    return found[0]


@asynccontextmanager
async def started(
    launcher: Launcher, command: str, cwd: Path, pids: int
) -> AsyncGenerator[tuple[asyncio.Task[Completed], list[int]]]:
    """A running command whose ``pids`` processes have been seen."""
    before = set(below(os.getpid()))
    task = asyncio.create_task(launcher.run(["/bin/sh", "-c", command], cwd=str(cwd)))
    while len(new := [pid for pid in below(os.getpid()) if pid not in before]) < pids:
        await asyncio.sleep(0)
    yield task, new


def no_children(pid: int) -> list[int]:
    """What a system without /proc knows."""
    return []


def gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_streams_and_exit_code_are_kept_apart(launcher: Launcher, tmp_path: Path) -> None:
    done = shell(launcher, "echo out; echo err >&2; exit 3", tmp_path)
    assert (done.stdout.text(), done.stderr.text(), done.code, done.signal) == ("out\n", "err\n", 3, None)
    assert not done.timed_out
    assert not done.background


def test_a_signal_is_reported(launcher: Launcher, tmp_path: Path) -> None:
    done = shell(launcher, "kill -TERM $$", tmp_path)
    assert (done.code, done.signal) == (None, signal.SIGTERM)


def test_stdin_is_empty_and_no_descriptor_is_inherited(launcher: Launcher, tmp_path: Path) -> None:
    directory = os.open("/", os.O_RDONLY)
    os.set_inheritable(directory, True)
    try:
        done = shell(launcher, "cat; ls /proc/self/fd", tmp_path)
    finally:
        os.close(directory)
    # ls itself opens the folder it lists
    assert done.stdout.text().split() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("size", [0, 5, 1_000_000])
def test_stdin_is_fed_whole(launcher: Launcher, tmp_path: Path, size: int) -> None:
    async def body() -> None:
        done = await launcher.run(["wc", "-c"], cwd=str(tmp_path), stdin=b"x" * size)
        assert int(done.stdout.text()) == size

    run(body)


def test_a_child_that_does_not_read_its_input_is_no_error(launcher: Launcher, tmp_path: Path) -> None:
    async def body() -> None:
        done = await launcher.run(["true"], cwd=str(tmp_path), stdin=b"x" * 1_000_000)
        assert done.code == 0

    run(body)


def test_a_child_that_closes_its_streams_is_waited_for(launcher: Launcher, tmp_path: Path) -> None:
    done = shell(launcher, "echo a; exec >&- 2>&-; sleep 0.2; touch late; exit 5", tmp_path)
    assert (done.code, done.stdout.text()) == (5, "a\n")
    assert (tmp_path / "late").exists()


def test_a_background_process_is_not_waited_for_and_ends_with_the_server(launcher: Launcher, tmp_path: Path) -> None:
    done = shell(launcher, "sleep 61 & echo started", tmp_path)
    assert done.stdout.text() == "started\n"
    (pid,) = done.background
    assert Path(f"/proc/{pid}").exists()
    launcher.kill_all()
    assert gone([pid])


@pytest.mark.parametrize("command", ["setsid sleep 61 & sleep 62 &", "(setsid sleep 61 >/dev/null 2>&1 &);"])
def test_a_daemon_ends_with_the_server(launcher: Launcher, tmp_path: Path, command: str) -> None:
    done = shell(launcher, f"{command} sleep 0.1; echo started", tmp_path)
    assert done.background
    launcher.kill_all()
    assert gone(list(done.background))


def test_a_background_process_may_go_on_writing_and_is_collected(launcher: Launcher, tmp_path: Path) -> None:
    async def body() -> None:
        command = "(for i in $(seq 1 9999); do echo noise; done; touch survived; sleep 0.01) & echo started"
        done = await launcher.run(["/bin/sh", "-c", command], cwd=str(tmp_path))
        while not gone(list(done.background)):
            await asyncio.sleep(0.01)
        assert (tmp_path / "survived").exists()

    run(body)


@pytest.mark.parametrize(
    "command",
    [
        "sleep 777 & sleep 778",
        "sleep 777 | sleep 778",
        "setsid sleep 777 & sleep 778",
        "trap '' TERM INT HUP; sleep 777 & while :; do sleep 778; done",
    ],
)
def test_cancelling_leaves_nothing(launcher: Launcher, tmp_path: Path, command: str) -> None:
    async def body() -> None:
        async with started(launcher, command, tmp_path, 2) as (task, pids):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert gone(pids)

    run(body)


def test_cancelling_twice_leaves_nothing(launcher: Launcher, tmp_path: Path) -> None:
    async def body() -> None:
        async with started(launcher, "sleep 777", tmp_path, 1) as (task, pids):
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while not gone(pids):
                await asyncio.sleep(0.001)

    run(body)


def test_an_orphan_in_its_own_session_is_ended_too(launcher: Launcher, tmp_path: Path) -> None:
    async def body() -> None:
        async with started(launcher, "(setsid sleep 777 &) ; sleep 778", tmp_path, 3) as (task, pids):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert gone(pids)

    run(body)


def test_without_proc_and_pidfd_the_process_group_is_ended(
    launcher: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of systems that are not Linux."""

    async def body() -> None:
        async with started(launcher, "sleep 777 & sleep 778", tmp_path, 3) as (task, pids):
            with monkeypatch.context() as other:
                other.setattr(processes, "_HAS_PROC", False)
                other.setattr(processes, "children", no_children)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.wait_for(task, DEADLINE)
            for pid in pids:
                while not gone([pid]):
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)
                    await asyncio.sleep(0.001)

    run(body)


def test_without_pidfd_the_end_is_seen_too(launcher: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert shell(launcher, "echo a; exit 3", tmp_path).code == 3


def test_a_timeout_keeps_the_output_and_ends_the_tree(launcher: Launcher, tmp_path: Path) -> None:
    done = shell(launcher, "echo before; sleep 777 & sleep 778", tmp_path, timeout=0.3)
    assert (done.timed_out, done.stdout.text(), done.background) == (True, "before\n", ())
    assert done.signal == signal.SIGTERM


def test_a_timeout_gives_time_to_clean_up(launcher: Launcher, tmp_path: Path) -> None:
    done = shell(launcher, "trap 'sleep 0.1; touch cleaned; exit 7' TERM; sleep 777 & wait", tmp_path, timeout=0.3)
    assert (done.timed_out, done.code) == (True, 7)
    assert (tmp_path / "cleaned").exists()


def test_a_process_that_ignores_term_is_killed(launcher: Launcher, tmp_path: Path) -> None:
    done = shell(launcher, "trap '' TERM INT HUP; while :; do sleep 1; done", tmp_path, timeout=0.3)
    assert (done.timed_out, done.signal) == (True, signal.SIGKILL)


def test_a_flood_is_bounded(launcher: Launcher, tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        done = shell(launcher, "yes | head -c 60000000", tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert done.stdout.total == 60_000_000
    assert (len(done.stdout.head), len(done.stdout.tail)) == (65536, 65536)
    assert peak < 4_000_000


def test_a_collector_that_has_enough_ends_the_child(launcher: Launcher, tmp_path: Path) -> None:
    async def body() -> None:
        window = Window(10, 5, 1000)
        done = await launcher.run(["/bin/sh", "-c", "yes 0123456789"], cwd=str(tmp_path), stdout=window)
        assert done.stopped
        assert window.exhausted
        assert done.stdout.head == b"\n0123"

    run(body)


def test_everything_running_ends_with_the_server(launcher: Launcher, tmp_path: Path) -> None:
    async def body() -> None:
        async with started(launcher, "sleep 777 & sleep 778", tmp_path, 3) as (task, pids):
            launcher.kill_all()
            assert gone(pids)
            assert (await task).signal == signal.SIGKILL

    run(body)


def test_many_at_once_lose_nothing(launcher: Launcher, tmp_path: Path) -> None:
    async def body() -> None:
        done = await asyncio.gather(*(launcher.run(["echo", str(n)], cwd=str(tmp_path)) for n in range(60)))
        assert [int(one.stdout.text()) for one in done] == list(range(60))

    run(body)


def test_descriptors_are_given_back(launcher: Launcher, tmp_path: Path) -> None:
    async def body() -> None:
        await launcher.run(["true"], cwd=str(tmp_path), stdin=b"x")
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            await launcher.run(["true"], cwd=str(tmp_path), stdin=b"x")
            with pytest.raises(NotFound):
                await launcher.run(["no-such-program"], cwd=str(tmp_path))
        while len(os.listdir("/proc/self/fd")) > before:  # a pipe that was still open is let go by a timer
            await asyncio.sleep(0.01)

    run(body)


def test_what_cannot_start_says_why(launcher: Launcher, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("echo hi\n")
    script.chmod(0o755)

    async def body() -> None:
        with pytest.raises(NotFound, match="no-such-program: command not found"):
            await launcher.run(["no-such-program"], cwd=str(tmp_path))
        with pytest.raises(NotFound, match="gone: no such file"):
            await launcher.run(["true"], cwd=str(tmp_path / "gone"))
        with pytest.raises(InvalidInput, match="no #! line"):
            await launcher.run([str(script)], cwd=str(tmp_path))
        with pytest.raises(InvalidInput, match="null byte"):
            await launcher.run(["echo", "a\0b"], cwd=str(tmp_path))
        with pytest.raises(TooLarge):
            await launcher.run(["echo", "x" * 200_000], cwd=str(tmp_path))

    run(body)


def test_no_descriptors_left_is_an_error_and_leaks_none(launcher: Launcher, tmp_path: Path) -> None:
    async def body() -> None:
        await launcher.run(["true"], cwd=str(tmp_path))
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        before = len(os.listdir("/proc/self/fd"))
        refusals = 0
        for spare in range(1, 8):
            resource.setrlimit(resource.RLIMIT_NOFILE, (before + spare, limits[1]))
            try:
                await launcher.run(["true"], cwd=str(tmp_path))
            except Unavailable:
                refusals += 1
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert refusals
        async with asyncio.timeout(20):
            while len(os.listdir("/proc/self/fd")) > before:
                await asyncio.sleep(0.01)

    run(body)


def test_the_environment_is_an_allow_list() -> None:
    launcher = Launcher(
        {"PATH": "/usr/bin::bin:/bin", "HOME": "/h", "LC_ALL": "C", "XDG_CONFIG_HOME": "/x", "SECRET": "s"}
    )
    env = launcher.environment({"A": "1"})
    assert env["PATH"] == "/usr/bin:/bin"
    assert (env["HOME"], env["LC_ALL"], env["XDG_CONFIG_HOME"], env["A"], env["TERM"]) == ("/h", "C", "/x", "1", "dumb")
    assert "SECRET" not in env


@pytest.mark.parametrize("cut", range(2, 9))
def test_a_cut_never_splits_a_character(cut: int) -> None:
    ring = Ring(cut)
    ring.add("aé€😀é€😀".encode() * 3)
    assert ring.output().dropped
    assert "\ufffd" not in ring.output().text()


def test_a_ring_counts_what_it_drops() -> None:
    ring = Ring(4)
    for chunk in (b"ab", b"cdefgh", b"ijklmnopqrstuvw", b"xyz"):
        ring.add(chunk)
    assert ring.output() == Output(b"abcd", b"wxyz", 18)
    assert ring.output().text() == "abcd\n… 18 bytes left out …\nwxyz"


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_a_window_shows_its_part_whatever_the_chunks(chunk: int) -> None:
    data, window = b"line one\nline two\nline three\n", Window(9, 8, 1000)
    for at in range(0, len(data), chunk):
        assert window.add(data[at : at + chunk])
    assert (window.output().head, window.total, window.lines, window.exhausted) == (b"line two", len(data), 3, False)
