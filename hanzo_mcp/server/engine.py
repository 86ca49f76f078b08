"""The asyncio engine: many calls at once over one pair of pipes.

It goes on where ``boot`` left off. Every request is answered exactly once, unless it is cancelled; every call runs
in a task of its own; nothing here waits for a tool, a disk or the cloud.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

from hanzo_mcp.app import App, build
from hanzo_mcp.core.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Broken,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
    encode,
    error_line,
    find_id,
    notification_line,
    parse,
    result_line,
)
from hanzo_mcp.core.shapes import as_object
from hanzo_mcp.core.tool import Call, InputRequired, Outcome, Verbatim
from hanzo_mcp.errors import ProtocolError
from hanzo_mcp.server import boot, roots
from hanzo_mcp.server.batch import Batch
from hanzo_mcp.server.framing import TooLong
from hanzo_mcp.server.handshake import LOG_LEVELS, NeedsEngine, complete, is_modern
from hanzo_mcp.server.input import Input
from hanzo_mcp.server.output import Output
from hanzo_mcp.server.port import CallPort, Outgoing
from hanzo_mcp.server.stdio import say
from hanzo_mcp.server.subscriptions import Subscriptions

RUNNING = 512
"""Calls that run at once; more wait their turn."""
WAITING = 16_384
"""Requests in flight at most; one more is refused at once."""
FIRST_LIST = 1.4
"""Seconds the very first list waits for the door (real lists have taken 92 s); 1.5 with what starting costs."""
LAST_CALLS = 0.8
"""Seconds calls may still take after the client has closed its end."""

Json = dict[str, Any]
Reply = Callable[[bytes | None], None]
"""Takes a request's reply line, or ``None`` when it was cancelled and gets none."""


def run(start: boot.Start, ended: bool) -> int:
    """Serve until the client is gone; the process's exit status. ``ended`` says that no more input will come."""
    return asyncio.run(_serve(start, ended))


async def _serve(start: boot.Start, ended: bool) -> int:
    return await Engine(start).serve(ended)


