"""The user's own settings: ``settings.json`` in the config folder (HIP-0301 §4, user tier).

Only this file and the real environment can say what runs or loosens anything. The tiers of a project
(``.hanzo/settings.json``, ``.hanzo/settings.local.json``) are not read for that: a repository must not decide
where a bearer goes or which program runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hanzo_mcp.config.paths import config_dir
from hanzo_mcp.core.permissions import PermissionMode, PermissionRule
from hanzo_mcp.core.shapes import as_list, as_object
from hanzo_mcp.errors import ConfigError

FILE = "settings.json"


@dataclass(frozen=True, slots=True)
class HookSetting:
    """One entry of ``hooks``."""

    event: str
    command: str
    tool_pattern: str
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Settings:
    """``rules`` in the order of the file; ``strict`` when the file could not be read: then nothing but reads runs."""

    rules: tuple[PermissionRule, ...] = ()
    hooks: tuple[HookSetting, ...] = ()
    fetch_allow_hosts: tuple[str, ...] = ()
    call_seconds: float = 600.0
    strict: bool = field(default=False)


def load_settings(environ: Mapping[str, str], warn: Callable[[str], None]) -> Settings:
    """The settings; a file that cannot be used is one warning and strict defaults, never a failed start."""
    path = os.path.join(config_dir(environ), FILE)
    try:
        with open(path, encoding="utf-8-sig") as file:
            return _parsed(json.loads(file.read(), object_pairs_hook=_unique), path)
    except FileNotFoundError:
        return Settings()
    except OSError as exc:
        warn(f"{path}: cannot be read ({exc.strerror}); every call that writes, runs or leaves the machine is denied.")
    except ValueError as exc:
        warn(f"{path}: {exc}; every call that writes, runs or leaves the machine is denied until it is mended.")
    except ConfigError as exc:
        warn(f"{exc} Every call that writes, runs or leaves the machine is denied until it is mended.")
    return Settings(rules=_STRICT, strict=True)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice in one object")
    return found


def _parsed(value: Any, path: str) -> Settings:
    settings = as_object(value)
    if settings is None:
        raise ConfigError(f"{path}: expected an object.")
    permissions = _object(settings, "permissions", path)
    fetch = _object(settings, "fetch", path)
    door = _object(settings, "door", path)
    return Settings(
        tuple(_rule(pattern, mode, path) for pattern, mode in permissions.items()),
        tuple(_hook(hook, path) for hook in as_list(settings.get("hooks")) or []),
        tuple(str(host) for host in as_list(fetch.get("allow_hosts")) or []),
        float(door.get("call_seconds") or 600.0),
    )


def _object(settings: dict[str, Any], key: str, path: str) -> dict[str, Any]:
    value = settings.get(key)
    if value is None:
        return {}
    found = as_object(value)
    if found is None:
        raise ConfigError(f'{path}: "{key}" must be an object.')
    return found


def _rule(pattern: str, mode: Any, path: str) -> PermissionRule:
    try:
        return PermissionRule(pattern, PermissionMode(mode))
    except ValueError:
        raise ConfigError(f'{path}: permissions."{pattern}" must be "allow", "deny" or "prompt".') from None


def _hook(value: Any, path: str) -> HookSetting:
    hook = as_object(value) or {}
    event, command = hook.get("event"), hook.get("command")
    if event not in ("pre_tool_use", "post_tool_use") or not isinstance(command, str):
        raise ConfigError(f'{path}: each hook needs "event" (pre_tool_use or post_tool_use) and "command".')
    return HookSetting(event, command, str(hook.get("tool_pattern", "*")), int(hook.get("timeout_ms", 5000)))


_WHY = "the settings file cannot be read, so only reading is allowed"
_STRICT = (
    *(
        PermissionRule(pattern, PermissionMode.ALLOW)
        for pattern in ("fs.read", "fs.list", "fs.stat", "fs.search", "fs.find", "git.status", "git.diff", "git.log")
    ),
    PermissionRule("think.*", PermissionMode.ALLOW),
    PermissionRule("*", PermissionMode.DENY, _WHY),
)
