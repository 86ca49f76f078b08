"""The guarded way to the web, against a real server on loopback and names that resolve where a test says."""

from __future__ import annotations

import asyncio
import datetime
import gzip
import ipaddress
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpcore
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hanzo_mcp.errors import Denied, InvalidInput, TimedOut, TooLarge, ToolError, Unavailable
from hanzo_mcp.sandbox import exchange
from hanzo_mcp.sandbox.net import Fetched, Http, Limits
from tests.support import web
from tests.support.web import Visit, WebServer, fixed, redirect

PUBLIC = "93.184.216.34"
SHORT = Limits(seconds=1.0)


class Net:
    """A world where every name is public and every address leads to the test server."""

    def __init__(self, server: WebServer, answers: dict[str, list[Sequence[str]]] | None = None) -> None:
        self.server, self.answers = server, answers or {}
        self.asked: list[str] = []
        self.dialled: list[tuple[str, int]] = []

    def lookup(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        waiting = self.answers.get(host)
        return [PUBLIC] if waiting is None else waiting.pop(0)

    async def dial(self, address: str, port: int, seconds: float) -> httpcore.AsyncNetworkStream:
        self.dialled.append((address, port))
        return await exchange.dial("127.0.0.1", self.server.port, seconds)

    def http(self, *allow: str, limits: Limits | None = None, tls: ssl.SSLContext | None = None) -> Http:
        return Http(allow, limits=limits or Limits(), lookup=self.lookup, dial=self.dial, tls=tls)


def fetch(
    http: Http, url: str, method: str = "GET", headers: dict[str, str] | None = None, body: bytes | None = None
) -> Fetched:
    return asyncio.run(http.fetch(url, method=method, headers=headers, body=body))


def local(server: WebServer, limits: Limits | None = None) -> Http:
    return Http([server.host], limits=limits or Limits())


def refused(kind: type[ToolError], call: Callable[[], object]) -> str:
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def test_gives_status_headers_body_and_address() -> None:
    with WebServer({"/x": fixed("hello", 201, x_kind="a")}) as server:
        found = fetch(local(server), server.url("/x?q=1#part"))
    assert found == Fetched(201, server.url("/x?q=1"), {"content-length": "5", "x-kind": "a"}, b"hello", (), "")
    assert "hello" not in repr(found) and "x-kind" not in repr(found)
    visit = server.visits[0]
    assert (visit.method, visit.target, visit.headers["host"]) == ("GET", "/x?q=1", server.host)
    assert "cookie" not in visit.headers and "authorization" not in visit.headers


def test_importing_and_constructing_loads_no_http_library() -> None:
    code = (
        "import sys; from hanzo_mcp.sandbox.net import Http; Http(); Http(['127.0.0.1:8000'])\n"
        "print([m for m in ('httpx', 'httpcore', 'anyio', 'h11') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("entry", ["127.0.0.1", "http://127.0.0.1:80", "127.1:80", "*:80", "127.0.0.1:0", ""])
def test_an_entry_that_is_no_host_and_port_opens_nothing_and_is_named(entry: str) -> None:
    with WebServer({"/": fixed("in")}) as server:
        http = Http([entry, server.host])
        said = refused(Denied, lambda: fetch(http, "http://127.0.0.1/"))
        assert f'not "host:port" and open nothing: {entry}.' in said
        assert fetch(http, server.url()).body == b"in"


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.1.2.3", "fd00::1", "169.254.169.254", "::ffff:10.0.0.1"])
def test_a_name_with_a_private_address_is_refused_even_beside_a_public_one(address: str) -> None:
    with WebServer({}) as server:
        net = Net(server, {"mixed.test": [[PUBLIC, address]]})
        said = refused(Denied, lambda: fetch(net.http(), "http://mixed.test/"))
    assert address in said and not net.dialled and not server.visits


def test_refusal_names_the_setting_that_opens_it() -> None:
    said = refused(Denied, lambda: fetch(Http(), "http://127.0.0.1:8123/"))
    assert '"127.0.0.1:8123"' in said and "fetch.allow_hosts" in said
    said = refused(Denied, lambda: fetch(Http(), "http://169.254.169.254/"))
    assert "cannot be opened" in said


def test_an_entry_opens_that_port_and_that_spelling_only() -> None:
    with WebServer({"/": fixed("in")}) as server:
        http = local(server)
        assert fetch(http, server.url()).body == b"in"
        for url in (f"http://127.0.0.1:{server.port + 1}/", f"http://localhost:{server.port}/"):
            refused(Denied, lambda url=url: fetch(http, url))
        assert len(server.visits) == 1
        by_name = Http([f"localhost:{server.port}"], lookup=lambda _host, _port: ["127.0.0.1"])
        assert fetch(by_name, f"http://localhost:{server.port}/").body == b"in"
        refused(Denied, lambda: fetch(by_name, server.url()))


def test_an_entry_never_opens_link_local() -> None:
    http = Http(["169.254.169.254:80", "meta.test:80"], lookup=lambda _host, _port: ["169.254.169.254"])
    for url in ("http://169.254.169.254/", "http://meta.test/"):
        refused(Denied, lambda url=url: fetch(http, url))


def test_dials_what_was_checked_once_and_keeps_the_name() -> None:
    with WebServer({"/": fixed("pinned")}) as server:
        net = Net(server, {"rebind.test": [[PUBLIC], ["127.0.0.1"]]})
        assert fetch(net.http(), "http://rebind.test:8080/").body == b"pinned"
    assert net.asked == ["rebind.test"] and net.dialled == [(PUBLIC, 8080)]
    assert server.visits[0].headers["host"] == "rebind.test:8080"


def test_tries_the_next_address_when_one_does_not_answer() -> None:
    with WebServer({"/": fixed("second")}) as server:
        net = Net(server, {"two.test": [["2606:4700::1", PUBLIC]]})

        async def dial(address: str, port: int, seconds: float) -> httpcore.AsyncNetworkStream:
            if ":" in address:
                raise httpcore.ConnectError("unreachable")
            return await net.dial(address, port, seconds)

        assert fetch(Http(lookup=net.lookup, dial=dial), "http://two.test/").body == b"second"


def test_follows_redirects_and_lists_them() -> None:
    pages = {"/a": redirect("b?x=1"), "/b": redirect("/c", 307), "/c": fixed("end")}
    with WebServer(pages) as server:
        found = fetch(local(server), server.url("/a"))
    assert found.body == b"end" and found.url == server.url("/c")
    assert found.redirects == (server.url("/a"), server.url("/b?x=1"))


def test_a_redirect_loop_ends() -> None:
    with WebServer({"/a": redirect("/b"), "/b": redirect("/a")}) as server:
        said = refused(Unavailable, lambda: fetch(local(server), server.url("/a")))
    assert "more than 5 redirects" in said and len(server.visits) == 6


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "gopher://x/",
        "//169.254.169.254/latest/",
        "http://10.0.0.1/",
        "http://u:p@a.test/",
        "http://[::1]/",
        "http://a.test\\@b.test/",
        "http://2130706433/",
    ],
)
def test_every_hop_is_checked(location: str) -> None:
    with WebServer({"/": redirect(location)}) as server:
        net = Net(server)
        refused(Denied, lambda: fetch(net.http(), "http://a.test/"))
    assert len(server.visits) == 1


