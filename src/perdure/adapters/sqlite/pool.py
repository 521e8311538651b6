"""The connections of one SQLite file: one writer, a few readers, and what happens to them at fork and close."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw

from perdure.adapters.forking import immortalise
from perdure.adapters.sqlite.connections import Patience, connect, translated
from perdure.domain.errors import Unavailable

READERS_KEPT = 8
FORK_WAIT_S = 5.0


class Connections:
    """Lends connections. Nothing is lent while a fork is under way, nor after `close`."""

    def __init__(self, path: str, *, synchronous: str, busy_s: float) -> None:
        self.path = path
        self.patience = Patience(busy_s)
        self._synchronous = synchronous
        self._busy_s = busy_s
        self._writer: apsw.Connection | None = None
        self._closed = False
        self._inherited = False
        self._start()

    def _start(self) -> None:
        self._idle: list[apsw.Connection] = []
        self._state = threading.Condition(threading.Lock())
        self._lent = 0
        self._held_back = False

    def open(self, *, patience: Patience | None = None) -> apsw.Connection:
        """A connection of the caller's own, to be closed by the caller."""
        if patience is None:
            patience = Patience(self._busy_s)
            patience.start(None)
        until = time.monotonic() + self._busy_s
        while True:
            try:
                return connect(self.path, synchronous=self._synchronous, patience=patience)
            except (apsw.BusyError, apsw.LockedError):
                # Switching a new file to WAL does not wait for rivals that do the same.
                if time.monotonic() >= until:
                    raise
                time.sleep(0.01)

    @contextmanager
    def writer(self, deadline_s: float | None) -> Iterator[apsw.Connection]:
        """The one writing connection; only the leader of the writer group asks for it."""
        self._lend()
        try:
            self.patience.start(deadline_s)
            if self._writer is None:
                self._writer = self.open(patience=self.patience)
            yield self._writer
        finally:
            self._take_back()

    def drop_writer(self) -> None:
        """Start the next write on a fresh connection: after a disk error, what this one believes is not to be trusted."""
        broken, self._writer = self._writer, None
        if broken is not None:
            with suppress(apsw.Error):
                broken.close()

    @contextmanager
    def reader(self) -> Iterator[apsw.Connection]:
        self._lend()
        connection: apsw.Connection | None = None
        try:
            with self._state:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                connection = self.open()
                connection.execute("PRAGMA query_only = ON")
            yield connection
        finally:
            if connection is not None:
                self._keep_or_close(connection)
            self._take_back()

    def close(self) -> None:
        with self._state:
            self._closed = True
            self._state.wait_for(lambda: self._lent == 0, timeout=FORK_WAIT_S)
        self._close_all()

    # -- forks

    def before_fork(self) -> None:
        """Close every connection, so that the child inherits nothing of SQLite's per-process lock table."""
        with self._state:
            self._held_back = True
            quiet = self._state.wait_for(lambda: self._lent == 0, timeout=FORK_WAIT_S)
        self._inherited = not quiet
        if quiet:
            self._close_all()

    def after_fork_in_parent(self) -> None:
        self._inherited = False
        with self._state:
            self._held_back = False
            self._state.notify_all()

    def after_fork_in_child(self) -> None:
        for inherited in (*self._idle, self._writer):
            immortalise(inherited)
        self._writer = None
        self._start()

    # -- lending

    def _lend(self) -> None:
        with self._state:
            if self._held_back and not self._state.wait_for(lambda: not self._held_back, timeout=self._busy_s):
                raise Unavailable("the process is forking and has not finished; try again")
            if self._inherited:
                raise Unavailable(
                    "this process was forked while its parent was in the middle of a long read; "
                    "open the store after forking, or fork when nothing is running"
                )
            if self._closed:
                raise Unavailable("the store is closed; open it again")
            self._lent += 1

    def _take_back(self) -> None:
        with self._state:
            self._lent -= 1
            if self._lent == 0:
                self._state.notify_all()

    def _keep_or_close(self, connection: apsw.Connection) -> None:
        with self._state:
            if len(self._idle) < READERS_KEPT and not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _close_all(self) -> None:
        with translated():
            while self._idle:
                self._idle.pop().close()
            if self._writer is not None:
                self._writer.close()
                self._writer = None
