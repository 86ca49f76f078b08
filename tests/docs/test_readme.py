"""The documents say what the code does: blocks parse, marked ones run, names and paths exist."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from hanzo_mcp.cli import parser
from hanzo_mcp.config.settings import load_settings
from hanzo_mcp.config.workspace import choose
from hanzo_mcp.runtime.audit import Record
from hanzo_mcp.runtime.local import load
from hanzo_mcp.server.catalog import contract
from tests.support.wire import clean_environment

ROOT = Path(__file__).parents[2]
DEADLINE = 120.0
DOCUMENTS = sorted([*ROOT.glob("*.md"), ROOT / "tools/README.md", *ROOT.glob("docs/**/*.md")])
_FENCE = re.compile(r"(?:^<!-- (?P<mark>\w+) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")


class Block(NamedTuple):
    """A fenced block; ``mark`` is the comment right above it."""

    document: str
    kind: str
    mark: str
    text: str


def blocks(*kinds: str) -> list[Block]:
    return [
        Block(str(path.relative_to(ROOT)), found["kind"], found["mark"] or "", found["text"])
        for path in DOCUMENTS
        for found in _FENCE.finditer(path.read_text())
        if found["kind"] in kinds
    ]


def shell_lines() -> Iterator[str]:
    """Every command line of the documents: of shell blocks and of inline code."""
    for block in blocks("sh"):
        yield from (line.split(" #")[0].strip() for line in block.text.splitlines())
    for path in DOCUMENTS:
        yield from _CODE.findall(_FENCE.sub("", path.read_text()))


def marked(mark: str) -> list[Block]:
    return [block for block in blocks("sh", "json") if block.mark == mark]


def test_there_is_something_to_check() -> None:
    assert len(blocks("sh")) >= 5
    assert len(blocks("json")) >= 5
    assert len(blocks("toml")) >= 1
    assert marked("runnable")
    assert len(marked("settings")) == 1


@pytest.mark.parametrize("block", blocks("json"), ids=lambda block: block.document)
def test_json_parses(block: Block) -> None:
    assert isinstance(json.loads(block.text), dict)


@pytest.mark.parametrize("block", blocks("toml"), ids=lambda block: block.document)
def test_toml_parses(block: Block) -> None:
    assert tomllib.loads(block.text)


@pytest.mark.parametrize("block", blocks("python"), ids=lambda block: block.document)
def test_python_compiles_and_runs(block: Block) -> None:
    names: dict[str, Any] = {"__name__": "hanzo_mcp_example"}
    source = block.text.replace("from __future__ import annotations\n", "")
    exec(compile(source, block.document, "exec"), names)
    assert names["TOOL"].ops


@pytest.mark.parametrize("block", marked("runnable"), ids=lambda block: block.document)
def test_marked_lines_run(block: Block, tmp_path: Path) -> None:
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    workspace.mkdir()
    environ = clean_environment(home)
    environ["PATH"] = f"{sysconfig.get_path('scripts')}:{environ['PATH']}"
    for line in block.text.splitlines():
        done = subprocess.run(
            ["/bin/sh", "-c", line], cwd=workspace, env=environ, capture_output=True, timeout=DEADLINE, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stdout.decode()}{done.stderr.decode()}"
        assert done.stdout, line


def _subcommands() -> dict[str, argparse.ArgumentParser]:
    for action in parser()._actions:  # pyright: ignore[reportPrivateUsage] - argparse offers no other way
        if isinstance(action, argparse._SubParsersAction):  # pyright: ignore[reportPrivateUsage]
            return cast("dict[str, argparse.ArgumentParser]", action.choices)  # pyright: ignore[reportUnknownMemberType]
    raise AssertionError("no sub-commands")


def _options(command: argparse.ArgumentParser) -> set[str]:
    return {option for action in command._actions for option in action.option_strings}  # pyright: ignore[reportPrivateUsage]


def _uses() -> list[list[str]]:
    """The words after ``hanzo-mcp`` wherever a document shows its use."""
    found = [match[1] for line in shell_lines() if (match := re.search(r"(?:^|[\s/])hanzo-mcp\s+(\S.*)$", line))]
    return [re.sub(r"[\[\]]|\.\.\.", " ", text).split() for text in found]


def test_commands_and_options_exist() -> None:
    commands = _subcommands()
    uses = _uses()
    assert len(uses) >= 10
    for words in uses:
        known = _options(commands[words[0]]) if words[0] in commands else _options(parser())
        assert words[0] in commands or words[0].startswith("-"), words
        given = {word for word in words if word.startswith("--")}
        assert given <= known, f"{words}: no such option: {given - known}"


def test_every_command_is_documented() -> None:
    table = (ROOT / "README.md").read_text()
    assert all(f"| `hanzo-mcp {name} " in table for name in _subcommands())


def _servers(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        inner: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        if inner.get("command") == "hanzo-mcp":
            yield inner
        for item in inner.values():
            yield from _servers(item)


def test_client_configurations_start_the_server() -> None:
    values = [json.loads(block.text) for block in blocks("json")] + [tomllib.loads(b.text) for b in blocks("toml")]
    servers = [server for value in values for server in _servers(value)]
    assert len(servers) >= 5
    assert all(parser().parse_args(server["args"]).command == "serve" for server in servers)


def test_the_settings_example_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(marked("settings")[0].text)
    said: list[str] = []
    settings = load_settings({"HANZO_CONFIG_HOME": str(tmp_path)}, said.append)
    assert said == []
    assert next(rule.tool_pattern for rule in settings.rules) == "fs.write"
    assert settings.hooks[0].timeout_ms == 5000


def test_the_audit_example_has_the_shape_of_a_record() -> None:
    example = next(json.loads(block.text) for block in blocks("json") if "args_sha256" in block.text)
    assert set(example) == {"timestamp", "duration_ms", *Record.__slots__}


def test_the_tools_table_is_the_contract() -> None:
    section = (ROOT / "README.md").read_text().split("## Tools of this machine")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, re.MULTILINE)
    shown = {name: re.findall(r"`(\w+)`", ops) for name, ops in rows}
    assert shown == {tool["name"]: [op.name for op in load(tool["name"]).ops] for tool in contract()}


def test_the_workspace_rule_is_as_told(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert choose([], "/", home).roots == (str(tmp_path / "hanzo"),)
    assert choose([], str(tmp_path), home).roots == (str(tmp_path / "hanzo"),)


def test_architecture_names_every_package() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    packages = [path.parent.name for path in (ROOT / "hanzo_mcp").glob("*/__init__.py")]
    assert packages
    missing = [name for name in packages if f"`hanzo_mcp/{name}`" not in text]
    assert not missing


def test_architecture_names_only_modules_that_exist() -> None:
    rows = re.findall(r"^\| `hanzo_mcp/(\w+)` \| (.+) \|$", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    named = [
        ROOT / "hanzo_mcp" / package / module for package, text in rows for module in re.findall(r"`(\w+\.py)`", text)
    ]
    assert len(named) > 30
    assert not [path for path in named if not path.is_file()]


def test_links_lead_somewhere() -> None:
    broken = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in DOCUMENTS
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", _FENCE.sub("", path.read_text()))
        if "://" not in target and not (path.parent / target).exists()
    ]
    assert not broken


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs/decisions"
    linked = set(re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", (folder / "README.md").read_text()))
    assert linked == {path.name for path in folder.glob("[0-9]*.md")}


def test_paths_in_code_exist() -> None:
    """Inline code that looks like a path of the repository is one; ``::`` names a test in it."""
    broken: list[str] = []
    for path in DOCUMENTS:
        for code in _CODE.findall(_FENCE.sub("", path.read_text())):
            if not re.fullmatch(r"(?:hanzo_mcp|tests|tools|door|fixtures|bench|docs)/[\w./-]*(?:::\w+)?", code):
                continue
            if code in ("tools/list", "tools/call"):  # methods
                continue
            file, _, test = code.partition("::")
            there = (ROOT / file).exists() and (not test or f"def {test}(" in (ROOT / file).read_text())
            broken += [] if there else [f"{path.relative_to(ROOT)}: {code}"]
    assert not broken


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    lines = [shlex.split(line) for line in shell_lines() if line.startswith("make ")]
    assert lines
    named = {word for words in lines for word in words[1:] if re.fullmatch(r"[a-z-]+", word)}
    assert named <= targets, named - targets


def test_make_help_lists_every_target() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, timeout=DEADLINE, check=True)
    listed = set(re.findall(r"^ {2}make ([a-z-]+)", done.stdout.decode(), re.MULTILINE))
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    assert listed == set(phony[1].split())
