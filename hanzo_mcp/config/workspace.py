"""Which folders the tools may touch."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hanzo_mcp.errors import ConfigError


class Choice(NamedTuple):
    """The roots (absolute), where they came from, and whether they only stand in for a folder too wide to open."""

    roots: tuple[str, ...]
    because: str
    stand_in: bool

    def sentence(self) -> str:
        """For instructions and stderr."""
        return f"Workspace: {', '.join(self.roots)} ({self.because})."


def choose(asked: Sequence[str], cwd: str, environ: Mapping[str, str]) -> Choice:
    """``--workspace`` folders, else the client's current directory, unless that is ``/`` or HOME.

    Desktop clients start servers in ``/`` or HOME; opening either would hand over every key and document in it, so
    ``~/hanzo`` stands in. Raises ``ConfigError`` for an asked folder that is none.
    """
    home = environ.get("HOME") or os.path.expanduser("~")
    if asked:
        return Choice(tuple(_existing(path) for path in asked), "from --workspace", False)
    if too_wide(cwd, home):
        because = f"the client started the server in {cwd}, which is too wide to open; use --workspace DIR"
        return Choice((os.path.join(home, "hanzo"),), because, True)
    return Choice((cwd,), "the current directory", False)


def too_wide(path: str, home: str) -> bool:
    """``/``, HOME and what lies above it hold too much to be a workspace."""
    real, inner = os.path.realpath(path), os.path.realpath(home)
    return inner == real or inner.startswith(real.rstrip(os.path.sep) + os.path.sep)


def _existing(path: str) -> str:
    full = os.path.abspath(os.path.expanduser(path))
    if not os.path.isdir(full):
        raise ConfigError(f"--workspace {path}: no such directory. Name an existing folder.")
    return full
