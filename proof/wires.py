"""Wires between the members of a cluster: TCP on loopback that can be cut, as a switch that dies cuts it."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

CHUNK_BYTES = 65_536


class Wire:
    """Listens at `port` and passes bytes on to another port of loopback. Cut, it swallows them, and nobody hears of that."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._lock = threading.Lock()
        self._ends: list[socket.socket] = []
        self._cut = False
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name="wire", daemon=True).start()

    def cut(self) -> None:
        self._cut = True

    def mend(self) -> None:
        """Whole again. What was swallowed stays lost, so the connections of that time end."""
        if self._cut:
            self._end_all()
            self._cut = False

    def close(self) -> None:
        # A thread that accepts keeps the listener alive; so it is woken first.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._end_all()

    def _end_all(self) -> None:
        with self._lock:
            ends, self._ends = self._ends, []
        for one in ends:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket()
            try:
                server.connect(("127.0.0.1", self._to))
            except OSError:
                client.close()
                server.close()
                continue
            with self._lock:
                self._ends = [one for one in self._ends if one.fileno() >= 0] + [client, server]
            for source, target in ((client, server), (server, client)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._pass_on, args=(source, target), name="wire", daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                if not self._cut:
                    target.sendall(data)
        if self._cut:
            return
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
