"""The door's list on disk, so that the next start answers at once. No credential is in it.

One file per address, written atomically with mode 0600; a corrupt or foreign file is ignored.
"""

from __future__ import annotations

import json
import os
import zlib
from typing import Any, NamedTuple

from hanzo_mcp import __version__
from hanzo_mcp.core.merge import Listing
from hanzo_mcp.core.shapes import as_list, as_object

FORMAT = f"door-list/1/{__version__}"


class CachedList(NamedTuple):
    """A cleaned list, when it goes stale (Unix seconds), and the era the endpoint spoke."""

    listing: Listing
    expires: float
    version: str


def path_for(directory: str, address: str) -> str:
    """The cache file of an address."""
    return os.path.join(directory, f"door-{zlib.crc32(address.encode()):08x}.json")


def load(directory: str, address: str) -> CachedList | None:
    """The list kept for ``address``, however old; ``None`` when there is none that can be trusted."""
    try:
        with open(path_for(directory, address), "rb") as file:
            if hasattr(os, "getuid") and os.fstat(file.fileno()).st_uid != os.getuid():
                return None
            kept = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    return _checked(kept, address)


def _checked(value: Any, address: str) -> CachedList | None:
    kept = as_object(value) or {}
    if kept.get("format") != FORMAT or kept.get("address") != address:
        return None
    tools, meta = as_list(kept.get("tools")), as_object(kept.get("meta"))
    expires, version = kept.get("expires"), kept.get("version")
    if tools is None or meta is None or not isinstance(expires, (int, float)) or not isinstance(version, str):
        return None
    if not all(isinstance((as_object(tool) or {}).get("name"), str) for tool in tools):
        return None
    return CachedList(Listing(tools, meta), expires, version)


def save(directory: str, address: str, cached: CachedList) -> None:
    """Keep a list. Raises ``OSError``; the caller decides whether that matters."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    kept = {
        "format": FORMAT,
        "address": address,
        "tools": cached.listing.tools,
        "meta": cached.listing.meta,
        "expires": cached.expires,
        "version": cached.version,
    }
    path = path_for(directory, address)
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(kept, file)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
