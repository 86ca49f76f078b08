"""The first milliseconds: a plain blocking loop that answers handshake and lists with next to nothing imported.

The first message that needs more, or a short idle, starts the asyncio engine, which takes over the descriptors and
the unread bytes and goes on with the same functions.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple

from hanzo_mcp.config.paths import cache_dir
from hanzo_mcp.config.workspace import Choice
from hanzo_mcp.core.messages import Broken, Message, Notification, Request, encode, error_line, parse, result_line
from hanzo_mcp.door import cache
from hanzo_mcp.door.address import door_address, without_project_values
from hanzo_mcp.errors import ConfigError, ProtocolError
from hanzo_mcp.server.catalog import Catalog
from hanzo_mcp.server.framing import Lines, TooLong
from hanzo_mcp.server.handshake import Handshake, NeedsEngine
from hanzo_mcp.server.session import Session
from hanzo_mcp.server.stdio import claim, say

IDLE = 0.15
"""Seconds without a message, once one was answered, after which the engine is started behind the client's back."""
MOST = 64
"""Messages answered here at most: a flood belongs to the engine, which can read and write at once."""
PARENT_EVERY = 1.0
"""Seconds between looks at the parent process while nothing comes."""
_CHUNK = 64 * 1024


class Start(NamedTuple):
    """Everything the engine takes over. Named tuples here, since ``dataclasses`` alone imports for 8 ms."""

    fd_in: int
    fd_out: int
    session: Session
    catalog: Catalog
    handshake: Handshake
    lines: Lines
    backlog: list[str]
    choice: Choice
    environ: Mapping[str, str]
    door: str | None
    parent: int


def prepare(choice: Choice, environ: Mapping[str, str], fds: tuple[int, int]) -> Start:
    """The state of a connection that has not said anything yet."""
    environ = without_project_values(environ, choice.roots, say)
    door = _door(environ)
    directory = cache_dir(environ)
    catalog = Catalog((lambda: cache.load(directory, door)) if door else None)
    session = Session()
    handshake = Handshake(session, catalog, instructions(choice, door))
    return Start(*fds, session, catalog, handshake, Lines(), [], choice, environ, door, os.getppid())


def _door(environ: Mapping[str, str]) -> str | None:
    try:
        return door_address(environ)
    except ConfigError as exc:
        say(f"{exc} Serving the local tools only.")
        return None


def instructions(choice: Choice, door: str | None) -> str:
    """What a model should know beside the tools' own descriptions."""
    cloud = (
        "Tools other than the local ones belong to the Hanzo cloud and are forwarded; "
        "they take {op, input}, and describe {op} gives an operation's schema."
        if door
        else "The Hanzo cloud is switched off."
    )
    return f"Tools for this machine's files, commands and repositories. {choice.sentence()} {cloud}"


def serve(choice: Choice, environ: Mapping[str, str], engine: Callable[[Start, bool], int]) -> int:
    """Serve until the client is gone; the process's exit status."""
    start = prepare(choice, environ, (0, 1))
    fd_in, fd_out = claim()
    start = start._replace(fd_in=fd_in, fd_out=fd_out)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ended = _first_messages(start)
    if ended and not start.backlog:
        return 0
    return engine(start, ended)


def _first_messages(start: Start) -> bool:
    """Answer while answers are cheap; True when the client has left. What is still owed is in the backlog."""
    answered = 0
    while answered < MOST:
        if not _readable(start, IDLE if answered else None):
            return False
        data = os.read(start.fd_in, _CHUNK)
        start.backlog.extend(start.lines.feed(data) if data else start.lines.close())
        while start.backlog:
            if not _answered(start, start.backlog[0]):
                return not data
            answered += 1
            del start.backlog[0]
        if not data:
            return True
    return False


def _readable(start: Start, seconds: float | None) -> bool:
    """Wait for input, at most ``seconds``; a client that died while somebody else holds its pipe ends the process."""
    if sys.platform == "win32":
        return True
    while not select.select([start.fd_in], [], [], PARENT_EVERY if seconds is None else seconds)[0]:
        if seconds is not None:
            return False
        if os.getppid() != start.parent:
            say("the client's process is gone; leaving.")
            os._exit(0)
    return True


def _answered(start: Start, line: str) -> bool:
    """Answer one line here and now; False leaves it to the engine."""
    if isinstance(line, TooLong):
        return False
    message = parse(line)
    if isinstance(message, Broken):
        reply = refusal(message)
    elif isinstance(message, Request):
        try:
            reply = answer(start.handshake, message)
        except NeedsEngine:
            return False
    else:
        return _is_quiet(start, message)
    if reply is not None:
        _write(start.fd_out, reply)
    return True


def answer(handshake: Handshake, request: Request) -> bytes:
    """The reply line of a request that needs no tool. Raises ``NeedsEngine``."""
    try:
        return result_line(request.id, encode(handshake.answer(request)))
    except ProtocolError as exc:
        return error_line(request.id, encode(exc.to_wire()))


def refusal(broken: Broken) -> bytes | None:
    """One stderr line, and a reply when there is somebody to address it to."""
    say(f"ignored a message: {broken.error}" if not broken.answer else f"refused a message: {broken.error}")
    return error_line(broken.id, encode(broken.error.to_wire())) if broken.answer else None


def _is_quiet(start: Start, message: Message | list[Message]) -> bool:
    """Notifications and stray responses need no answer; a batch is the engine's."""
    if isinstance(message, Notification) and message.method == "notifications/initialized":
        start.session.ready = True
    return not isinstance(message, list)


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except BrokenPipeError:
        os._exit(0)
