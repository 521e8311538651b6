"""A network that misbehaves on purpose: a TCP proxy on loopback in front of PostgreSQL's socket.

It reads the client's side of the protocol, so that it can strike at a commit: before the server has it, or after the server
has carried it out and before the client hears of that. What it did is counted in `met`; a fault that was not met proves nothing.
"""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

CHUNK_BYTES = 65_536
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER on, for no time: the connection ends with a reset instead of a farewell."""
_PROTOCOL_3 = 3

Moment = Literal["", "commit", "mark"]
AtCommit = Literal["", "cut before", "cut after", "lost before", "lost after"]
"""`cut`: the connection ends, and both ends hear of it. `lost`: no byte of it arrives anywhere any more, not even its end."""


@dataclass(frozen=True, slots=True)
class Weather:
    """What the network does to whoever uses it now."""

    name: str = "calm"
    delay_s: float = 0.0
    slice_bytes: int = 0
    """Pass on at most so many bytes at a time."""
    reset_within_bytes: int = 0
    """Reset a connection somewhere within its next so many bytes, in either direction."""
    half_close: Literal["", "client", "server"] = ""
    """Tell this side that the other one has finished sending, at the next message of the client."""
    at_commit: AtCommit = ""
    mid_statement: bool = False
    """Nothing arrives any more from the mark on that ends a statement: the server has run it, and waits for the mark."""
    aim: bytes = b""
    """Only in a transaction in which the client has sent this."""
    swallow: bool = False
    """Pass nothing on, and say nothing: for connections that are there and for new ones."""
    times: int = 10**9
    """After so many strikes it is calm again."""


CALM = Weather()


@dataclass(slots=True)
class _Messages:
    """Cuts what a client sends into whole messages, and knows at which moment of a transaction that may write each is."""

    left: bytes = b""
    begun: bool = False
    writing: bool = False
    sent: bytes = b""
    """What the transaction in hand has sent so far."""
    named: dict[bytes, bytes] = field(default_factory=dict)

    def fed(self, data: bytes) -> Iterator[tuple[Moment, bytes]]:
        """Each whole message, and whether it commits a write or ends a statement of one."""
        self.left += data
        while (size := self._size()) and len(self.left) >= size:
            message, self.left = self.left[:size], self.left[size:]
            if not self.begun:
                # Requests for encryption come before the start-up message, in the same form.
                self.begun = int.from_bytes(message[4:6], "big") == _PROTOCOL_3
                yield "", message
            else:
                yield self._moment(message), message

    def _size(self) -> int:
        start = 1 if self.begun else 0
        if len(self.left) < start + 4:
            return 0
        return start + int.from_bytes(self.left[start : start + 4], "big")

    def _moment(self, message: bytes) -> Moment:
        text = self._text(message)
        if text.startswith(b"BEGIN"):
            self.writing, self.sent = b"READ ONLY" not in text, b""
        self.sent += message
        if self.writing and text.endswith(b"COMMIT"):
            self.writing = False
            return "commit"
        return "mark" if self.writing and message[:1] == b"S" else ""

    def _text(self, message: bytes) -> bytes:
        """The statement that a message has run: of its own, or of the name that it was prepared under."""
        kind, body = message[:1], message[5:]
        if kind == b"Q":
            return body.rstrip(b"\0")
        if kind == b"P":
            name, text = body.split(b"\0", 2)[:2]
            self.named[name] = text
        if kind == b"B":
            return self.named.get(body.split(b"\0", 2)[1], b"")
        return b""


class Proxy:
    """Passes bytes on as the weather allows. Deaf and closed connections are kept until they are cut: nobody hears of them."""

    def __init__(self, server: str, chance: random.Random) -> None:
        self._server = server
        self._chance = chance
        self._lock = threading.Lock()
        self._weather = CALM
        self._links: list[_Link] = []
        self.met: Counter[str] = Counter()
        self._listener: socket.socket | None = None
        self.port = 0
        self.listen()

    # -- the weather

    @property
    def weather(self) -> Weather:
        return self._weather

    def set(self, weather: Weather) -> None:
        with self._lock:
            self._weather = weather

    def calm(self) -> None:
        """The network is whole again. What was lost stays lost: those connections are deaf for ever."""
        with self._lock:
            if self._weather.swallow:
                for link in self._links:
                    link.deaf = True
            self._weather = CALM

    def strike(self, name: str) -> bool:
        """Count one strike of the present weather; False if it has struck as often as it may."""
        with self._lock:
            if self._weather.name != name or self._weather.times <= 0:
                return False
            self._weather = replace(self._weather, times=self._weather.times - 1)
            self.met[name] += 1
            return True

    def number(self, most: int) -> int:
        with self._lock:
            return self._chance.randint(1, most)

    # -- the listener

    def listen(self) -> None:
        """Take connections, at the same port as before."""
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), name="proxy", daemon=True).start()

    def refuse(self) -> None:
        """Take no connections: whoever tries is refused."""
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None

    def cut(self) -> None:
        """End every connection, deaf ones too."""
        with self._lock:
            links, self._links = self._links, []
        for link in links:
            link.end()

    def close(self) -> None:
        self.refuse()
        self.cut()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self._server)
            except OSError:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                client.close()
                server.close()
                continue
            link = _Link(self, client, server)
            with self._lock:
                self._links = [one for one in self._links if not one.ended] + [link]
            link.start()


class _Link:
    """One client's connection to the server."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self.proxy = proxy
        self.client = client
        self.server = server
        self.deaf = False
        self.ended = False
        self._withheld: bytes | None = None
        """What the server said since a commit whose answer is not to arrive."""
        self._instead: AtCommit = ""
        self._left: int | None = None

    def start(self) -> None:
        for work in (self._upstream, self._downstream):
            threading.Thread(target=work, name="proxy-link", daemon=True).start()

    def end(self) -> None:
        """Both ends are told, at once and without a farewell."""
        self.ended = True
        with suppress(OSError):
            self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        # A thread that reads keeps a socket alive that was closed; so it is woken first. Reading alone is shut towards the
        # client: to shut both would say farewell.
        for one, how in ((self.client, socket.SHUT_RD), (self.server, socket.SHUT_RDWR)):
            with suppress(OSError):
                one.shutdown(how)
            with suppress(OSError):
                one.close()

    def _upstream(self) -> None:
        """From the client to the server."""
        messages = _Messages()
        with suppress(OSError):
            while data := self.client.recv(CHUNK_BYTES):
                for moment, message in messages.fed(data):
                    if not self._up(moment if self.proxy.weather.aim in messages.sent else "", message):
                        return
        if not self.deaf and not self.ended:
            self.end()

    def _up(self, moment: Moment, message: bytes) -> bool:
        weather = self.proxy.weather
        if weather.swallow and not self.deaf:
            self.deaf = self.proxy.strike(weather.name)
        if self.deaf:
            return True
        if weather.half_close and self.proxy.strike(weather.name):
            (self.client if weather.half_close == "client" else self.server).shutdown(socket.SHUT_WR)
            return weather.half_close == "client"
        if moment == "mark" and weather.mid_statement and self.proxy.strike(weather.name):
            self.deaf = True
            return True
        if moment == "commit" and weather.at_commit and self.proxy.strike(weather.name):
            if weather.at_commit == "cut before":
                self.end()
                return False
            if weather.at_commit == "lost before":
                self.deaf = True
                return True
            self._instead, self._withheld = weather.at_commit, b""
        return self._pass_on(message, self.server)

    def _downstream(self) -> None:
        """From the server to the client."""
        with suppress(OSError):
            while data := self.server.recv(CHUNK_BYTES):
                if self.deaf or self.proxy.weather.swallow:
                    continue
                if self._withheld is not None:
                    self._withheld += data
                    if b"COMMIT\0" in self._withheld:
                        self.proxy.met["committed, and the answer withheld"] += 1
                        self._withheld = None
                        if self._instead == "cut after":
                            break
                        self.deaf = True
                    continue
                if not self._pass_on(data, self.client):
                    return
        if not self.deaf and not self.ended:
            self.end()

    def _pass_on(self, data: bytes, to: socket.socket) -> bool:
        weather = self.proxy.weather
        if weather.reset_within_bytes:
            if self._left is None:
                self._left = self.proxy.number(weather.reset_within_bytes)
            self._left -= len(data)
            if self._left < 0 and self.proxy.strike(weather.name):
                to.sendall(data[: self._left])
                self.end()
                return False
        else:
            self._left = None
        size = weather.slice_bytes or len(data)
        if (weather.delay_s or weather.slice_bytes) and not self.proxy.strike(weather.name):
            size = len(data)
        if weather.delay_s:
            time.sleep(weather.delay_s)
        while data:
            cut = self.proxy.number(size) if weather.slice_bytes else size
            to.sendall(data[:cut])
            data = data[cut:]
        return True
