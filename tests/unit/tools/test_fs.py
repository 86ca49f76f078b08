"""fs: reading and writing real files, byte for byte."""

from __future__ import annotations

import asyncio
import base64
import errno
import gc
import hashlib
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from hanzo_mcp.core.tool import RESULT_META, Result
from hanzo_mcp.errors import Conflict, InvalidInput, NotFound
from hanzo_mcp.sandbox.paths import Workspace
from tests.support.local import LocalTools

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def tools(ws: Path) -> LocalTools:
    return LocalTools(ws)


def text(result: Result, block: int = 0) -> str:
    return str(result.content[block]["text"])


def facts(result: Result) -> dict[str, Any]:
    return result.meta[RESULT_META]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# read


def test_read_a_whole_file(ws: Path, tools: LocalTools) -> None:
    (ws / "a.txt").write_bytes(b"one\ntwo\nthree\n")
    result = tools.call("fs", op="read", path="a.txt")
    assert text(result) == "one\ntwo\nthree\n"
    assert text(result, 1).startswith("[3 lines; 14 bytes, utf-8, lf; sha256 ")
    got = facts(result)
    assert {"path": "a.txt", "bytes": 14, "encoding": "utf-8", "eol": "lf", "lines": 3}.items() <= got.items()
    assert got["sha256"] == sha(b"one\ntwo\nthree\n")
    assert "next_offset" not in got
    for path in (str(ws / "a.txt"), (ws / "a.txt").as_uri(), "./b/../a.txt"):
        assert text(tools.call("fs", op="read", path=path)) == "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("arguments", "shown", "first", "following"),
    [
        ({"offset": 3, "limit": 2}, "line 3\nline 4\n", 3, 5),
        ({"offset": 9}, "line 9\nline 10", 9, None),
        ({"offset": 1, "limit": 1}, "line 1\n", 1, 2),
        ({"limit": 10}, "".join(f"line {n}\n" for n in range(1, 10)) + "line 10", 1, None),
        ({"offset": -2}, "line 9\nline 10", 9, None),
        ({"offset": -3, "limit": 1}, "line 8\n", 8, 9),
        ({"offset": -99, "limit": 1}, "line 1\n", 1, 2),
        ({"offset": "3", "limit": "1"}, "line 3\n", 3, 4),
    ],
)
def test_read_ranges(
    ws: Path, tools: LocalTools, arguments: dict[str, Any], shown: str, first: int, following: int | None
) -> None:
    (ws / "a.txt").write_text("\n".join(f"line {n}" for n in range(1, 11)))
    result = tools.call("fs", op="read", path="a.txt", **arguments)
    assert text(result) == shown
    assert facts(result)["first"] == first
    assert facts(result).get("next_offset") == following
    assert (f"go on with offset={following}" in text(result, 1)) is (following is not None)


def test_read_past_the_end_and_empty(ws: Path, tools: LocalTools) -> None:
    (ws / "a.txt").write_text("one\ntwo\n")
    past = tools.call("fs", op="read", path="a.txt", offset=9)
    assert text(past) == ""
    assert "only 2 lines" in text(past, 1)
    (ws / "empty").write_bytes(b"")
    empty = tools.call("fs", op="read", path="empty")
    assert text(empty) == ""
    assert text(empty, 1).startswith("[empty file")
    assert facts(empty)["lines"] == 0


def test_read_pages_join_to_the_file(ws: Path, tools: LocalTools) -> None:
    data = "".join(f"{n} {'x' * (n % 200)}\n" for n in range(9000))
    (ws / "long.txt").write_text(data)
    pieces: list[str] = []
    offset: int | None = 1
    while offset is not None:
        result = tools.call("fs", op="read", path="long.txt", offset=offset)
        assert len(text(result)) <= 100_000
        pieces.append(text(result))
        offset = facts(result).get("next_offset")
    assert "".join(pieces) == data
    assert len(pieces) > 5


def test_read_a_line_longer_than_an_answer(ws: Path, tools: LocalTools) -> None:
    (ws / "min.js").write_text("y" * 300_000 + "\nend\n")
    result = tools.call("fs", op="read", path="min.js")
    assert text(result) == "y" * 100_000
    assert facts(result)["line_cut"] is True
    assert "as=base64" in text(result, 1)
    assert text(tools.call("fs", op="read", path="min.js", offset=facts(result)["next_offset"])) == "end\n"


def test_read_with_numbers(ws: Path, tools: LocalTools) -> None:
    (ws / "a.txt").write_bytes(b"one\n\nthree")
    assert tools.text("fs", op="read", path="a.txt", numbers=True) == "     1\tone\n     2\t\n     3\tthree"
    assert tools.text("fs", op="read", path="a.txt", numbers=True, offset=3) == "     3\tthree"


