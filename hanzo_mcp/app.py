"""The composition root: environment and settings -> sources, policy, hooks, sandbox -> pipeline.

Nothing below this module reads the environment. Building is cheap; heavy packages come with the first call that
needs them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Protocol

from hanzo_mcp.auth.bearer import Bearer
from hanzo_mcp.config.paths import cache_dir, config_dir, state_dir
from hanzo_mcp.config.settings import Settings, load_settings
from hanzo_mcp.config.workspace import Choice
from hanzo_mcp.core.permissions import PermissionPolicy
from hanzo_mcp.core.text import Redactor
from hanzo_mcp.core.tool import ToolSource
from hanzo_mcp.door.source import Audience, DoorSource, Shelf
from hanzo_mcp.hooks.runner import HookConfig, HookRunner
from hanzo_mcp.runtime.audit import Audit
from hanzo_mcp.runtime.local import LocalSource, Ports
from hanzo_mcp.runtime.pipeline import Gates, Pipeline
from hanzo_mcp.runtime.redact import redaction
from hanzo_mcp.sandbox.launcher import Launcher
from hanzo_mcp.sandbox.net import Http
from hanzo_mcp.sandbox.paths import Workspace


class Listed(Shelf, Protocol):
    """The served list: the door's shelf, and the names that are local."""

    @property
    def local_names(self) -> list[str]: ...


class App:
    """Everything a call passes through."""

    def __init__(
        self, pipeline: Pipeline, door: DoorSource | None, launcher: Launcher, audit: Audit, redactor: Redactor
    ) -> None:
        self.pipeline, self.door, self.redact = pipeline, door, redactor.redact
        self._launcher, self._audit = launcher, audit

    def close(self) -> None:
        """End every child and close the log. Must not block."""
        self._launcher.kill_all()
        self._audit.close()


def build(
    choice: Choice,
    environ: Mapping[str, str],
    door_address: str | None,
    listed: Listed,
    audience: Audience,
    session_id: str,
) -> App:
    """Put the program together for one connection."""
    settings = load_settings(environ, lambda text: audience.notice("warning", text))
    redactor = Redactor()
    launcher = Launcher(environ)
    bearer = Bearer(environ.get("HANZO_API_KEY"), environ, launcher, redactor.add)
    door = (
        DoorSource(door_address, bearer, listed, audience, cache_dir(environ), settings.call_seconds)
        if door_address
        else None
    )
    ports = _Once(choice, environ, launcher, settings)
    local = LocalSource(listed.local_names, ports)
    audit = Audit(state_dir(environ), lambda text: audience.notice("warning", text), redactor.redact)
    hooks = [HookConfig(hook.event, hook.command, hook.tool_pattern, hook.timeout_ms) for hook in settings.hooks]
    runner = HookRunner(hooks, launcher, os.path.sep, session_id, lambda text: audience.notice("warning", text))
    gates = Gates(PermissionPolicy(settings.rules), runner, audit)
    sources: list[ToolSource] = [local, *([door] if door else [])]
    return App(Pipeline(sources, listed.local_names, gates, redaction(redactor)), door, launcher, audit, redactor)


class _Once:
    """The ports, opened with the first local call: a missing workspace folder is made then, not at start."""

    def __init__(self, choice: Choice, environ: Mapping[str, str], launcher: Launcher, settings: Settings) -> None:
        self._choice, self._environ, self._launcher, self._settings = choice, environ, launcher, settings
        self._ports: Ports | None = None

    def __call__(self) -> Ports:
        if self._ports is None:
            for root in self._choice.roots:
                os.makedirs(root, exist_ok=True)
            secret = [config_dir(self._environ), cache_dir(self._environ), state_dir(self._environ)]
            files = Workspace(self._choice.roots, secret)
            self._ports = Ports(files, self._launcher, Http(self._settings.fetch_allow_hosts))
        return self._ports
