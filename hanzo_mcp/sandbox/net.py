"""The guarded way to the web (sandbox design §4.6).

An address is parsed once, resolved once per hop, and every address it resolves to must be public; the connection goes
to one of exactly those, whatever a second look-up would say. Redirects are followed here, with the whole check again.
No proxy, cookie, password file or environment variable takes part, and TLS is always verified.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hanzo_mcp import __version__
from hanzo_mcp.core.text import one_line
from hanzo_mcp.errors import Denied, InvalidInput, TimedOut, Unavailable

if TYPE_CHECKING:
    import ssl

    from hanzo_mcp.core.addresses import Special
    from hanzo_mcp.core.weburl import WebUrl
    from hanzo_mcp.sandbox.exchange import Dial, Route

MEGABYTE = 1024 * 1024
USER_AGENT = f"Mozilla/5.0 (compatible; hanzo-mcp/{__version__}; +https://hanzo.ai)"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SAFE_METHODS = frozenset({"GET", "HEAD"})
_METHOD = re.compile(r"(?!connect|trace)[a-z]{1,20}", re.IGNORECASE)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile("[\t\x20-\x7e]*")
# Ours alone: framing, hop-by-hop (RFC 9110 §7.6.1), and what would speak in somebody's name.
_RESERVED = frozenset(
    {
        *("host", "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect"),
        *("content-length", "accept-encoding", "cookie", "authorization"),
    }
)
_LOOKUPS = threading.BoundedSemaphore(32)


@dataclass(frozen=True, slots=True)
class Limits:
    """``seconds`` for the whole fetch, ``connect`` for each address but the last; sizes in bytes."""

    seconds: float = 20.0
    connect: float = 3.0
    headers: int = 64 * 1024
    wire: int = 5 * MEGABYTE
    decoded: int = 10 * MEGABYTE
    redirects: int = 5


@dataclass(frozen=True, slots=True)
class Fetched:
    """A final answer. ``url`` is where it came from, ``redirects`` the addresses on the way there.

    ``headers`` have lower-case names, repeated ones joined by commas. ``body`` is decoded; ``cut`` says why it is only
    the beginning, "" when it is whole. Neither shows in a ``repr``: one is secret, the other large.
    """

    status: int
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    redirects: tuple[str, ...]
    cut: str


@dataclass(frozen=True, slots=True)
class Request:
    """What to send besides the address."""

    method: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one hop gave; see ``Fetched``."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    cut: str

    @property
    def location(self) -> str | None:
        """Where to go instead, when the answer only redirects."""
        return self.headers.get("location") if self.status in _REDIRECTS else None


@dataclass(slots=True)
class Progress:
    """What a fetch is at, for the message of a deadline."""

    doing: str


Lookup = Callable[[str, int], Sequence[str]]
"""The addresses of ``(host, port)``; blocks. Raises ``OSError``."""


def system_lookup(host: str, port: int) -> list[str]:
    """What the system's resolver says."""
    import socket

    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


