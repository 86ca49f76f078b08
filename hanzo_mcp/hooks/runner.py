"""Pre- and post-hooks as commands (HIP-0301 §9): exit 0 allows, 2 denies with stderr as the reason, anything else
is an error and denies too. Fail closed: a hook that cannot start, times out or dies by a signal denies.

The input goes to stdin as one JSON object and, as far as an environment can hold it, into ``HANZO_TOOL_NAME``,
``HANZO_TOOL_INPUT``, ``HANZO_SESSION_ID`` and (post) ``HANZO_TOOL_OUTPUT``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hanzo_mcp.core.messages import encode
from hanzo_mcp.core.permissions import covers
from hanzo_mcp.core.text import one_line
from hanzo_mcp.errors import ToolError
from hanzo_mcp.sandbox.launcher import Completed, Launcher

PRE = "pre_tool_use"
POST = "post_tool_use"
ENV_LIMIT = 64 * 1024
"""Bytes of input kept in the environment; the kernel refuses more than 128 KiB in one variable."""


@dataclass(frozen=True, slots=True)
class HookConfig:
    """``event`` is ``pre_tool_use`` or ``post_tool_use``; ``tool_pattern`` a glob over subjects."""

    event: str
    command: str
    tool_pattern: str
    timeout_ms: int = 5000


@dataclass(frozen=True, slots=True)
class HookResult:
    """``allowed``, and when not: ``reason`` for the caller."""

    allowed: bool
    reason: str = ""


class HookRunner:
    """Runs the matching hooks one after another, in the order of the settings."""

    def __init__(
        self, hooks: Sequence[HookConfig], launcher: Launcher, cwd: str, session_id: str, log: Callable[[str], None]
    ) -> None:
        self._hooks, self._launcher, self._cwd = tuple(hooks), launcher, cwd
        self._session_id, self._log = session_id, log

    async def run_pre(self, tool_name: str, input: dict[str, Any]) -> HookResult:
        """The first hook that does not allow ends the matter."""
        for hook in self._matching(PRE, tool_name):
            reason = await self._refusal(hook, tool_name, input)
            if reason is not None:
                return HookResult(False, reason)
        return HookResult(True)

    async def run_post(self, tool_name: str, input: dict[str, Any], output: Any) -> None:
        """Failures are logged, never block."""
        for hook in self._matching(POST, tool_name):
            try:
                done = await self._run(hook, tool_name, input, output)
            except ToolError as exc:
                self._log(f"post hook {hook.command[:80]!r} did not run: {exc}")
                continue
            if done.code != 0 or done.timed_out:
                self._log(f"post hook {hook.command[:80]!r} failed: {_ending(done)}")

    def _matching(self, event: str, tool_name: str) -> list[HookConfig]:
        return [hook for hook in self._hooks if hook.event == event and covers(hook.tool_pattern, tool_name)]

    async def _refusal(self, hook: HookConfig, tool_name: str, arguments: dict[str, Any]) -> str | None:
        try:
            done = await self._run(hook, tool_name, arguments, None)
        except ToolError as exc:
            self._log(f"hook {hook.command[:80]!r} did not run, so {tool_name} is denied: {exc}")
            return f"a hook could not run: {exc}"
        said = one_line(done.stderr.text(), 500)
        if done.code == 0 and not done.timed_out:
            return None
        if done.code == 2 and not done.timed_out:
            return said or "a hook denied the call"
        self._log(f"hook {hook.command[:80]!r} failed, so {tool_name} is denied: {_ending(done)} {said}")
        return f"a hook failed ({_ending(done)})" + (f": {said}" if said else "")

    async def _run(self, hook: HookConfig, tool_name: str, arguments: dict[str, Any], output: Any) -> Completed:
        given: dict[str, Any] = {"event": hook.event, "tool_name": tool_name, "session_id": self._session_id}
        given["input"] = arguments
        env = {
            "HANZO_TOOL_NAME": tool_name,
            "HANZO_TOOL_INPUT": encode(arguments)[:ENV_LIMIT],
            "HANZO_SESSION_ID": self._session_id,
        }
        if hook.event == POST:
            given["output"] = output
            env["HANZO_TOOL_OUTPUT"] = encode(output)[:ENV_LIMIT]
        return await self._launcher.run(
            ["/bin/sh", "-c", hook.command],
            cwd=self._cwd,
            env=self._launcher.environment(env),
            stdin=encode(given).encode(),
            timeout=hook.timeout_ms / 1000,
        )


def _ending(done: Completed) -> str:
    if done.timed_out:
        return f"no answer within {done.seconds:.1f} s"
    return f"exit {done.code}" if done.code is not None else f"signal {done.signal}"
