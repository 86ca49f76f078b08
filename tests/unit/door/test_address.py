"""Where the door is (HIP-0300 §2.2)."""

from __future__ import annotations

import pytest

from hanzo_mcp.door.address import door_address
from hanzo_mcp.errors import ConfigError


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, "https://api.hanzo.ai/v1/mcp"),
        ({"HANZO_API_BASE": "https://api.lux.cloud/"}, "https://api.lux.cloud/v1/mcp"),
        ({"HANZO_MCP_DOOR": "http://127.0.0.1:9/v1/mcp", "HANZO_API_BASE": "https://x"}, "http://127.0.0.1:9/v1/mcp"),
        ({"HANZO_MCP_DOOR": " OFF "}, None),
    ],
)
def test_the_address(environ: dict[str, str], wanted: str | None) -> None:
    assert door_address(environ) == wanted


@pytest.mark.parametrize(
    "value", ["http://example.com/x", "file:///x", "https://a:b@x/", "x", "https://\u0430.com", "https:///x"]
)
def test_an_unusable_address_names_its_key(value: str) -> None:
    with pytest.raises(ConfigError, match="HANZO_MCP_DOOR"):
        door_address({"HANZO_MCP_DOOR": value})