class Engine:
    """One connection."""

    def __init__(self, start: boot.Start) -> None:
        self._start = start
        self._loop = asyncio.get_running_loop()
        self._stopped: asyncio.Future[int] = self._loop.create_future()
        self._output = Output(start.fd_out, lambda: self._stop(0), self._pressure)
        self._input = Input(start.fd_in, self._on_data)
        self._send = self._output.send
        self._outgoing = Outgoing(self._send)
        self._subscriptions = Subscriptions(start.session, self._send)
        self._running: dict[RequestId, asyncio.Task[bytes]] = {}
        self._slots = asyncio.Semaphore(RUNNING)
        self._app: App | None = None
        self._choice = start.choice
        self._learning: asyncio.Task[None] | None = None
        self._methods: dict[str, Callable[[Request, Reply], None]] = {
            "tools/list": lambda request, reply: self._spawn(request, reply, lambda: self._list(request)),
            "tools/call": self._call,
            "subscriptions/listen": self._listen,
        }

    # -- life

    async def serve(self, ended: bool) -> int:
        """Until end of input, a signal, a closed output or an orphaned process."""
        self._catch_signals()
        self._watch_parent(self._start.parent)
        self._learn_roots()
        for line in self._start.backlog:
            self._on_line(line)
        if self._start.catalog.served and self._start.catalog.stale():
            self._loop.call_soon(self._refresh_list)
        if ended:
            self._loop.create_task(self._finish())
        else:
            self._input.start()
        status = await self._stopped
        self._leave(status)
        return status

    def _stop(self, status: int) -> None:
        if not self._stopped.done():
            self._stopped.set_result(status)

    def _leave(self, status: int) -> None:
        """The last act. Threads may still block in other people's code, so the interpreter is not unwound."""
        if self._app is not None:
            self._app.close()
        sys.stderr.flush()
        os._exit(status)

    def _catch_signals(self) -> None:
        if sys.platform == "win32":
            return
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._loop.add_signal_handler(number, self._stop, 128 + number)

    def _watch_parent(self, parent: int) -> None:
        """A grandchild of a killed client may hold the pipe open: no end of input would ever come."""
        if os.getppid() != parent:
            say("the client's process is gone; leaving.")
            self._stop(0)
            return
        self._loop.call_later(boot.PARENT_EVERY, self._watch_parent, parent)

    def _pressure(self, full: bool) -> None:
        if not full:
            self._input.resume()
        elif self._input.pausable:
            self._input.pause()

    async def _finish(self) -> None:
        """After the end of input: let running calls end for a moment, cancel the rest, flush, leave."""
        tasks = set(self._running.values())
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=LAST_CALLS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=0.1)
        self._subscriptions.close()
        for _ in range(20):
            if self._output.empty:
                break
            await asyncio.sleep(0.005)
        self._stop(0)

    # -- input

    def _on_data(self, data: bytes) -> None:
        for line in self._start.lines.feed(data) if data else self._start.lines.close():
            self._on_line(line)
        if not data:
            self._loop.create_task(self._finish())

    def _on_line(self, line: str) -> None:
        if isinstance(line, TooLong):
            found = find_id(line)
            error = ProtocolError(INVALID_REQUEST, "A message longer than 32 MiB was skipped")
            self._on_message(Broken(found, error, found is not None))
            return
        message = parse(line)
        if isinstance(message, list):
            self._on_batch(message)
        else:
            self._on_message(message)

    def _on_message(self, message: Message, reply: Reply | None = None) -> None:
        reply = reply or self._reply
        if isinstance(message, Request):
            self._on_request(message, reply)
        elif isinstance(message, Notification):
            self._on_notification(message)
        elif isinstance(message, Response):
            self._outgoing.settle(message)
        else:
            reply(boot.refusal(message))

    def _on_batch(self, messages: list[Message]) -> None:
        if not self._start.session.batches or not messages:
            say("refused a message: batches are spoken in protocol 2025-03-26 only.")
            return
        collected = Batch(sum(isinstance(message, (Request, Broken)) for message in messages), self._send)
        for message in messages:
            answered = isinstance(message, (Request, Broken))
            self._on_message(message, collected.reply if answered else None)

    def _reply(self, line: bytes | None) -> None:
        if line is not None:
            self._send(line)

    def _on_request(self, request: Request, reply: Reply) -> None:
        try:
            if request.id in self._running or request.id in self._subscriptions:
                raise ProtocolError(INVALID_REQUEST, f"id {request.id!r} is already in flight")
            reply(boot.answer(self._start.handshake, request))
        except NeedsEngine:
            self._try_dispatch(request, reply)
            return
        except ProtocolError as exc:
            reply(_error_line(request, exc))
            return
        if request.method == "tools/list" and self._start.catalog.stale():
            self._refresh_list()

    def _try_dispatch(self, request: Request, reply: Reply) -> None:
        try:
            self._dispatch(request, reply)
        except ProtocolError as exc:
            reply(_error_line(request, exc))

    def _dispatch(self, request: Request, reply: Reply) -> None:
        method = self._methods.get(request.method)
        if method is None:
            raise ProtocolError(METHOD_NOT_FOUND, f"Unknown method: {request.method[:100]}")
        if len(self._running) >= WAITING:
            raise ProtocolError(INTERNAL_ERROR, f"{WAITING} requests are in flight; try again when some have ended")
        method(request, reply)

    def _on_notification(self, message: Notification) -> None:
        if message.method == "notifications/initialized":
            self._start.session.ready = True
            self._learn_roots()
        elif message.method == "notifications/cancelled":
            self._cancel(message)

    def _cancel(self, message: Notification) -> None:
        request_id = message.params.get("requestId")
        if not isinstance(request_id, (str, int)) or isinstance(request_id, bool):
            return
        self._subscriptions.cancel(request_id)
        task = self._running.get(request_id)
        if task is not None:
            task.cancel()

    # -- requests

    def _listen(self, request: Request, reply: Reply) -> None:  # noqa: ARG002 - it is answered at its end
        if not is_modern(request.params):
            raise ProtocolError(METHOD_NOT_FOUND, "subscriptions/listen belongs to protocol 2026-07-28")
        self._subscriptions.listen(request)

    def _spawn(self, request: Request, reply: Reply, work: Callable[[], Coroutine[Any, Any, bytes]]) -> None:
        task = self._loop.create_task(self._answer(request, work))
        self._running[request.id] = task

        def done(ended: asyncio.Task[bytes]) -> None:
            if self._running.get(request.id) is ended:
                del self._running[request.id]
            reply(None if ended.cancelled() else ended.result())

        task.add_done_callback(done)

    async def _answer(self, request: Request, work: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        """The root of a request's task: whatever happens, one reply, unless it is cancelled."""
        try:
            return await work()
        except ProtocolError as exc:
            return _error_line(request, exc)
        except Exception as exc:  # noqa: BLE001 - the root of a request's task
            self._say(f"{request.method} failed: {''.join(traceback.format_exception(exc))}")
            error = ProtocolError(INTERNAL_ERROR, f"hanzo-mcp failed ({type(exc).__name__}); see its stderr")
            return _error_line(request, error)

    async def _list(self, request: Request) -> bytes:
        """The first list ever: a moment for the door, then local-only until ``list_changed``."""
        door = self.app.door
        if door is not None:
            await door.heard(FIRST_LIST)
        self._start.catalog.give_up()
        return boot.answer(self._start.handshake, request)

    def _call(self, request: Request, reply: Reply) -> None:
        params = request.params
        if not isinstance(params.get("name"), str):
            raise ProtocolError(INVALID_PARAMS, "params.name must be a string: the tool's name")
        modern = is_modern(params)
        port = CallPort(self._send, self._outgoing, self._start.session, params, modern)
        call = Call(params["name"], params.get("arguments"), params, request.source, self._start.session.id, port)
        self._spawn(request, reply, lambda: self._run_call(request, call, port))

    async def _run_call(self, request: Request, call: Call, port: CallPort) -> bytes:
        try:
            async with self._slots:
                if self._learning is not None:
                    await asyncio.shield(self._learning)
                outcome = await self.app.pipeline.call(call)
        finally:
            port.close()
        return reply_line(request.id, outcome, port.modern)

    # -- the rest of the program

    @property
    def app(self) -> App:
        """Built with the first message that needs it."""
        if self._app is None:
            start = self._start
            self._app = build(self._choice, start.environ, start.door, start.catalog, self, start.session.id)
        return self._app

    def _learn_roots(self) -> None:
        if self._app is None and self._learning is None and roots.wanted(self._choice, self._start.session):
            self._learning = self._loop.create_task(self._adopt_roots())

    async def _adopt_roots(self) -> None:
        home = self._start.environ.get("HOME") or os.path.expanduser("~")
        self._choice = await roots.learn(self._choice, self._outgoing, home)
        say(self._choice.sentence())
        self._learning = None

    def _refresh_list(self) -> None:
        if self.app.door is not None:
            self.app.door.refresh_soon()

    def _say(self, text: str) -> None:
        """stderr is an exit like any other: no secret leaves through it."""
        say(text if self._app is None else self._app.redact(text))

    def tools_changed(self) -> None:
        """The door's list differs from the one served before."""
        self._subscriptions.tools_changed()

    def notice(self, level: str, text: str) -> None:
        """Something the person should know: stderr, and ``notifications/message`` for a legacy client that asked."""
        self._say(text)
        wanted = self._start.session.log_level
        if wanted is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(wanted):
            params = {"level": level, "logger": "hanzo-mcp", "data": text}
            self._send(notification_line("notifications/message", params))


def _error_line(request: Request, error: ProtocolError) -> bytes:
    return error_line(request.id, encode(error.to_wire()))


def reply_line(request_id: RequestId, outcome: Outcome, modern: bool) -> bytes:
    """The reply line of a tool call."""
    if isinstance(outcome, Verbatim):
        return _verbatim_line(request_id, outcome, modern)
    if isinstance(outcome, InputRequired):
        wire: Json = {"resultType": "input_required", "inputRequests": outcome.requests}
        if outcome.state is not None:
            wire["requestState"] = outcome.state
        return result_line(request_id, encode(wire))
    wire = outcome.to_wire()
    return result_line(request_id, encode(complete(wire) if modern else wire))


def _verbatim_line(request_id: RequestId, outcome: Verbatim, modern: bool) -> bytes:
    if outcome.member == "error":
        return error_line(request_id, outcome.text)
    text = outcome.text
    value = as_object(outcome.value)
    if modern and value is not None and "resultType" not in value:
        rest = text[1:].lstrip()
        text = '{"resultType":"complete"' + ("," if rest[:1] != "}" else "") + rest
    return result_line(request_id, text)
