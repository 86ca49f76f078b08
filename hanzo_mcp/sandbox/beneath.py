"""Opening files beneath a root without following anything out of it.

The walk goes component by component with ``O_NOFOLLOW`` and resolves links by hand, so that a rename or a
swapped link in mid-walk can never lead outside: every step starts from a descriptor that was inside.
Realpath-then-open is not safe against that race. POSIX only.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

MAX_LINKS = 40
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


class Escapes(OSError):
    """The path leads out of its root; ``target`` is where it wanted to go."""

    def __init__(self, target: str) -> None:
        super().__init__(errno.EXDEV, "leads outside", target)
        self.target = target


@dataclass(slots=True)
class Parent:
    """An open directory inside the root, the last name in it, and the resolved names from the root."""

    fd: int
    name: str
    parts: tuple[str, ...]


def open_root(path: str) -> int:
    """A descriptor for a root directory. Raises ``OSError``."""
    return os.open(path, _DIRECTORY)


@contextmanager
def parent_of(root_fd: int, root_path: str, parts: tuple[str, ...], follow: bool) -> Generator[Parent]:
    """Walk to the directory that holds the last of ``parts``, resolving links that stay inside.

    With ``follow`` a link in the last place is resolved as well. The last name need not exist; it is ``"."`` for
    the root. Raises ``Escapes`` and other ``OSError``.
    """
    walk = _Walk(root_fd, root_path, list(parts), follow)
    try:
        yield walk.run()
    finally:
        walk.close()


class _Walk:
    def __init__(self, root_fd: int, root_path: str, pending: list[str], follow: bool) -> None:
        self._root_path, self._pending, self._follow = root_path, pending, follow
        self._fds = [os.dup(root_fd)]
        self._names: list[str] = []
        self._links = 0

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)

    def run(self) -> Parent:
        while self._pending:
            name = self._pending.pop(0)
            if name in ("", "."):
                continue
            if name == "..":
                self._up()
            elif self._pending or self._follow:
                last = self._enter(name)
                if last is not None:
                    return last
            else:
                return Parent(self._fds[-1], name, (*self._names, name))
        if not self._names:
            return Parent(self._fds[-1], ".", ())
        return Parent(self._fds[-2], self._names[-1], tuple(self._names))

    def _up(self) -> None:
        if not self._names:
            raise Escapes(os.path.dirname(self._root_path))
        os.close(self._fds.pop())
        self._names.pop()

    def _enter(self, name: str) -> Parent | None:
        """Step into ``name``; a ``Parent`` when it is the last place and no directory."""
        try:
            fd = os.open(name, _STEP, dir_fd=self._fds[-1])
        except FileNotFoundError:
            if self._pending:
                raise
            return Parent(self._fds[-1], name, (*self._names, name))
        except OSError as exc:
            # Without O_PATH (macOS) a link in the last place is refused instead of opened.
            if exc.errno != errno.ELOOP:
                raise
            self._link(os.readlink(name, dir_fd=self._fds[-1]))
            return None
        kind = stat.S_IFMT(os.fstat(fd).st_mode)
        if kind == stat.S_IFDIR:
            self._fds.append(fd)
            self._names.append(name)
            return None
        os.close(fd)
        if kind == stat.S_IFLNK:
            self._link(os.readlink(name, dir_fd=self._fds[-1]))
            return None
        if self._pending:
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", name)
        return Parent(self._fds[-1], name, (*self._names, name))

    def _link(self, target: str) -> None:
        self._links += 1
        if self._links > MAX_LINKS:
            raise OSError(errno.ELOOP, "too many symbolic links", target)
        if target.startswith("/"):
            inside = below(self._root_path, os.path.normpath(target))
            if inside is None:
                raise Escapes(target)
            for fd in self._fds[1:]:
                os.close(fd)
            del self._fds[1:]
            self._names.clear()
            self._pending[:0] = inside
        else:
            self._pending[:0] = target.split("/")


def below(root: str, path: str) -> tuple[str, ...] | None:
    """The names from ``root`` to ``path`` (both normalised), or ``None`` when it is not below."""
    if path == root:
        return ()
    prefix = root if root.endswith("/") else root + "/"
    return tuple(path[len(prefix) :].split("/")) if path.startswith(prefix) else None


def replace(parent: Parent, data: bytes, mode: int | None) -> None:
    """Put a new regular file in place of ``parent.name``: temporary file, fsync, rename.

    A reader sees the old bytes or the new ones, never a part. Mode and owner of an existing file are kept
    (owner as far as the system lets us); a new file gets ``mode`` or 0666 less the umask.
    """
    old = _existing(parent)
    temporary = f".{parent.name[:80]}.{os.urandom(6).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o666 if mode is None else mode, dir_fd=parent.fd)
    try:
        try:
            _fill(fd, data)
            if old is not None:
                _keep_identity(fd, old)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temporary, parent.name, src_dir_fd=parent.fd, dst_dir_fd=parent.fd)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=parent.fd)
        raise


def _existing(parent: Parent) -> os.stat_result | None:
    try:
        return os.stat(parent.name, dir_fd=parent.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _fill(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _keep_identity(fd: int, old: os.stat_result) -> None:
    new = os.fstat(fd)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):
            os.fchown(fd, old.st_uid, old.st_gid)
    os.fchmod(fd, stat.S_IMODE(old.st_mode))