def test_a_redirect_out_of_https_is_refused() -> None:
    with trusted_server({"/": redirect("http://a.test/")}) as (server, tls):
        net = Net(server)
        said = refused(Denied, lambda: fetch(net.http(tls=tls), "https://a.test/"))
    assert "unprotected http://a.test/" in said


def test_a_public_page_cannot_send_the_caller_to_an_opened_server() -> None:
    with WebServer({"/": redirect("http://127.0.0.1:8000/admin")}) as server:
        net = Net(server)
        said = refused(Denied, lambda: fetch(net.http("127.0.0.1:8000"), "http://a.test/"))
    assert "fetch it directly" in said and len(server.visits) == 1


def test_opened_servers_may_redirect_among_themselves() -> None:
    with WebServer({"/": fixed("there")}) as second, WebServer({"/": redirect(second.url())}) as first:
        assert fetch(Http([first.host, second.host]), first.url()).body == b"there"


def test_nothing_of_the_callers_goes_to_another_origin() -> None:
    with WebServer({"/b": fixed("b")}) as second, WebServer({"/a": redirect(second.url("/b"))}) as first:
        http = Http([first.host, second.host])
        fetch(http, first.url("/a"), headers={"X-Api-Key": "k", "User-Agent": "mine"})
        assert first.visits[0].headers["x-api-key"] == "k" and first.visits[0].headers["user-agent"] == "mine"
        assert "x-api-key" not in second.visits[0].headers and second.visits[0].headers["user-agent"] != "mine"


@pytest.mark.parametrize("status", [307, 308])
def test_a_body_is_never_redirected_to_another_origin(status: int) -> None:
    with WebServer({}) as second, WebServer({"/a": redirect(second.url("/b"), status)}) as first:
        http = Http([first.host, second.host])
        refused(Denied, lambda: fetch(http, first.url("/a"), method="POST", body=b"secret"))
        assert first.visits[0].body == b"secret" and not second.visits


def test_the_method_changes_as_browsers_do_it() -> None:
    pages = {"/see": redirect("/x", 303), "/moved": redirect("/x", 301), "/kept": redirect("/x", 307), "/x": fixed()}
    with WebServer(pages) as server:
        for path in ("/see", "/moved", "/kept"):
            fetch(local(server), server.url(path), method="POST", body=b"b")
    ends = [(visit.method, visit.body) for visit in server.visits if visit.target == "/x"]
    assert ends == [("GET", b""), ("GET", b""), ("POST", b"b")]


