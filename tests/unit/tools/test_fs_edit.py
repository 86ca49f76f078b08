"""fs.edit: every way an edit can go wrong, byte for byte."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from hanzo_mcp.core.tool import Result
from hanzo_mcp.errors import Conflict, InvalidInput, NotFound, ToolError
from tests.support.local import LocalTools
from tests.unit.tools.test_fs import PNG, facts, sha, text


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def tools(ws: Path) -> LocalTools:
    return LocalTools(ws)


# edit: the rows of the comparison of peers

TABS = b"def f():\n\tif x:\n\t\treturn 1\n\treturn 2\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        pytest.param(b"one\r\ntwo\r\nthree\r\n", "two", "TWO", b"one\r\nTWO\r\nthree\r\n", id="crlf"),
        pytest.param(b"one\r\ntwo\r\nx\r\n", "one\ntwo", "ONE\nTWO\n2", b"ONE\r\nTWO\r\n2\r\nx\r\n", id="crlf-lf-old"),
        pytest.param(b"one\r\ntwo\nthree\r\nfour\n", "four", "FOUR", b"one\r\ntwo\nthree\r\nFOUR\n", id="mixed"),
        pytest.param(b"one\r\ntwo\nx\r\n", "one\ntwo\nx", "1\n2\n3", b"1\r\n2\n3\r\n", id="mixed-span"),
        pytest.param(b"one\rtwo\rthree\r", "one\ntwo", "ONE\nTWO", b"ONE\rTWO\rthree\r", id="cr"),
        pytest.param(b"\xef\xbb\xbfone\ntwo\n", "one", "ONE", b"\xef\xbb\xbfONE\ntwo\n", id="bom"),
        pytest.param(
            "\ufeffone\r\ntwö\r\n".encode("utf-16-le"), "twö", "zwölf→\nx",
            "\ufeffone\r\nzwölf→\r\nx\r\n".encode("utf-16-le"), id="utf-16-le",
        ),
        pytest.param(b"caf\xe9\ntwo\n", "two", "zw\xf6lf", b"caf\xe9\nzw\xf6lf\n", id="latin-1"),
        pytest.param("ä ö ".encode() + b"\xff\ntwo\n", "two", "2", "ä ö ".encode() + b"\xff\n2\n", id="bad-byte"),
        pytest.param(b"one\ntwo", "two", "TWO", b"one\nTWO", id="no-final-newline"),
        pytest.param(b"one\ntwo", "two\n", "TWO\n", b"one\nTWO", id="no-final-newline-but-in-old"),
        pytest.param(
            b"one\r\ntwo\nthree\r\nfour\n", "one\ntwo\nthree\nfour", "one\nthree\nfour", b"one\r\nthree\r\nfour\n",
            id="mixed-line-removed",
        ),
        pytest.param(b"x\r\ny\r\n", "\ny", "\nz", b"x\r\nz\r\n", id="crlf-not-halved"),
        pytest.param(b"one\n", "one", "$$ $& $1 $\\` \\1 \\g<0>", b"$$ $& $1 $\\` \\1 \\g<0>\n", id="literal-new"),
        pytest.param(b"a.c abc\n", "a.c", "x", b"x abc\n", id="literal-old"),
        pytest.param(b"one\ntwo\n", "two\n", "", b"one\n", id="delete"),
        pytest.param(
            TABS, "    if x:\n        return 1\n", "    if x:\n        y()\n        return 3\n",
            b"def f():\n\tif x:\n\t\ty()\n\t\treturn 3\n\treturn 2\n", id="tabs-for-spaces",
        ),
        pytest.param(
            b"class A:\n    def f(self):\n        return 1\n", "def f(self):\n    return 1",
            "def f(self):\n    return 2", b"class A:\n    def f(self):\n        return 2\n", id="moved-indent",
        ),
    ],
)  # fmt: skip
def test_edit(ws: Path, tools: LocalTools, before: bytes, old: str, new: str, after: bytes) -> None:
    (ws / "a.txt").write_bytes(before)
    result = tools.call("fs", op="edit", path="a.txt", old=old, new=new)
    assert (ws / "a.txt").read_bytes() == after
    assert facts(result)["sha256"] == sha(after)
    assert facts(result)["replacements"] == 1


@pytest.mark.parametrize(
    ("before", "old", "new", "error", "words"),
    [
        pytest.param(b"x\nx\n", "x\n", "y\n", Conflict, "occurs 2 times (lines 1, 2)", id="two-matches"),
        pytest.param(b"x\nx\nx\n", "x\nx", "y", Conflict, "occurs 2 times (lines 1, 2)", id="overlapping-lines"),
        pytest.param(b"aaa\n", "aa", "b", Conflict, "occurs 2 times (lines 1, 1)", id="overlapping"),
        pytest.param(b"one two\n", "one tow", "x", Conflict, "Closest are lines 1-1:\n     1\tone two", id="near-miss"),
        pytest.param(
            b"def f():\n    if x:\n        return 1\n", "def f():\n    if x:\n    return 1", "def f():\n    return 2",
            Conflict, "only white space differs", id="wrong-relative-indent",
        ),
        pytest.param(
            b"\ta\n\tb\n", "    a\n    b", "    a\n      b", Conflict, "tabs against spaces", id="tabs-unclear",
        ),
        pytest.param(b"one\n", "", "x", InvalidInput, "old is empty", id="empty-old"),
        pytest.param(b"one\n", "one", "one", InvalidInput, "nothing would change", id="same"),
        pytest.param(PNG, "PNG", "x", InvalidInput, "is not text", id="binary"),
        pytest.param(b"caf\xe9\ntwo\n", "two", "\u2192", InvalidInput, "which has no '\u2192'", id="not-in-encoding"),
        pytest.param(b"one\n", "one", "\ud800", InvalidInput, "lone surrogate", id="lone-surrogate"),
    ],
)  # fmt: skip
def test_edit_refused(
    ws: Path, tools: LocalTools, before: bytes, old: str, new: str, error: type[ToolError], words: str
) -> None:
    (ws / "a.txt").write_bytes(before)
    with pytest.raises(error) as refused:
        tools.call("fs", op="edit", path="a.txt", old=old, new=new)
    assert words in str(refused.value)
    assert str(refused.value).startswith("a.txt: ")
    assert (ws / "a.txt").read_bytes() == before


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o600])
def test_edit_keeps_the_mode(ws: Path, tools: LocalTools, mode: int) -> None:
    (ws / "a.sh").write_text("one\n")
    (ws / "a.sh").chmod(mode)
    tools.call("fs", op="edit", path="a.sh", old="one", new="two")
    assert (ws / "a.sh").stat().st_mode & 0o7777 == mode
    assert os.listdir(ws) == ["a.sh"]


def test_edit_through_a_link(ws: Path, tools: LocalTools) -> None:
    (ws / "real.txt").write_text("one\n")
    (ws / "link.txt").symlink_to("real.txt")
    tools.call("fs", op="edit", path="link.txt", old="one", new="two")
    assert (ws / "link.txt").is_symlink()
    assert (ws / "real.txt").read_text() == "two\n"


def test_edit_says_what_becomes_of_hard_links(ws: Path, tools: LocalTools) -> None:
    (ws / "a.txt").write_text("one\n")
    (ws / "b.txt").hardlink_to(ws / "a.txt")
    result = tools.call("fs", op="edit", path="a.txt", old="one", new="two")
    assert facts(result)["hard_links"] == 2
    assert "1 of 2 hard links, the others keep the old content" in text(result)
    assert ((ws / "a.txt").read_text(), (ws / "b.txt").read_text()) == ("two\n", "one\n")


def test_32_concurrent_edits_all_land(ws: Path, tools: LocalTools) -> None:
    (ws / "a.txt").write_text("".join(f"<{n}>\n" for n in range(32)))
    (ws / "link.txt").symlink_to("a.txt")

    async def run() -> list[Result]:
        calls = (
            tools.acall("fs", op="edit", path="link.txt" if n % 2 else "a.txt", old=f"<{n}>", new=f"done {n}")
            for n in range(32)
        )
        return await asyncio.gather(*calls)

    assert [facts(result)["replacements"] for result in asyncio.run(run())] == [1] * 32
    assert (ws / "a.txt").read_text() == "".join(f"done {n}\n" for n in range(32))


def test_32_concurrent_edits_of_a_large_file_all_land(ws: Path, tools: LocalTools) -> None:
    (ws / "a.txt").write_text("".join(f"<{n}>\n{'x' * 20_000}\n" for n in range(32)))

    async def run() -> None:
        await asyncio.gather(
            *(tools.acall("fs", op="edit", path="a.txt", old=f"<{n}>", new=f"done {n}") for n in range(32))
        )

    asyncio.run(run())
    assert (ws / "a.txt").read_text().split("\n")[:-1:2] == [f"done {n}" for n in range(32)]


@pytest.mark.parametrize("known", [{"op": "read"}, {"op": "write", "content": "one\ntwo\n"}])
def test_edit_refuses_what_changed_since_it_was_seen(ws: Path, tools: LocalTools, known: dict[str, Any]) -> None:
    (ws / "a.txt").write_text("one\ntwo\n")
    tools.call("fs", path="a.txt", **known)
    (ws / "a.txt").write_text("one\ntwo\nthree, theirs\n")
    with pytest.raises(Conflict) as refused:
        tools.call("fs", op="edit", path="a.txt", old="two", new="2")
    assert "a.txt: has changed since it was last read here. Nothing was changed." in str(refused.value)
    assert "\n+three, theirs\n" in str(refused.value)
    assert (ws / "a.txt").read_text() == "one\ntwo\nthree, theirs\n"
    tools.call("fs", op="read", path="a.txt", limit=1)
    tools.call("fs", op="edit", path="a.txt", old="two", new="2")
    tools.call("fs", op="edit", path="a.txt", old="one", new="1")
    assert (ws / "a.txt").read_text() == "1\n2\nthree, theirs\n"


def test_edit_of_a_file_that_is_gone(ws: Path, tools: LocalTools) -> None:
    with pytest.raises(NotFound, match=r"a\.txt: no such file\. op write makes one"):
        tools.call("fs", op="edit", path="a.txt", old="x", new="y")
    tools.call("fs", op="write", path="a.txt", content="x")
    (ws / "a.txt").unlink()
    with pytest.raises(Conflict, match="no longer exists"):
        tools.call("fs", op="edit", path="a.txt", old="x", new="y")
    assert os.listdir(ws) == []


def test_edit_dry_run(ws: Path, tools: LocalTools) -> None:
    (ws / "a.txt").write_text("one\ntwo\nthree\n")
    before = (ws / "a.txt").stat()
    result = tools.call("fs", op="edit", path="a.txt", old="two", new="2", dry_run=True)
    assert text(result).startswith(
        "--- a.txt\n+++ a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n[a.txt: 1 place would be"
    )
    assert facts(result)["dry_run"] is True
    assert facts(result)["sha256"] == sha(b"one\n2\nthree\n")
    after = (ws / "a.txt").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert (ws / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_several_edits_are_all_or_none(ws: Path, tools: LocalTools) -> None:
    (ws / "a.txt").write_text("one\ntwo\ntwo\n")
    edits = [{"old": "one", "new": "1"}, {"old": "two", "new": "2", "all": True}, {"old": "1\n2", "new": "3"}]
    with pytest.raises(Conflict, match="edit 2 of 2: the old text was not found"):
        tools.call("fs", op="edit", path="a.txt", edits=[edits[0], {"old": "four", "new": "4"}])
    assert (ws / "a.txt").read_text() == "one\ntwo\ntwo\n"
    assert facts(tools.call("fs", op="edit", path="a.txt", edits=edits))["replacements"] == 4
    assert (ws / "a.txt").read_text() == "3\n2\n"
    unclear: list[dict[str, Any]] = [{}, {"edits": []}, {"old": "x"}, {"edits": edits, "old": "x", "new": "y"}]
    for wrong in unclear:
        with pytest.raises(InvalidInput):
            tools.call("fs", op="edit", path="a.txt", **wrong)
    with pytest.raises(InvalidInput, match=r"edits\.0"):
        tools.call("fs", op="edit", path="a.txt", edits=[{"old": "3", "replace": "4"}])
    assert (ws / "a.txt").read_text() == "3\n2\n"
