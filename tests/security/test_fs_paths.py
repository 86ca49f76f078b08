"""What a path can do to the files outside the workspace and to the server, by row of the attack corpus."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hanzo_mcp.core.tool import RESULT_META
from hanzo_mcp.errors import Conflict, Denied, InvalidInput, NotFound, ToolError
from hanzo_mcp.runtime.local import Context, LocalSource, Ports
from hanzo_mcp.sandbox.launcher import Launcher
from hanzo_mcp.sandbox.net import Http
from hanzo_mcp.sandbox.paths import Workspace
from hanzo_mcp.tools import _fs_search
from tests.support.local import TOOLS, LocalTools

CORPUS = Path(__file__).parents[2] / "fixtures" / "attacks" / "fs.jsonl"
ROWS: dict[str, dict[str, Any]] = {row["id"]: row for row in map(json.loads, CORPUS.read_text().splitlines())}
SECRET = "S3CRET"
OPS: dict[str, dict[str, Any]] = {
    "read": {},
    "write": {"content": "pwn"},
    "edit": {"old": SECRET, "new": "pwn"},
    "list": {},
    "search": {"pattern": SECRET},
    "stat": {},
}
SWAP = """
import ctypes, sys
swap = ctypes.CDLL(None, use_errno=True).renameat2
one, other = (ctypes.c_char_p(name.encode()) for name in sys.argv[1:])
print("ready", flush=True)
while swap(-100, one, -100, other, 2) == 0:
    pass
