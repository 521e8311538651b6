"""Rewriting the tables, so that nothing of what was removed is left in their files. Never within a call that forgets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from psycopg import Cursor, errors

from perdure.adapters.postgres.connections import DeadlineConnection
from perdure.domain.errors import Unavailable, Unsupported
from perdure.ports.store import Progress

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
