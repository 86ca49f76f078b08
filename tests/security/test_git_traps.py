"""A hostile repository: nothing it names is executed by any read (sandbox design §4.5, attacks git-*).

Every trap is first shown to be live: plain git, in the same repository, springs it.
"""

from __future__ import annotations

import json
import os
import shutil
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hanzo_mcp.core.tool import RESULT_META, Result
from hanzo_mcp.errors import Denied, InvalidInput, NotFound, ToolError
from hanzo_mcp.sandbox.processes import children
from hanzo_mcp.tools import git as tool
from tests.support.local import LocalTools
from tests.support.repository import Repository

ATTACKS = Path(__file__).parents[2] / "fixtures" / "attacks" / "git.jsonl"
OPS: dict[str, dict[str, Any]] = {
    "status": {"op": "status"},
    "diff": {"op": "diff"},
    "diff staged": {"op": "diff", "staged": True},
    "diff from": {"op": "diff", "from": "HEAD~1"},
    "diff from to": {"op": "diff", "from": "HEAD~1", "to": "HEAD"},
    "diff stat": {"op": "diff", "stat": True},
    "log": {"op": "log"},
    "log paths": {"op": "log", "paths": ["a.txt"], "grep": "o", "author": "a", "since": "2000-01-01"},
}


class Hostile:
    """A repository with a change, a script outside that leaves a mark, and what a trap did to it."""

    def __init__(self, tmp_path: Path) -> None:
        self.out = tmp_path / "out"
        self.out.mkdir()
        self.mark = self.out / "mark"
        self.evil = self.out / "evil"
        self.evil.write_text(f"#!/bin/sh\ntouch '{self.mark}'\ncat 2>/dev/null\nexit 0\n")
        self.evil.chmod(0o755)
        self.remote = self.out / "remote"  # one that does not wait for input
        self.remote.write_text(f"#!/bin/sh\ntouch '{self.mark}'\nexit 1\n")
        self.remote.chmod(0o755)
        self.repo = Repository(tmp_path / "ws")
        self.repo.commit("one", a="1\n")
        self.repo.commit("two", a="2\n", b="b\n")
        self.repo.write("a.txt", "3\n")
        self.repo.git("add", "a.txt")
        self.repo.write("a.txt", "4\n")
        self.environ: dict[str, str] = {}

    def config(self, **values: str) -> None:
        for key, value in values.items():
            self.set(key.replace("__", "."), value)

    def set(self, key: str, value: str) -> None:
        self.repo.git("config", "--add", key, value)

    def attributes(self, line: str) -> None:
        (self.repo.path / ".git" / "info").mkdir(exist_ok=True)
        (self.repo.path / ".git" / "info" / "attributes").write_text(line + "\n")

    def tools(self) -> LocalTools:
        environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **self.environ}
        return LocalTools(self.repo.path, environ=environ)

    def sprung(self) -> bool:
        found = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        return found


def fsmonitor(at: Hostile) -> None:
    at.config(core__fsmonitor=f"{at.evil}; false #")


def hooks(at: Hostile) -> None:
    for name in ("post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-auto-gc", "post-checkout"):
        shutil.copy(at.evil, at.repo.path / ".git" / "hooks" / name)


def hooks_elsewhere(at: Hostile) -> None:
    folder = at.repo.path / ".husky"
    folder.mkdir()
    shutil.copy(at.evil, folder / "post-index-change")
    at.config(core__hooksPath=".husky")


def filter_clean(at: Hostile) -> None:
    at.attributes("*.txt filter=evil")
    at.config(filter__evil__clean=str(at.evil), filter__evil__smudge=str(at.evil), filter__evil__required="true")


def filter_process(at: Hostile) -> None:
    at.attributes("*.txt filter=evil")
    at.config(filter__evil__process=str(at.evil))


def filter_with_an_odd_name(at: Hostile) -> None:
    at.attributes('*.txt filter=e=v"il')
    at.set('filter.e=v"il.clean', str(at.evil))
    at.set('filter.e=v"il.process', str(at.evil))


def filter_included(at: Hostile) -> None:
    at.attributes("*.txt filter=evil")
    (at.repo.path / "extra").write_text(f'[filter "evil"]\n\tclean = {at.evil}\n[core]\n\tfsmonitor = {at.evil}\n')
    at.config(include__path="../extra")


