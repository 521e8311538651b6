"""SQLite files that are encrypted: SQLCipher behind the part of apsw's connection that the store uses.

The driver is an extra. The key is derived once per store, exactly as SQLCipher derives it from a passphrase, so that its
own tools open the file too; connections are then given the derived key, which saves each of them a tenth of a second.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import apsw

from perdure.domain.errors import InvalidInput, Unsupported

PLAIN = b"SQLite format 3\0"
SALT_BYTES = 16
PAGE_BYTES = 4096
# SQLCipher 4's own choice: https://www.zetetic.net/sqlcipher/sqlcipher-api/#kdf_iter
ROUNDS = 256_000
KEY_BYTES_MAX = 1_000
# Until the store says how long it waits for others: the first page is read before.
OPENING_S = 30.0


class Cipher:
    """How the file at `path` is opened with a passphrase."""

    def __init__(self, path: str, passphrase: str) -> None:
        try:
            from sqlcipher3 import dbapi2
        except ImportError as error:
            raise Unsupported(
                "an encrypted store needs `sqlcipher3`; install it with: pip install 'perdure[encryption]'"
            ) from error
        if not 0 < len(passphrase.encode()) <= KEY_BYTES_MAX or "\0" in passphrase:
            raise InvalidInput(f"the encryption key must have 1 to {KEY_BYTES_MAX} bytes and no NUL character; choose another")
        self._driver: Any = dbapi2
        self._path = path
        self._passphrase = passphrase

    @property
    def versions(self) -> dict[str, str]:
        """It brings a SQLite of its own."""
        connection = self._driver.connect(":memory:")
        try:
            [(sqlite,)] = connection.execute("SELECT sqlite_version()").fetchall()
            [(cipher,)] = connection.execute("PRAGMA cipher_version").fetchall()
            return {"sqlite": str(sqlite), "sqlcipher": str(cipher)}
        finally:
            connection.close()

    def open(self, *, read_only: bool = False) -> apsw.Connection:
        """A connection that can read the file. A key that does not fit is `InvalidInput`."""
        salt = _salt(self._path)
        try:
            # A salt of zeros was never drawn: a power cut came before the first page was whole, and SQLite takes that one back.
            return self._opened(salt, read_only) if any(salt) or read_only else self._make()
        except apsw.NotADBError:
            # Another process made the file meanwhile, or it is another file under the number of one that was removed.
            _salts.pop(inode(self._path), None)
        try:
            return self._opened(_salt(self._path), read_only)
        except apsw.NotADBError:
            raise self._refusal() from None

    def _make(self) -> apsw.Connection:
        """On a file that has nothing yet: its first page, which carries the salt, is written under the lock, so that of several
        processes one decides it."""
        salt = os.urandom(SALT_BYTES)
        connection = self._opened(salt, read_only=False)
        try:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("PRAGMA user_version = 0")
            connection.execute("COMMIT")
        except apsw.Error:
            connection.close()
            raise
        _remember(self._path, salt)
        return connection

    def _opened(self, salt: bytes, read_only: bool) -> apsw.Connection:
        connection = CipherConnection(self._driver, self._path, read_only=read_only)
        try:
            # What it would write to standard error, we say as an error.
            connection.execute("PRAGMA cipher_log_level = NONE")
            if salt:
                connection.execute(f"PRAGMA key = \"x'{_derived(self._passphrase, salt).hex()}{salt.hex()}'\"")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        except apsw.Error:
            connection.close()
            raise
        # It is no apsw connection, but all that the store asks of one: the tests run the whole contract on it.
        return cast(apsw.Connection, connection)

    def _refusal(self) -> InvalidInput:
        # Somebody may have made a plain store here since we looked.
        refuse_mismatch(self._path, with_key=True)
        return InvalidInput(
            f"the encryption key does not open the store at {self._path}; give the key it was made with "
            "(or the file is damaged: restore a backup)"
        )


def refuse_mismatch(path: str, *, with_key: bool) -> None:
    """Refuse a plain store opened with a key, and an encrypted one without, before anything is changed in it."""
    head = _head(path)
    if with_key and head == PLAIN:
        raise InvalidInput(
            f"the store at {path} is not encrypted; open it without `encryption_key`, or encrypt it: `perdure admin backup` "
            "it, then `perdure admin restore` into a new file with the key"
        )
    # Encrypted files consist of whole pages; what does not is no database at all, and opening it will say so.
    # A head of zeros was never written: the set-up of a plain store was cut short, and SQLite takes it back.
    if not with_key and len(head) == SALT_BYTES and any(head) and head != PLAIN and Path(path).stat().st_size % PAGE_BYTES == 0:
        raise InvalidInput(
            f"the file at {path} is encrypted, or no SQLite database; if it is a perdure store, set `encryption_key` "
            "(PERDURE_ENCRYPTION_KEY) to the key it was made with"
        )


_salts: dict[tuple[int, int], bytes] = {}
SALTS_MAX = 1_000
NO_FILE = (0, 0)


def _salt(path: str) -> bytes:
    """The salt of an encrypted file; empty if it has no content. Read once per file and process: SQLCipher has a table of
    locks of its own, and closing the file behind its back drops what this process has locked (see `_head`)."""
    found = _salts.get(inode(path), b"")
    if not found and len(found := _head(path)) == SALT_BYTES:
        _remember(path, found)
    return found if len(found) == SALT_BYTES else b""


def _remember(path: str, salt: bytes) -> None:
    if len(_salts) >= SALTS_MAX:
        _salts.clear()
    _salts[inode(path)] = salt


def inode(path: str | Path) -> tuple[int, int]:
    """What tells a file from another one of the same name; `NO_FILE` if there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return NO_FILE
    return (found.st_dev, found.st_ino)


