"""The door as a source of tools: its list kept fresh behind the client's back, its calls forwarded verbatim."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Protocol
from urllib.parse import urlsplit

from hanzo_mcp.auth.bearer import Bearer
from hanzo_mcp.core.backoff import Backoff
from hanzo_mcp.core.merge import Listing
from hanzo_mcp.core.messages import depth, encode
from hanzo_mcp.core.shapes import as_object
from hanzo_mcp.core.tool import Access, Call, JsonObject, Outcome, Prepared, Result, Verbatim
from hanzo_mcp.door import listing
from hanzo_mcp.door.cache import CachedList, save
from hanzo_mcp.door.client import DoorClient, Forwarded, param_headers, param_texts
from hanzo_mcp.door.exchange import Answer, Exchange, HttpRefusal
from hanzo_mcp.door.refusals import describe, sign_in
from hanzo_mcp.door.transport import Transport
from hanzo_mcp.errors import TimedOut, TooLarge, ToolError, Unavailable

LIST_SECONDS = 120.0
TTL_SECONDS = 300.0
MAX_TTL_SECONDS = 86_400.0
MAX_DEPTH = 64
ROUNDS = 8
"""Questions back and forth for one call of a client that cannot do rounds itself."""


class Shelf(Protocol):
    """Where the list the client sees is kept."""

    @property
    def remote(self) -> CachedList | None: ...
    def stale(self) -> bool: ...
    def adopt(self, remote: CachedList) -> bool: ...


class Audience(Protocol):
    """Who hears of changes."""

    def tools_changed(self) -> None: ...
    def notice(self, level: str, text: str) -> None: ...


class DoorSource:
    """One endpoint. Nothing is sent before the first list or call needs it."""

    name = "door"

    def __init__(
        self, address: str, bearer: Bearer, shelf: Shelf, audience: Audience, cache_dir: str, call_seconds: float
    ) -> None:
        self._address, self._bearer, self._shelf, self._audience = address, bearer, shelf, audience
        self._cache_dir, self._call_seconds = cache_dir, call_seconds
        known = shelf.remote
        self._transport = Transport(address)
        self._client = DoorClient(Exchange(self._transport), known.version if known else None)
        self._refreshing: asyncio.Task[None] | None = None
        self._first = asyncio.Event()
        self._down = False

    @property
    def origin(self) -> str:
        """Scheme, host and port, for people."""
        parts = urlsplit(self._address)
        return f"{parts.scheme}://{parts.netloc}"

    # -- the list

    def refresh_soon(self) -> None:
        """Ask for the list in the background, unless that is being done."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh())

    async def heard(self, seconds: float) -> None:
        """Wait until the endpoint has been heard once, has failed once, or ``seconds`` have passed."""
        self.refresh_soon()
        try:
            async with asyncio.timeout(seconds):
                await self._first.wait()
        except TimeoutError:
            self._audience.notice(
                "warning", f"{self.origin} has not answered within {seconds:g} s; local tools only so far."
            )

    async def _refresh(self) -> None:
        """Until it works: one line when the endpoint goes down, one when it is back."""
        backoff = Backoff(base_ms=1000, max_ms=300_000)
        while True:
            try:
                await self._fetch()
            except (ToolError, HttpRefusal) as exc:
                self._went_down(exc)
                self._first.set()
                await asyncio.sleep(backoff.next_ms() / 1000)
            else:
                self._came_back()
                self._first.set()
                return

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(LIST_SECONDS):
                result, version = await self._client.tools()
            fresh = CachedList(listing.cleaned(result), time.time() + _ttl(result), version)
        except TimeoutError:
            raise Unavailable(f"no list within {LIST_SECONDS:.0f} s") from None
        except TooLarge:
            fresh = CachedList(listing.unreadable(), time.time() + TTL_SECONDS, self._client.version or "")
        self._adopt(fresh)

    def _adopt(self, fresh: CachedList) -> None:
        old = self._shelf.remote
        for name in listing.changes(old.listing, fresh.listing) if old else []:
            self._audience.notice("notice", f"the cloud's tool {name!r} describes itself differently now.")
        if self._shelf.adopt(fresh):
            self._audience.tools_changed()
        try:
            save(self._cache_dir, self._address, fresh)
        except OSError as exc:
            self._audience.notice(
                "notice", f"the cloud's tool list cannot be kept ({exc.strerror}); starts will be slower."
            )

    def _went_down(self, exc: ToolError | HttpRefusal) -> None:
        if not self._down:
            self._down = True
            reason = describe(exc)
            tools = "the tools listed last are still offered" if self._shelf.remote else "local tools only"
            self._audience.notice(
                "warning", f"the cloud at {self.origin} is not available: {reason}; {tools}, retrying."
            )

    def _came_back(self) -> None:
        if self._down:
            self._down = False
            self._audience.notice("info", f"the cloud at {self.origin} answers again.")

    # -- calls

    def has(self, tool: str) -> bool:  # noqa: ARG002 - what is not local is the cloud's to know
        return True

    async def ready(self, tool: str) -> None:
        """Nothing to load: the first request imports what it needs in a thread."""

    def prepare(self, call: Call, arguments: Any) -> Prepared:
        given = as_object(arguments) or {}
        op = given.get("op")
        subject = f"{call.tool}.{op}" if isinstance(op, str) else call.tool
        return Prepared(subject, Access.REMOTE, given, lambda: self._call(call))

    async def _call(self, call: Call) -> Outcome:
        texts = param_texts(call.source)
        try:
            async with asyncio.timeout(self._call_seconds):
                return _shallow(await self._rounds(call, texts))
        except TooLarge as exc:
            raise TooLarge(f"{call.tool}: {exc}. It ran; ask for less of it.") from None
        except TimeoutError:
            raise TimedOut(
                f"{call.tool}: no answer from {self.origin} within {self._call_seconds:.0f} s. "
                "It may still be running there."
            ) from None

    async def _rounds(self, call: Call, texts: dict[str, str]) -> Outcome:
        """A legacy client cannot do ``input_required`` rounds: its user is asked by elicitation, if it can."""
        for _ in range(ROUNDS):
            outcome = (await self._signed(call, texts)).outcome
            value = as_object(outcome.value)
            if call.client.modern or outcome.member == "error" or not value:
                return outcome
            if value.get("resultType") != "input_required":
                return outcome
            requests = as_object(value.get("inputRequests")) or {}
            if not call.client.can_elicit() or not all(map(_is_elicitation, requests.values())):
                return _needs(call.tool, requests)
            responses = {key: await call.client.elicit(request["params"]) for key, request in requests.items()}
            texts = {**texts, "inputResponses": encode(responses)}
            if "requestState" in value:
                texts["requestState"] = encode(value["requestState"])
        raise Unavailable(f"{call.tool}: the cloud asked for input {ROUNDS} times; giving up.")

    async def _signed(self, call: Call, texts: dict[str, str]) -> Answer:
        """With the bearer; a refused one is dropped and asked for once more before the caller is told to sign in."""
        bearer = await self._bearer.take()
        try:
            return await self._forward(call, texts, bearer)
        except HttpRefusal as exc:
            if exc.status != 401:
                raise self._failure(call.tool, exc) from None
            self._bearer.drop(bearer)
            fresh = await self._bearer.take()
            if fresh == bearer:
                raise sign_in(call.tool, self.origin, exc) from None
        try:
            return await self._forward(call, texts, fresh)
        except HttpRefusal as exc:
            if exc.status == 401:
                raise sign_in(call.tool, self.origin, exc) from None
            raise self._failure(call.tool, exc) from None

    async def _forward(self, call: Call, texts: dict[str, str], bearer: str | None) -> Answer:
        client = call.client
        capabilities: JsonObject = {"elicitation": {}} if client.can_elicit() else {}
        headers = param_headers(self._schema(call.tool), call.arguments)
        try:
            forwarded = Forwarded(call.params, texts, capabilities, headers)
            return await self._client.call(forwarded, bearer, lambda method, params: _relay(call, method, params))
        except Unavailable as exc:
            retry = (
                "It did not run; trying again is safe."
                if exc.retryable
                else "It may have run; check before repeating it."
            )
            raise Unavailable(
                f"{call.tool}: the cloud at {self.origin} did not answer: {exc}. {retry}", retryable=exc.retryable
            ) from None

    def _failure(self, tool: str, exc: HttpRefusal) -> ToolError:
        retryable = exc.status in (429, 503)
        safe = "Trying again later is safe." if retryable else "It may have run; check before repeating it."
        return Unavailable(f"{tool}: the cloud at {self.origin} refused: {describe(exc)}. {safe}", retryable=retryable)

    def _schema(self, tool: str) -> Any:
        known: Listing | None = self._shelf.remote.listing if self._shelf.remote else None
        return (
            next((listed.get("inputSchema") for listed in known.tools if listed["name"] == tool), None)
            if known
            else None
        )

    async def close(self) -> None:
        """Stop refreshing and drop the connections."""
        if self._refreshing is not None:
            self._refreshing.cancel()
        await self._transport.close()


