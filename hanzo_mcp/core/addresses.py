"""Which IP addresses are somebody's own machine or network and not the public web.

Our own table of the IANA IPv4 and IPv6 Special-Purpose Address Registries, plus multicast and unassigned IPv6 space.
``ipaddress.is_global`` is not used: it calls 64:ff9b::127.0.0.1, 2002:7f00:1:: and 224.0.0.1 global. IPv6 addresses
that carry an IPv4 address are judged by that address as well, because a translator on the way may unwrap it.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple


class Special(NamedTuple):
    """Why an address is no web address. ``openable``: the user may open it by name in ``fetch.allow_hosts``."""

    kind: str
    openable: bool


_LOOPBACK = Special("a loopback address", True)
_PRIVATE = Special("a private network address", True)
_SHARED = Special("a carrier or overlay network address", True)
_LINK_LOCAL = Special("a link-local address (cloud metadata lives there)", False)
_DOCUMENTATION = Special("a documentation address", False)
_PROTOCOL = Special("an address reserved for protocols", False)
_MULTICAST = Special("a multicast address", False)
_RESERVED = Special("a reserved address", False)
_UNASSIGNED = Special("an address outside the public IPv6 space", False)

_V4: tuple[tuple[IPv4Network, Special], ...] = tuple(
    (IPv4Network(text), special)
    for text, special in (
        ("0.0.0.0/8", Special("an address of this machine", False)),
        ("10.0.0.0/8", _PRIVATE),
        ("100.64.0.0/10", _SHARED),
        ("127.0.0.0/8", _LOOPBACK),
        ("169.254.0.0/16", _LINK_LOCAL),
        ("172.16.0.0/12", _PRIVATE),
        ("192.0.0.0/24", _PROTOCOL),
        ("192.0.2.0/24", _DOCUMENTATION),
        ("192.31.196.0/24", _PROTOCOL),
        ("192.52.193.0/24", _PROTOCOL),
        ("192.88.99.0/24", _PROTOCOL),
        ("192.168.0.0/16", _PRIVATE),
        ("192.175.48.0/24", _PROTOCOL),
        ("198.18.0.0/15", Special("a benchmarking address", False)),
        ("198.51.100.0/24", _DOCUMENTATION),
        ("203.0.113.0/24", _DOCUMENTATION),
        ("224.0.0.0/4", _MULTICAST),
        ("240.0.0.0/4", _RESERVED),
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")
_V6: tuple[tuple[IPv6Network, Special], ...] = tuple(
    (IPv6Network(text), special)
    for text, special in (
        ("::1/128", _LOOPBACK),
        ("::/128", Special("an address of this machine", False)),
        ("fc00::/7", _PRIVATE),
        ("fe80::/10", _LINK_LOCAL),
        ("fec0::/10", Special("a site-local address", False)),
        ("ff00::/8", _MULTICAST),
        ("2001::/23", _PROTOCOL),
        ("2001:db8::/32", _DOCUMENTATION),
        ("2002::/16", Special("a 6to4 address", False)),
        ("2620:4f:8000::/48", _PROTOCOL),
        ("3fff::/20", _DOCUMENTATION),
    )
)
_GLOBAL = IPv6Network("2000::/3")


def special(text: str) -> Special | None:
    """``None`` when the address (as a resolver writes it) is plain public unicast. Raises ``ValueError``."""
    address = ip_address(text)
    if isinstance(address, IPv4Address):
        return _special_v4(address)
    carried = embedded(address)
    inside = _special_v4(carried) if carried is not None else None
    if address.ipv4_mapped is not None:
        return inside
    if inside is not None:
        return Special(f"an IPv6 address that carries {carried}, {inside.kind}", False)
    return None if address in _NAT64 else _special_v6(address)


def embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address inside an IPv6 address.

    IPv4-mapped and -compatible (RFC 4291 §2.5.5), translated (RFC 2765), NAT64 (RFC 6052, RFC 8215), 6to4 (RFC 3056),
    Teredo (RFC 4380) and ISATAP (RFC 5214).
    """
    value = int(address)
    low = value & 0xFFFFFFFF
    high = value >> 32
    if high in (0xFFFF, 0xFFFF_0000, 0x64_FF9B << 64) or (high == 0 and low > 1) or value >> 80 == 0x64_FF9B_0001:
        return IPv4Address(low)
    if value >> 112 == 0x2002:
        return IPv4Address((value >> 80) & 0xFFFFFFFF)
    if value >> 96 == 0x2001_0000:
        return IPv4Address(low ^ 0xFFFFFFFF)
    if high & 0xFFFFFFFF in (0x5EFE, 0x0200_5EFE):
        return IPv4Address(low)
    return None


def _special_v4(address: IPv4Address) -> Special | None:
    return next((special for network, special in _V4 if address in network), None)


def _special_v6(address: IPv6Address) -> Special | None:
    found = next((special for network, special in _V6 if address in network), None)
    return found or (None if address in _GLOBAL else _UNASSIGNED)
