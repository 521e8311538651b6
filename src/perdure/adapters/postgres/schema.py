"""Bringing a PostgreSQL schema to the current version, and telling whether it is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import Cursor, sql

from perdure.adapters.sql.statements import AppliedMigration, Migration, pending
from perdure.domain.errors import InvalidInput, Unavailable

# Any fixed number: only one process migrates at a time.
LOCK = 0x50455244
APP_ROLE = "perdure_app"

MIGRATIONS_TABLE = """
CREATE TABLE perdure_migrations (
    version bigint PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL
)
"""


def migrate(cursor: Cursor[Any], schema: str, known: Sequence[Migration], current: str) -> int:
    """Make the schema, or run what is missing, each migration in its own transaction; the version reached.

    The cursor is in autocommit mode, and each statement may meet another session. A role that may not create anything can
    still open a store that is up to date.
    """
    while pending(known, applied(cursor, schema)):
        with cursor.connection.transaction():
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            cursor.execute(sql.SQL("SET LOCAL search_path TO {}").format(sql.Identifier(schema)))
            # Look again under the lock: another process may have been faster.
            missing = pending(known, applied(cursor, schema))
            if len(missing) == len(known):
                make_schema(cursor, schema)
                create(cursor, current, known)
            elif missing:
                apply(cursor, missing[0])
    return len(known)


def make_schema(cursor: Cursor[Any], schema: str) -> None:
    cursor.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,))
    if cursor.fetchone() is None:
        cursor.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s LIMIT 1", (schema,))
    foreign = cursor.fetchone()
    if foreign is not None:
        raise InvalidInput(
            f"schema `{schema}` holds table {foreign[0]!r:.60} of another program; set `postgres_schema` to another name"
        )


def create(cursor: Cursor[Any], current: str, known: Sequence[Migration]) -> None:
    """A new store: the schema as it is today, with every migration noted as done."""
    cursor.execute(MIGRATIONS_TABLE)
    cursor.execute(current.encode())
    for migration in known:
        _note(cursor, migration)


def apply(cursor: Cursor[Any], migration: Migration) -> None:
    if migration.version == 1:
        cursor.execute(MIGRATIONS_TABLE)
    cursor.execute(migration.sql.encode())
    _note(cursor, migration)


def applied(cursor: Cursor[Any], schema: str) -> list[AppliedMigration]:
    cursor.execute("SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'perdure_migrations'", (schema,))
    if cursor.fetchone() is None:
        return []
    cursor.execute("SELECT has_schema_privilege(%s, 'USAGE')", (schema,))
    if cursor.fetchone() != (True,):
        raise Unavailable(f"the role may not use schema `{schema}`; grant it, see docs/how-to/postgresql.md")
    held = sql.SQL("SELECT version, checksum FROM {} ORDER BY version")
    cursor.execute(held.format(sql.Identifier(schema, "perdure_migrations")))
    return [AppliedMigration(version, checksum) for version, checksum in cursor.fetchall()]


def app_role(cursor: Cursor[Any], schema: str) -> str | None:
    """The role to work under if the login role is exempt from row-level security; None if it is not, and needs none."""
    if not exempt(cursor) and not _owns_unforced(cursor, schema):
        return None
    with cursor.connection.transaction():
        cursor.execute("SELECT current_setting('transaction_read_only')")
        # A replica has the role and what it was granted from its primary.
        if cursor.fetchone() != ("on",):
            _grant(cursor, schema)
        # Fails here, where it is understood, if the login role may not take on the other one.
        cursor.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(APP_ROLE)))
    return APP_ROLE


def exempt(cursor: Cursor[Any]) -> bool:
    """Whether no row-level security binds the login role."""
    return cursor.execute("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user").fetchall() == [(True,)]


def _owns_unforced(cursor: Cursor[Any], schema: str) -> bool:
    """Whether it owns tables whose owner is not bound, as those that are distributed over many servers."""
    cursor.execute(UNFORCED, (schema,))
    return cursor.fetchone() is not None


UNFORCED = """
SELECT 1 FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s) AND relkind IN ('r', 'p')
AND relrowsecurity AND NOT relforcerowsecurity AND NOT relispartition AND pg_has_role(relowner, 'USAGE') LIMIT 1
"""


def size(cursor: Cursor[Any], schema: str) -> int:
    """The bytes of all tables."""
    total = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
    named = "WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s) AND relkind = 'r'"
    [(held,)] = cursor.execute(f"{total} {named}".encode(), (schema,)).fetchall()
    return int(held)


def _grant(cursor: Cursor[Any], schema: str) -> None:
    cursor.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
    cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (APP_ROLE,))
    if cursor.fetchone() is None:
        cursor.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(APP_ROLE)))
    names = {"role": sql.Identifier(APP_ROLE), "schema": sql.Identifier(schema)}
    cursor.execute(sql.SQL("GRANT USAGE ON SCHEMA {schema} TO {role}").format(**names))
    cursor.execute(sql.SQL("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}").format(**names))


def catalog(cursor: Cursor[Any], schema: str) -> set[tuple[str, str, str]]:
    """Columns, constraints, indexes and policies with their definitions: equal for equal schemas."""
    cursor.execute(CATALOG, {"schema": schema})
    return set(cursor.fetchall())


CATALOG = """
SELECT 'column', c.relname || '.' || a.attname,
       format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
       || coalesce(' collate ' || l.collname, '') || CASE WHEN a.attstattarget = 0 THEN ' not sampled' ELSE '' END
FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %(schema)s) AND c.relkind = 'r' AND a.attnum > 0
  AND NOT a.attisdropped
UNION ALL
SELECT 'constraint', c.relname || '.' || k.conname,
       replace(pg_get_constraintdef(k.oid), quote_ident(%(schema)s) || '.', '')
FROM pg_constraint AS k JOIN pg_class AS c ON c.oid = k.conrelid
WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %(schema)s) AND k.contype <> 'n'
UNION ALL
SELECT 'index', indexname, replace(indexdef, quote_ident(%(schema)s) || '.', '') FROM pg_indexes WHERE schemaname = %(schema)s
UNION ALL
SELECT 'policy', tablename || '.' || policyname, coalesce(qual, '') || ' / ' || coalesce(with_check, '')
FROM pg_policies WHERE schemaname = %(schema)s
UNION ALL
SELECT 'row security', relname, relrowsecurity::text || ' ' || relforcerowsecurity::text FROM pg_class
WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %(schema)s) AND relkind = 'r'
"""


def _note(cursor: Cursor[Any], migration: Migration) -> None:
    values = (migration.version, migration.name, migration.checksum)
    cursor.execute("INSERT INTO perdure_migrations VALUES (%s, %s, %s)", values)