@lru_cache(maxsize=4)
def _derived(passphrase: str, salt: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha512", passphrase.encode(), salt, ROUNDS, 32)


def _head(path: str) -> bytes:
    """Read by SQLite's own file layer: closing the file in any other way drops every lock that this process has on it.

    https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_
    """
    try:
        file = apsw.VFSFile("", str(Path(path).absolute()), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
    except apsw.Error:
        return b""
    try:
        return file.xRead(min(SALT_BYTES, file.xFileSize()), 0)
    finally:
        file.xClose()


class CipherConnection:
    """What the store uses of `apsw.Connection`, on SQLCipher's driver, with apsw's errors."""

    def __init__(self, driver: Any, path: str, *, read_only: bool) -> None:
        where = f"{Path(path).absolute().as_uri()}?mode=ro" if read_only else path
        with _apsw_errors(driver):
            # Transactions are begun and ended by the store alone; threads take turns, as with apsw.
            self._connection = driver.connect(
                where, uri=read_only, isolation_level=None, check_same_thread=False, timeout=OPENING_S, cached_statements=128
            )
        self._driver = driver
        self._changes = 0

    def execute(self, sql: str, values: tuple[Any, ...] = ()) -> CipherCursor:
        with _apsw_errors(self._driver):
            try:
                cursor = self._connection.execute(sql, values)
            except self._driver.Warning:
                # The driver takes one statement at a time; schemas and migrations have many.
                for statement in _statements(sql):
                    cursor = self._connection.execute(statement)
            if cursor.rowcount >= 0:
                self._changes = cursor.rowcount
            return CipherCursor(self._driver, cursor)

    def executemany(self, sql: str, many: Iterable[tuple[Any, ...]]) -> CipherCursor:
        with _apsw_errors(self._driver):
            return CipherCursor(self._driver, self._connection.executemany(sql, many))

    def changes(self) -> int:
        return self._changes

    def total_changes(self) -> int:
        return int(self._connection.total_changes)

    @property
    def in_transaction(self) -> bool:
        return bool(self._connection.in_transaction)

    def set_busy_handler(self, handler: Callable[[int], bool]) -> None:
        self._connection.set_busy_handler(handler)

    def set_busy_timeout(self, milliseconds: int) -> None:
        self._connection.set_busy_timeout(milliseconds / 1000)

    def interrupt(self) -> None:
        self._connection.interrupt()

    def close(self) -> None:
        with _apsw_errors(self._driver):
            self._connection.close()


class CipherCursor:
    """A cursor whose errors are apsw's too."""

    def __init__(self, driver: Any, cursor: Any) -> None:
        self._driver = driver
        self._cursor = cursor

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while (row := self.fetchone()) is not None:
            yield row

    def fetchone(self) -> tuple[Any, ...] | None:
        with _apsw_errors(self._driver):
            found: tuple[Any, ...] | None = self._cursor.fetchone()
            return found

    def fetchall(self) -> list[tuple[Any, ...]]:
        with _apsw_errors(self._driver):
            found: list[tuple[Any, ...]] = self._cursor.fetchall()
            return found


@contextmanager
def _apsw_errors(driver: Any) -> Iterator[None]:
    try:
        yield
    except driver.ProgrammingError as error:
        if "closed" in str(error):
            raise apsw.ConnectionClosedError(str(error)) from error
        raise apsw.MisuseError(str(error)) from error
    except driver.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        kind = type(apsw.exception_for(code)) if code else apsw.SQLError
        raise kind(str(error)) from error


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for piece in script.split(";"):
        statement += piece
        if sqlite3.complete_statement(f"{statement};"):
            if statement.strip():
                yield statement
            statement = ""
        else:
            statement += ";"
