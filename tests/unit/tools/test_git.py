"""git: reading real repositories, compared with what git itself says."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hanzo_mcp.core.tool import RESULT_META, Result
from hanzo_mcp.errors import Denied, InvalidInput, NotFound, TimedOut, ToolError, Unavailable
from hanzo_mcp.sandbox import git as runner
from hanzo_mcp.sandbox.launcher import Launcher
from hanzo_mcp.sandbox.paths import Workspace
from hanzo_mcp.sandbox.processes import children
from hanzo_mcp.tools import git as tool
from tests.support.local import LocalTools
from tests.support.repository import Repository


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    before = set(children(os.getpid()))
    yield
    assert set(children(os.getpid())) <= before


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "ws")


@pytest.fixture
def tools(repo: Repository) -> LocalTools:
    return workspace(repo.path)


def workspace(path: Path, **environ: str) -> LocalTools:
    return LocalTools(path, environ={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environ})


def text(result: Result) -> str:
    return str(result.content[0]["text"])


def facts(result: Result) -> dict[str, Any]:
    return result.meta[RESULT_META]


# status


def test_a_clean_tree(repo: Repository, tools: LocalTools) -> None:
    oid = repo.commit("one", a="a\n")
    result = tools.call("git", op="status")
    assert text(result) == f"On branch main ({oid[:12]})\nNothing to commit, working tree clean"
    assert result.structured == {
        "branch": "main",
        "oid": oid,
        "detached": False,
        "unborn": False,
        "upstream": None,
        "ahead": None,
        "behind": None,
        "stashes": 0,
        "operation": None,
        "clean": True,
        "total": 0,
        "entries": [],
    }


def test_every_kind_of_change(repo: Repository, tools: LocalTools) -> None:
    body = "".join(f"{n}\n" for n in range(40))
    repo.commit("one", staged="1\n", unstaged="1\n", gone="1\n", old=body, link="1\n", both="1\n")
    repo.write("staged.txt", "2\n")
    repo.write("both.txt", "2\n")
    (repo.path / "old.txt").rename(repo.path / "new.txt")
    repo.git("add", "--all")
    repo.write("new.txt", body + "more\n")
    repo.write("both.txt", "3\n")
    repo.write("unstaged.txt", "2\n")
    (repo.path / "gone.txt").unlink()
    (repo.path / "link.txt").unlink()
    (repo.path / "link.txt").symlink_to("staged.txt")
    repo.write("sub dir/untracked.txt", "")
    result = tools.call("git", op="status")
    assert result.structured["entries"] == [
        {"path": "both.txt", "staged": "modified", "unstaged": "modified"},
        {"path": "gone.txt", "unstaged": "deleted"},
        {"path": "link.txt", "unstaged": "type changed"},
        {"path": "new.txt", "staged": "renamed", "unstaged": "modified", "from": "old.txt", "similarity": 100},
        {"path": "staged.txt", "staged": "modified"},
        {"path": "unstaged.txt", "unstaged": "modified"},
        {"path": "sub dir/", "untracked": True},
    ]
    assert text(result).split("\n")[1:] == [
        "Staged:",
        "  modified: both.txt",
        "  renamed: old.txt -> new.txt",
        "  modified: staged.txt",
        "Not staged:",
        "  modified: both.txt",
        "  deleted: gone.txt",
        "  type changed: link.txt",
        "  modified: new.txt",
        "  modified: unstaged.txt",
        "Untracked:",
        "  sub dir/",
    ]


def diverged(repo: Repository) -> None:
    repo.commit("base", a="base\n")
    repo.git("switch", "--quiet", "-c", "side")
    repo.commit("side", a="side\n")
    repo.git("switch", "--quiet", "main")
    repo.commit("main", a="main\n")


def test_a_conflict_is_not_clean(repo: Repository, tools: LocalTools) -> None:
    diverged(repo)
    side = repo.git("rev-parse", "side")[:12]
    repo.git("merge", "side", check=False)
    result = tools.call("git", op="status")
    assert result.structured["clean"] is False
    assert result.structured["entries"] == [{"path": "a.txt", "conflict": "both modified"}]
    assert result.structured["operation"] == f"merge of {side}"
    assert "Conflicts:\n  both modified: a.txt" in text(result)


@pytest.mark.parametrize(
    ("command", "operation"),
    [
        (("rebase", "side"), "rebase of main onto {side}, step 1 of 1"),
        (("rebase", "--apply", "side"), "rebase, step 1 of 1"),
        (("cherry-pick", "side"), "cherry-pick of {side}"),
        (("revert", "--no-edit", "HEAD~1"), "revert of {base}"),
        (("bisect", "start"), "bisect"),
    ],
)
def test_an_operation_in_progress(
    repo: Repository, tools: LocalTools, command: tuple[str, ...], operation: str
) -> None:
    diverged(repo)
    ids = {"side": repo.git("rev-parse", "side")[:12], "base": repo.git("rev-parse", "main~1")[:12]}
    repo.git(*command, check=False)
    assert tools.call("git", op="status").structured["operation"] == operation.format(**ids)


def test_unborn(repo: Repository, tools: LocalTools) -> None:
    repo.write("a", "a")
    result = tools.call("git", op="status")
    assert (result.structured["unborn"], result.structured["oid"], result.structured["branch"]) == (True, None, "main")
    assert text(result) == "On branch main (no commits yet)\nUntracked:\n  a"
    result = tools.call("git", op="log")
    assert (text(result), facts(result)["head"], facts(result)["branch"]) == ("No commits yet.", None, "main")
    assert text(tools.call("git", op="diff")).startswith("No differences.")
    repo.git("add", "a")
    assert "+a" in text(tools.call("git", op="diff", staged=True))


def test_detached(repo: Repository, tools: LocalTools) -> None:
    oid = repo.commit("one")
    repo.git("checkout", "--quiet", "--detach")
    result = tools.call("git", op="status")
    assert (result.structured["branch"], result.structured["detached"]) == (None, True)
    assert text(result).startswith(f"HEAD detached at {oid[:12]}")
    assert facts(tools.call("git", op="log")) | {"commits": 0} == {
        "count": 1,
        "commits": 0,
        "head": oid,
        "branch": None,
    }


def test_upstream_and_stashes(repo: Repository, tools: LocalTools, tmp_path: Path) -> None:
    repo.commit("one", a="1\n")
    repo.git("clone", "--quiet", "--bare", str(repo.path), str(tmp_path / "remote"))
    repo.git("remote", "add", "origin", str(tmp_path / "remote"))
    repo.git("fetch", "--quiet", "origin")
    repo.git("branch", "--quiet", "--set-upstream-to=origin/main")
    assert "Up to date with origin/main" in text(tools.call("git", op="status"))
    repo.commit("two", a="2\n")
    repo.write("a.txt", "3\n")
    repo.git("stash", "--quiet")
    result = tools.call("git", op="status").structured
    assert (result["upstream"], result["ahead"], result["behind"], result["stashes"]) == ("origin/main", 1, 0, 1)
    repo.git("update-ref", "-d", "refs/remotes/origin/main")
    result = tools.call("git", op="status")
    assert (result.structured["upstream"], result.structured["ahead"]) == ("origin/main", None)
    assert "Upstream origin/main is gone" in text(result)


def test_a_submodule(repo: Repository, tools: LocalTools, tmp_path: Path) -> None:
    other = Repository(tmp_path / "other")
    other.commit("one", x="x\n")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.path), "sub")
    repo.commit("with submodule")
    inner = repo.path / "sub"
    subprocess.run(["git", "-C", str(inner), "checkout", "--quiet", "--orphan", "new"], check=True, env=os.environ)
    repo.git("-C", "sub", "commit", "--quiet", "-m", "moved")
    result = tools.call("git", op="status")
    assert result.structured["entries"] == [{"path": "sub", "unstaged": "modified", "submodule": True}]
    assert "+Subproject commit" in text(tools.call("git", op="diff"))
    assert tools.call("git", op="status", path="sub").structured["branch"] == "new"


def test_odd_names_are_escaped_and_can_be_given_back(repo: Repository, tools: LocalTools) -> None:
    names = [b"caf\xe9", b"new\nline", b'quo"te', b"\x1b[31mred", "日本".encode(), b"-dash", b"a b"]
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(repo.path), name))).write_text("1\n")
    repo.commit("odd")
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(repo.path), name))).write_text("2\n")
    result = tools.call("git", op="status")
    shown = [entry["path"] for entry in result.structured["entries"]]
    assert sorted(shown) == sorted(
        ['"caf\\351"', '"new\\nline"', '"quo\\"te"', '"\\033[31mred"', "日本", "-dash", "a b"]
    )
    assert "\x1b" not in json.dumps(result.to_wire(), ensure_ascii=False)
    for name in shown:
        assert text(tools.call("git", op="diff", paths=[name])).count("diff --git") == 1, name


def test_many_paths_are_paged(repo: Repository, tools: LocalTools) -> None:
    for number in range(1203):
        repo.write(f"f{number:04}", "")
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(3):
        result = tools.call("git", op="status", cursor=cursor)
        seen += [entry["path"] for entry in result.structured["entries"]]
        cursor = result.structured.get("cursor")
        assert result.structured["total"] == 1203
        assert (cursor is None) == ("go on with cursor" not in text(result))
    assert cursor is None
    assert seen == [f"f{number:04}" for number in range(1203)]


def test_what_the_user_ignores_everywhere_is_ignored(repo: Repository, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".config" / "git" / "ignore").write_text("*.swp\n")
    repo.write("a.swp", "")
    assert workspace(repo.path, HOME=str(home)).call("git", op="status").structured["clean"] is True
    (home / "mine").write_text("nothing\n")
    (home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/mine\n[core]\n\tfsmonitor = touch fired\n")
    assert workspace(repo.path, HOME=str(home)).call("git", op="status").structured["total"] == 1
    assert not (repo.path / "fired").exists()


def test_reading_writes_nothing(repo: Repository, tools: LocalTools) -> None:
    repo.commit("one", a="1\n")
    repo.write("a.txt", "1\n")  # same text, new time: plain git would refresh its index
    before = {path: path.stat().st_mtime_ns for path in (repo.path / ".git").rglob("*")}
    for op in ("status", "diff", "log"):
        tools.call("git", op=op)
    assert {path: path.stat().st_mtime_ns for path in (repo.path / ".git").rglob("*")} == before


# diff


def test_what_is_compared(repo: Repository, tools: LocalTools) -> None:
    first = repo.commit("one", a="1\n")
    repo.commit("two", a="2\n")
    repo.write("a.txt", "3\n")
    repo.git("add", "a.txt")
    repo.write("a.txt", "4\n")

    def change(**arguments: Any) -> list[str]:
        lines = text(tools.call("git", op="diff", **arguments)).split("\n")
        return [line for line in lines if line[:1] in ("-", "+") and line[:3] not in ("---", "+++")]

    assert change() == ["-3", "+4"]
    assert change(staged=True) == ["-2", "+3"]
    assert change(staged=True, **{"from": "HEAD~1"}) == ["-1", "+3"]
    assert change(**{"from": "HEAD"}) == ["-2", "+4"]
    assert change(**{"from": "HEAD~1", "to": "main"}) == ["-1", "+2"]
    assert change(**{"from": f"{first}..HEAD"}) == ["-1", "+2"]
    assert change(**{"from": "HEAD...HEAD~1"}) == []
    assert change(**{"from": "HEAD:a.txt", "to": "HEAD~1:a.txt"}) == ["-2", "+1"]


def test_the_text_is_a_patch_git_accepts(repo: Repository, tools: LocalTools) -> None:
    repo.git("config", "diff.noprefix", "true")
    repo.git("config", "color.ui", "always")
    repo.git("config", "diff.orderFile", "/nonexistent")
    repo.git("config", "diff.renames", "false")
    repo.commit("one", a="".join(f"{n}\n" for n in range(30)))
    repo.git("mv", "a.txt", "b.txt")
    repo.write("b.txt", "".join(f"{n}\n" for n in range(1, 30)))
    patch = text(tools.call("git", op="diff", **{"from": "HEAD"}))
    assert "rename from a.txt" in patch
    repo.git("reset", "--quiet", "--hard")
    (repo.path.parent / "patch").write_text(patch + "\n")
    repo.git("apply", str(repo.path.parent / "patch"))
    assert (repo.path / "b.txt").read_text().startswith("1\n2\n")


def test_context_stat_and_paths(repo: Repository, tools: LocalTools) -> None:
    repo.commit("one", a="".join(f"{n}\n" for n in range(9)), b="b\n")
    repo.write("a.txt", "".join(f"{n}\n" for n in range(9)).replace("4", "four"))
    repo.write("b.txt", "B\n")
    assert text(tools.call("git", op="diff", paths=["a.txt"], context=0)).split("\n")[4:] == [
        "@@ -5 +5 @@",
        "-4",
        "+four",
    ]
    assert text(tools.call("git", op="diff", paths=["a.txt"], context=1)).count("\n ") == 2
    stat = text(tools.call("git", op="diff", stat=True))
    assert "2 files changed, 2 insertions(+), 2 deletions(-)" in stat
    assert "@@" not in stat
    assert "b.txt" not in text(tools.call("git", op="diff", paths=[str(repo.path / "a.txt")]))
    assert text(tools.call("git", op="diff", paths=["*.txt"])).startswith("No differences."), "paths are literal"


def test_pages_make_the_whole(repo: Repository, tools: LocalTools) -> None:
    repo.commit("one", a="".join(f"line {n} é\n" for n in range(20_000)))
    repo.write("a.txt", "".join(f"LINE {n} é\n" for n in range(20_000)))
    whole = repo.git("diff")
    got, cursor, pages = "", None, 0
    while pages < 20:
        result = tools.call("git", op="diff", cursor=cursor)
        pages += 1
        assert len(text(result).encode()) < 100 * 1024
        assert facts(result)["bytes"] == len(whole.encode())
        assert facts(result)["lines"] == whole.count("\n")
        cursor = facts(result).get("cursor")
        got += (text(result).rpartition("\n")[0] if cursor else text(result)) + "\n"
        if cursor is None:
            break
        assert text(result).endswith(f'go on with cursor "{cursor}", or name paths]')
    assert got == whole
    with pytest.raises(InvalidInput, match="cursor: the diff has"):
        tools.call("git", op="diff", cursor="99999999")


def test_one_endless_line_is_paged_between_characters(repo: Repository, tools: LocalTools) -> None:
    repo.commit("one", a="")
    repo.write("a.txt", "é" * 100_000)
    first = tools.call("git", op="diff")
    second = tools.call("git", op="diff", cursor=facts(first)["cursor"])
    assert "\\x" not in text(first) + text(second)
    assert "\ufffd" not in text(first) + text(second)


def test_line_ends_show_when_they_differ(repo: Repository, tools: LocalTools) -> None:
    repo.commit("one", a="1\r\n2\r\n")
    (repo.path / "a.txt").write_bytes(b"1\r\n3\r\n")
    assert text(tools.call("git", op="diff")).split("\n")[-3:] == [" 1", "-2", "+3"]
    (repo.path / "a.txt").write_bytes(b"1\n2\r\n")
    assert text(tools.call("git", op="diff")).split("\n")[-3:] == ["-1␍", "+1", " 2␍"]


def test_other_peoples_text_is_cleaned(repo: Repository, tools: LocalTools) -> None:
    repo.commit("\x1b[2Jfirst\u202e", a="plain\n")
    (repo.path / "a.txt").write_bytes(b"\x1b]52;c;ZXZpbA==\x07caf\xe9\xe2\x80\xae\n")
    shown = text(tools.call("git", op="diff")) + text(tools.call("git", op="log"))
    assert "+caf\\xe9" in shown
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)


# log


def test_a_block_per_commit(repo: Repository, tools: LocalTools) -> None:
    first = repo.commit("Subject\n\nBody line\n\n    indented")
    repo.git("tag", "v1")
    second = repo.commit("Second")
    result = tools.call("git", op="log")
    assert text(result) == (
        f"commit {second} (HEAD -> main)\n"
        "Author: Ada <ada@example.org>\n"
        "Date:   2026-01-02T03:04:05+00:00\n"
        "\n"
        "    Second\n"
        "\n"
        f"commit {first} (tag: v1)\n"
        "Author: Ada <ada@example.org>\n"
        "Date:   2026-01-02T03:04:05+00:00\n"
        "\n"
        "    Subject\n"
        "\n"
        "    Body line\n"
        "\n"
        "        indented"
    )
    assert facts(result) == {"count": 2, "commits": [second, first], "head": second, "branch": "main"}


def test_a_merge_names_its_parents(repo: Repository, tools: LocalTools) -> None:
    diverged(repo)
    repo.git("merge", "--quiet", "-s", "ours", "-m", "merged", "side")
    main, side = repo.git("rev-parse", "main^1")[:12], repo.git("rev-parse", "main^2")[:12]
    assert f"\nMerge:  {main} {side}\n" in text(tools.call("git", op="log", limit=1))


def subjects(tools: LocalTools, **arguments: Any) -> list[str]:
    lines = text(tools.call("git", op="log", **arguments)).split("\n")
    return [line.strip() for line in lines if line.startswith("    ")]


def test_what_is_listed(repo: Repository, tools: LocalTools) -> None:
    repo.commit("one", a="1")
    repo.git("commit", "--quiet", "--allow-empty", "-m", "two [x]", "--author=Bob (B) <bob@example.org>")
    repo.git("switch", "--quiet", "-c", "side", "HEAD~1")
    repo.commit("three", b="1", GIT="ignored")
    assert subjects(tools) == ["three", "one"]
    assert subjects(tools, rev="main") == ["two [x]", "one"]
    assert subjects(tools, rev="main..side") == ["three"]
    assert subjects(tools, rev="main", author="bob (b)") == ["two [x]"]
    assert subjects(tools, rev="main", grep="TWO [X]") == ["two [x]"]
    assert subjects(tools, paths=["a.txt"]) == ["one"]
    assert subjects(tools, since="2027-01-01") == []
    assert subjects(tools, until="2025-12-31") == []
    assert subjects(tools, since="2025-12-31", until="2027-01-01", limit="1") == ["three"]
    assert text(tools.call("git", op="log", grep="nothing like it")) == "No commits match."


def test_log_pages_are_stable_when_commits_arrive(repo: Repository, tools: LocalTools) -> None:
    for number in range(7):
        repo.commit(str(number))
    first = tools.call("git", op="log", limit=3)
    assert text(first).endswith(f'[go on with cursor "{facts(first)["cursor"]}"]')
    repo.commit("new")
    second = tools.call("git", op="log", limit=3, cursor=facts(first)["cursor"])
    third = tools.call("git", op="log", limit=3, cursor=facts(second)["cursor"])
    ids = [*facts(first)["commits"], *facts(second)["commits"], *facts(third)["commits"]]
    assert ids == repo.git("rev-list", "main~1").split()
    assert "cursor" not in facts(third)


def test_long_messages_do_not_fill_the_answer(repo: Repository, tools: LocalTools) -> None:
    for number in range(30):
        repo.commit(f"{number}\n\n" + "word " * 5000)
    result = tools.call("git", op="log", limit=30)
    assert len(text(result).encode()) < 100 * 1024
    assert "more characters)" in text(result)
    rest = tools.call("git", op="log", limit=30, cursor=facts(result)["cursor"])
    assert facts(rest)["commits"][0] == repo.git("rev-list", "main").split()[facts(result)["count"]]


# where HEAD is


def test_gitpython_answers_without_starting_anything(repo: Repository) -> None:
    repo.commit("one")
    script = (
        "import sys, subprocess\n"
        "class Popen(subprocess.Popen):\n"
        "    def __init__(self, *args, **given):\n"
        "        raise SystemExit(f'started {args}')\n"
        "subprocess.Popen = Popen\n"
        "from hanzo_mcp.tools import git as tool\n"
        "from hanzo_mcp.sandbox.paths import Workspace\n"
        "from hanzo_mcp.sandbox.git import Location\n"
        "from types import SimpleNamespace as N\n"
        "assert 'git' not in sys.modules\n"
        "top = sys.argv[1]\n"
        "where = Location(top, top + '/.git', top + '/.git', 'sha1')\n"
        "head = tool._head_from_files(N(files=Workspace([top])), N(location=where))\n"
        "print(head.branch, head.oid, 'git' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(repo.path)], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["main", repo.git("rev-parse", "HEAD").strip(), "True"], done.stderr


@pytest.mark.parametrize("packed", [False, True])
def test_head_of_a_worktree(repo: Repository, tools: LocalTools, packed: bool) -> None:
    repo.commit("one")
    repo.git("worktree", "add", "--quiet", "-b", "topic/x", "tree")
    if packed:
        repo.git("pack-refs", "--all")
    found = facts(tools.call("git", op="log", path="tree"))
    assert (found["branch"], found["head"]) == ("topic/x", repo.git("rev-parse", "HEAD").strip())
    assert tools.call("git", op="status", path="tree").structured["branch"] == "topic/x"


def test_sha256(tmp_path: Path) -> None:
    repo = Repository(tmp_path, "--object-format=sha256")
    oid = repo.commit("one", a="1\n")
    repo.write("a.txt", "2\n")
    tools = workspace(tmp_path)
    assert len(oid) == 64
    assert facts(tools.call("git", op="log"))["head"] == oid
    assert facts(tools.call("git", op="diff", **{"from": "HEAD"}))["branch"] == "main"
    assert tools.call("git", op="status").structured["oid"] == oid


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main", "packed-refs"])
def test_a_fifo_in_the_repository_does_not_hang_us(
    repo: Repository, tools: LocalTools, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit("one")
    monkeypatch.setattr(runner, "SECONDS", 0.5)
    (repo.path / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(repo.path / ".git" / name)
    for op in ("status", "log", "diff"):
        try:
            tools.call("git", op=op)
        except ToolError as exc:
            assert isinstance(exc, TimedOut | Unavailable | NotFound | InvalidInput)


# refusals


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="not a git repository"):
        workspace(tmp_path).call("git", op="status")


def test_a_bare_repository(tmp_path: Path) -> None:
    Repository(tmp_path / "bare", "--bare")
    for op in ("status", "diff", "log"):
        with pytest.raises(InvalidInput, match="a bare repository"):
            workspace(tmp_path).call("git", op=op, path="bare")


def test_the_inside_of_a_git_folder(repo: Repository, tools: LocalTools) -> None:
    with pytest.raises(InvalidInput, match=r"inside a \.git folder"):
        tools.call("git", op="status", path=".git")


def test_no_git(repo: Repository) -> None:
    with pytest.raises(Unavailable, match="git is not installed"):
        LocalTools(repo.path, environ={"PATH": "/nonexistent"}).call("git", op="status")


def test_a_git_in_the_workspace_is_not_used(repo: Repository, tmp_path: Path) -> None:
    fake = repo.write("bin/git", f"#!/bin/sh\ntouch {tmp_path}/fired\n")
    fake.chmod(0o755)
    tools = LocalTools(repo.path, environ={"PATH": f"{fake.parent}:{os.environ['PATH']}"})
    assert tools.call("git", op="status").structured["unborn"]
    assert not (tmp_path / "fired").exists()


def test_an_old_git_is_refused(repo: Repository, tmp_path: Path) -> None:
    """One that does not know GIT_CONFIG_COUNT would run what the repository names."""
    real = shutil.which("git")
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\nunset GIT_CONFIG_COUNT\nexec {real} "$@"\n')
    fake.chmod(0o755)
    tools = LocalTools(repo.path, environ={"PATH": f"{fake.parent}:{os.environ['PATH']}"})
    with pytest.raises(Unavailable, match="git is too old"):
        tools.call("git", op="status")


def test_a_broken_config_is_an_error_with_its_line(repo: Repository, tools: LocalTools) -> None:
    (repo.path / ".git" / "config").write_text("[core\n")
    with pytest.raises(Unavailable, match="bad config line 1"):
        tools.call("git", op="status")


def test_parts_outside_the_workspace(repo: Repository, tmp_path: Path) -> None:
    repo.commit("one")
    repo.git("worktree", "add", "--quiet", str(tmp_path / "tree"))
    (repo.path / "sub").mkdir()
    for place in (tmp_path / "tree", repo.path / "sub"):
        with pytest.raises(Denied, match=f"{repo.path}.* is outside the workspace"):
            workspace(place).call("git", op="log")
    repo.git("config", "core.worktree", str(tmp_path))
    with pytest.raises((Denied, InvalidInput)):
        workspace(repo.path).call("git", op="status")


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"op": "diff", "from": "--output=pwned"}, InvalidInput, "may not be empty or start with '-'"),
        ({"op": "diff", "from": "HEAD", "to": "-O/bin/x"}, InvalidInput, "start with '-'"),
        ({"op": "diff", "to": "HEAD"}, InvalidInput, "to needs from"),
        ({"op": "diff", "from": "/etc/passwd", "paths": []}, NotFound, "no such revision"),
        ({"op": "diff", "from": "nope"}, NotFound, "'nope': no such revision"),
        ({"op": "log", "rev": "nope"}, NotFound, "nope"),
        ({"op": "log", "rev": "--all"}, InvalidInput, "start with '-'"),
        ({"op": "diff", "from": "..-x"}, InvalidInput, "start with '-'"),
        ({"op": "diff", "paths": ["a\0b"]}, InvalidInput, "NUL"),
        ({"op": "log", "rev": "a\nb"}, InvalidInput, "control characters"),
        ({"op": "log", "since": "whenever"}, InvalidInput, "since: 'whenever' is no date"),
        ({"op": "log", "limit": 501}, InvalidInput, "a number from 1 to 500"),
        ({"op": "log", "cursor": "x"}, InvalidInput, "cursor"),
        ({"op": "log", "cursor": "--all+1"}, InvalidInput, "start with '-'"),
        ({"op": "status", "cursor": "-1"}, InvalidInput, "cursor"),
        ({"op": "status", "path": "a.txt"}, InvalidInput, "name single files in paths"),
        ({"op": "status", "path": ".."}, Denied, "outside the workspace"),
        ({"op": "diff", "paths": ["../x"]}, Denied, "outside"),
        ({"op": "diff", "paths": ["/etc/passwd", "/etc/hostname"]}, Denied, "outside"),
        ({"op": "log", "form": "HEAD"}, InvalidInput, "unknown argument 'form'"),
        ({"op": "diff", "form": "HEAD"}, InvalidInput, "did you mean 'from'"),
    ],
)
def test_wrong_arguments(
    repo: Repository, tools: LocalTools, arguments: dict[str, Any], error: type[Exception], said: str
) -> None:
    repo.commit("one", a="1\n")
    with pytest.raises(error, match=said):
        tools.call("git", **arguments)
    assert not (repo.path / "pwned").exists()


def test_many_at_once(repo: Repository, tools: LocalTools) -> None:
    oid = repo.commit("one", a="1\n")

    async def go() -> list[Result]:
        async with asyncio.timeout(60):
            return await asyncio.gather(*(tools.acall("git", op="log") for _ in range(24)))

    assert {facts(result)["head"] for result in asyncio.run(go())} == {oid}


def test_cancelling_leaves_no_process(repo: Repository) -> None:
    repo.commit("one")
    launcher, files = Launcher(dict(os.environ)), Workspace([str(repo.path)])

    async def go() -> None:
        async with asyncio.timeout(20):
            opened = await runner.Git.open(launcher, files, ".")
            task = asyncio.create_task(opened.run("log", ["--format=%H"]))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(go())


def test_the_tool_fits_its_budget() -> None:
    from hanzo_mcp.docgen import entry

    assert len(json.dumps(entry(tool.TOOL), separators=(",", ":"))) <= 1.2 * 1024
