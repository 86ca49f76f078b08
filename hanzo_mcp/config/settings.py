"""The user's own settings: ``settings.json`` in the config folder (HIP-0301 §4, user tier).

Only this file and the real environment can say what runs or loosens anything. The tiers of a project
(``.hanzo/settings.json``, ``.hanzo/settings.local.json``) are not read for that: a repository must not decide
where a bearer goes or which program runs.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
    """``rules`` in the order of the file. A file that cannot be used gives rules under which only reading runs."""

    rules: tuple[PermissionRule, ...] = ()
    hooks: tuple[HookSetting, ...] = ()
    fetch_allow_hosts: tuple[str, ...] = ()
    call_seconds: float = 600.0


def load_settings(environ: Mapping[str, str], warn: Callable[[str], None]) -> Settings:
    """The settings; a file that cannot be used is one warning and strict defaults, never a failed start."""
    path = os.path.join(config_dir(environ), FILE)
    try:
        _refuse_unsafe(path)
        with open(path, encoding="utf-8-sig") as file:
            return _parsed(json.loads(file.read(), object_pairs_hook=_unique), path, warn)
    except FileNotFoundError:
        return Settings()
    except OSError as exc:
        warn(f"{path}: cannot be read ({exc.strerror}); every call that writes, runs or leaves the machine is denied.")
    except (ValueError, RecursionError) as exc:
        warn(f"{path}: {exc}; every call that writes, runs or leaves the machine is denied until it is mended.")
    except ConfigError as exc:
        warn(f"{exc} Every call that writes, runs or leaves the machine is denied until it is mended.")
    return Settings(rules=_STRICT)


def _refuse_unsafe(path: str) -> None:
    """Settings of somebody else, or that anybody can write, decide nothing; a link to nowhere is no absence."""
    if os.path.islink(path) and not os.path.exists(path):
        raise ConfigError(f"{path}: a link that leads nowhere.")
    info = os.stat(path)
    if not stat.S_ISREG(info.st_mode):
        raise ConfigError(f"{path}: not a regular file.")
    if os.name == "posix" and (info.st_uid not in (os.getuid(), 0) or info.st_mode & stat.S_IWOTH):
        raise ConfigError(f"{path}: belongs to somebody else or can be written by anybody.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice in one object")
    return found


def _parsed(value: Any, path: str, warn: Callable[[str], None]) -> Settings:
    settings = as_object(value)
    if settings is None:
        raise ConfigError(f"{path}: expected an object.")
    for key in settings.keys() - _KNOWN:
        warn(f'{path}: "{key}" is no setting of this version and is ignored. Known: {", ".join(sorted(_KNOWN))}.')
    permissions = _object(settings, "permissions", path)
    fetch = _object(settings, "fetch", path)
    door = _object(settings, "door", path)
    return Settings(
        tuple(_rule(pattern, mode, path) for pattern, mode in permissions.items()),
        tuple(_hook(hook, path) for hook in _list(settings, "hooks", path)),
        tuple(str(host) for host in _list(fetch, "allow_hosts", path)),
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


def _list(settings: dict[str, Any], key: str, path: str) -> list[Any]:
    value = settings.get(key)
    if value is None:
        return []
    found = as_list(value)
    if found is None:
        raise ConfigError(f'{path}: "{key}" must be a list.')
    return found


_KNOWN = frozenset({"permissions", "hooks", "fetch", "door"})
_PATTERN = re.compile(r"[A-Za-z0-9_.*?\[\]!-]+")


def _checked_pattern(pattern: Any, path: str) -> str:
    """A glob that can match something. Raises ``ConfigError``: a rule that never matches would fail open."""
    if not isinstance(pattern, str) or not _PATTERN.fullmatch(pattern) or pattern.count("[") != pattern.count("]"):
        raise ConfigError(f"{path}: {str(pattern)[:60]!r} is no pattern for a tool, such as exec.run, fs.* or billing.")
    return pattern


def _rule(pattern: str, mode: Any, path: str) -> PermissionRule:
    try:
        return PermissionRule(_checked_pattern(pattern, path), PermissionMode(mode))
    except ValueError:
        raise ConfigError(f'{path}: permissions."{pattern}" must be "allow", "deny" or "prompt".') from None


def _hook(value: Any, path: str) -> HookSetting:
    hook = as_object(value) or {}
    event, command = hook.get("event"), hook.get("command")
    if event not in ("pre_tool_use", "post_tool_use") or not isinstance(command, str):
        raise ConfigError(f'{path}: each hook needs "event" (pre_tool_use or post_tool_use) and "command".')
    timeout = hook.get("timeout_ms", 5000)
    if not isinstance(timeout, int) or isinstance(timeout, bool) or timeout <= 0:
        raise ConfigError(f'{path}: "timeout_ms" of a hook must be a whole number of milliseconds.')
    return HookSetting(event, command, _checked_pattern(hook.get("tool_pattern", "*"), path), timeout)


_WHY = "the settings file cannot be read, so only reading is allowed"
_STRICT = (
    *(
        PermissionRule(pattern, PermissionMode.ALLOW)
        for pattern in ("fs.read", "fs.list", "fs.stat", "fs.search", "fs.find", "git.status", "git.diff", "git.log")
    ),
    PermissionRule("think.*", PermissionMode.ALLOW),
    PermissionRule("*", PermissionMode.DENY, _WHY),
)