def filter_of_the_worktree_config(at: Hostile) -> None:
    at.attributes("*.txt filter=evil")
    at.config(extensions__worktreeConfig="true")
    at.repo.git("config", "--worktree", "filter.evil.clean", str(at.evil))


def textconv(at: Hostile) -> None:
    at.attributes("*.txt diff=evil")
    at.config(diff__evil__textconv=str(at.evil))


def diff_driver(at: Hostile) -> None:
    at.attributes("*.txt diff=evil")
    at.config(diff__evil__command=str(at.evil))


def diff_external(at: Hostile) -> None:
    at.config(diff__external=str(at.evil))


def diff_external_from_the_environment(at: Hostile) -> None:
    at.environ["GIT_EXTERNAL_DIFF"] = str(at.evil)


def attributes_file(at: Hostile) -> None:
    (at.repo.path / "attrs").write_text("*.txt diff=evil\n")
    at.config(core__attributesFile=str(at.repo.path / "attrs"), diff__evil__textconv=str(at.evil))


def signature(at: Hostile) -> None:
    at.config(log__showSignature="true", gpg__program=str(at.evil))
    raw = at.repo.git("cat-file", "commit", "HEAD")
    head, _, message = raw.partition("\n\n")
    signed = f"{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n{message}"
    (at.out / "commit").write_text(signed)
    oid = at.repo.git("hash-object", "-t", "commit", "-w", str(at.out / "commit")).strip()
    at.repo.git("update-ref", "HEAD", oid)


