"""Replies of a batch leave together."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from hanzo_mcp.core.messages import result_line
from hanzo_mcp.server.batch import Batch


@given(st.lists(st.booleans(), min_size=1, max_size=20))
def test_one_array_when_the_last_is_there(answered: list[bool]) -> None:
    sent: list[bytes] = []
    batch = Batch(len(answered), sent.append)
    for number, answer in enumerate(answered):
        assert not sent, "nothing leaves before the last"
        batch.reply(result_line(number, '{"a":[1]}') if answer else None)
    wanted = [number for number, answer in enumerate(answered) if answer]
    if not wanted:
        assert not sent, "an empty array is never sent"
        return
    (line,) = sent
    assert line.count(b"\n") == 1
    assert [reply["id"] for reply in json.loads(line)] == wanted


def test_nothing_expected_sends_nothing() -> None:
    sent: list[bytes] = []
    Batch(0, sent.append)
    assert sent == []
