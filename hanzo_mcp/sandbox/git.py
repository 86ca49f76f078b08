"""The only way to run git: fixed verbs, an environment from nothing, and nothing a repository says is executed
(sandbox design §4.5).

A repository's own config names programs in many places: hooks, fsmonitor, filters, pagers, editors, textconv, ssh.
Fixed settings are overridden by name; drivers, which have names of their own, are listed first and overridden one by
one. The overrides go through ``GIT_CONFIG_COUNT``, since a driver's name may hold ``=``.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from hanzo_mcp.core.text import one_line
from hanzo_mcp.errors import Denied, InvalidInput, NotFound, TimedOut, ToolError, Unavailable
from hanzo_mcp.sandbox import gitdir
from hanzo_mcp.sandbox.launcher import Completed, Launcher
from hanzo_mcp.sandbox.paths import Workspace
from hanzo_mcp.sandbox.streams import Collector

SECONDS = 60.0
_CONFIG_BYTES = 1024 * 1024
_DRIVERS = 200
_ENVIRONMENT = {
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "SSH_ASKPASS": "/bin/false",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": ":",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PROTOCOL_FROM_USER": "0",
}
_OVERRIDES = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    ("core.pager", "cat"),
    ("core.editor", ":"),
    ("core.sshCommand", "ssh"),
    ("core.askPass", ""),
    ("core.attributesFile", os.devnull),
    ("core.alternateRefsCommand", ":"),
    ("core.quotePath", "false"),
    ("credential.helper", ""),
    ("gpg.program", "/bin/false"),
    ("gpg.ssh.program", "/bin/false"),
    ("gpg.x509.program", "/bin/false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("log.follow", "false"),
    ("log.mailmap", "false"),
    ("protocol.allow", "never"),
    ("protocol.ext.allow", "never"),
    ("submodule.recurse", "false"),
    ("safe.bareRepository", "explicit"),
    ("uploadpack.packObjectsHook", ""),
    ("interactive.diffFilter", ""),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)
_DIFF = (
    "--no-ext-diff",
    "--no-textconv",
    "--submodule=short",
    "--ignore-submodules=dirty",  # looking deeper would run git in the submodule, with its config and without ours
    "--no-color",
    f"-O{os.devnull}",
)
_VERBS: dict[str, tuple[str, ...]] = {
    "status": ("--ignore-submodules=dirty",),
    "diff": _DIFF,
    "log": (*_DIFF, "--no-show-signature"),
    "rev-parse": (),
    "symbolic-ref": (),
}
_TRUSTED = "safe.directory"
_FROM_USER = ("core.excludesfile", "core.autocrlf", "core.eol", _TRUSTED)
"""Settings of the user's own config that change what a read shows and run nothing."""
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Location:
    """Where a repository is, all absolute and inside a root, and its object format (``sha1``, ``sha256``)."""

    top: str
    git_dir: str
    common_dir: str
    object_format: str


class Git:
    """One repository. ``keys`` are the names its config sets, ``filters`` the filter drivers that are not run."""

    def __init__(self, program: _Program, location: Location, keys: frozenset[str], pairs: Pairs) -> None:
        self.location, self.keys = location, keys
        self.filters = sorted(_drivers(keys, "filter"))
        self._program, self._pairs = program, pairs

    @classmethod
    async def open(cls, launcher: Launcher, files: Workspace, path: str, user: Pairs = ()) -> Git:
        """The repository that holds folder ``path``. Raises ``NotFound`` when there is none, ``Denied`` when a part
        of it is outside the workspace or its owner is somebody else, ``Unavailable`` without a usable git."""
        place = files.place(path)
        cwd = files.real(place)
        program = _program(launcher, files)
        canary = f"hanzo.c{secrets.token_hex(8)}"
        base = (*_OVERRIDES, *(pair for pair in user if pair[0] == _TRUSTED), (canary, "1"))
        listed, found = await asyncio.gather(
            program.run(["config", "--includes", "--name-only", "-z", "--list"], cwd, base, keep=_CONFIG_BYTES),
            program.run(["rev-parse", "--path-format=absolute", *_LOCATE], cwd, base),
        )
        keys = _keys(listed, canary)
        location = _located(found, place.shown)
        for what in ("top", "git_dir", "common_dir"):
            _inside(files, getattr(location, what), place.shown)
        await asyncio.to_thread(
            gitdir.check,
            (location.common_dir, location.git_dir),
            lambda path: _inside(files, path, place.shown),
            place.shown,
        )
        forwarded = tuple((key, value) for key, value in user if key not in keys or key == _TRUSTED)
        return cls(program, location, keys, (*_OVERRIDES, *forwarded, *_neutral(keys)))

    async def run(
        self, verb: str, args: Sequence[str], *, stdout: Collector | None = None, timeout: float | None = None
    ) -> Completed:
        """Run one of the fixed verbs at the top of the working tree, for at most ``timeout`` seconds (default 60).

        Raises ``TimedOut``. Another ending than 0 is the caller's to judge, with ``failure``.
        """
        done = await self._program.run(
            ["--literal-pathspecs", verb, *_VERBS[verb], *args],
            self.location.top,
            self._pairs,
            stdout=stdout,
            timeout=timeout,
        )
        if done.timed_out:
            raise TimedOut(f"git {verb}: took more than {timeout or SECONDS:g} s and was stopped.")
        return done

    def operation(self, files: Workspace) -> str | None:
        """The merge, rebase, ... that waits to be continued, in words. Its files are read through the workspace."""
        return _operation(_Notes(files, self.location.git_dir))


