"""Running an application until somebody stops it: the socket, slow callers, signals."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from perdure.domain.errors import InvalidInput, Unavailable
from perdure.domain.values import dataclass
from perdure.interfaces.serving.options import EVERYWHERE
from perdure.interfaces.serving.places import WaitingRoom
from perdure.interfaces.serving.request import network_of

CONNECTIONS_MAX = 2_000
"""The last resort: those that wait and the requests in hand are fewer."""
WAITING_MAX, WAITING_PER_ADDRESS_MAX = 1_000, 400
"""Connections without a request, in all and from one address. One more, and the one that waited longest is closed."""
FILES_WANTED = 4_096
BACKLOG = 512
SOCKET_BYTES_MAX = 100
"""Systems take 104 to 108."""
PROBE_S = 2.0
HEAD_S = 10.0
"""A connection has so long to say what it wants."""
HEAD_BYTES_MAX = 64 * 1024
REST_BYTES_MAX = 64 * 1024 * 1024
"""So much of a body that was refused is read and thrown away, so that the caller hears of the refusal."""
KEEP_ALIVE_S = 15
STOP_S = 10
"""So long may requests go on after the server was told to stop."""


@dataclass(frozen=True, slots=True)
class BoundSocket:
    """A socket that is bound, and where it is reached."""

    socket: socket.socket
    host: str
    port: int
    path: Path | None = None
    """Of a Unix socket."""

    def close(self) -> None:
        self.socket.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    @property
    def url(self) -> str:
        if self.path is not None:
            return "http://localhost"
        host = "127.0.0.1" if self.host in EVERYWHERE else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


def listen(host: str, port: int) -> BoundSocket:
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
    return BoundSocket(made, host, made.getsockname()[1])


def listen_at(path: Path) -> BoundSocket:
    """Take a Unix socket that only this account can connect to. One that a dead server left behind is replaced."""
    path = path.absolute()
    if not hasattr(socket, "AF_UNIX"):
        raise InvalidInput("this system has no Unix sockets; leave out `--socket`")
    if len(os.fsencode(path)) > SOCKET_BYTES_MAX:
        raise InvalidInput(f"`socket` = {str(path)!r:.200} is longer than {SOCKET_BYTES_MAX} bytes; choose a shorter path")
    _remove_dead(path)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    held = os.umask(0o177)  # the socket is made with these rights: there is no moment in which others could connect
    try:
        made.bind(str(path))
        made.listen(BACKLOG)
        made.setblocking(False)
    except OSError as error:
        made.close()
        raise InvalidInput(
            f"`socket` = {str(path)!r:.200} cannot be made ({error.strerror}); name one in your own folder"
        ) from None
    finally:
        os.umask(held)
    return BoundSocket(made, "localhost", 0, path)


def _remove_dead(path: Path) -> None:
    if not path.exists():
        return
    if not path.is_socket():
        raise InvalidInput(f"`socket` = {str(path)!r:.200} is something else than a socket; name another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_S)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except OSError:
            pass
    raise Unavailable(f"the socket {path} is taken by another program; stop that, or choose another path")


def _why_not(error: OSError, host: str, port: int) -> InvalidInput | Unavailable:
    if error.errno == errno.EADDRINUSE:
        return Unavailable(
            f"port {port} on {host} is taken by another program; stop that, or choose another port: `--port 0` takes a free one"
        )
    if error.errno == errno.EACCES:
        return InvalidInput(f"port {port} may not be used by this account; use one from 1024 on, such as `--port 8765`")
    return InvalidInput(f"`host` = {host!r:.60} is no address of this machine ({error.strerror}); use 127.0.0.1")


def run(app: Any, at: BoundSocket, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT; requests in hand are finished first. `ready` is called when the first can come."""
    config = uvicorn.Config(
        app,
        http=Patient,
        ws="none",
        loop="uvloop" if find_spec("uvloop") else "asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS_MAX,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_S,
    )
    _allow_files(FILES_WANTED)
    server = _Server(config, ready)
    with frozen_heap():
        server.run(sockets=[at.socket])


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Keep the garbage collector from what is loaded by now: looking through all of it held up a request for 130 ms."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _allow_files(count: int) -> None:
    """Let this process open so many files, if its account may: every connection is one, and the usual limit is low."""
    try:
        import resource
    except ImportError:
        return  # Windows has no such limit
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


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


class OpenTransport:
    """A transport to which nothing is written once it ends: uvloop calls that an error before it tells of the end."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Patient(HttpToolsProtocol):
    """Gives a connection a bounded time and size for the head of a request. The body is the guard's to bound."""

    room = WaitingRoom(WAITING_PER_ADDRESS_MAX, WAITING_MAX)
    """Of all servers of the process: they share its file descriptors."""
    _timer: asyncio.TimerHandle | None = None
    _bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast("asyncio.Transport", OpenTransport(transport)))
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
                self.give_up()

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and self.cycle.response_complete:
            self.room.enter(self, self._address)  # for the next request, as long as connections are kept

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    @property
    def _address(self) -> str:
        return "" if self.client is None else network_of(self.client[0])

    def _wait(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(HEAD_S, self.give_up)
            self.room.enter(self, self._address)

    def _stop_waiting(self) -> None:
        self.room.leave(self)
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._bytes = None, 0

    def give_up(self) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            self.transport.close()
