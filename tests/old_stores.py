"""Stores and backups as earlier versions of perdure left them: their schema, with rows that a store of today holds."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import apsw
import psycopg
from psycopg import sql

import perdure
from perdure.adapters.postgres import schema as on_postgres
from perdure.adapters.postgres.store import PACKAGE as POSTGRES
from perdure.adapters.sql.statements import migrations
from perdure.adapters.sqlite import schema as on_sqlite
from perdure.adapters.sqlite.store import PACKAGE as SQLITE
from perdure.engine.knowledge.terms import NAME_KEY, UNKEYED
from perdure.ports.store import Row
from perdure.ports.tables.rows import TABLES

Rows = dict[str, list[Row]]
NAME_KEYS_SINCE = 11


def columns_of(version: int) -> dict[str, list[str]]:
    """The tables of a schema version with their columns, in an order in which rows can be loaded."""
    connection = apsw.Connection(":memory:")
    for migration in migrations(SQLITE)[:version]:
        on_sqlite.apply(connection, migration)
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    return {name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")] for name in TABLES if name in names}


def rows_of(engine: perdure.Engine, version: int, *, rebuilt: bool = True) -> Rows:
    """What a store of that version would hold of what `engine` holds; backups leave out what is rebuilt."""
    found: Rows = {}
    with engine._store.snapshot() as snapshot:
        for table, columns in columns_of(version).items():
            if rebuilt or not TABLES[table].rebuilt:
                places = [TABLES[table].columns.index(name) for name in columns]
                found[table] = [tuple(row[place] for place in places) for row in snapshot.rows(table)]
    if version < NAME_KEYS_SINCE and "record_terms" in found:
        # Neither the keys nor the mark of an entity that has none yet.
        found["record_terms"] = [row for row in found["record_terms"] if not {NAME_KEY, UNKEYED[0]} & {*row}]
    return found


def build(backend: Any, version: int, rows: Rows) -> None:
    """A store of that version with these rows."""
    if backend.name == "sqlite":
        connection = apsw.Connection(backend.url.removeprefix("sqlite:///"))
        for migration in migrations(SQLITE)[:version]:
            on_sqlite.apply(connection, migration)
        connection.execute("BEGIN; PRAGMA defer_foreign_keys = ON")
        for table, content in rows.items():
            for row in content:
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        connection.execute("COMMIT")
        connection.close()
        return
    with psycopg.connect(backend.url) as connection, connection.cursor() as cursor:
        cursor.execute(sql.SQL("CREATE SCHEMA {0}; SET search_path TO {0}").format(sql.Identifier(backend.schema)))
        for migration in migrations(POSTGRES)[:version]:
            on_postgres.apply(cursor, migration)
        for table, content in rows.items():
            for row in content:
                cursor.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})".encode(), row)


def write_backup(path: Path, version: int, rows: Rows) -> Path:
    """A backup as that version wrote it."""
    columns = columns_of(version)
    lines: list[object] = [{"format": "perdure-backup", "version": 1, "schema": version}]
    for table, content in rows.items():
        lines += [{"table": table, "columns": columns[table]}, *(list(row) for row in content)]
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    footer = {"rows": {table: len(content) for table, content in rows.items()}, "sha256": hashlib.sha256(body).hexdigest()}
    path.write_bytes(gzip.compress(body + json.dumps(footer).encode() + b"\n"))
    return path
