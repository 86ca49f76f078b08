"""git: read a repository. Every command goes through the hardened runner, ``hanzo_mcp.sandbox.git``.

GitPython answers one question, where HEAD is, because it can do so from the files alone (``Repo`` with the loose object
database, which cannot spawn) while the command runs. It is the wrong tool for the rest, measured with 3.2.1:

* its object database in Python, ``GitDB``, is deprecated by its authors "due to security and performance issues",
  and the default one keeps ``git cat-file`` children without our environment;
* it opens refs by name, so a FIFO among them would hang a thread; ``%D`` of ``git log`` decorates in the process that
  runs anyway;
* it has no notion of a merge or rebase in progress; those files are read through the workspace.

Where it cannot read (SHA-256, reftable, odd files) the command line answers.
"""

from __future__ import annotations

import asyncio
import configparser
import importlib
import importlib.util
import os
import re
import stat
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, Field, create_model

from hanzo_mcp.core.commits import FORMAT, block, fitting, split
from hanzo_mcp.core.porcelain import Entry, Status, entry_lines, head_lines, parse, unquoted
from hanzo_mcp.core.text import clean
from hanzo_mcp.core.tool import Access, JsonObject, Result
from hanzo_mcp.errors import Denied, InvalidInput, NotFound, ToolError, Unavailable
from hanzo_mcp.runtime.local import Context, Op, Tool
from hanzo_mcp.runtime.params import Params
from hanzo_mcp.sandbox.git import Git, Pairs, failure, user_settings
from hanzo_mcp.sandbox.streams import Window

PAGE = 64 * 1024
"""Bytes of diff or log text in one answer."""
ENTRIES = 500
"""Paths of a status in one answer."""
_STATUS_BYTES = 8 * 1024 * 1024
_DIFF_BYTES = 64 * 1024 * 1024
"""Longer diffs are not counted to their end."""
_LOG_BYTES = 4 * 1024 * 1024
_WHERE = "[status, diff, log] Repository folder"
_PATHS = "[diff, log] Only these"
_CURSOR = "[status, diff, log] To go on"


def _within(low: int, high: int) -> Callable[[int], int]:
    """A bound that is checked but, unlike ``ge`` and ``le``, takes no room in the tool list."""

    def check(value: int) -> int:
        if not low <= value <= high:
            raise ValueError(f"a number from {low} to {high}")
        return value

    return check


class StatusParams(Params):
    """Which repository."""

    path: str = Field(".", description=_WHERE)
    cursor: str | None = Field(None, description=_CURSOR)


class _Diff(Params):
    path: str = Field(".", description=_WHERE)
    paths: list[str] | None = Field(None, description=_PATHS)
    staged: bool = Field(False, description="[diff] The index")
    to: str | None = Field(None, description="[diff] Revision")
    stat: bool = Field(False, description="[diff] Totals")
    context: Annotated[int, AfterValidator(_within(0, 10_000))] = Field(3, description="[diff] Lines")
    cursor: str | None = Field(None, description=_CURSOR)

    @property
    def start(self) -> str | None:
        """``from``, which is no Python name."""
        return getattr(self, "from") or None


_FROM: Any = {"from": (str | None, Field(None, description="[diff] Revision"))}
DiffParams = create_model("DiffParams", __base__=_Diff, **_FROM)
"""What to compare: working tree with index by default."""


class LogParams(Params):
    """Which commits."""

    path: str = Field(".", description=_WHERE)
    rev: str | None = Field(None, description="[log] Or range; default HEAD")
    paths: list[str] | None = Field(None, description=_PATHS)
    limit: Annotated[int, AfterValidator(_within(1, 500))] = Field(20, description="[log] Default 20")
    since: str | None = Field(None, description="[log]")
    until: str | None = Field(None, description="[log]")
    author: str | None = Field(None, description="[log]")
    grep: str | None = Field(None, description="[log] In messages")
    cursor: str | None = Field(None, description=_CURSOR)


async def status(ctx: Context, params: StatusParams) -> Result:
    """HEAD, upstream, stashes, operation in progress and every path that is not as committed.

    Structured: ``{branch, oid, detached, unborn, upstream, ahead, behind, stashes, operation, clean, total,
    entries: [{path, staged?, unstaged?, conflict?, untracked?, from?, similarity?, submodule?}], cursor?}``.
    """
    offset = _number(params.cursor)
    git = await _open(ctx, params.path)
    window = Window(0, _STATUS_BYTES, _STATUS_BYTES)
    args = ["--porcelain=v2", "-z", "--branch", "--show-stash", "--untracked-files=normal", "--find-renames"]
    done = await git.run("status", args, stdout=window)
    if done.code != 0 and not done.stopped:
        raise failure(done, "status")
    found = await asyncio.to_thread(parse, done.stdout.head)
    operation = git.operation(ctx.files)
    page = found.entries[offset : offset + ENTRIES]
    wire = _status_wire(found, operation, page)
    if done.stopped:
        wire["incomplete"] = True
    if offset + len(page) < len(found.entries):
        wire["cursor"] = str(offset + len(page))
    text = "\n".join([*head_lines(found, operation), *entry_lines(found, page), *_notes(git, found, wire)])
    return Result.text(clean(text), structured=wire)


