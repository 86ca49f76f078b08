"""The one path of a call, for every kind of tool (architecture §3).

1 look up  2 validate  3 permission  4 pre-hooks  5 run  6 post-hooks  7 audit  8 redact  9 result
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hanzo_mcp.core.messages import INVALID_PARAMS
from hanzo_mcp.core.names import folded, nearest
from hanzo_mcp.core.permissions import Allow, Evaluation, PermissionMode, PermissionPolicy
from hanzo_mcp.core.shapes import as_object
from hanzo_mcp.core.tool import Call, Outcome, Prepared, Result, ToolSource, Verbatim
from hanzo_mcp.errors import Denied, ProtocolError, SignInNeeded, ToolError
from hanzo_mcp.hooks.runner import HookRunner
from hanzo_mcp.runtime.audit import Audit, Record, fingerprint
from hanzo_mcp.runtime.prompters import ElicitationPrompter


@dataclass(frozen=True, slots=True)
class Gates:
    """What a call must pass."""

    policy: PermissionPolicy
    hooks: HookRunner
    audit: Audit


class Pipeline:
    """``sources`` in order of precedence; ``local_names`` are never answered by anybody else."""

    def __init__(
        self,
        sources: Sequence[ToolSource],
        local_names: Sequence[str],
        gates: Gates,
        redact: Callable[[Outcome], Outcome],
    ) -> None:
        self._sources, self._gates, self._redact = tuple(sources), gates, redact
        self._local = {folded(name): name for name in local_names}

    async def call(self, call: Call) -> Outcome:
        """Answer a call. Raises ``ProtocolError`` only for a tool nobody has; a gate or tool that says no is
        a result with ``isError``."""
        started = time.monotonic()
        record = Record(call.session_id, call.tool)
        try:
            source = self._look_up(call.tool)
            record.source = source.name
            outcome = await self._pass(source, call, record)
            record.outcome = "error" if _is_error(outcome) else "ok"
        except (ToolError, SignInNeeded) as exc:
            record.outcome = "denied" if isinstance(exc, Denied) else "error"
            record.reason = str(exc)[:300]
            outcome = _failure(exc)
        except ProtocolError as exc:
            record.outcome, record.reason = "error", str(exc)[:300]
            raise
        finally:
            self._gates.audit.write(record, started)
        return self._redact(outcome)

    def _look_up(self, tool: str) -> ToolSource:
        local = self._local.get(folded(tool))
        if local is not None and local != tool:
            raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {tool[:100]}; the local tool is called {local!r}")
        for source in self._sources:
            if source.has(tool):
                return source
        close = nearest(tool, list(self._local.values()))
        hint = f"; did you mean {close!r}?" if close else ""
        raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {tool[:100]}{hint}")

    async def _pass(self, source: ToolSource, call: Call, record: Record) -> Outcome:
        await source.ready(call.tool)
        prepared = source.prepare(call, call.arguments)
        record.subject, record.args_sha256 = prepared.subject, fingerprint(call.arguments)
        await self._permit(prepared, call, record)
        verdict = await self._gates.hooks.run_pre(prepared.subject, prepared.arguments)
        if not verdict.allowed:
            record.decided_by = "hook"
            raise Denied(f"{prepared.subject}: denied by a hook: {verdict.reason}", by="hook")
        try:
            outcome = await prepared.run()
        except ToolError as exc:
            await self._gates.hooks.run_post(prepared.subject, prepared.arguments, _failure(exc).to_wire())
            raise
        await self._gates.hooks.run_post(prepared.subject, prepared.arguments, _plain(outcome))
        return outcome

    async def _permit(self, prepared: Prepared, call: Call, record: Record) -> None:
        evaluation = self._gates.policy.explain(prepared.subject)
        _note(record, evaluation)
        rule = evaluation.rule
        if evaluation.mode is PermissionMode.ALLOW or rule is None:
            return
        if evaluation.mode is PermissionMode.DENY:
            why = rule.reason or f'the rule "{rule.tool_pattern}" of the {rule.tier} settings denies it'
            raise Denied(f"{prepared.subject}: {why}.", by="policy")
        decision = await ElicitationPrompter(call.client).request_permission(prepared.subject, prepared.arguments)
        record.decided_by = "user"
        if not isinstance(decision, Allow):
            reason = getattr(decision, "reason", "nobody could decide")
            raise Denied(f"{prepared.subject}: {reason}", by="policy")


def _note(record: Record, evaluation: Evaluation) -> None:
    record.mode = evaluation.mode.value
    record.decided_by = "policy" if evaluation.rule else "host"
    if evaluation.rule:
        record.rule_matched, record.tier = evaluation.rule.tool_pattern, evaluation.rule.tier


def _failure(exc: ToolError | SignInNeeded) -> Result:
    details = exc.details() if isinstance(exc, ToolError) else {"code": "sign_in_needed"}
    return Result.failure(str(exc), details)


def _is_error(outcome: Outcome) -> bool:
    if isinstance(outcome, Verbatim):
        return outcome.member == "error" or (as_object(outcome.value) or {}).get("isError") is True
    return isinstance(outcome, Result) and outcome.is_error


def _plain(outcome: Outcome) -> Any:
    if isinstance(outcome, Verbatim):
        return outcome.value
    return outcome.to_wire() if isinstance(outcome, Result) else None