@pytest.mark.parametrize("name", ["Host", "Authorization", "Cookie", "Proxy-Authorization", "Transfer-Encoding", "TE"])
def test_headers_that_frame_or_impersonate_cannot_be_set(name: str) -> None:
    said = refused(InvalidInput, lambda: fetch(Http(), "http://a.test/", headers={name: "x"}))
    assert name in said


@pytest.mark.parametrize(("name", "value"), [("x\r\ny", "v"), ("x", "a\r\nb: c"), ("x", "é"), ("", "v")])
def test_headers_cannot_be_smuggled(name: str, value: str) -> None:
    refused(InvalidInput, lambda: fetch(Http(), "http://a.test/", headers={name: value}))


def test_methods_that_tunnel_are_refused() -> None:
    for method in ("CONNECT", "TRACE", "GET /x HTTP/1.1\r\n", ""):
        refused(InvalidInput, lambda method=method: fetch(Http(), "http://a.test/", method=method))


@pytest.mark.parametrize(
    ("page", "doing"),
    [(web.hang, "waiting for"), (web.hang_in_body, "9 bytes so far"), (web.drip, "reading the answer")],
)
def test_the_deadline_covers_everything(page: web.Page, doing: str) -> None:
    with WebServer({"/": page}) as server:
        said = refused(TimedOut, lambda: fetch(local(server, SHORT), server.url()))
    assert doing in said and "1 s" in said


def test_a_handshake_that_hangs_leaves_no_socket() -> None:
    with WebServer({}) as server:
        said = refused(TimedOut, lambda: fetch(local(server, SHORT), f"https://{server.host}/"))
    assert "securing the connection" in said and not server.visits


def test_a_hanging_resolver_is_left_behind() -> None:
    release = threading.Event()

    def lookup(host: str, port: int) -> Sequence[str]:
        release.wait(30)
        return []

    said = refused(TimedOut, lambda: fetch(Http(limits=SHORT, lookup=lookup), "http://slow.test/"))
    release.set()
    assert "looking up slow.test" in said


def test_a_name_that_does_not_resolve_says_so() -> None:
    def lookup(host: str, port: int) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    assert "does not resolve" in refused(Unavailable, lambda: fetch(Http(lookup=lookup), "http://none.test/"))
    assert "no address" in refused(
        Unavailable, lambda: fetch(Http(lookup=lambda _host, _port: []), "http://none.test/")
    )


def test_a_closed_port_says_so() -> None:
    with WebServer({}) as server:
        closed = server.host
    said = refused(Unavailable, lambda: fetch(Http([closed]), f"http://{closed}/"))
    assert "no connection" in said


@pytest.mark.parametrize("page", [web.too_short, web.not_http])
def test_broken_http_is_unavailable(page: web.Page) -> None:
    with WebServer({"/": page}) as server:
        said = refused(Unavailable, lambda: fetch(local(server), server.url()))
    assert "does not keep to HTTP" in said


def test_headers_are_bounded() -> None:
    with WebServer({"/": web.endless_headers, "/ok": fixed("k", x="y" * 60_000)}) as server:
        assert "headers" in refused(TooLarge, lambda: fetch(local(server), server.url()))
        assert fetch(local(server), server.url("/ok")).body == b"k"


def test_a_flood_of_interim_answers_is_bounded() -> None:
    async def flood(visit: Visit) -> None:
        while not visit.ended.is_set():
            await visit.raw(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" * 100)

    with WebServer({"/": flood}) as server:
        assert "headers" in refused(TooLarge, lambda: fetch(local(server), server.url()))


def test_a_flood_of_chunk_headers_is_bounded() -> None:
    async def chunks(visit: Visit) -> None:
        await visit.raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        while not visit.ended.is_set():
            await visit.raw((b"1;" + b"x" * 4000 + b"\r\na\r\n") * 50)

    with WebServer({"/": chunks}) as server:
        http = local(server, Limits(wire=100_000))
        assert "chunk headers" in refused(TooLarge, lambda: fetch(http, server.url()))


def test_a_long_body_is_cut_and_says_so() -> None:
    with WebServer({"/": web.hundred_megabytes}) as server:
        found = fetch(local(server), server.url())
    assert len(found.body) == 5 * 1024 * 1024 and "5242880 bytes" in found.cut


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate", "raw deflate", "identity", ""])
def test_codings_that_were_offered_are_undone(coding: str) -> None:
    text = b"some text " * 100
    packed = {
        "gzip": gzip.compress(text),
        "x-gzip": gzip.compress(text),
        "deflate": zlib.compress(text),
        "raw deflate": zlib.compress(text)[2:-4],
    }.get(coding, text)
    with WebServer({"/": fixed(packed, content_encoding=coding.removeprefix("raw "))}) as server:
        found = fetch(local(server), server.url())
    assert (found.body, found.cut) == (text, "")
    assert server.visits[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "gzip, br", "nonsense"])
