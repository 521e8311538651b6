"""A model's server on this machine that can be made to fail at any phase of an exchange, and mended, on one and the same port.

It answers in the words of `perdure.testing.model_server`; what this adds is what happens below HTTP: a port where nobody
listens, connections that end before a word was said, and a count of every connection that was ever made.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any

from perdure.testing.model_server import Act, ModelExchange, ModelQuestion, fitting

RESET = struct.pack("ii", 1, 0)
BODY_BYTES_MAX = 64 * 1024 * 1024
POLL_S = 0.02
TOWNS = ("Austin", "Lisbon", "Bergen", "Quito", "Kyoto")

Door = Callable[[socket.socket], None]
"""What becomes of a connection before anything is read from it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to fail: at the door, in the answer, or by not being there at all."""

    name: str
    act: Act | None = None
    door: Door | None = None
    refuses: bool = False
    slow: bool = False
    """It is met by waiting: only a deadline ends it."""
    plausible: bool = False
    """It cannot be told from the answer of another model, so nothing can be said about it while it lasts."""


class ModelHost:
    """Listens on one port of the loopback interface until it is closed, though not always."""

    def __init__(self, able: Act) -> None:
        self.asked: list[ModelQuestion] = []
        self.connections = 0
        self.met: Counter[str] = Counter()
        """How often each fault was really met, by name."""
        self.hanging = 0
        """Questions that are being answered at this moment."""
        self._able = able
        self._fault: Fault | None = None
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._mended = threading.Event()
        self._open: set[socket.socket] = set()
        self._listener: socket.socket | None = self._listening(0)
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name="model-host", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def setting(self, protocol: str) -> str:
        return f"{protocol}:{self.url}#scripted"

    def break_(self, fault: Fault) -> None:
        """From now on it fails so. Connections that are open end: no question slips through on one of them."""
        with self._lock:
            self._fault = fault
            self._mended = threading.Event()
            listener = self._listener
            if fault.refuses:
                self._listener = None
        if fault.refuses and listener is not None:
            listener.close()
        self._end_all()

    def mend(self) -> None:
        """From now on it answers. Whoever was kept waiting is cut off."""
        with self._lock:
            self._fault = None
            self._mended.set()
            if self._listener is None:
                self._listener = self._listening(self.port)
        self._end_all()

    def close(self) -> None:
        self._stopping.set()
        self.mend()
        self._thread.join(5)
        if self._listener is not None:
            self._listener.close()

    def __enter__(self) -> ModelHost:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def act(self, exchange: ModelExchange) -> None:
        """Play what is set for the moment."""
        fault = self._fault
        with self._lock:
            self.asked.append(exchange.asked)
            self.hanging += 1
            if fault is not None:
                self.met[fault.name] += 1
        try:
            (self._able if fault is None or fault.act is None else fault.act)(exchange)
        finally:
            with self._lock:
                self.hanging -= 1

    def _listening(self, port: int) -> socket.socket:
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(("127.0.0.1", port))
        made.listen(64)
        made.settimeout(POLL_S)
        return made

    def _accept(self) -> None:
        while not self._stopping.is_set():
            listener = self._listener
            if listener is None:
                self._stopping.wait(POLL_S)
                continue
            try:
                connection, address = listener.accept()
            except OSError:  # nobody came, or it does not listen any more
                continue
            with self._lock:
                self.connections += 1
                self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection, address), name="model-host-one", daemon=True).start()

    def _serve(self, connection: socket.socket, address: Any) -> None:
        fault = self._fault
        try:
            if fault is not None and fault.door is not None:
                with self._lock:
                    self.met[fault.name] += 1
                fault.door(connection)
            else:
                _handler(self, self._mended)(connection, address, None)  # type: ignore[arg-type]
        except (OSError, ValueError):
            pass  # the client went away, or we did
        finally:
            with self._lock:
                self._open.discard(connection)
            with suppress(OSError):
                connection.close()

    def _end_all(self) -> None:
        with self._lock:
            held = list(self._open)
        for one in held:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def _handler(host: ModelHost, mended: threading.Event) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            size = min(int(self.headers.get("content-length", 0)), BODY_BYTES_MAX)
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = ModelQuestion(self.path, headers, json.loads(self.rfile.read(size)))
            # Whoever waits in an act is woken when the fault ends, not only when the server does.
            host.act(ModelExchange(asked, mended, self))

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: what was asked is in `asked`."""

    return Handler


def reset(connection: socket.socket) -> None:
    """End a connection as a process does that was killed."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    connection.close()


# -- a model that can do its work


def able(exchange: ModelExchange) -> None:
    """Answer as a model that understands one kind of sentence, `I live in TOWN.`, and does everything else as asked."""
    if exchange.asked.wants_vectors:
        exchange.send(exchange.vectors())
        return
    schema, words = exchange.asked.schema, exchange.asked.body["messages"][0]["content"]
    if schema is None:
        exchange.send(exchange.envelope("They talked about where the user lives."))
    elif "proposals" in schema.get("properties", {}):
        exchange.send(exchange.envelope(json.dumps({"proposals": proposals(words), "todos": []})))
    else:
        exchange.send(exchange.envelope(json.dumps(fitting(schema, "They talked about where the user lives."))))


def numbered(prompt: str) -> list[dict[str, Any]]:
    """The numbered messages that an extraction prompt shows."""
    lines = prompt.partition("<data>\n")[2].rpartition("\n</data>")[0].split("\n")
    return [found for line in lines if isinstance(found := json.loads(line), dict) and "n" in found]


def proposals(prompt: str) -> list[dict[str, Any]]:
    found = []
    for one in numbered(prompt):
        said = re.search(r"I live in (\w+)\.", json.dumps(one))
        if said is not None and said[1] in TOWNS:
            found.append(
                {
                    "n": one["n"],
                    "quote": said[0],
                    "type": "PROFILE",
                    "fact_type": "fact",
                    "content": f"Lives in {said[1]}",
                    "entities": [{"type": "place", "label": said[1]}],
                    "attribute": "lives_in",
                    "value": said[1],
                    "ended": False,
                    "corrects": False,
                    "confidence": 0.9,
                }
            )
    return found
