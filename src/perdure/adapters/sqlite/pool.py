"""The connections of one SQLite file: one writer, a few readers, and what happens to them at fork and close."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import apsw

from perdure.adapters.forking import immortalise
from perdure.adapters.sqlite.ciphered import Cipher
from perdure.adapters.sqlite.connections import Patience, connect, translated
from perdure.domain.errors import Unavailable

READERS_KEPT = 8
# After these a connection's picture of the file may be wrong. One that SQLite could open for reading only stays so, and so
# does what the connections of a process share of the log, until the last of them is closed.
DISTRUSTED = (apsw.IOError, apsw.FullError, apsw.CorruptError, apsw.NotADBError, apsw.ReadOnlyError, apsw.CantOpenError)
FORK_WAIT_S = 5.0


class Reader(NamedTuple):
    """A reading connection and the busy handler it was opened with."""

    connection: apsw.Connection
    patience: Patience
    trust: int
    """How often connections had been distrusted when it was opened."""


class Connections:
    """Lends connections. Nothing is lent while a fork is under way, nor after `close`."""

    def __init__(self, path: str, *, synchronous: str, busy_s: float, cipher: Cipher | None = None) -> None:
        self.path = path
        self.patience = Patience(busy_s)
        self._synchronous = synchronous
        self._busy_s = busy_s
        self._cipher = cipher
        self._writer: apsw.Connection | None = None
        self._closed = False
        self._inherited = False
        self._distrusts = 0
        self._start()

    def _start(self) -> None:
        self._idle: list[Reader] = []
        self._state = threading.Condition(threading.Lock())
        self._lent = 0
        self._forks = 0
        self._noisy = False

    def _open(self, patience: Patience) -> apsw.Connection:
        until = time.monotonic() + self._busy_s
        while True:
            try:
                return connect(self.path, synchronous=self._synchronous, patience=patience, cipher=self._cipher)
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
                self._writer = self._open(self.patience)
            yield self._writer
        finally:
            self._take_back()

    def drop_writer(self) -> None:
        """Start the next write on a fresh connection: after a disk error, what this one believes is not to be trusted.

        Called while the writer is lent, so that no fork comes in between.
        """
        broken, self._writer = self._writer, None
        if broken is not None:
            with suppress(apsw.Error):
                broken.close()
        self._distrust()

    def _distrust(self) -> None:
        """Read on fresh connections from now on; those that are lent are closed when they come back."""
        with self._state:
            self._distrusts += 1
            idle, self._idle = self._idle, []
        for reader in idle:
            with suppress(apsw.Error):
                reader.connection.close()

    @contextmanager
    def reader(self, deadline_s: float | None = None) -> Iterator[apsw.Connection]:
        self._lend()
        lent: Reader | None = None
        try:
            with self._state:
                lent = self._idle.pop() if self._idle else None
            if lent is None:
                patience = Patience(self._busy_s)
                patience.start(deadline_s)
                lent = Reader(self._open(patience), patience, self._distrusts)
                lent.connection.execute("PRAGMA query_only = ON")
            lent.patience.start(deadline_s)
            yield lent.connection
        except DISTRUSTED:
            self._distrust()
            raise
        finally:
            if lent is not None:
                self._keep_or_close(lent)
            self._take_back()

    @contextmanager
    def own(self) -> Iterator[apsw.Connection]:
        """A connection for this one use: for what neither the writer nor a reader may do."""
        self._lend()
        try:
            patience = Patience(self._busy_s)
            patience.start(None)
            connection = self._open(patience)
            try:
                yield connection
            finally:
                connection.close()
        except DISTRUSTED:
            self._distrust()
            raise
        finally:
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
            # Several threads may fork at once; nothing is lent until the last of them is done.
            self._forks += 1
            if self._state.wait_for(lambda: self._lent == 0, timeout=FORK_WAIT_S):
                self._close_all()
            else:
                self._noisy = True

    def after_fork_in_parent(self) -> None:
        with self._state:
            self._forks -= 1
            if not self._forks:
                self._noisy = False
                self._state.notify_all()

    def after_fork_in_child(self) -> None:
        self._inherited = self._noisy
        for inherited in (*(reader.connection for reader in self._idle), self._writer):
            immortalise(inherited)
        self._writer = None
        self._start()

    # -- lending

    def _lend(self) -> None:
        with self._state:
            if self._forks and not self._state.wait_for(lambda: not self._forks, timeout=self._busy_s):
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

    def _keep_or_close(self, reader: Reader) -> None:
        with self._state:
            if len(self._idle) < READERS_KEPT and not self._closed and reader.trust == self._distrusts:
                self._idle.append(reader)
                return
        reader.connection.close()

    def _close_all(self) -> None:
        with translated():
            while self._idle:
                self._idle.pop().connection.close()
            if self._writer is not None:
                self._writer.close()
                self._writer = None