def test_other_codings_are_refused(coding: str) -> None:
    with WebServer({"/": fixed(gzip.compress(b"x"), content_encoding=coding)}) as server:
        said = refused(Unavailable, lambda: fetch(local(server), server.url()))
    assert "not asked for" in said


def test_a_body_that_is_not_what_it_says_is_refused() -> None:
    two = gzip.compress(b"a") + gzip.compress(b"b")
    with WebServer(
        {"/": fixed("text", content_encoding="gzip"), "/two": fixed(two, content_encoding="gzip")}
    ) as server:
        assert "not valid gzip" in refused(Unavailable, lambda: fetch(local(server), server.url()))
        assert "several" in refused(Unavailable, lambda: fetch(local(server), server.url("/two")))


def test_a_body_packed_too_well_is_cut() -> None:
    bomb = gzip.compress(b"\0" * 1_000_000)
    half = gzip.compress(os.urandom(1000))[:500]
    pages = {"/": fixed(bomb, content_encoding="gzip"), "/half": fixed(half, content_encoding="gzip")}
    with WebServer(pages) as server:
        found = fetch(local(server, Limits(decoded=1000)), server.url())
        assert (len(found.body), found.cut) == (1000, "it unpacks to more than 1000 bytes")
        assert "ends early" in fetch(local(server), server.url("/half")).cut


def test_head_has_no_body() -> None:
    async def head(visit: Visit) -> None:
        await visit.raw(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\ncontent-encoding: gzip\r\n\r\n")

    with WebServer({"/": head}) as server:
        found = fetch(local(server), server.url(), method="HEAD")
    assert (found.body, found.headers["content-length"]) == (b"", "500")


def test_a_server_that_wants_another_protocol_is_refused() -> None:
    async def upgrade(visit: Visit) -> None:
        await visit.raw(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n")

    with WebServer({"/": upgrade}) as server:
        refused(Unavailable, lambda: fetch(local(server), server.url()))


def test_tls_is_verified_against_the_name() -> None:
    with trusted_server({"/": fixed("safe")}) as (server, tls):
        net = Net(server)
        assert fetch(net.http(tls=tls), "https://a.test/").body == b"safe"
        assert server.visits[0].headers["host"] == "a.test" and net.dialled == [(PUBLIC, 443)]
        said = refused(Unavailable, lambda: fetch(net.http(tls=tls), "https://other.test/"))
        assert "certificate is not trusted" in said
        assert "certificate is not trusted" in refused(Unavailable, lambda: fetch(net.http(), "https://a.test/"))
    assert len(server.visits) == 1


def test_the_environment_takes_no_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    with trusted_server({"/": fixed("direct")}) as (server, _), WebServer({}) as proxy:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url())
        monkeypatch.setenv("SSLKEYLOGFILE", str(keys))
        refused(Unavailable, lambda: fetch(Net(server).http(), "https://a.test/"))
        assert not proxy.visits and not keys.exists()


def test_cancelling_closes_the_connection() -> None:
    arrived, closed = threading.Event(), threading.Event()

    async def wait(visit: Visit) -> None:
        arrived.set()
        await visit.gone()
        closed.set()

    async def run(server: WebServer) -> None:
        task = asyncio.create_task(local(server).fetch(server.url()))
        assert await asyncio.to_thread(arrived.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(closed.wait, 10)

    with WebServer({"/": wait}) as server:
        asyncio.run(run(server))


@contextmanager
def trusted_server(pages: dict[str, web.Page]) -> Generator[tuple[WebServer, ssl.SSLContext]]:
    """A TLS server for ``a.test``, and the context that trusts it alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    cert = _certificate(key)
    trust = ssl.create_default_context(cadata=cert.public_bytes(serialization.Encoding.PEM).decode())
    with WebServer(pages, _server_side(key, cert)) as server:
        yield server, trust


def _server_side(key: ec.EllipticCurvePrivateKey, cert: x509.Certificate) -> ssl.SSLContext:
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cert.pem")
        path.write_bytes(pem + cert.public_bytes(serialization.Encoding.PEM))
        context.load_cert_chain(path)
    return context


def _certificate(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a.test")])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + day)
    names = x509.SubjectAlternativeName([x509.DNSName("a.test"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    constraints = x509.BasicConstraints(ca=True, path_length=0)
    return (
        builder.add_extension(names, critical=False)
        .add_extension(constraints, critical=True)
        .sign(key, hashes.SHA256())
    )
