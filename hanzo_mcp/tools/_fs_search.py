"""fs.search: ripgrep where there is one, else a slower search of our own with the same answer."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from hanzo_mcp.core.encoding import detect
from hanzo_mcp.core.ignore import Globs
from hanzo_mcp.core.matches import Found, shown
from hanzo_mcp.core.ripgrep import arguments, parse_counts, parse_json, parse_names, trouble
from hanzo_mcp.core.tool import JsonObject, Result
from hanzo_mcp.errors import InvalidInput, TimedOut, Unavailable
from hanzo_mcp.runtime.local import Context
from hanzo_mcp.runtime.params import Params
from hanzo_mcp.sandbox.paths import Place
from hanzo_mcp.sandbox.streams import Output
from hanzo_mcp.tools._fs_fallback import scan
from hanzo_mcp.tools._fs_files import (
    CAP,
    GLOB,
    IGNORED,
    LIMIT,
    OFFSET,
    OUTPUT,
    PATH,
    PATHS,
    WORD,
    chosen,
    regular,
    take,
    threaded,
)

_SECONDS = 30.0
_KEPT = 16 * 1024 * 1024
"""Bytes of ripgrep's answer that are looked at."""
_DEFAULT = 200
_CHEAP = 0.06
"""Seconds of a search that found nothing, up to which a second one may tell what the ignored and hidden files hold."""
_HEAD = 64 * 1024


class Search(Params):
    """What to look for and where."""

    pattern: str = Field(description="[search] Rust regex; \\n, (?s) span lines")
    path: str | None = Field(None, description=PATH)
    paths: list[str] | None = Field(None, description=PATHS)
    literal: bool | None = Field(None, description="[search]")
    ignore_case: bool | None = Field(None, description="[search]")
    type: str | None = Field(None, description="[search] py, js")
    context: int | None = Field(None, description="[search] Lines")
    output: Annotated[Literal["files", "count"] | None, WORD] = Field(None, description=OUTPUT)
    glob: list[str] | None = Field(None, description=GLOB)
    include_ignored: bool | None = Field(None, description=IGNORED)
    offset: int | None = Field(None, description=OFFSET)
    limit: int | None = Field(None, description=LIMIT)


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to search: the folder ripgrep runs in, the arguments that name the places, and how to show a path.

    ``folders`` are the real paths of the folders searched. Binary files are left out, also when named.
    """

    cwd: str
    names: tuple[str, ...]
    prefix: str
    places: tuple[Place, ...]
    secrets: tuple[str, ...]
    folders: tuple[str, ...]
    globs: Globs

    def path(self, found: str) -> str | None:
        """What a path of ripgrep's is called here, ``None`` when it is not to be shown."""
        name = found.removeprefix("./")
        if self.secrets or self.globs.any:
            full = os.path.normpath(os.path.join(self.cwd, name))
            if any(full == secret or full.startswith(secret + "/") for secret in self.secrets):
                return None
            if not self._globbed(full):
                return None
        return name if os.path.isabs(name) else self.prefix + name

    def _globbed(self, full: str) -> bool:
        """Globs are about paths below a searched folder; a file that was named is what was asked for."""
        inner = [full[len(folder) + 1 :] for folder in self.folders if full.startswith(folder + "/")]
        return not inner or any(map(self.globs.passes, inner))


@dataclass(slots=True)
class Bounded:
    """Collects whole output up to a limit, then has the child ended."""

    limit: int
    data: bytearray = field(default_factory=bytearray)
    cut: bool = False

    def add(self, data: bytes) -> bool:
        self.data += data
        self.cut = len(self.data) > self.limit
        return not self.cut

    def output(self) -> Output:
        return Output(bytes(self.data), b"", 0)


async def search(ctx: Context, params: Search) -> Result:
    """Lines that match as ``path:line: text`` (context as ``path-line- text``), by path; or paths; or counts.

    Facts: ``matches`` and ``files`` (totals, ``more`` when there are more than were looked at), ``count`` (shown),
    ``next_offset``, ``engine``, ``elsewhere`` (files with matches among the ignored and hidden, when nothing else
    matched).
    """
    if not params.pattern:
        raise InvalidInput("fs.search: pattern is empty; op list shows the files of a folder.")
    if "\0" in params.pattern or not params.pattern.isascii():
        _check_characters(params.pattern)
    if params.limit is not None and params.limit < 1:
        raise InvalidInput(f"fs.search: limit: expected at least 1, got {params.limit}.")
    scope = _scope(ctx, params)
    program = ripgrep(ctx)
    if program is None:
        found = await threaded(lambda budget: scan(ctx.files, scope.places, scope.path, params, budget))
        return _answer(found, params, "python", 0)
    if not scope.names:
        raise InvalidInput(f"fs.search: {scope.places[0].shown}: not text. Op read with as=base64 gives bytes.")
    found, seconds = await _run(ctx, program, params, scope)
    elsewhere = 0
    if not found.total and not params.include_ignored and scope.folders and seconds < _CHEAP:
        elsewhere = await _elsewhere(ctx, program, params, scope) - found.binary
    return _answer(found, params, "ripgrep", max(elsewhere, 0))


def _check_characters(pattern: str) -> None:
    if "\0" in pattern:
        raise InvalidInput("fs.search: pattern contains a NUL character.")
    try:
        pattern.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput("fs.search: pattern contains a lone surrogate, which no file holds.") from None


