"""Who answers when a rule says ``prompt`` (HIP-0301 §2, architecture §3).

No rule: the MCP host's own approval is the prompt. A rule: the user is asked through the client, and an answer that
does not come is a denial that says what to put into the settings.
"""

from __future__ import annotations

from typing import Any, Protocol

from hanzo_mcp.core.messages import encode
from hanzo_mcp.core.permissions import Allow, Deny, PermissionDecision
from hanzo_mcp.core.shapes import as_object
from hanzo_mcp.core.text import clean
from hanzo_mcp.core.tool import ClientPort
from hanzo_mcp.errors import ProtocolError


class PermissionPrompter(Protocol):
    """HIP-0301 §2."""

    async def request_permission(self, tool_name: str, input: dict[str, Any]) -> PermissionDecision:
        """Ask; never raises."""
        ...


class ElicitationPrompter:
    """Asks the client's user by ``elicitation/create`` (legacy era)."""

    def __init__(self, client: ClientPort) -> None:
        self._client = client

    async def request_permission(self, tool_name: str, input: dict[str, Any]) -> PermissionDecision:
        if self._client.modern or not self._client.can_elicit():
            return Deny(how_to_allow(tool_name))
        shown = _shown(input)
        if len(shown) > SHOWN:
            return Deny(f"{tool_name}: {len(shown)} characters of arguments are too many to show for approval.")
        try:
            answer = await self._client.elicit(_question(tool_name, shown))
        except (ProtocolError, TimeoutError):
            return Deny(f"nobody answered whether {tool_name} may run. {how_to_allow(tool_name)}")
        content = as_object(answer.get("content")) or {}
        if answer.get("action") == "accept" and content.get("allow") is True:
            return Allow()
        return Deny(f"the user did not allow {tool_name}")


def how_to_allow(tool_name: str) -> str:
    """The line for the settings."""
    return (
        f'a rule asks before {tool_name} and this client cannot be asked. To allow it, put "{tool_name}": "allow" '
        'before that rule under "permissions" in ~/.config/hanzo/settings.json.'
    )


SHOWN = 4000
"""Characters of arguments a person is asked about; what cannot be shown whole cannot be approved."""


def _shown(arguments: dict[str, Any]) -> str:
    return clean(encode({key: value for key, value in arguments.items() if key != "op"}))


def _question(tool_name: str, shown: str) -> dict[str, Any]:
    return {
        "message": f"Allow {tool_name} with {shown}?",
        "requestedSchema": {
            "type": "object",
            "properties": {"allow": {"type": "boolean", "title": f"Allow {tool_name} this once"}},
            "required": ["allow"],
        },
    }
