"""Where hanzo-mcp keeps things. Never the workspace.

The settings folder is ``~/.config/hanzo`` on every OS (HIP-0301 §4). Cache and state follow the platform; on Linux
the XDG rule is spelled out here because importing ``platformdirs`` would double the time to the first list.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping


def config_dir(environ: Mapping[str, str]) -> str:
    """``HANZO_CONFIG_HOME``, else ``$XDG_CONFIG_HOME/hanzo``, else ``~/.config/hanzo``."""
    chosen = environ.get("HANZO_CONFIG_HOME")
    if chosen and os.path.isabs(chosen):
        return chosen
    return os.path.join(_xdg(environ, "XDG_CONFIG_HOME", ".config"), "hanzo")


def cache_dir(environ: Mapping[str, str]) -> str:
    """Things that may be deleted at any time."""
    if sys.platform != "linux":
        from platformdirs import user_cache_dir

        return user_cache_dir("hanzo-mcp", appauthor=False)
    return os.path.join(_xdg(environ, "XDG_CACHE_HOME", ".cache"), "hanzo-mcp")


def state_dir(environ: Mapping[str, str]) -> str:
    """Audit log and the like."""
    if sys.platform != "linux":
        from platformdirs import user_state_dir

        return user_state_dir("hanzo-mcp", appauthor=False)
    return os.path.join(_xdg(environ, "XDG_STATE_HOME", ".local/state"), "hanzo-mcp")


def _xdg(environ: Mapping[str, str], name: str, below_home: str) -> str:
    value = environ.get(name)
    if value and os.path.isabs(value):
        return value
    return os.path.join(environ.get("HOME") or os.path.expanduser("~"), below_home)
