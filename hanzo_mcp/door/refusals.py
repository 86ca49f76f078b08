"""What an HTTP refusal of the endpoint means to the person who must act."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from hanzo_mcp.core.text import one_line
from hanzo_mcp.door.exchange import HttpRefusal
from hanzo_mcp.errors import SignInNeeded, ToolError

_METADATA = re.compile(r'resource_metadata\s*=\s*"([^"]{1,500})"', re.IGNORECASE)
_URL = re.compile(r"[A-Za-z0-9:/._~?&=%+-]+\Z")
WELL_KNOWN = "/.well-known/oauth-protected-resource"


def sign_in(tool: str, origin: str, exc: HttpRefusal) -> SignInNeeded:
    """401 (RFC 9728 §5.1): how to sign in. The URL is shown as text and never opened."""
    metadata = resource_metadata(exc.headers.get("www-authenticate", ""), origin)
    return SignInNeeded(
        f"{tool}: the Hanzo cloud wants you to sign in. Run `hanzo auth login` in a terminal (or start the server with "
        f"HANZO_API_KEY set), then call again. Resource metadata: {metadata}",
        resource_metadata=metadata,
    )


def resource_metadata(challenge: str, origin: str) -> str:
    """The challenge's metadata URL when it is a plain URL of the endpoint's own origin, else the standard place."""
    found = _METADATA.search(challenge)
    standard = origin + WELL_KNOWN
    if found is None or not _URL.match(found.group(1)):
        return standard
    try:
        parts = urlsplit(found.group(1))
    except ValueError:
        return standard
    return found.group(1) if f"{parts.scheme}://{parts.netloc}" == origin else standard


def describe(exc: ToolError | HttpRefusal) -> str:
    """One line: status, what was said, when to come back."""
    if isinstance(exc, ToolError):
        return str(exc)
    said = f": {exc.excerpt}" if exc.excerpt else ""
    after = exc.headers.get("retry-after", "")
    wait = f" (retry after {one_line(after, 40)})" if after else ""
    location = exc.headers.get("location", "")
    if 300 <= exc.status < 400 and location:
        return f"HTTP {exc.status} to {one_line(location, 120)}, which is not followed"
    return f"HTTP {exc.status}{wait}{said}"
