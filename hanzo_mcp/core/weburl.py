"""Web addresses, parsed once and strictly: what was checked is what is dialled and sent.

Two parsers that disagree are how address filters are bypassed, so there is one, and it refuses what browsers repair:
controls, backslashes, user info, zone ids, numbers that only ``inet_aton`` reads as addresses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import quote, urljoin

from hanzo_mcp.core.text import one_line
from hanzo_mcp.errors import InvalidInput

MAX_LENGTH = 8192
_PORTS = {"http": 80, "https": 443}
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\\\\]")
_URL = re.compile(r"(https?)://([^/?#]*)([^?#]*)(\?[^#]*)?(?:#.*)?", re.IGNORECASE | re.DOTALL)
_SERVER = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]@%\s]+))(?::([0-9]{1,5}))?")
_NAME = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*"
)
_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
_BARE = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:/?#@\\\[\]]+)(?::[0-9]{1,5})?(?:[/?#].*)?", re.DOTALL)
_SAFE = "!#$%&'()*+,-./:;=?@[]_~"


@dataclass(frozen=True, slots=True)
class WebUrl:
    """``host``: a lower-case ASCII name or a canonical address without brackets. ``target``: path and query."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """The ``Host`` header (RFC 9110 §7.2): the port only when it is not the scheme's own."""
        return self.server if self.port != _PORTS[self.scheme] else _bracketed(self.host)

    @property
    def server(self) -> str:
        """``host:port`` as ``fetch.allow_hosts`` spells it."""
        return f"{_bracketed(self.host)}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        """RFC 6454: two URLs with different origins share no secrets."""
        return self.scheme, self.host, self.port

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def completed(text: str) -> str:
    """``text`` without white space around it, and with ``https://`` when it is a bare host with or without a path."""
    text = text.strip(" \t\r\n")
    return f"https://{text}" if "://" not in text.partition("?")[0] and _BARE.fullmatch(text) else text


def parse(text: str) -> WebUrl:
    """The one reading of ``text``; the fragment is dropped. Raises ``InvalidInput`` that says what is wrong."""
    shown = one_line(text, 120)
    if len(text) > MAX_LENGTH:
        raise InvalidInput(f"{shown}: longer than {MAX_LENGTH} characters.")
    if _FORBIDDEN.search(text):
        raise InvalidInput(f"{shown}: an address cannot contain control characters or backslashes.")
    match = _URL.fullmatch(text)
    if match is None:
        raise InvalidInput(f"{shown}: not an http:// or https:// address.")
    scheme = match[1].lower()
    server = _SERVER.fullmatch(match[2])
    if server is None:
        raise InvalidInput(f"{shown}: {_why(match[2])}.")
    try:
        host = _address(server[1]) if server[1] else _host(server[2])
        port = _port(server[3]) if server[3] else _PORTS[scheme]
    except ValueError as exc:
        raise InvalidInput(f"{shown}: {exc}.") from None
    return WebUrl(scheme, host, port, quote((match[3] or "/") + (match[4] or ""), safe=_SAFE))


def join(base: WebUrl, location: str) -> WebUrl:
    """Where a ``Location`` header (RFC 9110 §10.2.2) leads from ``base``. Raises ``InvalidInput`` like ``parse``."""
    if _FORBIDDEN.search(location):
        raise InvalidInput(f"{one_line(location, 120)}: contains control characters or backslashes.")
    try:
        joined = urljoin(str(base), location.strip(" "))
    except ValueError as exc:
        raise InvalidInput(f"{one_line(location, 120)}: {exc}.") from None
    return parse(joined)


def host_port(text: str) -> tuple[str, int]:
    """An entry of ``fetch.allow_hosts``: ``host:port``, in the spelling ``parse`` gives. Raises ``ValueError``."""
    server = _SERVER.fullmatch(text.strip())
    if server is None or not server[3]:
        raise ValueError('not "host:port"')
    return (_address(server[1]) if server[1] else _host(server[2])), _port(server[3])


def _why(server: str) -> str:
    if not server or server.startswith(":"):
        return "the host is missing"
    if "@" in server:
        return "a user name or password in the address is not accepted"
    if "%" in server:
        return "a percent sign in the host (a zone id or an encoded name) is not accepted"
    return f"{one_line(server, 80)!r} is not a host name with an optional port"


def _address(text: str) -> str:
    address = IPv6Address(text)
    return str(address)


def _host(text: str) -> str:
    name = _ascii(text).lower().removesuffix(".")
    if _NUMBER.fullmatch(name):
        try:
            return str(IPv4Address(name))
        except ValueError:
            raise ValueError(
                f"{name!r} is a number but no address; write four decimal parts, as in 192.0.2.1"
            ) from None
    if not _NAME.fullmatch(name):
        raise ValueError(f"{one_line(text, 80)!r} is not a host name")
    return name


def _ascii(text: str) -> str:
    """The name as DNS knows it (IDNA 2008 with UTS 46 mapping, as browsers do)."""
    if text.isascii():
        return text
    import idna

    try:
        return idna.encode(text, uts46=True).decode("ascii")
    except idna.IDNAError as exc:
        raise ValueError(f"{one_line(text, 80)!r} is not a host name ({one_line(str(exc), 80)})") from None


def _port(text: str) -> int:
    port = int(text)
    if not 1 <= port <= 65535:
        raise ValueError(f"port {port} does not exist")
    return port


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
