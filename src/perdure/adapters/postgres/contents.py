"""Filling tables with rows that come from elsewhere, and rewriting them so that nothing removed is left in their files.

Filled are a whole store or one owner's rows, inside a transaction that is open. Rewritten is never within a call that forgets.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from psycopg import Cursor, errors

from perdure.adapters.postgres import schema as migrating
from perdure.adapters.postgres.connections import DeadlineConnection
from perdure.adapters.postgres.statements import COMMITS, FETCH_ROWS, MARK, PostgresStatements
from perdure.adapters.sql.statements import Migration, deletion, insertion
from perdure.domain.errors import Unavailable, Unsupported
from perdure.domain.scope import Owner
from perdure.ports.store import Progress, Row
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


MAINTENANCE_S = 3_600.0
PAUSE_FIRST_S = 0.1
PAUSE_MOST_S = 2.0
LOCK_WAIT_MS = 2_000
"""Others queue up behind one who waits for a table: it gives up before they do."""
PROBE = "perdure_migrations"
"""A table of a few rows, rewritten first to see whether a transaction from before is still under way."""
LEFT_TO_A_JOB = "PostgreSQL's tables are rewritten, one after the other"

OWNED = "SELECT bool_and(pg_has_role(relowner, 'USAGE')) FROM pg_class WHERE oid = ANY(%s::regclass[])"
# VACUUM FULL keeps removed rows that an older transaction may still look at, and notes up to which transaction it removed all.
# A table that is split into partitions has no rows of its own, and notes nothing.
LEFT_BEHIND = (
    "SELECT coalesce(bool_or(age(relfrozenxid) > age(%(since)s::xid)), false) FROM pg_class WHERE relkind = 'r' AND "
    "(oid = %(table)s::regclass OR oid IN (SELECT relid FROM pg_partition_tree(%(table)s::regclass)))"
)


def rewrite(connection: DeadlineConnection, tables: Sequence[str], *, wait_s: float, progress: Progress | None) -> None:
    """Write each of the tables anew, so that no transaction from before sees what was removed; `Unavailable` if one still does,
    or still uses a table, after `wait_s`. The first of them is the probe.
    """
    deadline = time.monotonic() + wait_s
    with connection.cursor() as cursor:
        if cursor.execute(OWNED, ([*tables],)).fetchone() != (True,):
            raise Unsupported("only the owner of the tables can purge them; run `perdure admin purge` as that role")
        [(now,)] = cursor.execute("SELECT pg_current_xact_id()::xid::text").fetchall()
        for number, table in enumerate(tables):
            _until_nobody_sees(connection, cursor, table, str(now), deadline)
            if progress is not None:
                progress("tables", number)


def _until_nobody_sees(connection: DeadlineConnection, cursor: Cursor[Any], table: str, now: str, deadline: float) -> None:
    pause_s = PAUSE_FIRST_S
    while True:
        connection.allow(MAINTENANCE_S)
        if _can_be_locked(connection, cursor, table):
            cursor.execute(f"VACUUM (FULL, ANALYZE) {table}".encode())
            if cursor.execute(LEFT_BEHIND, {"since": now, "table": table}).fetchall() != [(True,)]:
                return
        if time.monotonic() > deadline:
            raise Unavailable(
                f"a transaction that began before still uses {table} or sees removed rows; it continues when that has ended"
            )
        time.sleep(pause_s)
        pause_s = min(PAUSE_MOST_S, 2 * pause_s)


def _can_be_locked(connection: DeadlineConnection, cursor: Cursor[Any], table: str) -> bool:
    """Whether nobody uses the table just now. VACUUM cannot be told to give up where no session is ours alone."""
    try:
        with connection.transaction():
            cursor.execute(f"SET LOCAL lock_timeout = {LOCK_WAIT_MS}".encode())
            cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE".encode())
    except errors.LockNotAvailable:
        return False
    return True
