"""Generates what is derived from the tools: ``hanzo_mcp/contract.json`` and ``tools/<name>.json`` (``make gen``).

``python -m hanzo_mcp.docgen`` writes; with ``--check`` it only compares and names what differs.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from hanzo_mcp.core.shapes import as_list, as_object
from hanzo_mcp.core.tool import Access
from hanzo_mcp.runtime.local import Op, Tool, load

ORDER = ("fs", "exec", "git", "fetch", "think")
"""The local tools in the order of the list."""
_PACKAGE = os.path.dirname(__file__)
_ROOT = os.path.dirname(_PACKAGE)
_KEPT = ("type", "enum", "items", "properties", "required", "minimum", "maximum", "additionalProperties")
Json = dict[str, Any]


def entry(tool: Tool) -> Json:
    """The tool as ``tools/list`` shows it: one flat object schema, no ``oneOf`` at the root."""
    properties: Json = {}
    if len(tool.ops) > 1 or tool.ops[0].name != tool.name:
        lines = "; ".join(f"{op.name}: {op.summary}" for op in tool.ops)
        properties["op"] = {"type": "string", "enum": [op.name for op in tool.ops], "description": lines}
    for op in tool.ops:
        for name, schema in _properties(op).items():
            _join(properties, name, schema, tool.name)
    required = [name for name in properties if name == "op" or all(name in _required(op) for op in tool.ops)]
    schema: Json = {"type": "object", "properties": properties, "required": required}
    shown: Json = {"name": tool.name, "title": tool.title, "description": tool.description, "inputSchema": schema}
    if all(op.access == Access.READ for op in tool.ops):
        shown["annotations"] = {"readOnlyHint": True}
    return shown


def _properties(op: Op[Any]) -> Json:
    schema = op.params.model_json_schema()
    definitions = schema.get("$defs", {})
    return {name: _slim(value, definitions) for name, value in schema.get("properties", {}).items()}


def _required(op: Op[Any]) -> list[str]:
    return op.params.model_json_schema().get("required", [])


def _join(properties: Json, name: str, schema: Json, tool: str) -> None:
    known = properties.setdefault(name, schema)
    if {**known, "description": ""} != {**schema, "description": ""}:
        raise SystemExit(f"{tool}: property {name!r} has two shapes: {known} and {schema}")


def _slim(value: Any, definitions: Json) -> Json:
    """A pydantic property schema in the few words clients need: no titles, defaults, nulls or references."""
    schema = as_object(value) or {}
    if "$ref" in schema:
        schema = {**definitions[schema["$ref"].rsplit("/", 1)[-1]], **schema}
    options = [option for option in as_list(schema.get("anyOf")) or [] if option != {"type": "null"}]
    if len(options) == 1:
        schema = {**schema, **_slim(options[0], definitions)}
    elif options:
        kinds = [_slim(option, definitions) for option in options]
        schema = {**schema, **next((kind for kind in kinds if kind["type"] in ("array", "object")), kinds[0])}
    slim = {key: schema[key] for key in _KEPT if key in schema and schema[key] is not True}
    if "items" in slim:
        slim["items"] = _slim(slim["items"], definitions)
    if "properties" in slim:
        slim["properties"] = {name: _slim(inner, definitions) for name, inner in slim["properties"].items()}
    if "additionalProperties" in slim and not isinstance(slim["additionalProperties"], dict):
        del slim["additionalProperties"]
    if "description" in schema:
        slim["description"] = schema["description"]
    return slim


def contract() -> Json:
    """The committed contract: ``{"tools": [...]}``."""
    return {"tools": [entry(load(name)) for name in ORDER]}


def published(tool: Tool) -> Json:
    """The contract of one tool for a reviewer: the list entry, and each op's access and own exact schema."""
    ops = {
        op.name: {
            "access": str(op.access).removeprefix("Access.").lower(),
            "summary": op.summary,
            "input": op.params.model_json_schema(),
        }
        for op in tool.ops
    }
    return {"list_entry": entry(tool), "ops": ops}


def files() -> dict[str, str]:
    """Every generated file: path from the repository root -> text."""
    found = {"hanzo_mcp/contract.json": json.dumps(contract(), separators=(",", ":")) + "\n"}
    for name in ORDER:
        found[f"tools/{name}.json"] = json.dumps(published(load(name)), indent=2) + "\n"
    return found


def main(check: bool) -> int:
    """Write or compare; 1 when a comparison failed."""
    stale: list[str] = []
    for path, text in files().items():
        full = os.path.join(_ROOT, path)
        if check:
            with open(full, encoding="utf-8") as file:
                if file.read() != text:
                    stale.append(path)
        else:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
    if stale:
        sys.stderr.write(f"not up to date: {', '.join(stale)}; run `make gen`\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
