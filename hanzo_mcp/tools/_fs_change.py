"""fs.write and fs.edit: nothing changes that was not meant, nothing is lost that somebody else wrote meanwhile."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from hanzo_mcp.core.changes import unified, whole
from hanzo_mcp.core.edits import Edit, Edited, apply
from hanzo_mcp.core.encoding import EOLS, UTF8, Encoding, detect, printable, with_eol
from hanzo_mcp.core.tool import JsonObject, Result
from hanzo_mcp.errors import Conflict, InvalidInput, NotFound
from hanzo_mcp.runtime.local import Context
from hanzo_mcp.runtime.params import Params
from hanzo_mcp.sandbox.paths import Place
from hanzo_mcp.tools._fs_files import BASE_HASH, INLINE, PATH, WORD, Known, Locked, current, memory, named

T = TypeVar("T")
_HASH = 12
"""Digits of a sha256 that are enough to name a version."""


class Write(Params):
    """A whole file."""

    path: str | None = Field(None, description=PATH)
    content: str = Field(description="[write]")
    mode: Annotated[Literal["overwrite", "create", "append"] | None, WORD] = Field(
        None, description="[write] Or create, append"
    )
    base_hash: str | None = Field(None, description=BASE_HASH)


class Replacement(BaseModel):
    # No docstring: it would go into the schema.
    model_config = ConfigDict(frozen=True, extra="forbid")

    old: str
    new: str
    all: bool = False


class EditFile(Params):
    """Replacements in one file."""

    path: str | None = Field(None, description=PATH)
    edits: Annotated[list[Replacement] | None, WithJsonSchema({"type": "array", "items": {"type": "object"}})] = Field(
        None, description="[edit] {old, new, all?}, all or none"
    )
    old: str | None = Field(None, description="[edit] Or one")
    new: str | None = Field(None, description="[edit]")
    all: bool | None = Field(None, description="[edit]")
    dry_run: bool | None = Field(None, description="[edit]")
    base_hash: str | None = Field(None, description=BASE_HASH)


async def write(ctx: Context, params: Write) -> Result:
    """Make, replace or append to a file; an existing one keeps its encoding, mark and line endings.

    Facts: ``path``, ``bytes``, ``sha256``, ``created``, ``encoding``, ``eol``.
    """
    place = ctx.files.resolved_new(ctx.files.place(named(params.path, "write")))
    async with Locked(memory(ctx), place.path):
        known = current(ctx, place)
        _refuse_stale(ctx, place, known, params.base_hash)
        if params.mode == "create" and known is not None:
            raise Conflict(f"{place.shown}: already exists ({len(known.data)} bytes); mode overwrite replaces it.")
        data = _written(place, known, params)
        await _work(len(data), lambda: _store(ctx, place, data))
    return _wrote(place, known, data, params)


def _written(place: Place, known: Known | None, params: Write) -> bytes:
    """The bytes of the file after the write."""
    append = params.mode == "append"
    if known is None or not known.data or (known.encoding is None and not append):
        return _encoded(UTF8, params.content, place)
    if known.encoding is None:
        raise InvalidInput(f"{place.shown}: is not text; nothing can be appended to it as text.")
    content = params.content
    if "\r" not in content:
        content = with_eol(content, known.eol)
    if append:
        return known.data + _encoded(known.encoding, content, place)
    encoding = known.encoding
    if encoding.errors == "surrogateescape" and encoding.codec == "utf-8":
        encoding = Encoding("utf-8", bom=encoding.bom)
    return encoding.bom + _encoded(encoding, content.removeprefix("\ufeff"), place)


def _encoded(encoding: Encoding, text: str, place: Place) -> bytes:
    try:
        return encoding.encode(text)
    except UnicodeEncodeError as exc:
        char = text[exc.start]
        if encoding.codec == "utf-8":
            raise InvalidInput(
                f"{place.shown}: the text holds a lone surrogate (U+{ord(char):04X}), which is no character."
            ) from None
        raise InvalidInput(
            f"{place.shown}: is {encoding.name}, which has no {char!r} (U+{ord(char):04X}). Write it another way, or "
            "remove the file and write it anew as UTF-8. Nothing was changed."
        ) from None


def _wrote(place: Place, known: Known | None, data: bytes, params: Write) -> Result:
    facts = _facts(place, data)
    facts["created"] = known is None
    done = "created" if known is None else "appended to" if params.mode == "append" else "replaced"
    text = f"{done} {place.shown}: {len(data)} bytes, {facts['encoding']}; sha256 {facts['sha256'][:16]}"
    if known is not None and known.info.st_nlink > 1:
        facts["hard_links"] = known.info.st_nlink
        text += f"; 1 of {known.info.st_nlink} hard links, the others keep the old content"
    return Result.text(text, facts)


def _facts(place: Place, data: bytes) -> JsonObject:
    encoding = detect(data)
    return {
        "path": place.shown,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "encoding": encoding.name if encoding is not None else "binary",
    }


def _store(ctx: Context, place: Place, data: bytes) -> None:
    ctx.files.write(place, data, parents=True)
    memory(ctx).remember(ctx.session_id, place.path, hashlib.sha256(data).hexdigest(), data, detect(data))


async def _work(size: int, work: Callable[[], T]) -> T:
    """Small work here, larger in a thread; a write once begun is finished even when the call is cancelled."""
    if size <= INLINE:
        return work()
    return await asyncio.shield(asyncio.to_thread(work))


def _refuse_stale(
    ctx: Context, place: Place, known: Known | None, base_hash: str | None, *, seen: bool = False
) -> None:
    """Refuse a file that is not as the caller thinks it is. Raises ``Conflict`` that shows what is new."""
    last = memory(ctx).seen.get((ctx.session_id, place.path))
    if base_hash is not None:
        wanted = base_hash.lower().removeprefix("sha256:")
        if len(wanted) < _HASH or wanted.strip("0123456789abcdef"):
            raise InvalidInput(f"base_hash: expected a sha256 of 64 (or its first {_HASH} or more) hex digits.")
        if known is not None and known.sha256.startswith(wanted):
            return
    elif not seen or last is None or (known is not None and known.sha256 == last.sha256):
        return
    if known is None:
        raise Conflict(f"{place.shown}: no longer exists. Nothing was changed.")
    since = "since it was last read here" if base_hash is None else f"and is now {known.sha256}"
    shown = _news(known, last.text if last is not None else None)
    raise Conflict(
        f"{place.shown}: has changed {since}. Nothing was changed.{shown}\nRead it again, then repeat the change."
    )


def _news(known: Known, before: str | None) -> str:
    """What somebody else changed, as a diff."""
    now = known.encoding.decode(known.data) if known.encoding is not None else None
    if before is None or now is None or before == now:
        return ""
    return "\nWhat is new in it:\n" + printable(unified(before, now, whole(before, now), _mark(known), 4000))


def _mark(known: Known) -> str:
    return EOLS["cr"] if known.eol == "cr" else "\n"


async def edit(ctx: Context, params: EditFile) -> Result:
    """Replace text in a file. The text is a unified diff of the change and a last line about it.

    Facts: ``path``, ``replacements``, ``bytes``, ``sha256``, ``encoding``, ``dry_run``.
    """
    edits = _edits(params)
    place = ctx.files.resolved_new(ctx.files.place(named(params.path, "edit")))
    async with Locked(memory(ctx), place.path):
        known = current(ctx, place)
        _refuse_stale(ctx, place, known, params.base_hash, seen=True)
        if known is None:
            raise NotFound(f"{place.shown}: no such file. op write makes one.")
        if known.encoding is None:
            raise InvalidInput(f"{place.shown}: is not text ({len(known.data)} bytes); edit changes text only.")
        return await _work(len(known.data), lambda: _edit(ctx, place, known, edits, bool(params.dry_run)))


def _edits(params: EditFile) -> list[Edit]:
    given = [Edit(item.old, item.new, item.all) for item in params.edits or []]
    if params.old is not None or params.new is not None:
        if given:
            raise InvalidInput("fs.edit: give either edits or old and new, not both.")
        if params.old is None or params.new is None:
            raise InvalidInput("fs.edit: old and new belong together; new may be empty to delete.")
        given.append(Edit(params.old, params.new, bool(params.all)))
    if not given:
        raise InvalidInput('fs.edit: nothing to do; give old and new, or edits: [{"old", "new", "all"?}].')
    return given


def _edit(ctx: Context, place: Place, known: Known, edits: list[Edit], dry_run: bool) -> Result:
    encoding = known.encoding or UTF8
    before = encoding.decode(known.data)
    edited = apply(before, edits, place.shown)
    for change in edited.changes:
        _encoded(encoding if encoding.codec != "utf-8" else UTF8, _fresh(edited, change.b0, change.b1), place)
    data = encoding.bom + encoding.encode(edited.text)
    if not dry_run:
        _store(ctx, place, data)
    return _edited(place, known, before, edited, data, dry_run)


def _fresh(edited: Edited, start: int, end: int) -> str:
    """The new text of a change, less what undecodable bytes it kept from the file."""
    text = edited.text[start:end]
    return "".join(c for c in text if not "\udc80" <= c <= "\udcff") if max(text, default="") >= "\udc80" else text


def _edited(place: Place, known: Known, before: str, edited: Edited, data: bytes, dry_run: bool) -> Result:
    facts = _facts(place, data)
    facts["replacements"] = edited.count
    body = printable(unified(before, edited.text, edited.changes, _mark(known)))
    verb = "would be changed (dry run)" if dry_run else "changed"
    places = f"{edited.count} places" if edited.count != 1 else "1 place"
    notes = [f"{place.shown}: {places} {verb}", f"{len(data)} bytes, {known.encoding.name if known.encoding else ''}"]
    notes += [f"sha256 {facts['sha256'][:16]}", *edited.notes]
    if dry_run:
        facts["dry_run"] = True
    if known.info.st_nlink > 1 and not dry_run:
        facts["hard_links"] = known.info.st_nlink
        notes.append(f"1 of {known.info.st_nlink} hard links, the others keep the old content")
    return Result.text(f"--- {place.shown}\n+++ {place.shown}\n{body}\n[{'; '.join(notes)}]", facts)
