"""Every error of the package, and the one table from errno to error.

HanzoError
├── ToolError            becomes an ``isError`` result; ``code`` is stable
│   ├── InvalidInput     invalid_input
│   ├── NotFound         not_found
│   ├── Denied           denied (``by`` says who: policy, hook, sandbox, host)
│   ├── Conflict         conflict
│   ├── Unavailable      unavailable (``retryable``)
│   ├── TimedOut         timed_out
│   └── TooLarge         too_large
├── ConfigError          a setting that cannot be used
├── ProtocolError        becomes a JSON-RPC error object
└── AuthError
    └── SignInNeeded     the cloud wants a bearer
"""

from __future__ import annotations

import errno
from typing import Any, ClassVar


class HanzoError(Exception):
    """Root of the tree; ``str()`` is written for the person or model who must act."""


class ToolError(HanzoError):
    """A tool or a gate says no. Answered as a result with ``isError: true``."""

    code: ClassVar[str] = "tool_error"

    def details(self) -> dict[str, Any]:
        """The stable part of the error: ``{"code": str, ...}``."""
        return {"code": self.code}


class InvalidInput(ToolError):
    """The arguments are wrong; the message says which one and what was expected."""

    code = "invalid_input"


class NotFound(ToolError):
    """What was named does not exist."""

    code = "not_found"


class Denied(ToolError):
    """A gate refused the call."""

    code = "denied"

    def __init__(self, reason: str, *, by: str) -> None:
        super().__init__(reason)
        self.by = by

    def details(self) -> dict[str, Any]:
        return {"code": self.code, "by": self.by}


class Conflict(ToolError):
    """The world changed, or the request is ambiguous; nothing was done."""

    code = "conflict"


class Unavailable(ToolError):
    """Something needed is not there at the moment."""

    code = "unavailable"

    def __init__(self, reason: str, *, retryable: bool = False) -> None:
        super().__init__(reason)
        self.retryable = retryable

    def details(self) -> dict[str, Any]:
        return {"code": self.code, "retryable": self.retryable}


class TimedOut(ToolError):
    """A deadline passed; the work was stopped."""

    code = "timed_out"


class TooLarge(ToolError):
    """More than the stated limit."""

    code = "too_large"


class ConfigError(HanzoError):
    """A setting that cannot be used; the message names file and key."""


class ProtocolError(HanzoError):
    """A malformed or unanswerable message: a JSON-RPC error (MCP 2025-11-25 and 2026-07-28)."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    def to_wire(self) -> dict[str, Any]:
        """``{"code": int, "message": str, "data"?: any}``."""
        wire: dict[str, Any] = {"code": self.code, "message": str(self)}
        if self.data is not None:
            wire["data"] = self.data
        return wire


class AuthError(HanzoError):
    """Signing in failed or is needed."""


class SignInNeeded(AuthError):
    """The cloud answered 401 (RFC 9728 §5.1); ``resource_metadata`` is its hint, already sanitised."""

    def __init__(self, message: str, *, resource_metadata: str | None = None) -> None:
        super().__init__(message)
        self.resource_metadata = resource_metadata


_ERRNO: dict[int, tuple[type[ToolError], str]] = {
    errno.ENOENT: (NotFound, "no such file or directory"),
    errno.ENOTDIR: (InvalidInput, "a part of the path is a file, not a directory"),
    errno.EISDIR: (InvalidInput, "is a directory"),
    errno.EEXIST: (Conflict, "already exists"),
    errno.ENOTEMPTY: (Conflict, "directory is not empty"),
    errno.ENAMETOOLONG: (InvalidInput, "the name is too long"),
    errno.ELOOP: (InvalidInput, "too many symbolic links"),
    errno.ENOSPC: (Unavailable, "the disk is full; nothing was changed"),
    errno.EDQUOT: (Unavailable, "the disk quota is used up; nothing was changed"),
    errno.EMFILE: (Unavailable, "too many open files"),
    errno.EIO: (Unavailable, "the disk reports an input/output error"),
    errno.ETXTBSY: (Conflict, "the file is being executed"),
    errno.EXDEV: (Conflict, "crosses file systems"),
    errno.EINVAL: (InvalidInput, "the system refuses this name or value"),
}
_DENIED = {
    errno.EACCES: "permission denied by the file system",
    errno.EPERM: "operation not permitted by the file system",
    errno.EROFS: "the file system is read-only",
}


def from_oserror(exc: OSError, path: str) -> ToolError:
    """The ``ToolError`` for an ``OSError`` on ``path`` (as the caller wrote it)."""
    number = exc.errno or 0
    if number in _DENIED:
        return Denied(f"{path}: {_DENIED[number]}", by="filesystem")
    kind, words = _ERRNO.get(number, (Unavailable, exc.strerror or str(exc)))
    return kind(f"{path}: {words}")
