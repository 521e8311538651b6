"""Bringing a SQLite file to the current schema, and telling whether it is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from perdure.adapters.sql.statements import AppliedMigration, Migration, pending
from perdure.adapters.sqlite.cipher import Cipher, refuse_mismatch
from perdure.adapters.sqlite.connections import APPLICATION_ID
from perdure.domain.errors import InvalidInput

MIGRATIONS_TABLE = """
CREATE TABLE perdure_migrations (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL
) STRICT
"""


def migrate(connection: apsw.Connection, known: Sequence[Migration], schema: str) -> int:
    """Make the schema, or run what is missing, each migration in its own transaction; the version reached."""
    while True:
        if not _behind(connection, known):
            return len(known)
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Look again under the lock: another process may have been faster.
            missing = pending(known, applied(connection))
            if len(missing) == len(known):
                create(connection, schema, known)
            elif missing:
                apply(connection, missing[0])
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def create(connection: apsw.Connection, schema: str, known: Sequence[Migration]) -> None:
    """A new store: the schema as it is today, with every migration noted as done."""
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(MIGRATIONS_TABLE)
    connection.execute(schema)
    for migration in known:
        _note(connection, migration)


def apply(connection: apsw.Connection, migration: Migration) -> None:
    if not _has_table(connection, "perdure_migrations"):
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(MIGRATIONS_TABLE)
    connection.execute(migration.sql)
    _note(connection, migration)


def applied(connection: apsw.Connection) -> list[AppliedMigration]:
    if not _has_table(connection, "perdure_migrations"):
        return []
    found = connection.execute("SELECT version, checksum FROM perdure_migrations ORDER BY version")
    return [AppliedMigration(version, checksum) for version, checksum in found]


def catalog(connection: apsw.Connection) -> set[tuple[str, str, str]]:
    """Tables and indexes with their normalised SQL: equal for equal schemas."""
    found = connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'")
    return {(kind, name, " ".join(sql.split())) for kind, name, sql in found}


def _behind(connection: apsw.Connection, known: Sequence[Migration]) -> bool:
    return bool(pending(known, applied(connection)))


def _note(connection: apsw.Connection, migration: Migration) -> None:
    values = (migration.version, migration.name, migration.checksum)
    connection.execute("INSERT INTO perdure_migrations VALUES (?, ?, ?)", values)


def _has_table(connection: apsw.Connection, name: str) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (name,))
    return found.fetchone() is not None


def refuse_foreign(path: str, busy_s: float, known: Sequence[Migration], cipher: Cipher | None = None) -> None:
    """Refuse a file that another program or a newer perdure made, before anything is changed in it.

    Only looking leaves a log that a dead process left as it is; anyone who opens the file to write moves it into the file.
    """
    refuse_mismatch(path, with_key=cipher is not None)
    try:
        found, held = _first_table(path, busy_s, cipher, read_only=True)
    except apsw.CantOpenError:
        return  # not there yet, or not ours to see: opening it for writing will tell
    except apsw.ReadOnlyError:
        # Somebody was interrupted while changing it: SQLite takes that back first, and then anybody can read it again.
        found, held = _first_table(path, busy_s, cipher, read_only=False)
    if found is not None and held is None:
        raise InvalidInput(
            f"the SQLite file holds {found[0]!r:.60} of another program and is not a perdure store; choose another file"
        )
    pending(known, held or ())


def _first_table(
    path: str, busy_s: float, cipher: Cipher | None, *, read_only: bool
) -> tuple[tuple[Any, ...] | None, list[AppliedMigration] | None]:
    """The name of some table, if there is one, and what was applied; None if the file is not ours."""
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    connection = cipher.open(read_only=read_only) if cipher else apsw.Connection(path, flags=flags)
    try:
        connection.set_busy_timeout(int(busy_s * 1000))
        found = connection.execute("SELECT name FROM sqlite_schema LIMIT 1").fetchone()
        return found, applied(connection) if _has_table(connection, "perdure_migrations") else None
    finally:
        connection.close()
