"""Where the door is. Asked of the real environment and the user's own settings only, never of a project."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from hanzo_mcp.errors import ConfigError

DEFAULT_BASE = "https://api.hanzo.ai"
PATH = "/v1/mcp"
OFF = "off"
_KEYS = ("HANZO_MCP_DOOR", "HANZO_API_BASE")


def door_address(environ: Mapping[str, str]) -> str | None:
    """``HANZO_MCP_DOOR``, else ``<HANZO_API_BASE or https://api.hanzo.ai>/v1/mcp``; ``None`` when off.

    Raises ``ConfigError`` when the value is no address a bearer may travel to.
    """
    named = environ.get("HANZO_MCP_DOOR", "").strip()
    if named.lower() == OFF:
        return None
    if named:
        return _checked(named, "HANZO_MCP_DOOR")
    base = environ.get("HANZO_API_BASE", "").strip().rstrip("/") or DEFAULT_BASE
    return _checked(base + PATH, "HANZO_API_BASE")


def _checked(url: str, key: str) -> str:
    wrong = f"{key}: {url[:100]!r} is not usable: "
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ConfigError(wrong + "it contains characters no URL has.")
    scheme, _, rest = url.partition("://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    if scheme not in ("http", "https") or not _host(authority) or "\\" in url:
        raise ConfigError(wrong + f'expected https://host/path, or "{OFF}".')
    if "@" in authority:
        raise ConfigError(f"{key}: credentials do not belong into the address. Use HANZO_API_KEY.")
    if scheme == "http" and _host(authority) not in ("localhost", "127.0.0.1", "[::1]"):
        raise ConfigError(wrong + "plain http is for loopback only, since the bearer would travel in clear.")
    return url


def _host(authority: str) -> str:
    """The host of ``host:port``, IPv6 in its brackets; empty when malformed. Importing ``urllib`` would cost 2 ms."""
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::\d{1,5})?", authority)
    return found.group(1).lower() if found else ""


def without_project_values(
    environ: Mapping[str, str], roots: tuple[str, ...], warn: Callable[[str], None]
) -> Mapping[str, str]:
    """``environ`` less door settings that a workspace's ``.env`` put there through the client.

    Some clients load ``.env`` of the opened folder into a server's environment; a repository must not choose
    where the bearer goes (CVE-2026-21852).
    """
    if not any(environ.get(key) for key in _KEYS):
        return environ
    kept = dict(environ)
    for root in roots:
        for key, value in _dotenv(os.path.join(root, ".env")).items():
            if key in _KEYS and kept.get(key) == value:
                where = os.path.join(root, ".env")
                warn(f"{key} is ignored: its value comes from {where}, and a project cannot choose the door.")
                del kept[key]
    return kept


def _dotenv(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(64 * 1024).splitlines()
    except OSError:
        return {}
    pairs = (line.strip().removeprefix("export ").partition("=") for line in lines)
    return {key.strip(): value.strip().strip("'\"") for key, mark, value in pairs if mark}