def _status_wire(found: Status, operation: str | None, page: list[Entry]) -> JsonObject:
    return {
        "branch": found.branch,
        "oid": found.oid,
        "detached": found.branch is None,
        "unborn": found.oid is None,
        "upstream": found.upstream,
        "ahead": found.ahead,
        "behind": found.behind,
        "stashes": found.stashes,
        "operation": operation,
        "clean": not found.entries,
        "total": len(found.entries),
        "entries": [entry.to_wire() for entry in page],
    }


def _notes(git: Git, found: Status, wire: JsonObject) -> list[str]:
    notes: list[str] = []
    if "cursor" in wire:
        notes.append(f'[{wire["total"]} paths in all; go on with cursor "{wire["cursor"]}"]')
    if "incomplete" in wire:
        notes.append("[more paths than can be listed; ignore generated files in .gitignore]")
    if git.filters and any(entry.unstaged for entry in found.entries):
        notes.append(_filters_note(git))
    return notes


def _filters_note(git: Git) -> str:
    return f"[filters were not run ({', '.join(git.filters)}): a file they convert can show as changed]"


async def diff(ctx: Context, params: _Diff) -> Result:
    """Unified diff: working tree with index, ``staged`` index with HEAD or ``from``, ``from`` with the working tree
    or ``to``. Facts: ``bytes``, ``lines`` (of the whole diff), ``offset``, ``cursor``, ``head``, ``branch``."""
    offset = _number(params.cursor)
    to = params.to or None
    if to is not None and (params.start is None or params.staged):
        raise InvalidInput("git.diff: to needs from, and no staged. One revision alone goes into from.")
    git = await _open(ctx, params.path)
    revisions = await _resolved(git, params.start, to)
    window = Window(offset, PAGE, max(_DIFF_BYTES, offset + 2 * PAGE))
    args = [*_diff_options(params), *revisions, "--", *_pathspecs(ctx, git, params.paths)]
    done, head = await asyncio.gather(git.run("diff", args, stdout=window), _head(ctx, git))
    if done.code != 0 and not done.stopped:
        raise failure(done, "diff")
    page = _whole_lines(done.stdout.head, window.total <= offset + len(done.stdout.head))
    facts: JsonObject = {"bytes": window.total, "lines": window.lines, "offset": offset, **head.facts()}
    if window.exhausted:
        facts["incomplete"] = True
    if offset + len(page) < window.total:
        facts["cursor"] = str(offset + len(page))
    return Result.text(_diff_text(git, params, page, facts), facts)


def _diff_options(params: _Diff) -> list[str]:
    options = ["--src-prefix=a/", "--dst-prefix=b/", "--no-relative", "--find-renames", "--inter-hunk-context=0"]
    options += ["--stat=120", "--summary"] if params.stat else ["--patch", f"--unified={params.context}"]
    return [*options, "--cached"] if params.staged else options


def _diff_text(git: Git, params: _Diff, page: bytes, facts: JsonObject) -> str:
    if not facts["bytes"]:
        other = "" if params.staged or params.start else " Staged changes show with staged: true."
        return f"No differences.{other}"
    if not page:
        raise InvalidInput(f"cursor: the diff has {facts['bytes']} bytes now, which is before {facts['offset']}.")
    text = clean(_line_ends(page.decode("utf-8", "backslashreplace"))).rstrip("\n")
    notes: list[str] = []
    if git.filters and not params.staged:
        notes.append(_filters_note(git))
    if "cursor" in facts:
        total = f"{'more than ' if 'incomplete' in facts else ''}{facts['bytes']}"
        end = facts["offset"] + len(page)
        notes.append(f'[bytes {facts["offset"]}-{end} of {total}; go on with cursor "{end}", or name paths]')
    return "\n".join([text, *notes])


def _line_ends(text: str) -> str:
    """Carriage returns made visible, unless every line of content has one."""
    if "\r" not in text:
        return text
    content = [line for line in text.split("\n") if line[:1] in ("+", "-", " ") and line[:4] not in ("+++ ", "--- ")]
    if all(line.endswith("\r") for line in content):
        text = text.replace("\r\n", "\n")
    return text.replace("\r", "␍")


