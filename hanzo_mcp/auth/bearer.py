"""The bearer for the door, asked for at call time (HIP-0300 §2.2): ``HANZO_API_KEY``, else ``hanzo auth token``.

The command's own store is never read and never refreshed: its refresh tokens are single-use, and a replay
revokes the whole family.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import shutil
import time
from collections.abc import Callable, Mapping
from typing import Any

from hanzo_mcp.core.shapes import as_object
from hanzo_mcp.errors import ToolError
from hanzo_mcp.sandbox.launcher import Launcher

COMMAND_SECONDS = 5.0
MARGIN = 60.0
"""Seconds before a token's ``exp`` at which it is asked for again."""
UNDATED = 300.0
"""Seconds a token without a readable ``exp`` is kept."""
FAILURE = 30.0
"""Seconds a failed command is not tried again."""


class Bearer:
    """``take`` gives the bearer or ``None``; ``on_secret`` hears of each one, for the redactor."""

    def __init__(
        self, api_key: str | None, environ: Mapping[str, str], launcher: Launcher, on_secret: Callable[[str], None]
    ) -> None:
        self._api_key = api_key or None
        self._path, self._launcher, self._on_secret = environ.get("PATH"), launcher, on_secret
        self._home = environ.get("HOME") or "/"
        self._token: str | None = None
        self._until = 0.0
        self._lock = asyncio.Lock()
        if self._api_key:
            on_secret(self._api_key)

    async def take(self) -> str | None:
        """The bearer to use now."""
        if self._api_key:
            return self._api_key
        if time.time() < self._until:
            return self._token
        async with self._lock:
            if time.time() >= self._until:
                self._token = await self._ask()
                self._until = time.time() + FAILURE if self._token is None else good_until(self._token)
        return self._token

    def drop(self, bearer: str | None) -> None:
        """The endpoint refused ``bearer``: ask anew next time, unless somebody already did."""
        if bearer is not None and bearer == self._token:
            self._until = 0.0

    async def _ask(self) -> str | None:
        command = shutil.which("hanzo", path=self._path)
        if command is None:
            return None
        try:
            done = await self._launcher.run([command, "auth", "token"], cwd=self._home, timeout=COMMAND_SECONDS)
        except ToolError:
            return None
        token = done.stdout.text().strip()
        if done.code != 0 or not token or not token.isascii() or not token.isprintable() or " " in token:
            return None
        self._on_secret(token)
        return token


def good_until(token: str, now: Callable[[], float] = time.time) -> float:
    """Unix seconds until which a token is used: a JWT's ``exp`` (read without verifying) less a margin."""
    expiry = _claims(token).get("exp")
    if isinstance(expiry, (int, float)) and not isinstance(expiry, bool):
        return float(expiry) - MARGIN
    return now() + UNDATED


def _claims(token: str) -> dict[str, Any]:
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        return as_object(json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))) or {}
    except (ValueError, binascii.Error):
        return {}
