"""Tools reach files, processes and the network through their context alone (sandbox design §4.1)."""

from __future__ import annotations

import ast

from tests.contract.source import PACKAGE, modules

FORBIDDEN_MODULES = {
    "subprocess",
    "socket",
    "httpx",
    "shutil",
    "tempfile",
    "pathlib",
    "urllib.request",
    "ctypes",
    "glob",
}
FORBIDDEN_CALLS = {
    *("open", "eval", "exec", "__import__"),
    *(f"os.{name}" for name in ("open", "system", "popen", "remove", "unlink", "rename", "replace", "rmdir", "mkdir")),
    *(f"os.{name}" for name in ("makedirs", "symlink", "link", "chmod", "chown", "truncate", "listdir", "scandir")),
    *(f"os.{name}" for name in ("stat", "lstat", "walk", "fork", "execv", "posix_spawn", "kill", "readlink")),
}


def test_tools_open_spawn_and_dial_nothing_themselves() -> None:
    found: list[str] = []
    for path, tree in modules(PACKAGE / "tools"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found += [f"{path}:{node.lineno} import {a.name}" for a in node.names if a.name in FORBIDDEN_MODULES]
            elif isinstance(node, ast.ImportFrom) and node.module in FORBIDDEN_MODULES:
                found.append(f"{path}:{node.lineno} from {node.module}")
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in FORBIDDEN_CALLS:
                found.append(f"{path}:{node.lineno} {ast.unparse(node.func)}()")
    assert not found


def test_nothing_below_the_composition_root_reads_the_environment() -> None:
    allowed = {"hanzo_mcp/serve.py", "hanzo_mcp/oneshot.py", "hanzo_mcp/demo/show.py", "hanzo_mcp/demo/client.py"}
    allowed |= {"hanzo_mcp/config/secrets.py"}
    allowed.add("hanzo_mcp/tools/git.py")  # GitPython takes its settings from there alone, while it is imported
    found = [
        f"{path}:{node.lineno}"
        for path, tree in modules()
        if path not in allowed
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.environ", "os.getenv")
    ]
    assert not found


def test_the_broad_except_stands_at_task_roots_only() -> None:
    found = [
        f"{path}:{node.lineno}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in ("Exception", "BaseException"))
        and not any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
    ]
    assert [where.split(":")[0] for where in found] == ["hanzo_mcp/server/engine.py"]
