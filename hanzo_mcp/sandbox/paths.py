"""Which paths a tool may touch, and the one way to touch them (HIP-0301 §10, sandbox design §4.2).

``Sandbox`` is the HIP's question ("is this path allowed?"); ``Workspace`` is the capability tools are handed:
every open, listing and write goes through it and starts from a root's descriptor.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import weakref
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from hanzo_mcp.errors import Denied, InvalidInput, NotFound, TooLarge, from_oserror
from hanzo_mcp.sandbox import beneath

MAX_PATH = 4096
MAX_DEPTH = 200


class IsolationMode(Enum):
    """HIP-0301 §10."""

    OFF = "off"
    WORKSPACE_ONLY = "workspace"
    ALLOW_LIST = "allowlist"


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """``allowed_paths`` are absolute directories that ``allowlist`` opens beside nothing else."""

    mode: IsolationMode = IsolationMode.WORKSPACE_ONLY
    allowed_paths: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Root:
    """An allowed directory: its real path and an open descriptor, closed with the last user of the root."""

    path: str
    fd: int

    @classmethod
    def opened(cls, path: str) -> Root:
        """Raises ``OSError``."""
        root = cls(path, beneath.open_root(path))
        weakref.finalize(root, os.close, root.fd).atexit = False
        return root


@dataclass(frozen=True, slots=True)
class Place:
    """A path that is lexically inside ``root``; nothing has been opened yet. ``shown`` is for people."""

    root: Root
    parts: tuple[str, ...]
    shown: str

    @property
    def path(self) -> str:
        """The absolute path, links unresolved."""
        return os.path.join(self.root.path, *self.parts)


class Entry(NamedTuple):
    """A name in a directory. ``kind``: ``file``, ``dir``, ``link`` or ``other``; ``size`` in bytes, ``mtime`` in s."""

    name: str
    kind: str
    size: int = 0
    mtime: float = 0.0
    target: str = ""


class Workspace:
    """The files a tool may touch. ``secret`` directories are refused in every mode."""

    def __init__(self, roots: Sequence[str], secret: Sequence[str] = ()) -> None:
        self.roots = tuple(Root.opened(os.path.realpath(path)) for path in roots)
        self._secret = tuple(os.path.realpath(path) for path in secret)
        self._search = sorted(self.roots, key=lambda root: -len(root.path))

    def place(self, text: str) -> Place:
        """Where ``text`` (relative to the first root, absolute, ``~``, ``file://``) points.

        Raises ``InvalidInput`` for what is no path and ``Denied`` for what is outside every root.
        """
        path = os.path.normpath(os.path.join(self.roots[0].path, _plain(text)))
        for root in self._search:
            parts = beneath.below(root.path, path)
            if parts is not None:
                return Place(root, parts, os.path.relpath(path, self.roots[0].path) if root is self.roots[0] else path)
        real = self._through_links(path)
        if real is not None:
            return real
        raise self.outside(text)

    def _through_links(self, path: str) -> Place | None:
        """A root given by another spelling (``/tmp`` on macOS): compare real parents."""
        head = os.path.realpath(os.path.dirname(path))
        for root in self._search:
            parts = beneath.below(root.path, os.path.join(head, os.path.basename(path)))
            if parts is not None:
                return Place(root, parts, path)
        return None

    def outside(self, text: str) -> Denied:
        """The refusal for a path outside."""
        roots = ", ".join(root.path for root in self.roots)
        return Denied(
            f"{text}: outside the workspace ({roots}). Start the server with --workspace DIR to open another folder.",
            by="sandbox",
        )

    @contextmanager
    def parent(self, place: Place, *, write: bool, follow: bool = True) -> Generator[beneath.Parent]:
        """The open directory holding ``place``; protected and secret names are refused here, after resolving.

        Raises ``Denied``, ``NotFound`` and the other errors of the errno table, for its own work and for an
        ``OSError`` of the body.
        """
        try:
            with beneath.parent_of(place.root.fd, place.root.path, place.parts, follow) as parent:
                self._guard(place, parent.parts, write)
                yield parent
        except beneath.Escapes as exc:
            raise Denied(
                f"{place.shown}: a symbolic link leads outside the workspace (to {exc.target}).", by="sandbox"
            ) from None
        except OSError as exc:
            raise from_oserror(exc, place.shown) from exc

    def _guard(self, place: Place, parts: tuple[str, ...], write: bool) -> None:
        path = os.path.join(place.root.path, *parts)
        for secret in self._secret:
            if beneath.below(secret, path) is not None:
                raise Denied(f"{place.shown}: holds hanzo-mcp's own secrets and settings.", by="sandbox")
        if write and protected(parts):
            raise Denied(
                f"{place.shown}: protected. Files under .hanzo and the parts of .git that run code are changed by "
                "you, never through a tool.",
                by="sandbox",
            )

    def open(self, place: Place, flags: int = os.O_RDONLY) -> int:
        """A descriptor of a regular file or directory, never of a device, FIFO or socket. The caller closes it."""
        with self.parent(place, write=False) as parent:
            fd = os.open(
                parent.name,
                flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY,
                dir_fd=parent.fd,
            )
            kind = stat.S_IFMT(os.fstat(fd).st_mode)
            if kind in (stat.S_IFREG, stat.S_IFDIR):
                return fd
            os.close(fd)
            raise InvalidInput(f"{place.shown}: not a regular file (a device, FIFO or socket).")

    def stat(self, place: Place, *, follow: bool = True) -> os.stat_result:
        """``os.stat`` of the object, beneath its root."""
        with self.parent(place, write=False, follow=follow) as parent:
            return os.stat(parent.name, dir_fd=parent.fd, follow_symlinks=False)

    def read(self, place: Place, limit: int) -> bytes:
        """The whole of a regular file of at most ``limit`` bytes. Raises ``TooLarge``."""
        fd = self.open(place)
        try:
            size = _regular_size(fd, place)
        except BaseException:
            os.close(fd)
            raise
        with os.fdopen(fd, "rb") as file:
            if size > limit:
                raise TooLarge(f"{place.shown}: {size} bytes, more than the {limit} read at once.")
            data = file.read(limit + 1)
        if len(data) > limit:
            raise TooLarge(f"{place.shown}: more than the {limit} bytes read at once.")
        return data

    def write(self, place: Place, data: bytes, *, parents: bool = False) -> None:
        """Replace or create a file atomically, keeping mode, owner and a link in the last place."""
        if not place.parts:
            raise InvalidInput(f"{place.shown}: is the workspace itself.")
        if parents:
            self.mkdirs(Place(place.root, place.parts[:-1], os.path.dirname(place.shown) or "."))
        with self.parent(place, write=True) as parent:
            _refuse_special(parent, place)
            beneath.replace(parent, data, None)

    def mkdirs(self, place: Place) -> None:
        """Make a directory and its missing parents. Raises ``InvalidInput`` for one deeper than any real tree."""
        if len(place.parts) > MAX_DEPTH:
            raise InvalidInput(f"{place.shown[:200]}: more than {MAX_DEPTH} folders deep.")
        for depth in range(1, len(place.parts) + 1):
            step = Place(place.root, place.parts[:depth], os.path.join(*place.parts[:depth]))
            with self.parent(step, write=True) as parent:
                try:
                    os.mkdir(parent.name, dir_fd=parent.fd)
                except FileExistsError:
                    continue

    def resolved(self, place: Place) -> Place:
        """The same object by the names links lead to; the last one need not exist. Raises like ``stat``."""
        with self.parent(place, write=False) as parent:
            return Place(place.root, parent.parts, place.shown)

    def resolved_new(self, place: Place) -> Place:
        """Like ``resolved``, for a file whose folders may not exist yet either."""
        for depth in range(len(place.parts), 0, -1):
            try:
                above = self.resolved(Place(place.root, place.parts[:depth], place.shown))
            except NotFound:
                continue
            return Place(place.root, (*above.parts, *place.parts[depth:]), place.shown)
        return Place(place.root, place.parts, place.shown)

    def entries(self, place: Place, *, details: bool = False) -> list[Entry]:
        """The entries of a directory, unsorted; links are not followed. Sizes and times only with ``details``."""
        fd = self.open(place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(fd) as found:
                return [_entry(entry, fd, details) for entry in found]
        except OSError as exc:
            raise from_oserror(exc, place.shown) from exc
        finally:
            os.close(fd)

    def secrets(self, place: Place) -> list[str]:
        """Secret paths below ``place``, relative to it, for a search to leave out."""
        found = (beneath.below(place.path, secret) for secret in self._secret)
        return ["/".join(parts) for parts in found if parts is not None]

    def scan(self, place: Place) -> list[os.DirEntry[str]]:
        """The entries of a directory, unsorted. Their ``stat`` must be asked without following links."""
        fd = self.open(place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(fd) as entries:
                return list(entries)
        finally:
            os.close(fd)

    def real(self, place: Place) -> str:
        """The absolute resolved path, for a child process that is given one. Raises like ``stat``."""
        with self.parent(place, write=False) as parent:
            os.stat(parent.name, dir_fd=parent.fd, follow_symlinks=False)
            return os.path.join(place.root.path, *parent.parts)


class Sandbox:
    """HIP-0301 §10: the path question as the HIP asks it."""

    def __init__(self, config: SandboxConfig, workspace: Path) -> None:
        self.config = config
        self.workspace = workspace

    def roots(self) -> list[str]:
        """The directories the mode opens."""
        if self.config.mode is IsolationMode.OFF:
            return [str(self.workspace), "/"]
        if self.config.mode is IsolationMode.ALLOW_LIST:
            return list(self.config.allowed_paths)
        return [str(self.workspace)]

    def check_path(self, path: Path) -> bool:
        """True if ``path``, with every link resolved, is allowed under the mode."""
        real = os.path.realpath(os.path.join(self.workspace, path))
        return any(beneath.below(os.path.realpath(root), real) is not None for root in self.roots())


_GIT_PARTS = ("hooks", "config", "config.worktree")


def protected(parts: tuple[str, ...]) -> bool:
    """Names no tool writes: ``.hanzo/**`` and the parts of ``.git`` that make git run something."""
    names = tuple(part.casefold() for part in parts)
    if ".hanzo" in names:
        return True
    if ".git" not in names:
        return False
    inner = names[names.index(".git") + 1 :]
    if not inner:
        return True
    return any(name in _GIT_PARTS for name in inner) or inner[:2] == ("info", "attributes")


def _entry(entry: os.DirEntry[str], fd: int, details: bool) -> Entry:
    if entry.is_symlink():
        kind = "link"
    elif entry.is_dir(follow_symlinks=False):
        kind = "dir"
    else:
        kind = "file" if entry.is_file(follow_symlinks=False) else "other"
    if not details:
        return Entry(entry.name, kind)
    try:
        info = os.stat(entry.name, dir_fd=fd, follow_symlinks=False)
        target = os.readlink(entry.name, dir_fd=fd) if kind == "link" else ""
    except FileNotFoundError:  # removed meanwhile
        return Entry(entry.name, kind)
    return Entry(entry.name, kind, info.st_size, info.st_mtime, target)


_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


def _plain(text: str) -> str:
    """The path a caller meant. Raises ``InvalidInput``."""
    if text.startswith("file://"):
        text = unquote(urlsplit(text).path)
    if "\0" in text:
        raise InvalidInput("path: contains a NUL character.")
    if os.name == "posix" and _WINDOWS.match(text):
        raise InvalidInput(f"path: {text[:80]!r} is a Windows path; this machine takes POSIX paths.")
    if not text.isprintable() and any(ord(char) < 32 and char not in "\t\n" for char in text):
        raise InvalidInput("path: contains a control character.")
    try:
        if len(os.fsencode(text)) > MAX_PATH:
            raise InvalidInput(f"path: longer than {MAX_PATH} bytes.")
    except UnicodeEncodeError:
        raise InvalidInput("path: contains a lone surrogate, which no file name can hold.") from None
    return os.path.expanduser(text) if text.startswith("~") else text


def _regular_size(fd: int, place: Place) -> int:
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        raise from_oserror(IsADirectoryError(errno.EISDIR, ""), place.shown)
    return info.st_size


def _refuse_special(parent: beneath.Parent, place: Place) -> None:
    try:
        mode = os.stat(parent.name, dir_fd=parent.fd, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise from_oserror(IsADirectoryError(errno.EISDIR, ""), place.shown)
    if not stat.S_ISREG(mode):
        raise InvalidInput(f"{place.shown}: not a regular file (a device, FIFO or socket).")
