"""fs.list, fs.search and fs.stat: what is found, what is left out and said to be, with ripgrep and without."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hanzo_mcp.errors import Denied, InvalidInput, NotFound
from hanzo_mcp.runtime.local import Context
from hanzo_mcp.tools import _fs_search
from tests.support.local import LocalTools
from tests.unit.tools.test_fs import facts, text

FILES = {
    "a.py": "import os\n\ndef one():\n    return os.getcwd()\n\ndef Two():\n    return 2\n",
    "sub/b.py": "def one():\r\n    return 1\r\n",
    "sub/deep/c.txt": "one def\n(a+b)*\n--flag --flag\n",
    "ignored.log": "def one(): ignored\n",
    "build/out.py": "def one(): built\n",
    ".hidden/d.py": "def one(): hidden\n",
    ".gitignore": "*.log\nbuild/\n",
}


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / "ws" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    return tmp_path / "ws"


@pytest.fixture
def tools(ws: Path) -> LocalTools:
    return LocalTools(ws)


def no_ripgrep(_ctx: Context) -> None:
    """In place of the finder."""


@pytest.fixture(params=["ripgrep", "python"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setattr(_fs_search, "ripgrep", no_ripgrep)
    return request.param


def lines(tools: LocalTools, op: str, **arguments: Any) -> list[str]:
    """The answer without its last line, which is about it."""
    *found, note = tools.text("fs", op=op, **arguments).split("\n")
    assert note.startswith("[")
    return found


# list


def test_list_leaves_out_what_is_ignored_and_hidden(ws: Path, tools: LocalTools) -> None:
    (ws / "link").symlink_to("a.py")
    os.mkfifo(ws / "pipe")
    result = tools.call("fs", op="list")
    assert text(result).split("\n") == [
        "a.py", "link@", "pipe (device, FIFO or socket)", "sub/",
        "[4 entries; left out: 2 ignored, 2 hidden (include_ignored shows them)]",
    ]  # fmt: skip
    assert facts(result) == {"path": ".", "count": 4, "total": 4, "ignored": 2, "hidden": 2}
    assert lines(tools, "list", include_ignored=True) == [
        ".gitignore", ".hidden/", "a.py", "build/", "ignored.log", "link@", "pipe (device, FIFO or socket)", "sub/",
    ]  # fmt: skip


def test_list_depth_tree_and_sizes(ws: Path, tools: LocalTools) -> None:
    assert lines(tools, "list", path="sub") == ["b.py", "deep/"]
    assert lines(tools, "list", depth=2) == ["a.py", "sub/", "sub/b.py", "sub/deep/"]
    assert lines(tools, "list", depth=9) == ["a.py", "sub/", "sub/b.py", "sub/deep/", "sub/deep/c.txt"]
    assert lines(tools, "list", output="tree") == ["a.py", "sub/", "  b.py", "  deep/", "    c.txt"]
    (ws / "sub" / "link").symlink_to("b.py")
    os.utime(ws / "sub" / "b.py", (0, 86_400 * 365.25 * 30))
    sized = lines(tools, "list", path="sub", output="sizes")
    assert sized[0].split() == [str(len(FILES["sub/b.py"])), *sized[0].split()[1:3], "b.py"]
    assert sized[0].split()[1].startswith(("1999-12-31", "2000-01-0"))
    assert sized[1].split()[0] == "-"
    assert sized[2].endswith("link -> b.py")


@pytest.mark.parametrize(
    ("globs", "found"),
    [
        (["*.py"], ["a.py", "sub/b.py"]),
        (["*.py", "*.txt"], ["a.py", "sub/b.py", "sub/deep/c.txt"]),
        (["sub/**"], ["sub/b.py", "sub/deep/c.txt"]),
        (["sub/*"], ["sub/b.py"]),
        (["**/*.{py,txt}", "!sub/deep"], ["a.py", "sub/b.py"]),
        (["!*.py"], ["sub/"]),
        ("[ab].py", ["a.py", "sub/b.py"]),
        (["/a.py"], ["a.py"]),
        (["*.rs"], []),
    ],
)
def test_list_glob(tools: LocalTools, globs: list[str] | str, found: list[str]) -> None:
    assert lines(tools, "list", glob=globs) == found


def test_list_in_pages(tmp_path: Path) -> None:
    for n in range(2500):
        (tmp_path / f"f{n:04}").touch()
    tools = LocalTools(tmp_path)
    result = tools.call("fs", op="list")
    assert text(result).endswith("\n[entries 0-1000 of 2500; truncated; go on with offset=1000]")
    assert facts(result) == {"path": ".", "count": 1000, "total": 2500, "truncated": True, "next_offset": 1000}
    names: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = tools.call("fs", op="list", offset=offset, limit=700)
        names += text(page).split("\n")[:-1]
        offset = facts(page).get("next_offset")
    assert names == [f"f{n:04}" for n in range(2500)]


def test_list_far_past_the_end(tools: LocalTools) -> None:
    assert lines(tools, "list", offset=2**63) == []


def test_list_what_is_no_folder(tools: LocalTools) -> None:
    with pytest.raises(InvalidInput, match=r"a\.py: a part of the path is a file"):
        tools.call("fs", op="list", path="a.py")
    with pytest.raises(NotFound):
        tools.call("fs", op="list", path="gone")
    with pytest.raises(Denied):
        tools.call("fs", op="list", path="..")
    with pytest.raises(InvalidInput, match="limit"):
        tools.call("fs", op="list", limit=0)


def test_nested_ignore_files(ws: Path, tools: LocalTools) -> None:
    (ws / "sub" / ".gitignore").write_text("*\n!b.py\n/deep/\n")
    (ws / "sub" / "x.log").write_text("x")
    assert lines(tools, "list", glob=["*"]) == ["a.py", "sub/b.py"]
    assert lines(tools, "list", path="sub") == ["b.py"]


# search


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"pattern": "def one"}, ["a.py:3: def one():", "sub/b.py:1: def one():"]),
        ({"pattern": r"^def \w+\(\):$"}, ["a.py:3: def one():", "a.py:6: def Two():", "sub/b.py:1: def one():"]),
        ({"pattern": "two"}, []),
        ({"pattern": "two", "ignore_case": True}, ["a.py:6: def Two():"]),
        ({"pattern": "(a+b)*", "literal": True}, ["sub/deep/c.txt:2: (a+b)*"]),
        ({"pattern": "--flag"}, ["sub/deep/c.txt:3: --flag --flag"]),
        ({"pattern": "-e"}, []),
        ({"pattern": "one", "glob": ["*.txt"]}, ["sub/deep/c.txt:1: one def"]),
        ({"pattern": "one", "glob": ["!*.py"]}, ["sub/deep/c.txt:1: one def"]),
        ({"pattern": "one", "type": "py"}, ["a.py:3: def one():", "sub/b.py:1: def one():"]),
        ({"pattern": "return", "path": "sub"}, ["sub/b.py:2:     return 1"]),
        ({"pattern": "return", "path": "sub/b.py"}, ["sub/b.py:2:     return 1"]),
        ({"pattern": "return 1", "paths": ["a.py", "sub"]}, ["sub/b.py:2:     return 1"]),
        ({"pattern": "built", "path": "build/out.py"}, ["build/out.py:1: def one(): built"]),
        (
            {"pattern": "one", "context": 1, "path": "a.py"},
            ["a.py-2- ", "a.py:3: def one():", "a.py-4-     return os.getcwd()"],
        ),
        (
            {"pattern": "import|Two", "context": 1, "path": "a.py"},
            ["a.py:1: import os", "a.py-2- ", "--", "a.py-5- ", "a.py:6: def Two():", "a.py-7-     return 2"],
        ),
        ({"pattern": r"one\(\):\n +return os"}, ["a.py:3: def one():", "a.py:4:     return os.getcwd()"]),
        ({"pattern": "def", "output": "files"}, ["a.py", "sub/b.py", "sub/deep/c.txt"]),
        ({"pattern": "def|return", "output": "count"}, ["a.py: 4", "sub/b.py: 2", "sub/deep/c.txt: 1"]),
        ({"pattern": "--flag", "output": "count"}, ["sub/deep/c.txt: 2"]),
        (
            {"pattern": "ignored|built|hidden|log", "include_ignored": True},
            [
                ".gitignore:1: *.log", ".hidden/d.py:1: def one(): hidden", "build/out.py:1: def one(): built",
                "ignored.log:1: def one(): ignored",
            ],
        ),
        ({"pattern": "def one", "offset": 1}, ["sub/b.py:1: def one():"]),
        ({"pattern": "def one", "limit": 1}, ["a.py:3: def one():"]),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("engine")
def test_search(tools: LocalTools, arguments: dict[str, Any], found: list[str]) -> None:
    assert lines(tools, "search", **arguments) == found


def test_search_facts_and_pages(tools: LocalTools, engine: str) -> None:
    result = tools.call("fs", op="search", pattern="def", limit=2)
    assert facts(result) == {"matches": 4, "files": 3, "count": 2, "engine": engine, "next_offset": 2}
    assert "[4 matches in 3 files; shown 0-2; go on with offset=2; ignored and hidden files left out" in text(result)
    rest = tools.call("fs", op="search", pattern="def", offset=2)
    assert [line.split(":")[0] for line in text(rest).split("\n")[:-1]] == ["sub/b.py", "sub/deep/c.txt"]
    assert "next_offset" not in facts(rest)
    assert ("ripgrep is missing" in text(result)) is (engine == "python")


def test_search_says_what_it_left_out(tools: LocalTools) -> None:
    result = tools.call("fs", op="search", pattern="built|hidden$")
    assert facts(result)["matches"] == 0
    assert facts(result)["elsewhere"] == 2
    assert "2 ignored or hidden files with a match: include_ignored shows them" in text(result)


def test_search_never_shows_a_binary_line(ws: Path, tools: LocalTools, engine: str) -> None:
    (ws / "x.bin").write_bytes(b"needle\n" + bytes(100))
    result = tools.call("fs", op="search", pattern="needle")
    assert "needle" not in text(result)
    assert facts(result)["matches"] == 0
    assert facts(result)["engine"] == engine


def test_search_counts_binary_files_with_a_match(ws: Path, tools: LocalTools) -> None:
    (ws / "x.bin").write_bytes(b"needle\n" + b"text\n" * 40_000 + bytes(100))
    result = tools.call("fs", op="search", pattern="needle")
    assert (facts(result)["matches"], facts(result)["binary"]) == (0, 1)
    assert "not shown: 1 binary file" in text(result)


def test_both_searches_agree_on_what_is_binary(ws: Path, tools: LocalTools, monkeypatch: pytest.MonkeyPatch) -> None:
    (ws / "x.bin").write_bytes(b"needle\n" + b"text\n" * 40_000 + bytes(100))
    with_ripgrep = facts(LocalTools(ws).call("fs", op="search", pattern="needle"))
    monkeypatch.setattr(_fs_search, "ripgrep", no_ripgrep)
    assert facts(tools.call("fs", op="search", pattern="needle"))["matches"] == with_ripgrep["matches"]


@pytest.mark.usefixtures("engine")
def test_search_shows_the_match_of_a_long_line(ws: Path, tools: LocalTools) -> None:
    (ws / "min.js").write_text("x" * 5000 + "needle" + "y" * 5000 + "\n")
    (line,) = lines(tools, "search", pattern="needle")
    assert len(line) < 450
    assert "xneedley" in line


@pytest.mark.usefixtures("engine")
def test_search_other_encodings_and_names(ws: Path, tools: LocalTools) -> None:
    (ws / "latin.txt").write_bytes(b"caf\xe9 needle\n")
    (ws / "wide.txt").write_bytes("zwölf needle\r\n".encode("utf-16"))
    (ws / "--pre=x").write_text("needle\n")
    (ws / "new\nline").write_text("needle\n")
    assert lines(tools, "search", pattern="needle") == [
        "--pre=x:1: needle", "latin.txt:1: café needle", "new\\nline:1: needle", "wide.txt:1: zwölf needle",
    ]  # fmt: skip
    assert lines(tools, "search", pattern="needle", path="--pre=x") == ["--pre=x:1: needle"]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"pattern": "(a"}, "literal: true"),
        ({"pattern": ""}, "pattern is empty"),
        ({"pattern": "a\0b"}, "NUL"),
        ({"pattern": "a", "limit": 0}, "limit: expected at least 1"),
        ({"pattern": "a", "type": "nonsense"}, "nonsense"),
        ({"pattern": "a", "output": "json"}, "output: expected 'files' or 'count'"),
        ({}, "missing argument 'pattern'"),
    ],
)
def test_search_refuses(tools: LocalTools, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        tools.call("fs", op="search", **arguments)
    assert words in str(refused.value)


@pytest.mark.usefixtures("engine")
def test_search_where_nothing_is(ws: Path, tools: LocalTools) -> None:
    os.mkfifo(ws / "pipe")
    assert lines(tools, "search", pattern="def Two") == ["a.py:6: def Two():"]
    with pytest.raises(InvalidInput, match="not a regular file or folder"):
        tools.call("fs", op="search", pattern="x", path="pipe")
    with pytest.raises(NotFound):
        tools.call("fs", op="search", pattern="x", path="gone")
    with pytest.raises(Denied):
        tools.call("fs", op="search", pattern="x", path="..")


def test_ripgrep_is_found_beside_the_interpreter_or_on_the_path(
    ws: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = Path(sys.executable).parent / "rg"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere" / "python"))
    hidden = LocalTools(ws, environ={"PATH": str(tmp_path / "empty")}).call("fs", op="search", pattern="def Two")
    assert facts(hidden)["engine"] == "python"
    assert text(hidden).startswith("a.py:6: def Two():\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "rg").symlink_to(beside)
    found = LocalTools(ws, environ={"PATH": str(tmp_path / "bin")}).call("fs", op="search", pattern="def Two")
    assert facts(found)["engine"] == "ripgrep"


def test_search_without_ripgrep_refuses_what_could_run_forever(
    ws: Path, tools: LocalTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_fs_search, "ripgrep", no_ripgrep)
    (ws / "evil.txt").write_text("a" * 5000 + "!\n")
    with pytest.raises(InvalidInput, match="a repeat of a repeat"):
        tools.call("fs", op="search", pattern="(a+)+$")


@pytest.mark.parametrize(
    ("globs", "found"),
    [
        (["*.log"], []),
        ([".hidden/**"], []),
        (["**/*.py"], ["a.py", "sub/b.py"]),
        (["**"], ["a.py", "sub/b.py"]),
        (["sub/"], ["sub/b.py"]),
        (["*.{py,txt}", "!sub/"], ["a.py"]),
        (["!sub/b.py"], ["a.py"]),
        (["a.py", "{sub,x/y}/*.py"], ["a.py", "sub/b.py"]),
    ],
)
@pytest.mark.usefixtures("engine")
def test_a_glob_narrows_and_never_brings_back_the_ignored(
    tools: LocalTools, globs: list[str], found: list[str]
) -> None:
    assert lines(tools, "search", pattern="def one", output="files", glob=globs) == found


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("arguments", [{"path": "zeros"}, {"pattern": "needle\\nx"}, {"paths": ["a.py", "zeros"]}])
def test_a_sparse_file_costs_no_search_its_size(ws: Path, tools: LocalTools, arguments: dict[str, Any]) -> None:
    (ws / "zeros").touch()
    os.truncate(ws / "zeros", 1 << 40)
    try:
        result = tools.call("fs", **{"op": "search", "pattern": "needle"} | arguments)
    except InvalidInput as refused:
        assert arguments == {"path": "zeros"}
        assert "zeros: not text" in str(refused)
    else:
        assert facts(result)["matches"] == 0


# stat


def test_stat(ws: Path, tools: LocalTools, tmp_path: Path) -> None:
    (ws / "a.py").chmod(0o640)
    os.utime(ws / "a.py", (0, 86_400))
    (ws / "in").symlink_to("sub/b.py")
    (ws / "out").symlink_to(tmp_path)
    (ws / "broken").symlink_to("gone")
    os.mkfifo(ws / "pipe")
    result = tools.call("fs", op="stat", paths=["a.py", "sub", "in", "out", "broken", "pipe", "gone", "../x"])
    assert result.structured is not None
    found = result.structured["files"]
    assert [item["type"] for item in found] == [
        "file", "directory", "link", "link", "link", "other", "missing", "unknown",
    ]  # fmt: skip
    size = len(FILES["a.py"])
    assert {"path": "a.py", "bytes": size, "mode": "0640", "modified": "1970-01-02T00:00:00Z", "links": 1}.items() <= (
        found[0].items()
    )
    assert found[2]["target"] == str(ws / "sub" / "b.py")
    assert found[3]["target"] == "outside the workspace"
    assert found[4]["target"].startswith("broken")
    assert "outside the workspace" in found[7]["error"]
    assert text(result).split("\n")[6] == "gone: no such file or directory"
    assert not result.is_error
    assert tools.call("fs", op="stat", path="gone").is_error
    with pytest.raises(InvalidInput, match="name a file with path"):
        tools.call("fs", op="stat")
