"""Secrets never leave in an answer: the last step of every call."""

from __future__ import annotations

import json
from collections.abc import Callable

from hanzo_mcp.core.messages import encode
from hanzo_mcp.core.text import Redactor
from hanzo_mcp.core.tool import InputRequired, Outcome, Result, Verbatim


def redaction(redactor: Redactor) -> Callable[[Outcome], Outcome]:
    """A step that masks known secrets; an outcome without any is returned as it is, byte for byte."""

    def step(outcome: Outcome) -> Outcome:
        if not redactor.knows_any or isinstance(outcome, InputRequired):
            return outcome
        before = outcome.text if isinstance(outcome, Verbatim) else encode(outcome.to_wire())
        after = redactor.redact(before)
        if after == before:
            return outcome
        value = json.loads(after)
        if isinstance(outcome, Verbatim):
            return Verbatim(outcome.member, after, value)
        return Result(value["content"], value.get("structuredContent"), outcome.is_error, value.get("_meta", {}))

    return step
