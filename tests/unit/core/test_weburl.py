from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanzo_mcp.core.weburl import completed, host_port, join, parse
from hanzo_mcp.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "url", "server"),
    [
        ("http://a", "http://a/", "a:80"),
        ("HTTPS://EXAMPLE.com:443/x y?q=ü#f", "https://example.com/x%20y?q=%C3%BC", "example.com:443"),
        ("http://example.com.:8080?q", "http://example.com:8080/?q", "example.com:8080"),
        ("http://bücher.example/%7Ea", "http://xn--bcher-kva.example/%7Ea", "xn--bcher-kva.example:80"),
        ("http://①②⑦.0.0.1/", "http://127.0.0.1/", "127.0.0.1:80"),
        ("http://127。0。0。1/", "http://127.0.0.1/", "127.0.0.1:80"),
        ("http://[2001:DB8:0:0::1]:8/", "http://[2001:db8::1]:8/", "[2001:db8::1]:8"),
        ('http://a_b.example/<x>"{}', "http://a_b.example/%3Cx%3E%22%7B%7D", "a_b.example:80"),
        ("http://a/@b:c", "http://a/@b:c", "a:80"),
    ],
)
def test_one_reading(text: str, url: str, server: str) -> None:
    found = parse(text)
    assert (str(found), found.server) == (url, server)
    assert parse(str(found)) == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ftp://a/", "not an http"),
        ("http:a", "not an http"),
        ("//a", "not an http"),
        ("http:///x", "host is missing"),
        ("http://:80/", "host is missing"),
        ("http://user@a/", "user name"),
        ("http://user:pw@a/", "user name"),
        ("http://[fe80::1%25eth0]/", "percent"),
        ("http://a%2eb/", "percent"),
        ("http://a:b/", "not a host name"),
        ("http://a b/", "not a host name"),
        ("http://a..b/", "not a host name"),
        ("http://-a/", "not a host name"),
        (f"http://{'a' * 64}.b/", "not a host name"),
        ("http://[::1/", "not a host name"),
        ("http://xn--a.\u00df\u200d/", "not a host name"),
        ("http://a:0/", "port 0"),
        ("http://a:65536/", "port 65536"),
        ("http://127.1/", "is a number"),
        ("http://0177.0.0.1/", "is a number"),
        ("http://0x7f.0.0.1/", "is a number"),
        ("http://2130706433/", "is a number"),
        ("http://1.2.3.4.5/", "is a number"),
        ("http://a\\@b/", "backslash"),
        ("http://a/\n", "control"),
        ("http://a\0b/", "control"),
        ("http://a/\ud800", "control"),
        ("http://a/" + "x" * 9000, "longer than"),
    ],
)
def test_what_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        parse(text)


@given(st.text(max_size=40))
def test_a_host_is_always_one_plain_name_or_address(text: str) -> None:
    try:
        found = parse(f"http://{text}/")
    except InvalidInput:
        return
    assert found.host.isascii() and found.host == found.host.lower()
    assert not set(found.host) & set("/?#@\\% \t\r\n\0")
    assert parse(str(found)) == found


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("b", "https://h.test/a/b"),
        ("../c?d", "https://h.test/c?d"),
        ("?q", "https://h.test/a/x?q"),
        ("//o.test", "https://o.test/"),
        ("http://o.test:81/y", "http://o.test:81/y"),
        ("", "https://h.test/a/x?1"),
        (" /sp ", "https://h.test/sp"),
    ],
)
def test_where_a_location_leads(location: str, url: str) -> None:
    assert str(join(parse("https://h.test/a/x?1"), location)) == url


@pytest.mark.parametrize("location", ["file:///x", "http://[::1", "ht\ttp://x", "/a\\b", "http://u@h/", "javascript:x"])
def test_locations_that_are_refused(location: str) -> None:
    with pytest.raises(InvalidInput):
        join(parse("https://h.test/"), location)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("example.com", "https://example.com"),
        (" example.com/a:b \n", "https://example.com/a:b"),
        ("localhost:8000/x", "https://localhost:8000/x"),
        ("[::1]:80/", "https://[::1]:80/"),
        ("example.com?u=http://x", "https://example.com?u=http://x"),
        ("http://x", "http://x"),
        ("file:///x", "file:///x"),
        ("data:text/html,x", "data:text/html,x"),
        ("//host/", "//host/"),
        ("two words", "two words"),
    ],
)
def test_a_bare_host_is_completed(text: str, url: str) -> None:
    assert completed(text) == url


def test_entries_of_allow_hosts() -> None:
    assert host_port("127.0.0.1:8000") == ("127.0.0.1", 8000)
    assert host_port(" [::1]:80 ") == ("::1", 80)
    assert host_port("LocalHost:1") == ("localhost", 1)
    for wrong in ("", "a", "a:", ":1", "http://a:1", "a:1/x", "a:70000", "127.1:80", "*:80", "u@a:80"):
        with pytest.raises(ValueError, match=r".+"):
            host_port(wrong)