def _whole_lines(data: bytes, last: bool) -> bytes:
    """The page up to its last whole line, or to its last whole character when it is all one line."""
    if last:
        return data
    end = data.rfind(b"\n") + 1
    if end:
        return data[:end]
    return data[: len(data) - next((back for back in range(1, 4) if data[-back:][0] >= 0xC0), 0)]


async def _resolved(git: Git, start: str | None, to: str | None) -> list[str]:
    """The revisions as object ids: what is no revision can then be taken for neither an option nor a file."""
    if start is None:
        return []
    if to is None:
        for dots in ("...", ".."):
            left, found, right = start.partition(dots)
            if found:
                ends = await asyncio.gather(_object_id(git, left or "HEAD"), _object_id(git, right or "HEAD"))
                return [dots.join(ends)]
        return [await _object_id(git, start)]
    return list(await asyncio.gather(_object_id(git, start), _object_id(git, to)))


async def _object_id(git: Git, rev: str) -> str:
    done = await git.run("rev-parse", ["--verify", "--end-of-options", _revision(rev)])
    if done.code != 0:
        raise NotFound(f"{rev[:100]!r}: no such revision in this repository.")
    return done.stdout.head.decode().strip()


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def _revision(rev: str) -> str:
    if not rev or rev.startswith("-"):
        raise InvalidInput(f"{rev[:60]!r}: a revision may not be empty or start with '-'.")
    if _CONTROL.search(rev):
        raise InvalidInput(f"{rev[:60]!r}: a revision may not contain control characters.")
    return rev


async def log(ctx: Context, params: LogParams) -> Result:
    """Commits, newest first, one block each. Facts: ``count``, ``commits`` (ids), ``cursor``, ``head``, ``branch``."""
    rev, skip = _log_cursor(params)
    git = await _open(ctx, params.path)
    paths = _pathspecs(ctx, git, params.paths)
    head = await _head(ctx, git)
    if rev is None and head.oid is None:
        return Result.text("No commits yet.", {"count": 0, "commits": [], **head.facts()})
    start = _revision(rev) if rev is not None else str(head.oid)
    args = ["-z", FORMAT, "--date=iso-strict", "--encoding=UTF-8", f"--max-count={params.limit + 1}"]
    args += [f"--skip={skip}", *_log_filters(params), "--end-of-options", start, "--", *paths]
    done = await git.run("log", args, stdout=Window(0, _LOG_BYTES, _LOG_BYTES))
    if done.code != 0 and not done.stopped:
        raise failure(done, "log")
    commits = split(done.stdout.head, done.stopped)
    blocks = fitting([block(commit) for commit in commits[: params.limit]], PAGE)
    facts: JsonObject = {"count": len(blocks), "commits": [commit[0] for commit in commits[: len(blocks)]]}
    facts |= head.facts()
    if len(commits) > len(blocks) or done.stopped:
        facts["cursor"] = f"{start}+{skip + len(blocks)}"
        blocks.append(f'[go on with cursor "{facts["cursor"]}"]')
    return Result.text("\n\n".join(blocks) or "No commits match.", facts)


def _log_cursor(params: LogParams) -> tuple[str | None, int]:
    """Where to start: a cursor names the revision it belongs to, so new commits do not shift the pages."""
    if not params.cursor:
        return params.rev or None, 0
    rev, plus, skip = params.cursor.rpartition("+")
    if not plus or not skip.isdecimal() or (params.rev and params.rev != rev):
        raise InvalidInput("cursor: not one that git.log gave for this rev.")
    return rev, int(skip)


def _log_filters(params: LogParams) -> list[str]:
    found = ["--fixed-strings", "--regexp-ignore-case"]
    for name in ("since", "until", "author", "grep"):
        value: str | None = getattr(params, name)
        if not value:
            continue
        if "\0" in value:
            raise InvalidInput(f"{name}: contains a NUL character.")
        if name in ("since", "until") and not _DATE.search(value):
            raise InvalidInput(f"{name}: {value[:60]!r} is no date. Give 2026-01-31 or words like '2 weeks ago'.")
        found.append(f"--{name}={value}")
    return found


_DATE = re.compile(r"\d|yesterday|today|now|noon|midnight|last|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b", re.I)


async def _open(ctx: Context, path: str) -> Git:
    place = ctx.files.place(path)
    if not stat.S_ISDIR(ctx.files.stat(place).st_mode):
        raise InvalidInput(f"{place.shown}: path is a folder of the repository; name single files in paths.")
    user: Pairs | None = ctx.memo.get("user")
    if user is None:
        user = ctx.memo["user"] = await user_settings(ctx.exec, ctx.files)
    try:
        return await Git.open(ctx.exec, ctx.files, path, user)
    except Denied as exc:
        if exc.by == "git":  # the user may trust the folder now
            ctx.memo.pop("user", None)
        raise