def _scope(ctx: Context, params: Search) -> Scope:
    given = chosen(params.path, params.paths, "search") if params.path or params.paths else ["."]
    places = tuple(ctx.files.place(path) for path in given)
    secrets = tuple(
        f"{root.path}/{path}" for root in ctx.files.roots for path in ctx.files.secrets(Place(root, (), ""))
    )
    is_folder = {place: _is_folder(ctx, place) for place in places}
    real = {place: ctx.files.real(place) for place in places}
    folders = tuple(real[place] for place in places if is_folder[place])
    globs = Globs(params.glob or [])
    if len(places) == 1 and folders:
        prefix = "" if places[0].shown == "." else places[0].shown.rstrip("/") + "/"
        return Scope(folders[0], ("./",), prefix, places, secrets, folders, globs)
    home = ctx.files.roots[0].path
    texts = [place for place in places if is_folder[place] or _is_text(ctx, place)]
    names = tuple(_named(real[place], home) for place in texts)
    return Scope(home, names, "", tuple(texts or places), secrets, folders, globs)


def _is_folder(ctx: Context, place: Place) -> bool:
    mode = ctx.files.stat(place).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise InvalidInput(f"{place.shown}: not a regular file or folder (a device, FIFO or socket).")
    return stat.S_ISDIR(mode)


def _is_text(ctx: Context, place: Place) -> bool:
    """ripgrep searches a file that is named to its end, whatever it holds: a terabyte of zeros takes hours."""
    fd, _ = regular(ctx, place)
    try:
        return detect(take(fd, 0, _HEAD), whole=False) is not None
    finally:
        os.close(fd)


def _named(real: str, home: str) -> str:
    inside = real.startswith(home + "/") or real == home
    return f"./{os.path.relpath(real, home)}" if inside else real


def ripgrep(ctx: Context) -> str | None:
    """The program: beside our Python (its wheel puts it there), or on the PATH; ``None`` when there is none."""
    if "ripgrep" not in ctx.memo:
        path = ctx.exec.environment().get("PATH", "").split(os.pathsep)
        candidates = [os.path.join(folder, "rg") for folder in (os.path.dirname(sys.executable), *path) if folder]
        ctx.memo["ripgrep"] = next((name for name in candidates if os.access(name, os.X_OK)), None)
    found: str | None = ctx.memo["ripgrep"]
    return found


async def _run(ctx: Context, program: str, params: Search, scope: Scope) -> tuple[Found, float]:
    """What was found, and the seconds ripgrep took."""
    collected = Bounded(_KEPT)
    argv = [program, *arguments(params), "--", *scope.names]
    done = await ctx.exec.run(argv, cwd=scope.cwd, timeout=_SECONDS, stdout=collected)
    collected.cut |= done.timed_out
    if done.timed_out and not collected.data:
        raise TimedOut(f"fs.search: stopped after {_SECONDS:g} s. Search a narrower path, or with a glob or type.")
    if done.code not in (0, 1) and not collected.data:
        message = done.stderr.text().strip()
        if message:
            raise InvalidInput(f"fs.search: {trouble(message)}")
        if done.code != 2:  # 2 with nothing to say: something could not be read, and nothing matched
            raise Unavailable(f"fs.search: ripgrep ended with {done.code if done.code is not None else done.signal}.")
    parse = {"files": parse_names, "count": parse_counts}.get(params.output or "lines", parse_json)
    data = bytes(collected.data)
    if len(data) > CAP:
        return await threaded(lambda _: parse(data, collected.cut, scope.path)), done.seconds
    return parse(data, collected.cut, scope.path), done.seconds


async def _elsewhere(ctx: Context, program: str, params: Search, scope: Scope) -> int:
    """How many ignored or hidden files match, when no other file does."""
    wide = params.model_copy(update={"include_ignored": True, "output": "files"})
    collected = Bounded(CAP)
    argv = [program, *arguments(wide), "--", *scope.names]
    await ctx.exec.run(argv, cwd=scope.cwd, timeout=1, stdout=collected)
    return len(parse_names(bytes(collected.data), collected.cut, scope.path).files)


def _answer(found: Found, params: Search, engine: str, elsewhere: int) -> Result:
    start, limit = max(params.offset or 0, 0), min(params.limit or _DEFAULT, 5000)
    lines, count = shown(found, start, limit, CAP)
    total = found.total
    facts: JsonObject = {"matches": total, "files": found.file_count, "count": count, "engine": engine}
    what = "files" if params.output in ("files", "count") else "matches"
    parts = [_counted(total, "file") if what == "files" else _counted(total, "match", "es")]
    if what == "matches" and total:
        parts[0] += f" in {_counted(found.file_count, 'file')}"
    if found.cut:
        facts["more"] = True
        parts[0] = f"more than {parts[0]}; the search was stopped, narrow it"
    if start and start >= total:
        parts.append(f"nothing at offset {start}")
    if start + count < total:
        facts["next_offset"] = start + count
        parts.append(f"shown {start}-{start + count}; go on with offset={start + count}")
    if found.binary:
        facts["binary"] = found.binary
        parts.append(f"not shown: {_counted(found.binary, 'binary file')} with a match")
    if elsewhere:
        facts["elsewhere"] = elsewhere
        parts.append(f"{_counted(elsewhere, 'ignored or hidden file')} with a match: include_ignored shows them")
    elif not params.include_ignored:
        parts.append("ignored and hidden files left out")
    if engine == "python":
        parts.append("ripgrep is missing: slower search with Python's regex syntax")
    return Result.text("\n".join([*lines, f"[{'; '.join(parts)}]"]), facts)


def _counted(count: int, noun: str, plural: str = "s") -> str:
    return f"{count} {noun}{'' if count == 1 else plural}"
