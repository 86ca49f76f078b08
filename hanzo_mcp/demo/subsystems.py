"""The subsystems of the stand-in cloud. Their data is invented; the shapes are HIP-0300 §1.3-1.5."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from hanzo_mcp.core.shapes import as_object

Json = dict[str, Any]


class Operation(NamedTuple):
    """One operation: ``run`` gets the call's whole ``arguments`` and returns the result of ``tools/call``."""

    name: str
    description: str
    input_schema: Json
    run: Callable[[Json], Json]


class Subsystem(NamedTuple):
    """One tool of the endpoint."""

    name: str
    description: str
    operations: tuple[Operation, ...]
    read_only: bool = False

    def tool(self) -> Json:
        """Its entry in ``tools/list``. Only a tool whose every operation reads carries a hint (§1.5)."""
        op: Json = {"type": "string", "enum": [operation.name for operation in self.operations]}
        properties = {"op": {**op, "description": "The operation."}, "input": {"type": "object"}}
        schema: Json = {"type": "object", "properties": properties, "required": ["op"]}
        tool: Json = {"name": self.name, "description": self.description, "inputSchema": schema}
        return {**tool, "annotations": {"readOnlyHint": True}} if self.read_only else tool


def text_result(value: Any, *, is_error: bool = False) -> Json:
    """A ``tools/call`` result of one text block: a string as it is, anything else as JSON."""
    words = value if isinstance(value, str) else json.dumps(value)
    result: Json = {"content": [{"type": "text", "text": words}]}
    return {**result, "isError": True} if is_error else result


def _input_of(arguments: Json) -> Json:
    return as_object(arguments.get("input")) or {}


_INVOICES: dict[str, Json] = {
    "inv_1": {"id": "inv_1", "amount": 4200, "currency": "usd", "status": "paid"},
    "inv_2": {"id": "inv_2", "amount": 1300, "currency": "usd", "status": "open"},
}


def _list_invoices(arguments: Json) -> Json:  # noqa: ARG001 - one shape for all operations
    return text_result({"invoices": list(_INVOICES.values())})


def _get_invoice(arguments: Json) -> Json:
    wanted = _input_of(arguments).get("id")
    if not isinstance(wanted, str) or wanted not in _INVOICES:
        return text_result(f"no invoice {wanted!r}; list_invoices names them", is_error=True)
    return text_result(_INVOICES[wanted])


def _list_agents(arguments: Json) -> Json:  # noqa: ARG001
    return text_result({"agents": [{"name": "reviewer", "status": "running"}]})


def _deploy_agent(arguments: Json) -> Json:
    name = _input_of(arguments).get("name")
    if not isinstance(name, str) or not name:
        return text_result("deploy_agent needs the agent's name", is_error=True)
    return text_result({"name": name, "status": "deploying"})


def _list_repositories(arguments: Json) -> Json:  # noqa: ARG001
    return text_result({"repositories": ["cloud", "console"]})


def _echo(arguments: Json) -> Json:
    """The arguments as they were received: what forwarding verbatim is tested with."""
    return {**text_result(arguments), "structuredContent": arguments}


def _schema(**properties: str) -> Json:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }


SUBSYSTEMS = (
    Subsystem(
        "billing",
        "Invoices of the organisation.",
        (
            Operation("list_invoices", "Every invoice.", _schema(), _list_invoices),
            Operation("get_invoice", "One invoice by its id.", _schema(id="string"), _get_invoice),
        ),
        read_only=True,
    ),
    Subsystem(
        "agents",
        "Agents that run in the cloud.",
        (
            Operation("list_agents", "Every agent.", _schema(), _list_agents),
            Operation("deploy_agent", "Deploy an agent by its name.", _schema(name="string"), _deploy_agent),
        ),
    ),
    Subsystem(
        "git",
        "Repositories hosted in the cloud.",
        (Operation("list_repositories", "Every repository.", _schema(), _list_repositories),),
        read_only=True,
    ),
    Subsystem(
        "echo",
        "Returns the arguments it was given.",
        (Operation("echo", "Return the arguments as received.", {"type": "object"}, _echo),),
        read_only=True,
    ),
)
BY_NAME = {subsystem.name: subsystem for subsystem in SUBSYSTEMS}
OPERATIONS = {operation.name: operation for subsystem in SUBSYSTEMS for operation in subsystem.operations}
DESCRIBE: Json = {
    "name": "describe",
    "description": "The input schema of one operation of any tool here.",
    "inputSchema": {
        "type": "object",
        "properties": {"op": {"type": "string", "enum": list(OPERATIONS), "description": "The operation."}},
        "required": ["op"],
    },
    "annotations": {"readOnlyHint": True},
}
