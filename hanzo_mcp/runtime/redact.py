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
        if isinstance(outcome, Verbatim):
            # The text is searched too: a hostile answer may spell the secret with escapes only one of the two shows.
            found = redactor.finds_in(outcome.value) or redactor.redact(outcome.text) != outcome.text
            return _masked(redactor, outcome) if found else outcome
        if isinstance(outcome, InputRequired) or not redactor.finds_in(
            [outcome.content, outcome.structured, outcome.meta]
        ):
            return outcome
        value = json.loads(redactor.redact(encode(outcome.to_wire())))
        return Result(value["content"], value.get("structuredContent"), outcome.is_error, value.get("_meta", {}))

    return step


def _masked(redactor: Redactor, outcome: Verbatim) -> Verbatim:
    """Encoded anew from the decoded value, so that ``\\u0073ecret`` is masked like ``secret``."""
    text = redactor.redact(encode(outcome.value))
    return Verbatim(outcome.member, text, json.loads(text))