@pytest.mark.parametrize(
    ("data", "shown", "encoding", "eol"),
    [
        (b"caf\xe9\ntwo\n", "café\ntwo\n", "cp1252", "lf"),
        (b"caf\xe9 \x81\n", "café \x81\n", "latin-1", "lf"),
        ("grün\n".encode(), "grün\n", "utf-8", "lf"),
        (b"\xef\xbb\xbfone\n", "one\n", "utf-8 with BOM", "lf"),
        (b"\xff\xfe" + "eins\r\nzwölf\r\n".encode("utf-16-le"), "eins\r\nzwölf\r\n", "utf-16-le with BOM", "crlf"),
        (b"\xfe\xff" + "eins\n".encode("utf-16-be"), "eins\n", "utf-16-be with BOM", "lf"),
        ("eins zwei drei\n".encode("utf-16-le"), "eins zwei drei\n", "utf-16-le", "lf"),
        (b"one\r\ntwo\r\n", "one\r\ntwo\r\n", "utf-8", "crlf"),
        (b"one\rtwo\r", "one\rtwo\r", "utf-8", "cr"),
        (b"one\r\ntwo\nthree\r\n", "one\r\ntwo\nthree\r\n", "utf-8", "mixed"),
        (b"none", "none", "utf-8", "none"),
        ("ü ö ä ".encode() + b"\xff\n", "ü ö ä \\xff\n", "utf-8 (1 invalid bytes, shown as \\xNN)", "lf"),
    ],
)
def test_read_encodings(ws: Path, tools: LocalTools, data: bytes, shown: str, encoding: str, eol: str) -> None:
    (ws / "a.txt").write_bytes(data)
    result = tools.call("fs", op="read", path="a.txt")
    assert text(result) == shown
    assert facts(result)["encoding"] == encoding
    assert facts(result)["eol"] == eol
    assert facts(result)["sha256"] == sha(data)


