"""exec: run a command on this machine.

``run`` waits for the end. stdin is empty unless given, so nothing ever waits for a terminal; what a command leaves in
the background lives until the server ends.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Callable
from typing import Any

from pydantic import Field, model_validator

from hanzo_mcp.core.terminal import is_binary, last_line, settle
from hanzo_mcp.core.tool import RESULT_META, Access, JsonObject, Result
from hanzo_mcp.errors import Denied, InvalidInput
from hanzo_mcp.runtime.local import Context, Op, Tool
from hanzo_mcp.runtime.params import Params
from hanzo_mcp.sandbox.launcher import Completed, Output
from hanzo_mcp.sandbox.processes import name_of

_SHELLS = frozenset({"bash", "zsh", "sh", "dash", "fish"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFUSED = {
    "LD_": "it would load code into every program the command starts",
    "DYLD_": "it would load code into every program the command starts",
    "HANZO_": "it belongs to hanzo-mcp itself",
}
_PROGRESS = 0.2
"""Seconds between two progress notifications."""
_TAIL = 2048


class Run(Params):
    """One command."""

    command: str | None = Field(None, description="[run] Shell line")
    argv: list[str] | None = Field(None, min_length=1, description="[run] Or program and arguments")
    cwd: str | None = Field(None, description="[run] Default workspace")
    env: dict[str, str] | None = Field(None, description="[run] Added")
    stdin: str | None = Field(None, description="[run] Default empty")
    timeout: float = Field(120, gt=0, le=3600, description="[run] Seconds; default 120")

    @model_validator(mode="before")
    @classmethod
    def _list_as_argv(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("command"), list) and "argv" not in value:  # pyright: ignore[reportUnknownMemberType]
            given: dict[str, Any] = dict(value)  # pyright: ignore[reportUnknownArgumentType]
            given["argv"] = given.pop("command")
            return given
        return value  # pyright: ignore[reportUnknownVariableType]


async def run(ctx: Context, params: Run) -> Result:
    """Run to the end. Text: stdout, ``[stderr]`` and stderr, a last line in brackets that says how it ended.

    Facts: ``exit_code`` (int or null), ``signal`` (name or null), ``timed_out``, ``duration_ms``,
    ``stdout_bytes``, ``stderr_bytes``, ``truncated``, ``background`` (pids left running). ``isError`` unless the
    exit code is 0.
    """
    environment = ctx.exec.environment(_checked(params.env or {}))
    argv = _argv(params, environment.get("SHELL", ""))
    cwd = _folder(ctx, params.cwd or ".")
    progress = _Progress(ctx.client.progress)
    try:
        done = await ctx.exec.run(
            argv,
            cwd=cwd,
            env=environment,
            stdin=params.stdin.encode("utf-8", "surrogatepass") if params.stdin else None,
            timeout=params.timeout,
            on_output=progress.hear,
        )
    finally:
        progress.stop()
    return _result(done, params.timeout)


def _argv(params: Run, shell: str) -> list[str]:
    if (params.command is None) == (params.argv is None):
        raise InvalidInput('exec.run: give either command (a shell line) or argv (["program", "argument", ...]).')
    for text in params.argv or [params.command or ""]:
        if "\0" in text:
            raise InvalidInput("exec.run: contains a NUL character, which no argument can hold.")
    if params.argv is not None:
        if not params.argv[0]:
            raise InvalidInput("exec.run: argv[0] is empty; it names the program.")
        return params.argv
    command = params.command or ""
    if not command.strip():
        raise InvalidInput("exec.run: command is empty.")
    # A space in front keeps a command that begins with a dash from being read as the shell's own option.
    return [_shell(shell), "-c", f" {command}" if command.startswith(("-", "+")) else command]


def _shell(path: str) -> str:
    """The user's shell if it understands ``-c`` as POSIX does, else ``/bin/sh``."""
    known = os.path.isabs(path) and os.path.basename(path) in _SHELLS and os.access(path, os.X_OK)
    return path if known else "/bin/sh"


def _folder(ctx: Context, text: str) -> str:
    place = ctx.files.place(text)
    if not stat.S_ISDIR(ctx.files.stat(place).st_mode):
        raise InvalidInput(f"{place.shown}: cwd must be a folder.")
    return ctx.files.real(place)


def _checked(given: dict[str, str]) -> dict[str, str]:
    for name, value in given.items():
        if not _NAME.fullmatch(name):
            raise InvalidInput(f"env: {name[:60]!r} is no variable name (letters, digits, underscore).")
        if "\0" in value:
            raise InvalidInput(f"env: {name} contains a NUL character.")
        for prefix, why in _REFUSED.items():
            if name.upper().startswith(prefix):
                raise Denied(f"env: {name} may not be set: {why}.", by="sandbox")
    return given


def _result(done: Completed, timeout: float) -> Result:
    facts: JsonObject = {
        "exit_code": done.code,
        "signal": name_of(done.signal) if done.signal is not None else None,
        "timed_out": done.timed_out,
        "duration_ms": round(done.seconds * 1000),
        "stdout_bytes": done.stdout.total,
        "stderr_bytes": done.stderr.total,
    }
    if done.stdout.dropped or done.stderr.dropped:
        facts["truncated"] = True
    if done.background:
        facts["background"] = list(done.background)
    parts = [_shown(done.stdout)]
    if done.stderr.total:
        parts += ["[stderr]", _shown(done.stderr)]
    parts.append(_ending(done, timeout))
    text = "\n".join(part for part in parts if part)
    return Result([{"type": "text", "text": text}], None, done.timed_out or done.code != 0, {RESULT_META: facts})


def _shown(output: Output) -> str:
    if is_binary(output.head):
        return f"(binary, {output.total} bytes, not shown; redirect it to a file)"
    return settle(output.text()).rstrip("\n")


def _ending(done: Completed, timeout: float) -> str:
    if done.timed_out:
        how = f"timed out after {timeout:g} s, killed with everything it started"
    elif done.signal is not None:
        how = f"killed by {name_of(done.signal)}"
    else:
        how = f"exit code {done.code}"
    notes = [how, f"{done.seconds:.1f} s" if done.seconds >= 1 else f"{done.seconds * 1000:.0f} ms"]
    if done.stdout.dropped or done.stderr.dropped:
        notes.append("output cut in the middle: filter it (grep, tail) or redirect it to a file")
    if done.background:
        notes.append(f"still running in the background: {', '.join(map(str, done.background))}")
    return f"[{'; '.join(notes)}]"


class _Progress:
    """Tells the caller the last line of output, at most every ``_PROGRESS`` seconds, and nothing after ``stop``."""

    def __init__(self, tell: Callable[[float, float | None, str | None], None]) -> None:
        self._tell, self._loop = tell, asyncio.get_running_loop()
        self._tail, self._bytes, self._next = b"", 0, 0.0
        self._timer: asyncio.TimerHandle | None = None

    def hear(self, data: bytes) -> None:
        self._tail = (self._tail + data[-_TAIL:])[-_TAIL:]
        self._bytes += len(data)
        if self._timer is None:
            self._timer = self._loop.call_at(max(self._next, self._loop.time()), self._send)

    def _send(self) -> None:
        self._timer = None
        self._next = self._loop.time() + _PROGRESS
        self._tell(self._bytes, None, last_line(self._tail)[:200] or f"{self._bytes} bytes")

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


TOOL = Tool(
    name="exec",
    title="Command",
    description="Run a command, no terminal. Of long output 64 KB at each end are kept.",
    ops=[Op("run", Run, run, Access.EXECUTE, "to its end")],
)
