"""The conformance suite's client scenarios against the door client."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.interop.conformance import failures, suite
from tests.support.wire import SERVER_VARIABLE

pytestmark = pytest.mark.interop

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("scenario", ["initialize", "tools_call", "sse-retry"])
def test_scenario(tmp_path: Path, scenario: str) -> None:
    command = shlex.join([sys.executable, "-m", "tests.interop.door_session"])
    variables = {"PYTHONPATH": str(ROOT)}
    if SERVER_VARIABLE in os.environ:
        variables[SERVER_VARIABLE] = os.environ[SERVER_VARIABLE]
    found = suite(tmp_path, "client", "--command", command, "--scenario", scenario, variables=variables)
    said = "\n".join(path.read_text(errors="replace") for path in tmp_path.rglob("std*.txt"))
    assert found, said
    (checks,) = found.values()
    assert checks, said
    assert failures(checks) == [], said