class Http:
    """Fetches public web addresses, and exactly the ``host:port`` pairs of ``allow_hosts`` beside them.

    An entry that is no ``host:port`` opens nothing, and the refusals name it. ``lookup``, ``dial`` and ``tls`` replace
    the resolver, the TCP connection and the trust store in tests.
    """

    def __init__(
        self,
        allow_hosts: Sequence[str] = (),
        *,
        limits: Limits = Limits(),
        lookup: Lookup = system_lookup,
        dial: Dial | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.limits = limits
        self._allowed, self._unusable = _entries(allow_hosts)
        self._lookup, self._dial, self._tls = lookup, dial, tls

    async def fetch(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Fetched:
        """The answer at the end of at most ``limits.redirects`` redirects.

        Raises ``InvalidInput`` (the address or a header), ``Denied`` (a private address, a downgrade), ``TimedOut``,
        ``TooLarge`` and ``Unavailable``.
        """
        from hanzo_mcp.core import weburl

        first = weburl.parse(url)
        if not _METHOD.fullmatch(method):
            raise InvalidInput(f"method: {one_line(method, 40)!r} is not one that can be sent.")
        request = Request(method.upper(), _checked(headers or {}), body)
        progress = Progress("starting")
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await self._follow(first, request, progress)
        except TimeoutError:
            seconds = f"{self.limits.seconds:g} s"
            raise TimedOut(f"{first}: stopped after {seconds} while {progress.doing}.") from None

    async def _follow(self, url: WebUrl, request: Request, progress: Progress) -> Fetched:
        visited: list[WebUrl] = []
        near = False
        while True:
            addresses, near = await self._vetted(url, progress, after=None if not visited else near)
            answer = await self._hop(url, request, addresses, progress)
            if answer.location is None:
                hops = tuple(map(str, visited))
                return Fetched(answer.status, str(url), answer.headers, answer.body, hops, answer.cut)
            visited.append(url)
            if len(visited) > self.limits.redirects:
                last = one_line(answer.location, 120)
                raise Unavailable(f"{visited[0]}: more than {self.limits.redirects} redirects, the last to {last}.")
            target = _redirected(url, answer.location)
            request = _carried(request, answer.status, url, target)
            url = target

    async def _vetted(self, url: WebUrl, progress: Progress, after: bool | None) -> tuple[Sequence[str], bool]:
        """The addresses of ``url``, all of them allowed, and whether they are only so by ``allow_hosts``.

        ``after``: the hop before was such an address (``None`` for the first). A public page must not send the caller
        to a server the user opened for their own requests.
        """
        from hanzo_mcp.core.addresses import special

        progress.doing = f"looking up {url.host}"
        addresses = await self._resolved(url)
        listed = (url.host, url.port) in self._allowed
        near = False
        for address in addresses:
            found = special(address)
            if found is None:
                continue
            if not (found.openable and listed):
                raise _refused(url, address, found, self._unusable)
            near = True
        if near and after is False:
            raise Denied(f"{url}: a public page redirects to this private address; fetch it directly.", by="sandbox")
        return addresses, near

    async def _resolved(self, url: WebUrl) -> Sequence[str]:
        if ":" in url.host or url.host.replace(".", "").isdigit():
            return (url.host,)
        try:
            addresses = await _in_daemon(self._lookup, url.host, url.port)
        except OSError as exc:
            raise Unavailable(
                f"{url}: the name {url.host} does not resolve ({exc.strerror or exc}).", retryable=True
            ) from None
        if not addresses:
            raise Unavailable(f"{url}: the name {url.host} has no address.")
        return addresses

    async def _hop(self, url: WebUrl, request: Request, addresses: Sequence[str], progress: Progress) -> Answer:
        progress.doing = f"preparing to connect to {url.server}"
        route = await asyncio.to_thread(self._route, url, addresses)
        from hanzo_mcp.sandbox import exchange

        return await exchange.send(url, request, route, self.limits, progress)

    def _route(self, url: WebUrl, addresses: Sequence[str]) -> Route:
        """Off the loop: the first import and the trust store take tens of milliseconds."""
        from hanzo_mcp.sandbox import exchange

        if url.scheme == "https" and self._tls is None:
            self._tls = _trust_store()
        return exchange.Route(addresses, self._dial or exchange.dial, self._tls if url.scheme == "https" else None)


def _trust_store() -> ssl.SSLContext:
    """The system's certificates and Mozilla's. Unlike the default context it logs no keys for ``SSLKEYLOGFILE``."""
    import ssl

    import certifi

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_default_certs()
    context.load_verify_locations(certifi.where())
    context.set_alpn_protocols(["http/1.1"])
    return context


def _entries(allow_hosts: Sequence[str]) -> tuple[frozenset[tuple[str, int]], Sequence[str]]:
    """The ``host:port`` pairs, and the entries that are none: one typing error must not close every other tool."""
    if not allow_hosts:
        return frozenset(), ()
    from hanzo_mcp.core.weburl import host_port

    allowed: set[tuple[str, int]] = set()
    unusable: list[str] = []
    for text in allow_hosts:
        try:
            allowed.add(host_port(text))
        except ValueError:
            unusable.append(one_line(text, 80))
    return frozenset(allowed), unusable


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    """The caller's headers over our defaults. Raises ``InvalidInput``."""
    found = {"accept": "text/markdown, text/html;q=0.9, */*;q=0.8", "user-agent": USER_AGENT}
    for name, value in headers.items():
        lower = name.lower()
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise InvalidInput(f"headers: {name!r}: has characters no header can have.")
        if lower in _RESERVED or lower.startswith("proxy-"):
            raise InvalidInput(f"headers: {name!r} cannot be set.")
        found[lower] = value
    return found


def _refused(url: WebUrl, address: str, found: Special, unusable: Sequence[str]) -> Denied:
    what = f"{address} is" if address == url.host else f"{url.host} is {address},"
    way = (
        f'The user can open it by adding "{url.server}" to fetch.allow_hosts in the user settings.'
        if found.openable
        else "It cannot be opened by fetch.allow_hosts."
    )
    if unusable:
        way += f' Entries there that are not "host:port" and open nothing: {", ".join(unusable)}.'
    return Denied(f"{url}: {what} {found.kind}; only the public web is fetched. {way}", by="sandbox")


def _redirected(url: WebUrl, location: str) -> WebUrl:
    from hanzo_mcp.core import weburl

    try:
        target = weburl.join(url, location)
    except InvalidInput as exc:
        raise Denied(f"{url}: redirects to an address that is refused: {exc}", by="sandbox") from None
    if url.scheme == "https" and target.scheme == "http":
        raise Denied(f"{url}: redirects from https to unprotected {target}; not followed.", by="sandbox")
    return target


def _carried(request: Request, status: int, url: WebUrl, target: WebUrl) -> Request:
    """What goes on to ``target``: nothing of the caller's to another origin (RFC 9110 §15.4)."""
    method, body = request.method, request.body
    if status == 303 or (status in (301, 302) and method not in _SAFE_METHODS):
        method, body = "HEAD" if method == "HEAD" else "GET", None
    if url.origin == target.origin:
        return Request(method, request.headers, body)
    if method not in _SAFE_METHODS:
        raise Denied(f"{url}: redirects a {method} to another site, {target}; send it there directly.", by="sandbox")
    return Request(method, _checked({}), None)


async def _in_daemon(call: Lookup, host: str, port: int) -> Sequence[str]:
    """``call`` in a thread nobody waits for: a hanging resolver holds up neither other work nor the server's exit."""
    if not _LOOKUPS.acquire(blocking=False):
        raise Unavailable(f"{host}: too many name look-ups are hanging; try again in a minute.", retryable=True)
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Sequence[str]] = loop.create_future()

    def settle(found: Sequence[str], fault: OSError | None) -> None:
        if done.done():
            return
        if fault is None:
            done.set_result(found)
        else:
            done.set_exception(fault)

    def run() -> None:
        found: Sequence[str] = ()
        fault: OSError | None = None
        try:
            found = call(host, port)
        except OSError as exc:
            fault = exc
        except UnicodeError as exc:
            fault = OSError(str(exc))
        finally:
            _LOOKUPS.release()
        with contextlib.suppress(RuntimeError):  # the loop is gone, and with it who asked
            loop.call_soon_threadsafe(settle, found, fault)

    threading.Thread(target=run, daemon=True, name=f"lookup {host}").start()
    return await done