_LOCATE = ("--absolute-git-dir", "--git-common-dir", "--show-object-format", "--is-inside-work-tree", "--show-toplevel")


async def user_settings(launcher: Launcher, files: Workspace) -> Pairs:
    """What the user's own config (global and system) says about ignored files, line endings and trusted owners."""
    program = _program(launcher, files)
    environment = launcher.environment()
    home = environment.get("HOME", "")
    own = {key: environment[key] for key in ("HOME", "XDG_CONFIG_HOME") if key in environment}
    # A GIT_DIR that does not exist keeps the config of whatever repository we are in out of the list.
    env = {"PATH": program.search, "LC_ALL": "C", "GIT_DIR": "/nonexistent", **own}
    done = await launcher.run(
        [program.path, "config", "--includes", "-z", "--list"], cwd="/", env=env, timeout=SECONDS, keep=_CONFIG_BYTES
    )
    found: list[tuple[str, str]] = []
    for item in done.stdout.head.decode("utf-8", "surrogateescape").split("\0"):
        key, _, value = item.partition("\n")
        if key in _FROM_USER:
            found.append((key, os.path.join(home, value[2:]) if value.startswith("~/") and home else value))
    if home and all(key != "core.excludesfile" for key, _ in found):
        config = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
        found.append(("core.excludesfile", os.path.join(config, "git", "ignore")))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Program:
    """The git executable with the environment it always gets."""

    launcher: Launcher
    path: str
    search: str

    async def run(
        self,
        args: Sequence[str],
        cwd: str,
        pairs: Pairs,
        *,
        stdout: Collector | None = None,
        keep: int = 64 * 1024,
        timeout: float | None = None,
    ) -> Completed:
        env = {"PATH": self.search, **_ENVIRONMENT, **_as_environment(pairs)}
        argv = [self.path, "--no-pager", "--no-optional-locks", *args]
        return await self.launcher.run(argv, cwd=cwd, env=env, timeout=timeout or SECONDS, keep=keep, stdout=stdout)


def _as_environment(pairs: Pairs) -> dict[str, str]:
    found = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        found[f"GIT_CONFIG_KEY_{number}"] = key
        found[f"GIT_CONFIG_VALUE_{number}"] = value
    return found


def _program(launcher: Launcher, files: Workspace) -> _Program:
    """git from the folders of the PATH that are not in the workspace."""
    roots = [root.path for root in files.roots]
    entries = launcher.environment()["PATH"].split(os.pathsep)
    outside = [entry for entry in entries if not any(_is_below(root, os.path.realpath(entry)) for root in roots)]
    search = os.pathsep.join(outside)
    found = shutil.which("git", path=search)
    if found is None:
        raise Unavailable("git is not installed, or not on the PATH of the server. Install git to use this tool.")
    return _Program(launcher, found, search)