def _pathspecs(ctx: Context, git: Git, paths: Sequence[str] | None) -> list[str]:
    """Paths as git takes them, relative to the top of the working tree. Raises ``Denied`` for those outside."""
    top, found = git.location.top, list[str]()
    for text in paths or ():
        name = unquoted(text)
        absolute = os.path.isabs(name) or name.startswith(("~", "file://"))
        relative = os.path.relpath(ctx.files.place(name).path if absolute else os.path.join(top, name), top)
        if relative == ".." or relative.startswith("../"):
            raise Denied(f"{text}: outside the repository {top}.", by="sandbox")
        if "\0" in relative:
            raise InvalidInput("paths: contains a NUL character.")
        found.append(relative)
    return found


def _number(cursor: str | None) -> int:
    if not cursor:
        return 0
    if not cursor.isdecimal() or len(cursor) > 15:
        raise InvalidInput("cursor: not one that an earlier answer of this op gave.")
    return int(cursor)


@dataclass(frozen=True, slots=True)
class Head:
    """Where HEAD is: ``oid`` is ``None`` before the first commit, ``branch`` is ``None`` when it is detached."""

    branch: str | None
    oid: str | None

    def facts(self) -> JsonObject:
        """``{"head": id or null, "branch": name or null}``."""
        return {"head": self.oid, "branch": self.branch}


async def _head(ctx: Context, git: Git) -> Head:
    files_backend = git.location.object_format == "sha1" and "extensions.refstorage" not in git.keys
    if files_backend:
        found = await asyncio.to_thread(_head_from_files, ctx, git)
        if found is not None:
            return found
    named, known = await asyncio.gather(
        git.run("symbolic-ref", ["--quiet", "HEAD"]), git.run("rev-parse", ["--quiet", "--verify", "HEAD"])
    )
    branch = named.stdout.text().strip().removeprefix("refs/heads/") if named.code == 0 else None
    return Head(branch, known.stdout.text().strip() if known.code == 0 else None)


def _head_from_files(ctx: Context, git: Git) -> Head | None:
    """HEAD by GitPython; ``None`` when it cannot tell. Whatever it will open is looked at first."""
    where = git.location
    shared = ("config", "packed-refs")
    if not all(_regular(ctx, where.common_dir, name) for name in shared) or not _regular(ctx, where.git_dir, "HEAD"):
        return None
    gitpython = _gitpython()
    from gitdb.db.loose import LooseObjectDB  # pyright: ignore[reportMissingTypeStubs]

    try:
        with gitpython.Repo(where.git_dir, odbt=LooseObjectDB, expand_vars=False) as repo:
            branch = None if repo.head.is_detached else repo.head.reference.path
            if branch is not None and not _regular(ctx, where.common_dir, str(branch)):
                return None
            oid = gitpython.SymbolicReference.dereference_recursive(repo, branch or "HEAD")
    except (ValueError, TypeError, OSError, configparser.Error, gitpython.exc.GitError):
        return None  # no commit yet, or nothing it can read
    return Head(str(branch).removeprefix("refs/heads/") if branch else None, oid)


def _regular(ctx: Context, folder: str, name: str) -> bool:
    """Is it a plain file inside the workspace, or missing?"""
    try:
        return stat.S_ISREG(ctx.files.stat(ctx.files.place(os.path.join(folder, name))).st_mode)
    except NotFound:
        return True
    except ToolError:
        return False


_importing = threading.Lock()


def _gitpython() -> Any:
    """GitPython, kept from ever starting git: its import would ask ``git version``, past our runner."""
    with _importing:
        if "git" not in sys.modules:
            _load_gitpython()
        return sys.modules["git"]


def _load_gitpython() -> None:
    """Load ``git.cmd`` before the package's own body, which looks for the executable as its last step."""
    spec = importlib.util.find_spec("git")
    if spec is None or spec.loader is None:
        raise Unavailable("GitPython is not installed; install hanzo-mcp again.")
    package = importlib.util.module_from_spec(spec)
    sys.modules["git"] = package
    try:
        command: Any = importlib.import_module("git.cmd")
        command.Git.refresh = classmethod(_found_nothing)
        spec.loader.exec_module(package)
    except BaseException:
        del sys.modules["git"]
        raise


def _found_nothing(cls: type, path: str | None = None) -> bool:  # noqa: ARG001 - the signature of Git.refresh
    return False


TOOL = Tool(
    name="git",
    title="Git",
    description="Read a repository; none of its hooks, filters or textconv run.",
    ops=[
        Op("status", StatusParams, status, Access.READ, "HEAD, changed files"),
        Op("diff", DiffParams, diff, Access.READ, "worktree, or from/to"),
        Op("log", LogParams, log, Access.READ, "commits"),
    ],
)
