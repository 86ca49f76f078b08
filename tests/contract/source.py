"""The package's own source as trees, for tests about its shape."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "hanzo_mcp"
Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules(folder: Path = PACKAGE) -> Iterator[tuple[str, ast.Module]]:
    """Path from the repository root, and tree, of every module below ``folder``."""
    for path in sorted(folder.rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def functions(tree: ast.AST) -> Iterator[Function]:
    """Every function and method of a tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