def _is_below(root: str, path: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _keys(listed: Completed, canary: str) -> frozenset[str]:
    """The names in the config; proof that our overrides are heard comes with them."""
    if listed.timed_out:
        raise TimedOut("git could not read the repository's config in time.")
    if listed.code != 0:
        raise failure(listed, "config")
    if listed.stdout.dropped:
        raise Denied("The repository's config is larger than 1 MB; it is not used.", by="sandbox")
    names = listed.stdout.head + listed.stdout.tail
    keys = frozenset(filter(None, names.decode("utf-8", "surrogateescape").split("\0")))
    if canary not in keys:
        raise Unavailable("git is too old: hanzo-mcp needs 2.31 or newer to keep a repository from running programs.")
    return keys


def _drivers(keys: frozenset[str], section: str) -> set[str]:
    parts = [key.split(".", 1) for key in keys if key.startswith(f"{section}.")]
    return {rest.rpartition(".")[0] for _, rest in parts if "." in rest}


def _neutral(keys: frozenset[str]) -> Pairs:
    """Overrides for every driver of the config."""
    filters, merges = _drivers(keys, "filter"), _drivers(keys, "merge")
    if len(filters) + len(merges) > _DRIVERS:
        raise Denied(f"The repository's config names more than {_DRIVERS} drivers; it is not used.", by="sandbox")
    pairs = [(f"filter.{name}.{what}", "") for name in filters for what in ("clean", "smudge", "process")]
    pairs += [(f"filter.{name}.required", "false") for name in filters]
    pairs += [(f"merge.{name}.driver", "false") for name in merges]
    return tuple(pairs)


def _located(found: Completed, shown: str) -> Location:
    if found.timed_out:
        raise TimedOut(f"{shown}: git could not open the repository in time.")
    said = found.stderr.text()
    lines = found.stdout.head.decode("utf-8", "surrogateescape").split("\n")
    inside_tree = len(lines) > 3 and lines[3] == "true"
    if found.code != 0 and "must be run in a work tree" not in said:
        raise _no_repository(said, shown)
    if not inside_tree:
        raise _no_tree(shown)
    if len(lines) != 6:
        raise InvalidInput(f"{shown}: the repository's path contains a newline.")
    return Location(lines[4], lines[0], lines[1], lines[2])


def _no_repository(said: str, shown: str) -> ToolError:
    if "not a git repository" in said:
        return NotFound(f"{shown}: not a git repository, nor is any folder above it.")
    if "dubious ownership" in said:
        return Denied(
            f"{shown}: the repository belongs to another user, so git does not trust it. If you do, run "
            "`git config --global --add safe.directory FOLDER` yourself.",
            by="git",
        )
    if "cannot use bare repository" in said:
        return _no_tree(shown)
    return Unavailable(f"{shown}: git cannot open the repository: {one_line(said)}")


def _no_tree(shown: str) -> InvalidInput:
    return InvalidInput(f"{shown}: a bare repository, or inside a .git folder. Name a folder of the working tree.")


def _inside(files: Workspace, path: str, shown: str) -> None:
    try:
        files.place(path)
    except Denied:
        raise Denied(
            f"{shown}: a part of this repository, {path}, is outside the workspace. Start the server with "
            f"--workspace {path} to open it.",
            by="sandbox",
        ) from None


def failure(done: Completed, verb: str) -> ToolError:
    """The error for a git command that did not succeed."""
    said = one_line(done.stderr.text().replace("fatal: ", ""), 500)
    missing = ("unknown revision", "bad revision", "bad object", "ambiguous argument", "invalid object name")
    kind = NotFound if any(words in said for words in missing) else Unavailable
    return kind(f"git {verb}: {said or f'ended with {done.code}'}")


@dataclass(frozen=True, slots=True)
class _Notes:
    """The small files in which git remembers an operation."""

    files: Workspace
    folder: str

    def exists(self, name: str) -> bool:
        try:
            self.files.stat(self.files.place(os.path.join(self.folder, name)))
        except ToolError:
            return False
        return True

    def read(self, name: str) -> str:
        try:
            data = self.files.read(self.files.place(os.path.join(self.folder, name)), 64 * 1024)
        except ToolError:
            return "?"
        return one_line(data.decode("utf-8", "replace"), 200)


_MARKS = (("MERGE_HEAD", "merge"), ("CHERRY_PICK_HEAD", "cherry-pick"), ("REVERT_HEAD", "revert"))


def _operation(notes: _Notes) -> str | None:
    if notes.exists("rebase-merge"):
        branch = notes.read("rebase-merge/head-name").removeprefix("refs/heads/")
        step = f"step {notes.read('rebase-merge/msgnum')} of {notes.read('rebase-merge/end')}"
        return f"rebase of {branch} onto {notes.read('rebase-merge/onto')[:12]}, {step}"
    if notes.exists("rebase-apply"):
        kind = "am" if notes.exists("rebase-apply/applying") else "rebase"
        return f"{kind}, step {notes.read('rebase-apply/next')} of {notes.read('rebase-apply/last')}"
    for name, words in _MARKS:
        if notes.exists(name):
            return f"{words} of {' '.join(oid[:12] for oid in notes.read(name).split())}"
    if notes.exists("sequencer"):
        return "cherry-pick or revert of several commits"
    return "bisect" if notes.exists("BISECT_LOG") else None
