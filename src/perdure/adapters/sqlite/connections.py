"""Opening SQLite connections the way the store needs them, and turning the driver's errors into ours."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw

from perdure.adapters.sqlite.ciphered import Cipher
from perdure.domain.errors import Conflict, Corrupt, InvalidInput, LimitExceeded, PerdureError, Unavailable, Unsupported

# "PERD": marks the file as ours, so that another program's database is never written to.
APPLICATION_ID = 0x50455244
WAL_BYTES_KEPT = 64 * 1024 * 1024
CACHE_KIB = 16 * 1024

BUSY = "the SQLite file is busy: another process has been writing for longer than the deadline; try again"

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
        "the SQLite file cannot be opened; check that its directory exists, and that both may be read and written",
    ),
    apsw.PermissionsError: (Unavailable, "the SQLite file may not be accessed; check its permissions"),
    apsw.ReadOnlyError: (Unavailable, "the SQLite file may not be written; check its permissions and its file system"),
    apsw.ConnectionClosedError: (Unavailable, "the store is closed; open it again"),
    apsw.CursorClosedError: (Unavailable, "the store is closed; open it again"),
    apsw.VFSFileClosedError: (Unavailable, "the store is closed; open it again"),
    apsw.CorruptError: (
        Corrupt,
        "the SQLite file is damaged; stop, restore a backup; `perdure verify` says what is hit, if it can read it",
    ),
    apsw.NotADBError: (Corrupt, "the file is not a SQLite database; check the path, or restore a backup"),
    apsw.FormatError: (Corrupt, "the file is not a SQLite database; check the path, or restore a backup"),
    apsw.EmptyError: (
        Corrupt,
        "the SQLite file is damaged; stop, restore a backup; `perdure verify` says what is hit, if it can read it",
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
def translated() -> Iterator[None]:
    """Everything the driver raises inside leaves as one of our errors, with the cause kept."""
    try:
        yield
    except apsw.Error as error:
        raise in_our_words(error) from error


def in_our_words(error: apsw.Error) -> PerdureError:
    kind, words = MEANING.get(type(error), (PerdureError, "SQLite failed; please report this"))
    if kind in (Conflict, PerdureError, Unsupported):
        words = f"{words} (SQLite says: {error})"
    return kind(words)


class Patience:
    """SQLite's busy handler: short, spread-out waits until a deadline, so that no writer starves behind the others."""

    def __init__(self, seconds: float) -> None:
        self.default_s = seconds
        self.until = 0.0

    def start(self, seconds: float | None) -> None:
        self.until = time.monotonic() + (self.default_s if seconds is None else seconds)

    def __call__(self, _tries: int) -> bool:
        if time.monotonic() >= self.until:
            return False
        time.sleep(0.0002 + 0.0018 * random.random())
        return True


def connect(path: str, *, synchronous: str, patience: Callable[[int], bool], cipher: Cipher | None = None) -> apsw.Connection:
    """A connection with every setting the store relies on."""
    connection = apsw.Connection(path, statementcachesize=128) if cipher is None else cipher.open()
    connection.set_busy_handler(patience)
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
    return connection
