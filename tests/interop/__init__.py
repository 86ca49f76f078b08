"""Clients and suites written by others, run against our server."""

from __future__ import annotations

import pytest

# Its assertions are shared by test classes; without this they would fail without saying what they saw.
pytest.register_assert_rewrite("tests.interop.contract")