def test_read_an_image(ws: Path, tools: LocalTools) -> None:
    (ws / "a.png").write_bytes(PNG)
    result = tools.call("fs", op="read", path="a.png")
    assert result.content[0] == {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
    assert facts(result)["mime_type"] == "image/png"
    (ws / "big.png").write_bytes(PNG + bytes(5 * 1024 * 1024))
    assert "not shown as text" in tools.text("fs", op="read", path="big.png")


def test_read_a_binary_says_what_it_is(ws: Path, tools: LocalTools) -> None:
    (ws / "a.bin").write_bytes(b"\x7fELF" + bytes(range(256)))
    result = tools.call("fs", op="read", path="a.bin")
    assert text(result) == "a.bin: ELF program or library, 260 bytes, not shown as text."
    assert facts(result)["binary"] is True
    assert "as=base64" in text(result, 1)


def test_read_base64_in_pages(ws: Path, tools: LocalTools) -> None:
    data = bytes(range(256)) * 500
    (ws / "a.bin").write_bytes(data)
    first = tools.call("fs", op="read", path="a.bin", **{"as": "base64"})
    rest = tools.call("fs", op="read", path="a.bin", offset=facts(first)["next_offset"], **{"as": "base64"})
    assert base64.b64decode(text(first)) + base64.b64decode(text(rest)) == data
    assert "next_offset" not in facts(rest)
    end = tools.call("fs", op="read", path="a.bin", offset=-3, **{"as": "base64"})
    assert base64.b64decode(text(end)) == data[-3:]
    part = tools.call("fs", op="read", path="a.bin", offset=10, limit=4, **{"as": "base64"})
    assert base64.b64decode(text(part)) == data[10:14]


def test_read_what_is_no_file(ws: Path) -> None:
    tools = LocalTools(ws, Path("/dev"))
    os.mkfifo(ws / "pipe")
    (ws / "dir").mkdir()
    for path in ("pipe", "/dev/zero"):
        with pytest.raises(InvalidInput, match="not a regular file"):
            tools.call("fs", op="read", path=path)
    with pytest.raises(InvalidInput, match=r"is a directory\. Use op list"):
        tools.call("fs", op="read", path="dir")
    with pytest.raises(NotFound, match=r"gone\.txt: no such file"):
        tools.call("fs", op="read", path="gone.txt")
    nameless: list[dict[str, Any]] = [{}, {"path": ""}, {"paths": []}]
    for arguments in nameless:
        with pytest.raises(InvalidInput, match="name a file with path"):
            tools.call("fs", op="read", **arguments)
    with pytest.raises(InvalidInput, match="limit: expected at least 1, got 0"):
        tools.call("fs", op="read", path="x", limit=0)


def test_read_several_with_one_failing(ws: Path, tools: LocalTools) -> None:
    (ws / "a.txt").write_text("A")
    (ws / "b.png").write_bytes(PNG)
    result = tools.call("fs", op="read", paths=["a.txt", "gone", "b.png"])
    assert not result.is_error
    assert [block["type"] for block in result.content] == ["text", "text", "text", "image"]
    assert text(result).startswith("== a.txt ==\nA\n[1 line; ")
    assert text(result, 1) == "== gone ==\n[error: gone: no such file or directory]"
    found = facts(result)["files"]
    assert [item.get("bytes") for item in found] == [1, None, len(PNG)]
    assert found[1]["error"]["code"] == "not_found"
    assert tools.call("fs", op="read", paths=["gone", "../x"]).is_error


def test_read_lines_of_a_sparse_gigabyte(ws: Path, tools: LocalTools) -> None:
    with (ws / "big.log").open("wb") as file:
        file.write(b"".join(b"line %d\n" % n for n in range(1, 20_001)))
        file.truncate(1 << 30)
        file.seek((1 << 30) - 19)
        file.write(b"\nlast but one\nlast\n")
    tracemalloc.start()
    try:
        start = tools.call("fs", op="read", path="big.log", offset=3, limit=2)
        deep = tools.call("fs", op="read", path="big.log", offset=20_000, limit=1)
        tail = tools.call("fs", op="read", path="big.log", offset=-2)
        after_hole = tools.call("fs", op="read", path="big.log", offset=20_002)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert text(start) == "line 3\nline 4\n"
    assert facts(start)["next_offset"] == 5
    assert facts(start)["bytes"] == 1 << 30
    assert text(deep) == "line 20000\n"
    assert text(tail) == "last but one\nlast\n"
    assert text(after_hole) == "last but one\nlast\n"
    assert peak < 20 * 1024 * 1024


def test_read_54_megabytes_without_a_range(ws: Path, tools: LocalTools) -> None:
    (ws / "big.txt").write_bytes(b"0123456789abcde\n" * (54 * 65536))
    result = tools.call("fs", op="read", path="big.txt")
    assert text(result) == "0123456789abcde\n" * 2000
    assert facts(result)["next_offset"] == 2001
    assert facts(result)["bytes"] == 54 * 1024 * 1024


# write


def test_write_creates_with_parents(ws: Path, tools: LocalTools) -> None:
    result = tools.call("fs", op="write", path="a/b/c.txt", content="eins\nzwölf\n")
    assert (ws / "a" / "b" / "c.txt").read_bytes() == "eins\nzwölf\n".encode()
    data = "eins\nzwölf\n".encode()
    assert facts(result) == {
        "path": "a/b/c.txt", "bytes": 12, "sha256": sha(data), "encoding": "utf-8", "created": True,
    }  # fmt: skip
    assert text(result) == f"created a/b/c.txt: 12 bytes, utf-8; sha256 {sha(data)[:16]}"


def test_write_overwrites_and_creates_only_what_is_new(ws: Path, tools: LocalTools) -> None:
    (ws / "a.txt").write_text("old")
    assert facts(tools.call("fs", op="write", path="a.txt", content="new"))["created"] is False
    assert (ws / "a.txt").read_text() == "new"
    assert facts(tools.call("fs", op="write", path="b.txt", content="b", mode="create"))["created"] is True
    with pytest.raises(Conflict, match=r"a\.txt: already exists \(3 bytes\); mode overwrite replaces it"):
        tools.call("fs", op="write", path="a.txt", content="lost", mode="create")
    assert (ws / "a.txt").read_text() == "new"
    tools.call("fs", op="write", path="a.txt", content="")
    assert (ws / "a.txt").read_bytes() == b""


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"one\r\n", "two\n", b"one\r\ntwo\r\n"),
        (b"one", "\ntwo", b"one\ntwo"),
        ("ä".encode("utf-16"), "ö", b"\xff\xfe" + "äö".encode("utf-16-le")),
        (b"caf\xe9\n", "ü\n", b"caf\xe9\n\xfc\n"),
        (b"", "first\n", b"first\n"),
        (None, "first\n", b"first\n"),
    ],
)
def test_write_appends(ws: Path, tools: LocalTools, before: bytes | None, content: str, after: bytes) -> None:
    if before is not None:
        (ws / "a.txt").write_bytes(before)
    tools.call("fs", op="write", path="a.txt", content=content, mode="append")
    assert (ws / "a.txt").read_bytes() == after


