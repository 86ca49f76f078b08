from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanzo_mcp.core.addresses import embedded, special

PUBLIC = ["1.1.1.1", "93.184.216.34", "172.32.0.1", "192.0.1.1", "100.128.0.1", "223.255.255.255"]
PUBLIC_V6 = ["2606:4700::1111", "2a00:1450::8a", "64:ff9b::5db8:d822", "::ffff:93.184.216.34", "2001:200::1"]


@pytest.mark.parametrize("address", PUBLIC + PUBLIC_V6)
def test_public_unicast_is_plain(address: str) -> None:
    assert special(address) is None


@pytest.mark.parametrize(
    ("address", "openable"),
    [
        ("127.0.0.1", True),
        ("127.255.255.254", True),
        ("10.0.0.0", True),
        ("172.31.255.255", True),
        ("192.168.0.1", True),
        ("100.64.0.1", True),
        ("::1", True),
        ("fd12::1", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False),
        ("0.1.2.3", False),
        ("169.254.169.254", False),
        ("192.0.0.192", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::", False),
        ("fe80::1", False),
        ("fe80::1%eth0", False),
        ("fec0::1", False),
        ("ff02::1", False),
        ("2001:db8::1", False),
        ("3fff::1", False),
        ("100::1", False),
        ("5f00::1", False),
        ("4000::1", False),
        ("64:ff9b::127.0.0.1", False),
        ("64:ff9b:1::808:808", False),
        ("2002:808:808::", False),
        ("::8.8.8.8", False),
    ],
)
def test_special_addresses(address: str, openable: bool) -> None:
    found = special(address)
    assert found is not None and found.openable is openable


def test_what_is_no_address_is_an_error() -> None:
    with pytest.raises(ValueError, match="not-an-address"):
        special("not-an-address")


CARRIERS: dict[str, Callable[[int], int]] = {
    "mapped": lambda v4: (0xFFFF << 32) | v4,
    "compatible": lambda v4: v4,
    "translated": lambda v4: (0xFFFF_0000 << 32) | v4,
    "nat64": lambda v4: (0x64_FF9B << 96) | v4,
    "local nat64": lambda v4: (0x64_FF9B_0001 << 80) | v4,
    "6to4": lambda v4: (0x2002 << 112) | (v4 << 80) | 1,
    "teredo": lambda v4: (0x2001_0000 << 96) | (v4 ^ 0xFFFFFFFF),
    "isatap": lambda v4: (0x2606_4700 << 96) | (0x5EFE << 32) | v4,
    "isatap, global": lambda v4: (0x2606_4700 << 96) | (0x0200_5EFE << 32) | v4,
}


@pytest.mark.parametrize("carrier", CARRIERS)
@given(v4=st.integers(2, 2**32 - 1))
def test_no_carrier_hides_an_address(carrier: str, v4: int) -> None:
    address = IPv6Address(CARRIERS[carrier](v4))
    assert embedded(address) == IPv4Address(v4)
    if special(str(IPv4Address(v4))) is not None:
        assert special(str(address)) is not None


@given(st.ip_addresses(v=6))
def test_everything_outside_the_public_space_is_special(address: IPv6Address) -> None:
    if int(address) >> 125 != 1 and embedded(address) is None:
        assert special(str(address)) is not None