def promisor(at: Hostile, url: str) -> None:
    blob = at.repo.git("rev-parse", "HEAD~1:a.txt").strip()
    (at.repo.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    at.config(core__repositoryFormatVersion="1", extensions__partialClone="origin", protocol__ext__allow="always")
    at.config(remote__origin__url=url, remote__origin__promisor="true", remote__origin__partialCloneFilter="blob:none")


def promisor_over_ssh(at: Hostile) -> None:
    at.config(core__sshCommand=str(at.remote))
    promisor(at, "ssh://host.invalid/x")


def promisor_over_ext(at: Hostile) -> None:
    promisor(at, f"ext::{at.remote} %S")


def submodule(at: Hostile) -> None:
    inner = Repository(at.repo.path / "sub")
    inner.commit("inner", x="1\n")
    at.repo.git("-c", "advice.addEmbeddedRepo=false", "add", "sub")
    at.repo.git("commit", "--quiet", "-m", "with sub")
    at.repo.write("a.txt", "5\n")
    at.repo.git("add", "a.txt")
    at.repo.write("a.txt", "6\n")
    inner.git("config", "core.fsmonitor", str(at.evil))


def everything_that_names_a_program(at: Hostile) -> None:
    keys = "core.pager core.editor sequence.editor core.sshCommand core.askPass credential.helper gpg.ssh.program"
    keys += " pager.log pager.diff pager.status interactive.diffFilter trailer.x.cmd core.gitProxy merge.m.driver"
    keys += " core.alternateRefsCommand uploadpack.packObjectsHook remote.o.uploadpack remote.o.receivepack"
    keys += " diff.guitool difftool.x.cmd mergetool.x.cmd browser.x.cmd man.x.cmd gpg.ssh.defaultKeyCommand"
    for key in keys.split():
        at.set(key, str(at.evil))
    for alias in ("status", "diff", "log", "config", "rev-parse"):
        at.set(f"alias.{alias}", f"!{at.evil}")
    at.set("submodule.x.update", f"!{at.evil}")


@dataclass(frozen=True)
class Trap:
    """``control`` is the plain command that springs it; ``None`` for what only a terminal or a write would."""

    lay: Callable[[Hostile], None]
    control: tuple[str, ...] | None


TRAPS = (
    Trap(fsmonitor, ("status",)),
    Trap(hooks, ("status",)),
    Trap(hooks_elsewhere, ("status",)),
    Trap(filter_clean, ("diff",)),
    Trap(filter_process, ("diff",)),
    Trap(filter_with_an_odd_name, ("diff",)),
    Trap(filter_included, ("diff",)),
    Trap(filter_of_the_worktree_config, ("diff",)),
    Trap(textconv, ("diff",)),
    Trap(diff_driver, ("diff",)),
    Trap(diff_external, ("diff",)),
    Trap(diff_external_from_the_environment, ("diff",)),
    Trap(attributes_file, ("diff",)),
    Trap(signature, ("log",)),
    Trap(promisor_over_ssh, ("diff", "HEAD~1")),
    Trap(promisor_over_ext, ("diff", "HEAD~1")),
    Trap(submodule, ("status",)),
    Trap(everything_that_names_a_program, None),
)
NAMES = [trap.lay.__name__ for trap in TRAPS]


@pytest.fixture
def at(tmp_path: Path) -> Hostile:
    return Hostile(tmp_path)


@pytest.mark.parametrize("trap", [trap for trap in TRAPS if trap.control], ids=lambda trap: trap.lay.__name__)
def test_the_trap_is_live(at: Hostile, trap: Trap) -> None:
    trap.lay(at)
    at.sprung()
    at.repo.write("b.txt", "b\n")  # touched, so that the index wants a refresh
    at.repo.git(*(trap.control or ()), check=False, **at.environ)
    assert at.sprung()


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("trap", TRAPS, ids=NAMES)
def test_nothing_runs(at: Hostile, trap: Trap, op: str) -> None:
    trap.lay(at)
    at.sprung()
    at.repo.write("b.txt", "b\n")
    before = set(children(os.getpid()))
    try:
        result = at.tools().call("git", **OPS[op])
    except ToolError as exc:
        # the one honest failure: an object that would have to be fetched
        assert trap.lay in (promisor_over_ssh, promisor_over_ext), exc
        assert "a.txt" in str(exc) or "promisor" in str(exc) or "fetch" in str(exc) or "read" in str(exc), exc
    else:
        assert said_something(result, op)
    assert not at.sprung()
    assert set(children(os.getpid())) <= before


def said_something(result: Result, op: str) -> bool:
    text = str(result.content[0]["text"])
    return {"status": "modified: a.txt", "diff": "a.txt", "log": "commit "}[op.split(maxsplit=1)[0]] in text


def test_a_filter_that_was_not_run_is_named(at: Hostile) -> None:
    filter_clean(at)
    for op in ("status", "diff"):
        assert "[filters were not run (evil)" in str(at.tools().call("git", op=op).content[0]["text"])


def test_more_drivers_than_can_be_silenced_are_refused(at: Hostile) -> None:
    lines = "".join(f'[filter "f{number}"]\n\tclean = {at.evil}\n' for number in range(300))
    with (at.repo.path / ".git" / "config").open("a") as config:
        config.write(lines)
    with pytest.raises(Denied, match="more than 200 drivers"):
        at.tools().call("git", op="status")


def test_an_embedded_bare_repository(at: Hostile) -> None:
    bare = at.repo.path / "sub"
    Repository(bare, "--bare")
    with (bare / "config").open("a") as config:
        config.write(f"[core]\n\tbare = false\n\tworktree = {at.repo.path}\n\tfsmonitor = {at.evil}\n")
    at.repo.git("-C", "sub", "status", check=False)
    assert at.sprung(), "the trap is live"
    before = sorted(path for path in bare.rglob("*"))
    for op in OPS.values():
        with pytest.raises(InvalidInput, match="bare repository"):
            at.tools().call("git", **op, path="sub")
    assert not at.sprung()
    assert sorted(path for path in bare.rglob("*")) == before


def test_options_in_place_of_revisions(at: Hostile) -> None:
    pwned = at.out / "pwned"
    (at.out / "secret").write_text("S3CRET\n")
    attempts = [f"--output={pwned}", f"-o{pwned}", f"-O{at.evil}", f"--upload-pack={at.evil}", f"--exec={at.evil}"]
    attempts += ["--no-index", "--contents=/etc/hostname", f"--open-files-in-pager={at.evil}", "--ext-diff", "-p"]
    for text in attempts:
        for arguments in (
            {"op": "diff", "from": text},
            {"op": "diff", "from": "HEAD", "to": text},
            {"op": "log", "rev": text},
        ):
            with pytest.raises(InvalidInput, match="start with '-'"):
                at.tools().call("git", **arguments)
    for text in (f"\u2010-output={pwned}", f"HEAD --output={pwned}", str(at.out / "secret")):
        for arguments in ({"op": "diff", "from": text}, {"op": "log", "rev": text}):
            with pytest.raises(NotFound):
                at.tools().call("git", **arguments)
    for paths in ([f"--output={pwned}"], [":(top)..", ":/"], ["--no-index"]):
        assert "S3CRET" not in str(at.tools().call("git", op="diff", paths=paths).content)
    assert not pwned.exists()
    assert not at.sprung()


def test_two_files_outside_are_never_compared(at: Hostile) -> None:
    """``git diff -- A B`` outside the tree silently becomes ``--no-index``."""
    for name in ("secret", "other"):
        (at.out / name).write_text(f"S3CRET {name}\n")
    at.repo.path.joinpath("link").symlink_to(at.out)
    outside = [str(at.out / "secret"), str(at.out / "other")]
    for paths in (outside, ["../out/secret", "../out/other"], ["a.txt", outside[0]]):
        with pytest.raises(Denied):
            at.tools().call("git", op="diff", paths=paths)
    result = at.tools().call("git", op="diff", paths=["link/secret", "link/other"])
    assert "S3CRET" not in str(result.content)


def test_a_repository_elsewhere(at: Hostile) -> None:
    Repository(at.out / "repo").commit("S3CRET")
    at.repo.path.joinpath("way").symlink_to(at.out / "repo")
    at.repo.path.joinpath("gitfile").mkdir()
    at.repo.path.joinpath("gitfile", ".git").write_text(f"gitdir: {at.out / 'repo' / '.git'}\n")
    for path in (str(at.out / "repo"), "sub/../../out/repo", "way", "gitfile"):
        with pytest.raises(Denied):
            at.tools().call("git", op="log", path=path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_repository_of_another_user(at: Hostile) -> None:
    for path in (at.repo.path, *at.repo.path.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    with pytest.raises(Denied, match=r"belongs to another user.*safe\.directory"):
        at.tools().call("git", op="status")
    home = at.out / "home"
    home.mkdir()
    at.environ["HOME"] = str(home)
    tools = at.tools()
    with pytest.raises(Denied):
        tools.call("git", op="status")
    (home / ".gitconfig").write_text(f"[safe]\n\tdirectory = {at.repo.path}\n")
    assert tools.call("git", op="status").structured["branch"] == "main", "what the user trusts is heard at once"


def test_a_huge_change_is_cut_and_git_is_ended(at: Hostile) -> None:
    line = "x" * 1023 + "\n"
    with (at.repo.path / "a.txt").open("w") as file:
        for _ in range(200):
            file.write(line * 1024)
    before = set(children(os.getpid()))
    tracemalloc.start()
    try:
        result = at.tools().call("git", op="diff")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        (at.repo.path / "a.txt").unlink()  # pytest keeps the folder for a while
    facts = result.meta[RESULT_META]
    assert facts["incomplete"] is True
    assert facts["bytes"] >= 64 * 1024 * 1024
    assert "of more than" in str(result.content[0]["text"])
    assert len(str(result.content[0]["text"])) <= tool.PAGE + 200
    assert peak < 16 * 1024 * 1024
    assert set(children(os.getpid())) <= before


MET: dict[str, Callable[..., None]] = {
    "git-01-fsmonitor": test_nothing_runs,
    "git-02-filter-driver": test_nothing_runs,
    "git-03-textconv-extdiff": test_nothing_runs,
    "git-05-gpg-editor-pager": test_nothing_runs,
    "git-06-ref-arg-injection": test_options_in_place_of_revisions,
    "git-08-repo-path-outside": test_a_repository_elsewhere,
    "git-11-embedded-bare": test_an_embedded_bare_repository,
    "git-16-dubious-owner": test_a_repository_of_another_user,
    "git-18-huge-diff": test_a_huge_change_is_cut_and_git_is_ended,
}


def test_every_attack_of_the_corpus_has_its_test() -> None:
    rows = [json.loads(line) for line in ATTACKS.read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in rows] == list(MET)
