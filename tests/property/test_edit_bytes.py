"""An edit touches the bytes that were meant and no other, in every encoding and with every line ending."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hanzo_mcp.core.encoding import detect, printable
from hanzo_mcp.core.tool import RESULT_META
from hanzo_mcp.errors import ToolError
from tests.support.local import LocalTools

TOKEN = "@@TOKEN@@"
BOUNDED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
ENCODINGS = (
    ("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"),
    ("utf-32-le", b"\xff\xfe\0\0"), ("utf-32-be", b"\0\0\xfe\xff"), ("cp1252", b""), ("latin-1", b""),
)  # fmt: skip
EOLS = ("\n", "\r\n", "\r")
NARROW = st.text(st.characters(min_codepoint=32, max_codepoint=126) | st.sampled_from("\té ü ß ÿ §\xa0"), max_size=20)
WIDE = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="@\ufeff") | st.just("\t"), max_size=20
)


@st.composite
def pieces(draw: st.DrawFn, wide: bool) -> str:
    """Lines, each with an ending of its own."""
    line = WIDE if wide else NARROW
    lines = draw(st.lists(st.tuples(line, st.sampled_from((*EOLS, ""))), max_size=6))
    return "".join(text.replace("@", "") + eol for text, eol in lines)


@st.composite
def files(draw: st.DrawFn) -> tuple[str, bytes, str, str, str]:
    """``(codec, mark, text before, text after, new)``; the file is the token between the texts."""
    codec, mark = draw(st.sampled_from(ENCODINGS))
    wide = codec.startswith("utf")
    new = draw(WIDE if wide else NARROW).replace("@", "")
    return codec, mark, draw(pieces(wide)), draw(pieces(wide)), new


def call(folder: str, **arguments: Any) -> dict[str, Any]:
    return LocalTools(Path(folder)).call("fs", path="file", **arguments).meta[RESULT_META]


@BOUNDED
@given(files())
def test_an_edit_leaves_every_other_byte(file: tuple[str, bytes, str, str, str]) -> None:
    codec, mark, before, after, new = file
    head, tail = mark + before.encode(codec), after.encode(codec)
    data = head + TOKEN.encode(codec) + tail
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(data)
        call(folder, op="edit", old=TOKEN, new=new)
        assert path.read_bytes() == head + new.encode(taken_for(data, codec)) + tail


def taken_for(data: bytes, codec: str) -> str:
    """The codec new text is written in: bytes of one codec can also be good UTF-8, as ASCII is."""
    found = detect(data)
    assert found is not None
    assert found.codec == codec or not codec.startswith("utf")
    return found.codec


@BOUNDED
@given(st.binary(max_size=200), st.binary(max_size=200), NARROW)
def test_an_edit_among_any_bytes(head: bytes, tail: bytes, new: str) -> None:
    """Whatever text the bytes are taken for: an edit that is accepted keeps the others, a refused one keeps all."""
    data = head + TOKEN.encode() + tail
    encoding = detect(data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(data)
        result = edited(folder, new)
        if result is None:
            assert path.read_bytes() == data
        else:
            assert encoding is not None
            assert path.read_bytes() == head + new.encode(encoding.codec) + tail


def edited(folder: str, new: str) -> dict[str, Any] | None:
    try:
        return call(folder, op="edit", old=TOKEN, new=new)
    except ToolError:
        return None


@BOUNDED
@given(st.sampled_from(EOLS), st.lists(WIDE, min_size=1, max_size=5), st.lists(WIDE, min_size=1, max_size=4))
def test_new_lines_get_the_ending_of_the_file(eol: str, around: list[str], lines: list[str]) -> None:
    head, tail = eol.join([*around, ""]).encode(), (eol + eol.join(around)).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(head + TOKEN.encode() + tail)
        call(folder, op="edit", old=TOKEN, new="\n".join(lines))
        assert path.read_bytes() == head + eol.join(lines).encode() + tail


@BOUNDED
@given(pieces(wide=True))
def test_what_is_written_is_read(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tools = LocalTools(Path(folder))

        async def run() -> str:
            await tools.acall("fs", op="write", path="file", content=text)
            return str((await tools.acall("fs", op="read", path="file")).content[0]["text"])

        assert asyncio.run(run()) == printable(text)
        assert Path(folder, "file").read_bytes() == text.encode()


@BOUNDED
@given(files())
def test_what_is_read_and_written_back_is_the_same_file(file: tuple[str, bytes, str, str, str]) -> None:
    codec, mark, before, after, _ = file
    data = mark + (before + "x" * 20 + after).encode(codec)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(data)
        tools = LocalTools(Path(folder))
        shown = tools.text("fs", op="read", path="file")
        tools.call("fs", op="write", path="file", content=shown)
        assert path.read_bytes() == data
