"""The connections of one SQLite file: one writer, a few readers, what a fork does to them, and the driver's errors as ours."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import apsw

from perdure.adapters.forks import immortalise
from perdure.adapters.sqlite.cipher import NO_FILE, Cipher, inode
from perdure.domain.errors import Conflict, Corrupt, InvalidInput, LimitExceeded, PerdureError, Unavailable, Unsupported

# "PERD": marks the file as ours, so that another program's database is never written to.
APPLICATION_ID = 0x50455244
WAL_BYTES_KEPT = 64 * 1024 * 1024
CACHE_KIB = 16 * 1024

BUSY = "the SQLite file{at} is busy: another process has been writing for longer than the deadline; try again"

# Every error class of the driver, by what the caller can do. A test fails when apsw gains one that is missing here.
MEANING: dict[type[Exception], tuple[type[PerdureError], str]] = {
    apsw.BusyError: (Unavailable, BUSY),
    apsw.LockedError: (Unavailable, BUSY),
    apsw.ProtocolError: (Unavailable, BUSY),
    apsw.SchemaChangeError: (Unavailable, "the schema changed under the statement; try again"),
    apsw.InterruptError: (Unavailable, "the statement was interrupted; try again"),
    apsw.AbortError: (Unavailable, "the statement was aborted; try again"),
    apsw.FullError: (Unavailable, "the disk is full; free some space, then try again"),
    apsw.IOError: (Unavailable, "the disk refused to read or write; check its space, limits and health, then try again"),
    apsw.NoMemError: (Unavailable, "SQLite ran out of memory; free some, then try again"),
    apsw.CantOpenError: (
        Unavailable,
        "the SQLite file{at} cannot be opened; check that its directory exists, and that both may be read and written",
    ),
    apsw.PermissionsError: (Unavailable, "the SQLite file{at} may not be accessed; check its permissions"),
    apsw.ReadOnlyError: (Unavailable, "the SQLite file{at} may not be written; check its permissions and its file system"),
    apsw.ConnectionClosedError: (Unavailable, "the store is closed; open it again"),
    apsw.CursorClosedError: (Unavailable, "the store is closed; open it again"),
    apsw.VFSFileClosedError: (Unavailable, "the store is closed; open it again"),
    apsw.CorruptError: (
        Corrupt,
        "the SQLite file{at} is damaged; stop, restore a backup; `perdure admin verify` says what is hit, if it can read it",
    ),
    apsw.NotADBError: (Corrupt, "the file{at} is not a SQLite database; check the path, or restore a backup"),
    apsw.FormatError: (Corrupt, "the file{at} is not a SQLite database; check the path, or restore a backup"),
    apsw.EmptyError: (
        Corrupt,
        "the SQLite file{at} is damaged; stop, restore a backup; `perdure admin verify` says what is hit, if it can read it",
    ),
    apsw.ConstraintError: (Conflict, "a constraint of the schema refused the write; read again, then decide"),
    apsw.TooBigError: (LimitExceeded, "a value is larger than SQLite can hold; send less"),
    apsw.MismatchError: (InvalidInput, "a value has a type that its column refuses"),
    apsw.RangeError: (InvalidInput, "a statement was given the wrong number of values"),
    apsw.BindingsError: (InvalidInput, "a statement was given the wrong number of values"),
    apsw.AuthError: (Unsupported, "SQLite was told not to allow this"),
    apsw.NoLFSError: (Unsupported, "this system lacks large files, which SQLite needs"),
    apsw.NoFTS5Error: (Unsupported, "this SQLite was built without FTS5"),
    apsw.ExtensionLoadingError: (Unsupported, "an extension could not be loaded"),
    apsw.VFSNotImplementedError: (Unsupported, "the virtual file system lacks a method"),
    apsw.NotFoundError: (Unsupported, "SQLite does not know this operation"),
    # These mean a mistake in perdure itself; they stay what they are and fail loudly.
    apsw.SQLError: (PerdureError, "perdure sent SQL that SQLite refuses; please report this"),
    apsw.MisuseError: (PerdureError, "perdure misused SQLite; please report this"),
    apsw.InternalError: (PerdureError, "SQLite failed inside; please report this"),
    apsw.ThreadingViolationError: (PerdureError, "perdure used one connection in two threads; please report this"),
    apsw.ForkingViolationError: (PerdureError, "perdure used a connection after a fork; please report this"),
    apsw.IncompleteExecutionError: (PerdureError, "perdure left a statement unfinished; please report this"),
    apsw.ExecutionCompleteError: (PerdureError, "perdure read past a statement's end; please report this"),
    apsw.ConnectionNotClosedError: (PerdureError, "perdure left a connection open; please report this"),
    apsw.InvalidContextError: (PerdureError, "perdure used a SQLite context too late; please report this"),
    apsw.ExecTraceAbort: (PerdureError, "a trace callback stopped the statement"),
}


@contextmanager
def translated(path: Path | None = None) -> Iterator[None]:
    """Everything the driver raises inside leaves as one of our errors, with the cause kept; they name the file at `path`."""
    try:
        yield
    except apsw.Error as error:
        raise in_our_words(error, path) from error


def in_our_words(error: apsw.Error, path: Path | None = None) -> PerdureError:
    kind, words = MEANING.get(type(error), (PerdureError, "SQLite failed; please report this"))
    words = words.replace("{at}", "" if path is None else f" {path}")
    if kind in (Conflict, PerdureError, Unsupported):
        words = f"{words} (SQLite says: {error})"
    return kind(words)


PAUSE_STEP_S = 0.000_01
PAUSE_SHORT_S = 0.000_2
PAUSE_LONG_S = 0.002
TRIES_SHORT = 200
"""After so many short pauses the file is held by more than a commit."""


class BusyHandler:
    """SQLite's busy handler: spread-out waits until a deadline, so that no writer starves behind the others. They begin shorter
    than a commit, so that the file is not idle between two writers, and grow when somebody holds it for long.
    """

    def __init__(self, seconds: float) -> None:
        self.default_s = seconds
        self.until = 0.0

    def start(self, seconds: float | None) -> None:
        self.until = time.monotonic() + (self.default_s if seconds is None else seconds)

    def __call__(self, tries: int) -> bool:
        if time.monotonic() >= self.until:
            return False
        most_s = PAUSE_LONG_S if tries > TRIES_SHORT else min(PAUSE_SHORT_S, tries * PAUSE_STEP_S)
        time.sleep(PAUSE_STEP_S + most_s * random.random())
        return True


def connect(path: str, *, synchronous: str, patience: Callable[[int], bool], cipher: Cipher | None = None) -> apsw.Connection:
    """A connection with every setting the store relies on."""
    connection = apsw.Connection(path, statementcachesize=128) if cipher is None else cipher.open()
    connection.set_busy_handler(patience)
    if connection.execute("PRAGMA page_count").fetchall() == [(0,)]:
        # Heard by a file without content alone; another one would be written to.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    # With STAT4, which apsw's SQLite has, binding a value may compile the statement anew to see whether another plan suits
    # that value better: 28 µs instead of 1.6 µs per look-up. Our plans must not depend on values.
    if cipher is None:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    # WAL is a property of the file; asking for it again costs nothing.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_KEPT}")
    # What is removed is overwritten in the transaction that removes it.
    connection.execute("PRAGMA secure_delete = ON")
    return connection


def _unlocked(file: tuple[int, int]) -> bool:
    """Whether this process has the file open and no lock on it, although every connection holds one. Linux alone tells."""
    opened = False
    with suppress(OSError):
        for descriptor in (OURSELVES / "fd").iterdir():
            with suppress(OSError):
                if inode(descriptor) != file:
                    continue
                if "lock:" in (OURSELVES / "fdinfo" / descriptor.name).read_text():
                    return False
                opened = True
    return opened


OURSELVES = Path("/proc/self")
READERS_KEPT = 8
# After these a connection's picture of the file may be wrong. One that SQLite could open for reading only stays so, and so
# does what the connections of a process share of the log, until the last of them is closed.
DISTRUSTED = (apsw.IOError, apsw.FullError, apsw.CorruptError, apsw.NotADBError, apsw.ReadOnlyError, apsw.CantOpenError)
FORK_WAIT_S = 5.0


class ReadConnection(NamedTuple):
    """A reading connection and the busy handler it was opened with."""

    connection: apsw.Connection
    patience: BusyHandler
    trust: int
    """How often connections had been distrusted when it was opened."""


class SqlitePool:
    """Lends connections. Nothing is lent while a fork is under way, nor after `close`."""

    def __init__(self, path: str, *, synchronous: str, busy_s: float, cipher: Cipher | None = None) -> None:
        self.path = path
        self.patience = BusyHandler(busy_s)
        self._synchronous = synchronous
        self._busy_s = busy_s
        self._cipher = cipher
        self._writer: apsw.Connection | None = None
        self._closed = False
        self._inherited = False
        self._distrusts = 0
        self._file = inode(path)
        self._start()

    def _start(self) -> None:
        self._idle: list[ReadConnection] = []
        self._state = threading.Condition(threading.Lock())
        self._lent = 0
        self._forks = 0
        self._noisy = False

    def _open(self, patience: BusyHandler) -> apsw.Connection:
        until = time.monotonic() + self._busy_s
        while True:
            # The log lies beside the file under its name: beside another file it would be taken for that one's.
            self.check_file()
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

    def check_file(self) -> None:
        """`Unavailable` if the file was removed, or another one stands under its name: what is written goes nowhere then."""
        if self._file == NO_FILE:
            self._file = inode(self.path)
        elif not self._is_there():
            raise Unavailable(
                f"the store's file {self.path} was removed or replaced while it was open, so it is not written any more; "
                "put the right file in place, then open the store again"
            )

    def _is_there(self) -> bool:
        try:
            found = os.stat(self.path)  # noqa: PTH116 - every commit passes here, and a `Path` takes three times as long
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._file

    def locks_dropped(self) -> bool:
        """Whether something in this process has closed the file behind SQLite's back, as far as the system tells."""
        with self.reader():
            return _unlocked(self._file)

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
        lent: ReadConnection | None = None
        try:
            with self._state:
                lent = self._idle.pop() if self._idle else None
            if lent is None:
                patience = BusyHandler(self._busy_s)
                patience.start(deadline_s)
                lent = ReadConnection(self._open(patience), patience, self._distrusts)
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
    def own(self, wait_s: float | None = None) -> Iterator[apsw.Connection]:
        """A connection for this one use: for what neither the writer nor a reader may do. It waits so long for others."""
        self._lend()
        try:
            patience = BusyHandler(self._busy_s if wait_s is None else wait_s)
            patience.start(None)
            connection = self._open(patience)
            try:
                yield connection
                self.check_file()
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

    def _keep_or_close(self, reader: ReadConnection) -> None:
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