"""


@dataclass(frozen=True)
class Site:
    """A workspace and a folder beside it that holds a secret."""

    ws: Path
    out: Path
    tools: LocalTools
    monkeypatch: pytest.MonkeyPatch

    def denied(self, path: str, *ops: str) -> None:
        """Each op refuses ``path``, names it and shows nothing of the secret, which stays as it was."""
        for op in ops or OPS:
            refusal = self.refusal(path, op)
            assert "outside the workspace" in refusal, (op, path, refusal)
            assert path in refusal
            assert SECRET not in refusal
        assert (self.out / "secret").read_text() == SECRET
        assert sorted(os.listdir(self.out)) == ["secret"]

    def refusal(self, path: str, op: str) -> str:
        if op == "stat":
            result = self.tools.call("fs", op="stat", path=path)
            assert result.is_error
            return str(result.content[0]["text"])
        with pytest.raises(Denied) as refused:
            self.tools.call("fs", op=op, path=path, **OPS[op])
        assert refused.value.by == "sandbox"
        return str(refused.value)

    def read(self, path: str) -> str:
        return self.tools.text("fs", op="read", path=path)


Check = Callable[[Site], None]
CHECKS: dict[str, Check] = {}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    (tmp_path / "ws").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret").write_text(SECRET)
    return Site(tmp_path / "ws", tmp_path / "out", LocalTools(tmp_path / "ws"), monkeypatch)


def row(identity: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        CHECKS[identity] = check
        return check

    return register


def no_ripgrep(_ctx: Context) -> None:
    """In place of the finder."""


def test_every_row_has_a_check() -> None:
    assert set(ROWS) == set(CHECKS)


@pytest.mark.parametrize("identity", sorted(ROWS))
def test_attack(identity: str, site: Site) -> None:
    CHECKS[identity](site)


@row("fs-01-prefix-sibling")
def a_sibling_with_the_same_beginning(site: Site) -> None:
    evil = site.ws.with_name("ws-evil")
    evil.mkdir()
    (evil / "secret").write_text(SECRET)
    site.denied(str(evil / "secret"))
    site.denied("../ws-evil/secret")
    assert os.listdir(evil) == ["secret"]
    assert (evil / "secret").read_text() == SECRET


@row("fs-02-dotdot")
def dots(site: Site) -> None:
    (site.ws / "sub").mkdir()
    for path in ("../out/secret", "sub/../../out/secret", f"{site.ws}/../out/secret", "./.././out/secret"):
        site.denied(path)
    (site.ws / "b.txt").write_text("b")
    (site.ws / "a..b").write_text("dots")
    assert site.read("a/../b.txt") == "b"
    assert site.read("a..b") == "dots"


@row("fs-03-symlink-file-read")
def a_link_to_a_file_outside(site: Site) -> None:
    (site.ws / "link").symlink_to(site.out / "secret")
    (site.ws / "relative").symlink_to("../out/secret")
    for name in ("link", "relative"):
        site.denied(name, "read", "write", "edit", "list", "search")
        shown = site.tools.text("fs", op="stat", path=name)
        assert shown.startswith(f"{name} -> outside the workspace: link")
        assert (site.ws / name).is_symlink()


@row("fs-04-symlink-dir-new-file")
def a_new_file_behind_a_link(site: Site) -> None:
    (site.ws / "d").symlink_to(site.out)
    for path in ("d/new.txt", "d/sub/new.txt"):
        site.denied(path, "write", "edit")
    assert not (site.out / "new.txt").exists()
    (site.ws / "dangling").symlink_to(site.out / "new.txt")
    site.denied("dangling", "write")


@row("fs-06-symlink-chain")
def a_chain_of_links(site: Site) -> None:
    for name, target in (("a", "b"), ("b", "c"), ("c", str(site.out / "secret"))):
        (site.ws / name).symlink_to(target)
    site.denied("a", "read", "write", "edit", "search")
    (site.ws / "x").symlink_to("y")
    (site.ws / "y").symlink_to("x")
    with pytest.raises(InvalidInput, match="too many symbolic links"):
        site.read("x")


@row("fs-07-symlink-inside-ok")
def a_link_inside(site: Site) -> None:
    (site.ws / "sub").mkdir()
    (site.ws / "sub" / "real.txt").write_text("real")
    (site.ws / "in").symlink_to("sub/real.txt")
    (site.ws / "dir").symlink_to("sub")
    assert site.read("in") == "real"
    assert site.read("dir/real.txt") == "real"
    site.tools.call("fs", op="edit", path="dir/real.txt", old="real", new="edited")
    assert (site.ws / "sub" / "real.txt").read_text() == "edited"


@row("fs-09-toctou-read")
def a_folder_swapped_for_a_link(site: Site) -> None:
    (site.ws / "d").mkdir()
    (site.ws / "d" / "secret").write_text("in")
    (site.ws / "l").symlink_to("../out")
    argv = [sys.executable, "-c", SWAP, str(site.ws / "d"), str(site.ws / "l")]
    swapper = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert swapper.stdout is not None
    try:
        assert swapper.stdout.readline() == b"ready\n"
        seen = asyncio.run(read_often(site.tools, 4000))
        assert swapper.poll() is None
    finally:
        swapper.kill()
        swapper.communicate(timeout=20)
    assert seen == {"in", "refused"}, "the race was on, and never won"


async def read_often(tools: LocalTools, times: int) -> set[str]:
    seen: set[str] = set()
    for _ in range(times):
        try:
            seen.add(str((await tools.acall("fs", op="read", path="d/secret")).content[0]["text"]))
        except ToolError as exc:
            assert SECRET not in str(exc)
            seen.add("refused")
    return seen


@row("fs-11-proc-self-root")
def magic_links(site: Site) -> None:
    paths = ["/proc/self/root/etc/passwd", "/proc/self/cwd/../out/secret", f"/proc/thread-self/root{site.out}/secret"]
    for number, path in enumerate(paths):
        (site.ws / f"link{number}").symlink_to(path)
        site.denied(f"link{number}", "read", "write", "edit", "search")
        site.denied(path, "read", "write", "edit", "list", "search", "stat")


@row("fs-14-nul-byte")
def a_nul(site: Site) -> None:
    (site.ws / "ok.txt").write_text("ok")
    for op, arguments in OPS.items():
        if op == "stat":
            assert "NUL" in site.refusal("ok.txt\0/../../out/secret", op)
            continue
        with pytest.raises(InvalidInput, match="contains a NUL character"):
            site.tools.call("fs", op=op, path="ok.txt\0/../../out/secret", **arguments)
    assert (site.ws / "ok.txt").read_text() == "ok"


@row("fs-15-fifo-hang")
def a_fifo(site: Site) -> None:
    os.mkfifo(site.ws / "p")
    (site.ws / "a.txt").write_text("needle\n")
    for op in ("read", "write", "edit", "search"):
        with pytest.raises(InvalidInput, match="not a regular file"):
            site.tools.call("fs", op=op, path="p", **OPS[op])
    assert site.tools.text("fs", op="stat", path="p").startswith("p: other")
    assert "p (device, FIFO or socket)" in site.tools.text("fs", op="list", output="tree")
    for program in (True, False):
        if not program:
            site.monkeypatch.setattr(_fs_search, "ripgrep", no_ripgrep)
        assert site.tools.text("fs", op="search", pattern="needle").startswith("a.txt:1: needle\n[1 match in 1 file")


@row("fs-18-sparse-1tb")
def a_sparse_terabyte(site: Site) -> None:
    size = 1 << 40
    with (site.ws / "big").open("wb") as file:
        file.truncate(size)
    with (site.ws / "text").open("wb") as file:
        file.write(b"line\n" * 40_000)
        file.truncate(size)
    tracemalloc.start()
    try:
        shown = site.tools.call("fs", op="read", path="big")
        lines = site.tools.call("fs", op="read", path="text", offset=39_999)
        end = site.tools.call("fs", op="read", path="big", offset=-2, **{"as": "base64"})
        for op in ("write", "edit"):
            with pytest.raises(Conflict, match=f"{size} bytes; fs changes files of at most"):
                site.tools.call("fs", op=op, path="big", **OPS[op])
        found = [site.tools.call("fs", op="search", pattern="needle")]
        site.monkeypatch.setattr(_fs_search, "ripgrep", no_ripgrep)
        found.append(site.tools.call("fs", op="search", pattern="needle"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert shown.content[0]["text"] == f"big: binary data, {size} bytes, not shown as text."
    assert lines.meta[RESULT_META]["bytes"] == size
    assert str(lines.content[0]["text"]).startswith("line\nline\n")
    assert len(str(lines.content[0]["text"])) <= 100_000
    assert base64.b64decode(str(end.content[0]["text"])) == bytes(2)
    assert [result.meta[RESULT_META]["matches"] for result in found] == [0, 0]
    assert peak < 50 * 1024 * 1024
    assert f"big: file, {size} bytes" in site.tools.text("fs", op="stat", path="big")


@row("fs-19-search-symlink-escape")
def a_search_past_links(site: Site) -> None:
    (site.ws / "esc").symlink_to(site.out)
    (site.ws / "key").symlink_to(site.out / "secret")
    (site.ws / "l").symlink_to(".")
    (site.ws / "mine.txt").write_text("mine " + SECRET[:3])
    for program in (True, False):
        if not program:
            site.monkeypatch.setattr(_fs_search, "ripgrep", no_ripgrep)
        for wide in (False, True):
            shown = site.tools.text("fs", op="search", pattern="S3C(RET)?", include_ignored=wide)
            assert shown.startswith("mine.txt:1: mine S3C\n[1 match in 1 file")
            assert SECRET not in shown
        site.denied("esc", "search", "list")
    listed = site.tools.text("fs", op="list", depth=9, include_ignored=True)
    assert listed.startswith("esc@\nkey@\nl@\nmine.txt\n[4 entries")


def protected(site: Site, path: str) -> None:
    """Write in each mode and edit refuse ``path``, and change nothing."""
    kept = (site.ws / path).read_bytes() if (site.ws / path).is_file() else None
    for mode in ("overwrite", "create", "append"):
        with pytest.raises((Denied, Conflict)) as refused:
            site.tools.call("fs", op="write", path=path, content="pwn", mode=mode)
        assert isinstance(refused.value, Denied) or mode == "create"
    if kept is not None:
        with pytest.raises(Denied, match="protected"):
            site.tools.call("fs", op="edit", path=path, old="kept", new="pwn")
        assert (site.ws / path).read_bytes() == kept


@row("fs-24-write-hanzo-config")
def our_own_settings(site: Site) -> None:
    for path in (".hanzo/settings.local.json", ".hanzo/settings.json", "sub/.hanzo/x", ".HANZO/settings.json"):
        protected(site, path)
    assert os.listdir(site.ws) in ([], ["sub"]), "no folder was made either"
    (site.ws / ".hanzo").mkdir()
    (site.ws / ".hanzo" / "settings.json").write_text("kept")
    (site.ws / "cfg").symlink_to(".hanzo")
    (site.ws / "one").symlink_to(".hanzo/settings.json")
    for path in (".hanzo/settings.json", "cfg/settings.json", "one", "x/../.hanzo/settings.json", "cfg/new.json"):
        protected(site, path)
    assert os.listdir(site.ws / ".hanzo") == ["settings.json"]


@row("fs-25-write-git-hook")
def what_git_runs(site: Site) -> None:
    for folder in (".git/hooks", ".git/info", "nested/sub/.git/hooks", ".git/modules/m/hooks"):
        (site.ws / folder).mkdir(parents=True)
    (site.ws / ".git" / "config").write_text("kept")
    (site.ws / "way").symlink_to(".git")
    paths = [
        ".git/hooks/pre-commit", ".git/config", ".git/info/attributes", ".git/config.worktree", "fresh/.git",
        "nested/sub/.git/hooks/x", ".git/modules/m/hooks/x", ".git/modules/m/config", ".GIT/hooks/x", "way/hooks/x",
        "way/config", ".git/worktrees/w/config.worktree",
    ]  # fmt: skip
    for path in paths:
        protected(site, path)
    assert not [path for path in site.ws.rglob("*") if path.is_file() and path.read_text() != "kept"]


@row("fs-28-windows-paths-on-posix")
def windows_paths(site: Site) -> None:
    for path in ("C:\\Users\\x\\a.txt", "c:/x", "\\\\host\\share\\x"):
        for op in ("read", "write", "edit", "list", "search"):
            with pytest.raises(InvalidInput, match="is a Windows path"):
                site.tools.call("fs", op=op, path=path, **OPS[op])
    assert os.listdir(site.ws) == []


@row("fs-29-deny-rule-via-symlink")
def a_link_to_what_is_refused(site: Site) -> None:
    (site.ws / "secret.txt").write_text(SECRET)
    (site.ws / "ok.txt").symlink_to("secret.txt")
    ports = Ports(Workspace([str(site.ws)], [str(site.ws / "secret.txt")]), Launcher(dict(os.environ)), Http())
    site.tools.source = LocalSource(TOOLS, lambda: ports)
    for path in ("secret.txt", "ok.txt", "x/../ok.txt"):
        for op in ("read", "write", "edit", "search"):
            with pytest.raises(Denied, match="secrets and settings"):
                site.tools.call("fs", op=op, path=path, **OPS[op])
    for program in (True, False):
        if not program:
            site.monkeypatch.setattr(_fs_search, "ripgrep", no_ripgrep)
        shown = site.tools.text("fs", op="search", pattern="S3C|RET", include_ignored=True)
        assert shown.startswith("[0 matches")
    assert (site.ws / "secret.txt").read_text() == SECRET


@row("fs-31-type-confusion")
def wrong_types(site: Site) -> None:
    (site.ws / "a.txt").write_text("one\n")
    paths: list[Any] = [{"a": 1}, None, 5, True, [], "", ".", "x" * 10_000, "a/" * 3000, "\ud800", "a\x01b", ["a.txt"]]
    for path in paths:
        for op in ("read", "edit", "write"):
            with pytest.raises(ToolError) as refused:
                site.tools.call(
                    "fs", op=op, path=path, **(OPS[op] | ({"base_hash": "0" * 64} if op == "write" else {}))
                )
            assert "Traceback" not in str(refused.value)
            assert len(str(refused.value)) < 12_000
    for op in ("read", "search"):
        for arguments in ({"offset": -1}, {"offset": 2**63}, {"limit": 10**12}, {"offset": -(2**63)}):
            site.tools.call("fs", op=op, path="a.txt", **OPS[op], **arguments)
    assert os.listdir(site.ws) == ["a.txt"]


@row("fs-33-huge-dir")
def a_huge_folder(site: Site) -> None:
    """A tenth of the row's files: making 200,000 takes longer than all other checks together."""
    folder = os.open(site.ws, os.O_RDONLY)
    try:
        for number in range(20_000):
            os.close(os.open(f"{number:06}", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
        result = site.tools.call("fs", op="list")
        deep = site.tools.call("fs", op="list", depth=3)
    finally:
        os.close(folder)
        shutil.rmtree(site.ws)  # pytest keeps the folder for a while
    facts = result.meta[RESULT_META]
    assert (facts["count"], facts["total"], facts["truncated"], facts["next_offset"]) == (1000, 20_000, True, 1000)
    assert str(result.content[0]["text"]).endswith("[entries 0-1000 of 20000; truncated; go on with offset=1000]")
    assert deep.meta[RESULT_META]["truncated"] is True


@row("fs-35-prefix-home-tilde")
def the_home(site: Site) -> None:
    site.monkeypatch.setenv("HOME", str(site.out))
    site.monkeypatch.setenv("USERPROFILE", str(site.out))
    site.denied("~/secret")
    site.denied("~root/secret")
    for path in ("$HOME/secret", "${HOME}/secret", "%USERPROFILE%/secret", "%USERPROFILE%\\secret"):
        with pytest.raises(NotFound):
            site.read(path)
    (site.ws / "x~").write_text("mine")
    assert site.read("x~") == "mine"


# Found beside the corpus.


@pytest.mark.parametrize("op", ["write", "edit"])
def test_a_path_of_1900_missing_folders(site: Site, op: str) -> None:
    outcome = "done"
    try:
        site.tools.call("fs", op=op, path="a/" * 1900 + "x", **OPS[op])
    except (ToolError, RecursionError) as exc:
        outcome = type(exc).__name__  # its chain of 1,000 contexts would take pytest minutes to show
    # 1,900 levels are more than the removal of old test folders can recurse into.
    subprocess.run(["rm", "-rf", str(site.ws / "a")], check=True)
    assert outcome != "RecursionError"


@pytest.mark.parametrize("arguments", [{"op": "stat", "path": "\ud800"}, {"op": "read", "paths": ["\ud800", "x"]}])
def test_a_lone_surrogate_is_not_repeated(site: Site, arguments: dict[str, Any]) -> None:
    result = site.tools.call("fs", **arguments)
    assert result.is_error
    assert str(result.content[0]["text"]).encode()


def test_an_ignore_file_that_never_ends(site: Site) -> None:
    """A repository's .gitignore must not be able to stop the server: in a child, which can be ended."""
    (site.ws / ".gitignore").write_text("*a*a*a*a*a*a*a*a*a*a*a*b\n")
    (site.ws / ("a" * 200)).touch()
    code = "import sys, pathlib; from tests.support.local import LocalTools as Tools; "
    code += "Tools(pathlib.Path(sys.argv[1])).call('fs', op='list')"
    subprocess.run([sys.executable, "-c", code, str(site.ws)], check=True, timeout=8, cwd=CORPUS.parents[2])