def test_concurrent_appends_all_land(ws: Path, tools: LocalTools) -> None:
    async def run() -> None:
        await asyncio.gather(
            *(tools.acall("fs", op="write", path="log", content=f"{n}\n", mode="append") for n in range(32))
        )

    asyncio.run(run())
    assert sorted(map(int, (ws / "log").read_text().split())) == list(range(32))


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\rb\r", "x\ny\n", b"x\ry\r"),
        (b"a\r\nb\r\n", "x\r\ny\r\n", b"x\r\ny\r\n"),
        (b"a\n", "x\ny\n", b"x\ny\n"),
        (b"a\r\nb\n", "x\ny\n", b"x\ny\n"),
        (b"\xef\xbb\xbfa\n", "x\n", b"\xef\xbb\xbfx\n"),
        (b"\xef\xbb\xbfa\n", "\ufeffx\n", b"\xef\xbb\xbfx\n"),
        (b"\xff\xfea\0\r\0\n\0", "xä\n", b"\xff\xfex\0\xe4\0\r\0\n\0"),
        (b"caf\xe9\n", "\xfc\n", b"\xfc\n"),
        (PNG, "text", b"text"),
    ],
)
def test_write_keeps_line_endings_mark_and_encoding(
    ws: Path, tools: LocalTools, before: bytes, content: str, after: bytes
) -> None:
    (ws / "a.txt").write_bytes(before)
    (ws / "a.txt").chmod(0o750)
    tools.call("fs", op="write", path="a.txt", content=content)
    assert (ws / "a.txt").read_bytes() == after
    assert (ws / "a.txt").stat().st_mode & 0o7777 == 0o750


def test_write_what_the_encoding_has_not(ws: Path, tools: LocalTools) -> None:
    (ws / "a.txt").write_bytes(b"caf\xe9\n")
    with pytest.raises(InvalidInput, match=r"is cp1252, which has no '→' \(U\+2192\).*Nothing was changed"):
        tools.call("fs", op="write", path="a.txt", content="a → b\n")
    assert (ws / "a.txt").read_bytes() == b"caf\xe9\n"
    with pytest.raises(InvalidInput, match=r"lone surrogate \(U\+D800\)"):
        tools.call("fs", op="write", path="b.txt", content="\ud800")
    (ws / "a.png").write_bytes(PNG)
    with pytest.raises(InvalidInput, match="is not text; nothing can be appended"):
        tools.call("fs", op="write", path="a.png", content="x", mode="append")
    assert sorted(os.listdir(ws)) == ["a.png", "a.txt"]


@pytest.mark.parametrize("op", [{"op": "write", "content": "mine"}, {"op": "edit", "old": "two", "new": "mine"}])
def test_base_hash(ws: Path, tools: LocalTools, op: dict[str, Any]) -> None:
    (ws / "a.txt").write_text("two")
    seen = facts(tools.call("fs", op="read", path="a.txt"))["sha256"]
    (ws / "a.txt").write_text("two, theirs")
    with pytest.raises(Conflict) as refused:
        tools.call("fs", path="a.txt", base_hash=seen, **op)
    assert f"has changed and is now {sha(b'two, theirs')}. Nothing was changed." in str(refused.value)
    assert "\n-two\n" in str(refused.value)
    assert "\n+two, theirs\n" in str(refused.value)
    assert (ws / "a.txt").read_text() == "two, theirs"
    for wrong in ("abc", "g" * 64):
        with pytest.raises(InvalidInput, match="expected a sha256 of 64"):
            tools.call("fs", path="a.txt", base_hash=wrong, **op)
    tools.call("fs", path="a.txt", base_hash="sha256:" + sha(b"two, theirs").upper()[:12], **op)
    assert (ws / "a.txt").read_text().startswith("mine")
    with pytest.raises(Conflict, match=r"gone\.txt: no longer exists"):
        tools.call("fs", path="gone.txt", base_hash=seen, **op)
    assert not (ws / "gone.txt").exists()


def test_write_leaves_nothing_behind_when_refused(ws: Path, tools: LocalTools) -> None:
    (ws / "dir").mkdir()
    (ws / "file").write_text("x")
    for path, wanted in (("dir", InvalidInput), ("file/x", InvalidInput), (".", InvalidInput), ("", InvalidInput)):
        with pytest.raises(wanted):
            tools.call("fs", op="write", path=path, content="x")
    with pytest.raises(InvalidInput, match="mode: expected 'overwrite', 'create' or 'append'"):
        tools.call("fs", op="write", path="new", content="x", mode="w")
    assert sorted(os.listdir(ws)) == ["dir", "file"]


def test_a_workspace_lets_go_of_its_folder(ws: Path) -> None:
    files = Workspace([str(ws)])
    place, fd = files.place("a"), files.roots[0].fd
    del files
    gc.collect()
    assert os.path.samestat(os.fstat(fd), ws.stat())  # a place still needs it
    before = os.fstat(fd).st_ino
    del place
    gc.collect()
    try:
        assert os.fstat(fd).st_ino != before  # the number may be somebody else's by now
    except OSError as exc:
        assert exc.errno == errno.EBADF
