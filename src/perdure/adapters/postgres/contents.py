"""Filling tables with rows that come from elsewhere: a whole store, or one owner's, inside a transaction that is open."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from psycopg import Cursor

from perdure.adapters.postgres import schema as migrating
from perdure.adapters.postgres.connections import DeadlineConnection
from perdure.adapters.postgres.statements import COMMITS, FETCH_ROWS, MARK, PostgresStatements
from perdure.adapters.sql.files import Migration
from perdure.adapters.sql.statements import deletion, insertion
from perdure.domain.scope import Owner
from perdure.ports.store import Row
from perdure.ports.tables.index import INDEX_SINCE, seed_rows
from perdure.ports.tables.rows import LEAVING, TABLES, holds_rows, owned

Tables = Iterable[tuple[str, Iterator[Row]]]


def take_over(
    cursor: Cursor[Any], schema_version: int, tables: Tables, known: Sequence[Migration], deadline_s: float
) -> Mapping[str, int]:
    """Put these rows in the place of all that the store holds, then migrate them; how many came of each table."""
    if schema_version == len(known):
        # The tables stay, and with them the grants that others were given.
        cursor.execute(f"TRUNCATE {', '.join((*TABLES, COMMITS))}".encode())
    else:
        cursor.execute(f"DROP TABLE {', '.join((*TABLES, COMMITS, 'perdure_migrations'))}".encode())
        for migration in known[:schema_version]:
            migrating.apply(cursor, migration)
    counts: dict[str, int] = {}
    for table, content in tables:
        counts[table] = 0
        while page := [row for _, row in zip(range(FETCH_ROWS), content, strict=False)]:
            _go_on(cursor, deadline_s)
            marks = ", ".join(["%s"] * len(page[0]))
            cursor.executemany(f"INSERT INTO {table} VALUES ({marks})".encode(), page)
            counts[table] += len(page)
    for migration in known[schema_version:]:
        migrating.apply(cursor, migration)
    if schema_version >= INDEX_SINCE and "index_heads" not in counts:
        run = PostgresStatements(cursor, writing=True)
        run.change("seed_index_heads")
        run.change("seed_index_jobs")
    return counts


def fill(cursor: Cursor[Any], owner: Owner, tables: Tables, *, replace: bool, deadline_s: float) -> Mapping[str, int]:
    """Make these rows all that the owner has; how many came of each table."""
    _empty(cursor, owner, replace=replace)
    counts: dict[str, int] = {}
    for table, content in tables:
        counts[table] = 0
        while page := [owned(owner, row) for _, row in zip(range(FETCH_ROWS), content, strict=False)]:
            _go_on(cursor, deadline_s)
            cursor.executemany(insertion(table, MARK).sql, page)
            counts[table] += len(page)
    _go_on(cursor, deadline_s)
    seeds = seed_rows(owner, os.urandom(8).hex(), counts)
    for table, row in seeds:
        cursor.execute(insertion(table, MARK).sql, row)
    _refuse_others(cursor, owner, Counter(counts) + Counter(table for table, _ in seeds))
    return counts


def _empty(cursor: Cursor[Any], owner: Owner, *, replace: bool) -> None:
    for table in reversed(LEAVING):
        if cursor.execute(deletion(table, MARK).sql, (owner.space, owner.user)).rowcount and not replace:
            raise holds_rows(owner)


def _refuse_others(cursor: Cursor[Any], owner: Owner, counts: Mapping[str, int]) -> None:
    """Writers go on meanwhile: what one of them stored for this owner since we began must not be mixed in."""
    for table in LEAVING:
        query = f"SELECT count(*) FROM {table} WHERE space = %s AND user_id = %s"
        [(held,)] = cursor.execute(query.encode(), (owner.space, owner.user)).fetchall()
        if held != counts.get(table, 0):
            raise holds_rows(owner)


def _go_on(cursor: Cursor[Any], deadline_s: float) -> None:
    """A long work has come to its next part: that has as much time as the first."""
    if isinstance(cursor.connection, DeadlineConnection):
        cursor.connection.allow(deadline_s)