def _shallow(outcome: Outcome) -> Outcome:
    """Refuse what a client's parser may die of. Raises ``TooLarge``."""
    if isinstance(outcome, Verbatim) and depth(outcome.value) > MAX_DEPTH:
        raise TooLarge(f"the answer is nested deeper than {MAX_DEPTH} levels")
    return outcome


def _relay(call: Call, method: str, params: JsonObject) -> None:
    """Progress of this call goes on to the caller, with the caller's own token."""
    token = (as_object(call.params.get("_meta")) or {}).get("progressToken")
    told = params.get("progressToken")
    if method == "notifications/progress" and told == token and type(told) is type(token):
        call.client.relay(method, params)


def _is_elicitation(request: Any) -> bool:
    found = as_object(request) or {}
    return found.get("method") == "elicitation/create" and as_object(found.get("params")) is not None


def _needs(tool: str, requests: JsonObject) -> Result:
    asked = [
        str((as_object((as_object(r) or {}).get("params")) or {}).get("message", "more input"))
        for r in requests.values()
    ]
    text = (
        f"{tool}: the cloud needs an answer first, and this client cannot be asked: {'; '.join(asked) or 'more input'}"
    )
    return Result.failure(text, {"code": "input_required", "inputRequests": requests})


def _ttl(result: JsonObject) -> float:
    ttl = result.get("ttlMs")
    if isinstance(ttl, (int, float)) and not isinstance(ttl, bool) and ttl > 0:
        return min(ttl / 1000, MAX_TTL_SECONDS)
    return TTL_SECONDS
