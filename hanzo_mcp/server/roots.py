"""The client's own roots as the workspace, when the place it started us in is too wide to open (MCP legacy roots).

Asked once, after ``initialized``, and only for a server without ``--workspace``: an answer never widens what the
person chose on the command line.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import unquote, urlsplit

from hanzo_mcp.config.workspace import Choice, too_wide
from hanzo_mcp.core.shapes import as_list, as_object
from hanzo_mcp.errors import ProtocolError
from hanzo_mcp.server.port import Outgoing
from hanzo_mcp.server.session import Session

SECONDS = 2.0
MOST = 32


def wanted(choice: Choice, session: Session) -> bool:
    """Is there a client that can name a better workspace than the stand-in?"""
    return choice.stand_in and session.ready and "roots" in session.capabilities


async def learn(choice: Choice, outgoing: Outgoing, home: str) -> Choice:
    """The client's roots, or ``choice`` when it names none that can be used."""
    try:
        answer = await outgoing.ask("roots/list", {}, SECONDS)
    except (ProtocolError, TimeoutError):
        return choice
    paths = [_path(root) for root in (as_list(answer.get("roots")) or [])[:MOST]]
    usable = tuple(path for path in paths if path and os.path.isdir(path) and not too_wide(path, home))
    return Choice(usable, "the client's roots", False) if usable else choice


def _path(root: Any) -> str | None:
    uri = (as_object(root) or {}).get("uri")
    if not isinstance(uri, str):
        return None
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = unquote(parts.path)
    return path if os.path.isabs(path) and "\0" not in path else None
