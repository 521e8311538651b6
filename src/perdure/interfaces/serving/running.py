"""Running an application until somebody stops it: the socket, slow callers, signals."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from perdure.domain.errors import InvalidInput, Unavailable
from perdure.interfaces.serving.options import EVERYWHERE

CONNECTIONS_MAX = 2_000
BACKLOG = 512
HEAD_S = 10.0
"""A connection has so long to say what it wants."""
HEAD_BYTES_MAX = 64 * 1024
REST_BYTES_MAX = 64 * 1024 * 1024
"""So much of a body that was refused is read and thrown away, so that the caller hears of the refusal."""
KEEP_ALIVE_S = 15
STOP_S = 10
"""So long may requests go on after the server was told to stop."""


@dataclass(frozen=True, slots=True)
class Listening:
    """A socket that is bound, and where it is reached."""

    socket: socket.socket
    host: str
    port: int

    @property
    def url(self) -> str:
        host = "127.0.0.1" if self.host in EVERYWHERE else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


def listen(host: str, port: int) -> Listening:
    """Take the port, before anything else is begun; 0 takes a free one."""
    if not 0 <= port <= 65_535:
        raise InvalidInput(f"`port` = {port} is no port; use one from 1 to 65535, or 0 for any that is free")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise InvalidInput(f"`host` = {host!r:.60} is no address of this machine; use 127.0.0.1") from None
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
        made.setblocking(False)
    except OSError as error:
        made.close()
        raise _why_not(error, host, port) from None
    return Listening(made, host, made.getsockname()[1])


def _why_not(error: OSError, host: str, port: int) -> InvalidInput | Unavailable:
    if error.errno == errno.EADDRINUSE:
        return Unavailable(
            f"port {port} on {host} is taken by another program; stop that, or choose another port: `--port 0` takes a free one"
        )
    if error.errno == errno.EACCES:
        return InvalidInput(f"port {port} may not be used by this account; use one from 1024 on, such as `--port 8765`")
    return InvalidInput(f"`host` = {host!r:.60} is no address of this machine ({error.strerror}); use 127.0.0.1")


def run(app: Any, at: Listening, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT; requests in hand are finished first. `ready` is called when the first can come."""
    config = uvicorn.Config(
        app, http=Patient, ws="none", loop="uvloop" if find_spec("uvloop") else "asyncio", lifespan="on", log_config=None,
        access_log=False, server_header=False, proxy_headers=False, limit_concurrency=CONNECTIONS_MAX, backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S, timeout_graceful_shutdown=STOP_S,
    )  # fmt: skip
    server = _Server(config, ready)
    server.run(sockets=[at.socket])


class _Server(uvicorn.Server):
    """Says when it is ready, and takes a signal as the order to stop, not as a death."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        held = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in held.items():
                signal.signal(number, handler)


class Patient(HttpToolsProtocol):
    """Gives a connection a bounded time and size for the head of a request. The body is the guard's to bound."""

    _timer: asyncio.TimerHandle | None = None
    _bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        if self.cycle is None or self.cycle.response_complete:
            # The head of the next request, or what is left of a body that nobody wants.
            self._wait()
            self._bytes += len(data)
        super().data_received(data)
        if self._timer is not None:
            rest = self.cycle is not None and self.cycle.more_body
            if self._bytes > (REST_BYTES_MAX if rest else HEAD_BYTES_MAX):
                self._give_up()

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(HEAD_S, self._give_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._bytes = None, 0

    def _give_up(self) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            self.transport.close()
