"""Argument models of local tools: frozen, exact, forgiving where it is safe.

Models send ``"5"`` for 5, ``"true"`` for true and JSON text for an object; those are coerced. Everything else
wrong is named in one sentence that says how to call the op right.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails

from hanzo_mcp.core.names import nearest
from hanzo_mcp.core.shapes import as_object
from hanzo_mcp.errors import InvalidInput


class Params(BaseModel):
    """Arguments of one op. Every field needs a ``description``; it becomes the tool's JSON schema."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _unwrap(cls, value: Any) -> Any:
        given = as_object(value)
        if given is None:
            return value
        fields = {info.alias or name: info for name, info in cls.model_fields.items()}
        # null means "not given" for optional arguments: several clients fill every property.
        kept = {k: v for k, v in given.items() if v is not None or (k in fields and fields[k].is_required())}
        return {k: _structured(v, fields[k].annotation) if k in fields else v for k, v in kept.items()}


P = TypeVar("P", bound=Params)


def _structured(value: Any, annotation: Any) -> Any:
    """JSON text where a list or object is wanted, and one item where a list is wanted."""
    shape = str(annotation)
    wants_list = "list[" in shape
    if isinstance(value, str) and (wants_list or "dict[" in shape) and "str |" not in shape.replace(" None", ""):
        decoded = _decoded(value)
        if decoded is not None:
            value = decoded
    if wants_list and "|" not in shape.replace("| None", "") and isinstance(value, (str, dict, int)):
        return [value]
    return value


def _decoded(text: str) -> Any:
    if not text.lstrip().startswith(("[", "{")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def validate(model: type[P], arguments: dict[str, Any], call: str) -> P:
    """``arguments`` as a ``model``; ``call`` names the op in messages. Raises ``InvalidInput``."""
    try:
        return model.model_validate(arguments)
    except ValidationError as exc:
        raise InvalidInput(explain(exc.errors(include_url=False)[0], model, call)) from None


def explain(error: ErrorDetails, model: type[Params], call: str) -> str:
    """The first error as a sentence with its path, what was expected and how the op is called."""
    path = ".".join(str(part) for part in error["loc"]) or "arguments"
    known = [info.alias or name for name, info in model.model_fields.items()]
    usage = f" {call} takes {signature(model)}."
    kind = error["type"]
    if kind == "missing":
        return f"{call}: missing argument {path!r}.{usage}"
    if kind == "extra_forbidden":
        close = nearest(str(error["loc"][-1]), known) if len(error["loc"]) == 1 else None
        hint = f"; did you mean {close!r}?" if close else "."
        return f"{call}: unknown argument {path!r}{hint}{usage}"
    wanted = error["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return f"{call}: {path}: expected {wanted}, got {_shown(error.get('input'))}.{usage}"


def signature(model: type[Params]) -> str:
    """``path (required), offset, limit``."""
    shown = [
        f"{info.alias or name} (required)" if info.is_required() else info.alias or name
        for name, info in model.model_fields.items()
    ]
    return ", ".join(shown) or "no arguments"


def _shown(value: Any) -> str:
    text = json.dumps(value, default=lambda odd: type(odd).__name__)
    return text if len(text) <= 60 else text[:59] + "…"
