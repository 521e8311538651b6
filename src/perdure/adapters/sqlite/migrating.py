"""Bringing a SQLite file to the current schema, and telling whether it is there."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from perdure.adapters.sqlfiles import Applied, Migration, pending
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


def applied(connection: apsw.Connection) -> list[Applied]:
    if not _has_table(connection, "perdure_migrations"):
        return []
    found = connection.execute("SELECT version, checksum FROM perdure_migrations ORDER BY version")
    return [Applied(version, checksum) for version, checksum in found]


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


def refuse_foreign(path: str, busy_s: float) -> None:
    """Refuse a file that another program made, before anything is changed in it."""
    connection: apsw.Connection | None = None
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(int(busy_s * 1000))
        found = connection.execute("SELECT name FROM sqlite_schema LIMIT 1").fetchone()
        ours = _has_table(connection, "perdure_migrations")
    except apsw.CantOpenError:
        return  # not there yet, or not ours to see: opening it for writing will tell
    finally:
        if connection is not None:
            connection.close()
    if found is not None and not ours:
        raise InvalidInput(
            f"the SQLite file holds {found[0]!r:.60} of another program and is not a perdure store; choose another file"
        )
