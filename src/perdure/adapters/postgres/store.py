"""The `Store` on PostgreSQL."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from importlib.metadata import version
from typing import Any, TypeVar

import psycopg
from psycopg import Cursor, errors, sql
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from perdure.adapters.forking import immortalise, watch_forks
from perdure.adapters.postgres import migrating
from perdure.adapters.postgres.connections import Abandoned, AnswerLost, DeadlineConnection, DeadlineExceeded, translated
from perdure.adapters.postgres.statements import SQL, PostgresStatements
from perdure.adapters.sqlfiles import migrations, refuse_newer
from perdure.adapters.sqlfiles import schema as schema_sql
from perdure.adapters.sqltx import SqlTx
from perdure.domain.errors import Conflict, Unavailable
from perdure.domain.jobs import Claim, Job, QueueReport, claimed
from perdure.domain.models import Usage
from perdure.domain.reports import Finding, StoreDescription, StoreFile
from perdure.domain.scope import Owner
from perdure.domain.times import to_us
from perdure.ports import rows
from perdure.ports.index import INDEX_SINCE, seed_rows
from perdure.ports.oversight import to_usage
from perdure.ports.store import Features, Row, Tx, View

# The driver and its pool report every lost connection. Whoever configures logging gets that; others are not to be disturbed.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

T = TypeVar("T")
PACKAGE = "perdure.adapters.postgres"
TRIES_MAX = 8
RETRY_FIRST_S = 0.002
RECONNECT_S = 3.0
"""How long the pool goes on with one attempt to connect. It pauses twice as long after each failure: a server that was away
for minutes would be missed for minutes more. The next call begins a new attempt at once."""
FETCH_ROWS = 2_000
MAINTENANCE_S = 3_600.0
OWNER_SILENCE_S = 600.0
"""A restore reads its file between two statements, and a backup writes one: that may take longer than a call."""
WRITE = "BEGIN"
READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


def _again(error: Exception) -> bool:
    """Whether running the same work once more can succeed. It may: a write carries its own ids, or says that it has none."""
    if isinstance(error, DeadlineExceeded | AnswerLost | PoolTimeout | PoolClosed):
        return False
    rivals = (errors.UniqueViolation, errors.ForeignKeyViolation, errors.SerializationFailure, errors.DeadlockDetected)
    lost = isinstance(error, psycopg.OperationalError) and error.sqlstate in (None, "57P01", "57P02", "08006", "08003")
    return isinstance(error, rivals) or lost


class PostgresSnapshot:
    def __init__(self, connection: DeadlineConnection, schema_version: int, deadline_s: float) -> None:
        self.schema_version = schema_version
        self._connection = connection
        self._deadline_s = deadline_s

    def rows(self, table: str, owner: Owner | None = None) -> Iterator[Row]:
        spec = rows.TABLES[table]
        columns = ", ".join(spec.columns)
        order = ", ".join(spec.columns[: spec.key])
        whose, values = ("", ()) if owner is None else ("WHERE space = %s AND user_id = %s", (owner.space, owner.user))
        self._connection.allow(self._deadline_s)
        with translated(), self._connection.cursor(name=f"rows_of_{table}") as cursor:
            cursor.execute(f"SELECT {columns} FROM {table} {whose} ORDER BY {order}".encode(), values)
            while page := cursor.fetchmany(FETCH_ROWS):
                yield from page  # type: ignore[misc] # what the columns hold is stated in ports.rows
                self._connection.allow(self._deadline_s)


class PostgresStore:
    """Works under a role that row-level security binds, whatever role the URL logs in as."""

    features = Features(durable=True, shared=True, row_security=True)

    def __init__(self, url: str, *, schema: str = "perdure", pool_max: int = 10, deadline_s: float = 30.0) -> None:
        self._url = url
        self._schema = schema
        self._pool_max = pool_max
        self._deadline_s = deadline_s
        self._known = migrations(PACKAGE)
        self._degraded: tuple[str, ...] = ()
        self._durability = "every commit is synced before it returns"
        with translated(), self._own_connection() as connection, connection.cursor() as cursor:
            migrating.migrate(cursor, schema, self._known, schema_sql(PACKAGE))
            self._role = self._find_role(cursor)
            self._note_durability(cursor)
        self._abandoned = Abandoned()
        self._opened: ConnectionPool[DeadlineConnection] | None = self._new_pool()
        self._opening = threading.Lock()
        watch_forks(self)

    def _find_role(self, cursor: Cursor[Any]) -> str | None:
        try:
            return migrating.app_role(cursor, self._schema)
        except errors.InsufficientPrivilege:
            self._degraded += ("row-level security: the login role is exempt from it and may not create another role",)
            return None

    def _note_durability(self, cursor: Cursor[Any]) -> None:
        for setting in ("fsync", "synchronous_commit"):
            [(value,)] = cursor.execute(f"SHOW {setting}".encode()).fetchall()
            if value == "off":
                self._durability = f"PostgreSQL's `{setting}` is off: a crash may lose the last writes"
                self._degraded += (f"durability: {self._durability}",)

    @property
    def _pool(self) -> ConnectionPool[DeadlineConnection]:
        """Made anew on first use after a fork: most children never ask."""
        with self._opening:
            if self._opened is None:
                self._opened = self._new_pool()
            return self._opened

    def _new_pool(self) -> ConnectionPool[DeadlineConnection]:
        pool = ConnectionPool(
            self._url,
            connection_class=DeadlineConnection,
            kwargs=self._connect_options(),
            min_size=1,
            max_size=self._pool_max,
            timeout=self._deadline_s,
            reconnect_timeout=RECONNECT_S,
            configure=self._configure,
            check=None,
            open=False,
            name="perdure-pool",
        )
        pool.open()
        return pool

    def _connect_options(self) -> dict[str, Any]:
        # libpq counts whole seconds and takes less than two as two.
        return {"autocommit": True, "connect_timeout": max(2, int(self._deadline_s)), "application_name": "perdure"}

    def _configure(self, connection: DeadlineConnection) -> None:
        connection.allow(self._deadline_s)
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(self._schema)))
        self._limit_silence(connection, self._deadline_s)
        self._abandoned.end_all(connection)
        if self._role is not None:
            connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(self._role)))

    def _limit_silence(self, connection: DeadlineConnection, seconds: float) -> None:
        # We give up at the deadline. A network that swallows packets keeps that from the server, which would hold our locks
        # until TCP finds out, by default after two hours: it gives up at the same time.
        silence_ms = max(1, round(seconds * 1_000))
        connection.execute(sql.SQL("SET idle_in_transaction_session_timeout = {}").format(sql.Literal(silence_ms)))

    # -- transactions

    def read(self, owner: Owner, work: Callable[[View], T], *, deadline_s: float | None = None) -> T:
        def run(cursor: Cursor[Any]) -> T:
            return work(SqlTx(PostgresStatements(cursor, writing=False), owner))

        return self._transact(READ, owner, run, deadline_s)

    def write(self, owner: Owner, work: Callable[[Tx], T], *, deadline_s: float | None = None) -> T:
        def run(cursor: Cursor[Any]) -> T:
            tx = SqlTx(PostgresStatements(cursor, writing=True), owner)
            result = work(tx)
            tx.finish()
            return result

        return self._transact(WRITE, owner, run, deadline_s)

    def _transact(
        self, begin: str, owner: Owner | None, work: Callable[[Cursor[Any]], T], deadline_s: float | None = None
    ) -> T:
        """Run `work` for one owner, or for everyone if None; again if a rival or the network was in the way."""
        seconds = self._deadline_s if deadline_s is None else deadline_s
        until = time.monotonic() + seconds
        tries = 0
        with translated():
            while True:
                try:
                    return self._transact_once(begin, owner, work, max(0.1, until - time.monotonic()))
                except AnswerLost as lost:
                    if self._was_committed(lost, until):
                        result: T = lost.result  # type: ignore[assignment] # of this very work
                        return result
                    tries += 1
                    if tries >= TRIES_MAX or time.monotonic() >= until:
                        raise
                except psycopg.Error as error:
                    tries += 1
                    if tries >= TRIES_MAX or not _again(error) or time.monotonic() >= until:
                        raise
                time.sleep(RETRY_FIRST_S * 2**tries * random.random())

    def _transact_once(self, begin: str, owner: Owner | None, work: Callable[[Cursor[Any]], T], seconds: float) -> T:
        with self._pool.connection(timeout=seconds) as connection, connection.cursor() as cursor:
            connection.allow(seconds)
            connection.once = False
            transaction = None
            try:
                with connection.pipeline():
                    cursor.execute(begin.encode())
                    whose = connection.execute(*_whose(owner, numbered=begin == WRITE))
                if begin == WRITE and owner is not None:
                    transaction = str(whose.fetchall()[0][-1])
                result = work(cursor)
                try:
                    cursor.execute("COMMIT")
                except psycopg.OperationalError as error:
                    if begin == WRITE and not isinstance(error, DeadlineExceeded):
                        raise AnswerLost(transaction, result, once=connection.once) from error
                    raise
                return result
            except BaseException:
                if not connection.closed:
                    connection.rollback()
                elif transaction is not None:
                    self._abandoned.note(transaction)
                raise

    def _was_committed(self, lost: AnswerLost, until: float) -> bool:
        """What became of a commit whose answer did not arrive. The server knows it for as long as anybody could ask.

        False also if it cannot tell, and the work may run again because it meets its own rows; else `lost` is raised.
        """

        def ask(cursor: Cursor[Any]) -> str | None:
            [(status,)] = cursor.execute("SELECT pg_xact_status(%s::xid8)", (lost.transaction,)).fetchall()
            return None if status is None else str(status)

        while lost.transaction is not None and time.monotonic() < until:
            try:
                status = self._transact_once(READ, None, ask, max(0.1, until - time.monotonic()))
            except psycopg.Error as error:
                if not _again(error):
                    break
                status = "in progress"
            if status in ("committed", "aborted"):
                return status == "committed"
            if status is None:
                break
            time.sleep(RETRY_FIRST_S)
        if lost.once:
            raise lost
        return False

    # -- jobs of all owners

    def claim(self, claim: Claim) -> list[Job]:
        def work(cursor: Cursor[Any]) -> list[Job]:
            kinds = list(claim.kinds)
            found = cursor.execute(SQL["due_jobs"], rows.claim_values(claim, kinds)).fetchall()
            found = found or cursor.execute(SQL["stranded_jobs"], rows.stranded_values(claim, kinds)).fetchall()
            jobs = [claimed(rows.to_job(row), claim) for row in found]
            if jobs:
                cursor.executemany(SQL["put_job"], [rows.job_row(job) for job in jobs])
            return jobs

        return self._transact(WRITE, None, work)

    def queue(self, now: datetime) -> QueueReport:
        return self._transact(
            READ, None, lambda cursor: rows.to_queue_report(cursor.execute(SQL["count_jobs"]).fetchall(), now)
        )

    def list_dead(self, *, limit: int) -> list[Job]:
        def work(cursor: Cursor[Any]) -> list[Job]:
            return [rows.to_job(row) for row in cursor.execute(SQL["list_dead"], (limit,)).fetchall()]

        return self._transact(READ, None, work)

    def usage(self) -> list[Usage]:
        def work(cursor: Cursor[Any]) -> list[Usage]:
            return [to_usage(row) for row in cursor.execute(SQL["total_usage"]).fetchall()]

        return self._transact(READ, None, work)

    def remove_done(self, *, before: datetime) -> int:
        return self._transact(WRITE, None, lambda cursor: cursor.execute(SQL["remove_done"], (to_us(before),)).rowcount)

    # -- the store as a whole

    def erase(self, owner: Owner) -> int:
        def work(cursor: Cursor[Any]) -> int:
            removed = 0
            for table in reversed(rows.TABLES):
                query = f"DELETE FROM {table} WHERE space = %s AND user_id = %s"
                removed += cursor.execute(query.encode(), (owner.space, owner.user)).rowcount
            return removed

        return self._transact(WRITE, owner, work)

    @contextmanager
    def snapshot(self, owner: Owner | None = None) -> Iterator[PostgresSnapshot]:
        # Outside the pool: a long backup must not keep others from working.
        with translated(), self._own_connection() as connection:
            with connection.cursor() as cursor:
                cursor.execute(READ)
                version = len(migrating.applied(cursor, self._schema))
                if owner is not None and self._role is not None:
                    cursor.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(self._role)))
                cursor.execute(*_whose(owner))
            try:
                yield PostgresSnapshot(connection, version, self._deadline_s)
            finally:
                if not connection.closed:
                    connection.allow(self._deadline_s)
                    connection.rollback()

    def restore(self, schema_version: int, tables: Iterable[tuple[str, Iterator[Row]]], *, replace: bool) -> Mapping[str, int]:
        refuse_newer(schema_version, self._known)
        with translated(), self._own_connection() as connection, connection.cursor() as cursor, connection.transaction():
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (migrating.LOCK,))
            cursor.execute(*_whose(None))
            if not replace:
                for table in rows.TABLES:
                    if cursor.execute(f"SELECT 1 FROM {table} LIMIT 1".encode()).fetchone() is not None:
                        raise Conflict("the store is not empty; choose a new one, or say that it is to be replaced")
            counts = self._refill(connection, cursor, schema_version, tables)
            if self._role is not None:
                migrating.app_role(cursor, self._schema)
            return counts

    def _refill(
        self,
        connection: DeadlineConnection,
        cursor: Cursor[Any],
        schema_version: int,
        tables: Iterable[tuple[str, Iterator[Row]]],
    ) -> Mapping[str, int]:
        if schema_version == len(self._known):
            # The tables stay, and with them the grants that others were given.
            cursor.execute(f"TRUNCATE {', '.join(rows.TABLES)}".encode())
        else:
            cursor.execute(f"DROP TABLE {', '.join((*rows.TABLES, 'perdure_migrations'))}".encode())
            for migration in self._known[:schema_version]:
                migrating.apply(cursor, migration)
        counts: dict[str, int] = {}
        for table, content in tables:
            counts[table] = 0
            while page := [row for _, row in zip(range(FETCH_ROWS), content, strict=False)]:
                connection.allow(self._deadline_s)
                marks = ", ".join(["%s"] * len(page[0]))
                cursor.executemany(f"INSERT INTO {table} VALUES ({marks})".encode(), page)
                counts[table] += len(page)
        for migration in self._known[schema_version:]:
            migrating.apply(cursor, migration)
        if schema_version >= INDEX_SINCE and "index_heads" not in counts:
            cursor.execute(SQL["seed_index_heads"])
            cursor.execute(SQL["seed_index_jobs"])
        return counts

    def refill(self, owner: Owner, tables: Iterable[tuple[str, Iterator[Row]]], *, replace: bool) -> Mapping[str, int]:
        mine = (owner.space, owner.user)
        with translated(), self._own_connection() as connection, connection.cursor() as cursor, connection.transaction():
            if self._role is not None:
                cursor.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(self._role)))
            cursor.execute(*_whose(owner))
            # Of two at once for one owner, the second waits here and then finds rows.
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))", ("\x1f".join(mine), migrating.LOCK))
            self._empty(cursor, owner, replace=replace)
            counts: dict[str, int] = {}
            for table, content in tables:
                counts[table] = 0
                while page := [rows.owned(owner, row) for _, row in zip(range(FETCH_ROWS), content, strict=False)]:
                    connection.allow(self._deadline_s)
                    cursor.executemany(rows.insertion(table, "%s").encode(), page)
                    counts[table] += len(page)
            connection.allow(self._deadline_s)
            seeds = seed_rows(owner, os.urandom(8).hex(), counts)
            for table, row in seeds:
                cursor.execute(rows.insertion(table, "%s").encode(), row)
            self._refuse_others(cursor, owner, Counter(counts) + Counter(table for table, _ in seeds))
            return counts

    def _empty(self, cursor: Cursor[Any], owner: Owner, *, replace: bool) -> None:
        for table in reversed(rows.LEAVING):
            query = f"DELETE FROM {table} WHERE space = %s AND user_id = %s"
            if cursor.execute(query.encode(), (owner.space, owner.user)).rowcount and not replace:
                raise rows.holds_rows(owner)

    def _refuse_others(self, cursor: Cursor[Any], owner: Owner, counts: Mapping[str, int]) -> None:
        """Writers go on meanwhile: what one of them stored for this owner since we began must not be mixed in."""
        for table in rows.LEAVING:
            query = f"SELECT count(*) FROM {table} WHERE space = %s AND user_id = %s"
            [(held,)] = cursor.execute(query.encode(), (owner.space, owner.user)).fetchall()
            if held != counts.get(table, 0):
                raise rows.holds_rows(owner)

    def check(self) -> Iterator[Finding]:
        fresh_schema = f"{self._schema}_fresh"
        with translated(), self._own_connection() as connection, connection.cursor() as cursor:
            held = migrating.catalog(cursor, self._schema)
            try:
                with connection.transaction(force_rollback=True):
                    cursor.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(fresh_schema)))
                    cursor.execute(sql.SQL("SET LOCAL search_path TO {}").format(sql.Identifier(fresh_schema)))
                    migrating.create(cursor, schema_sql(PACKAGE), self._known)
                    fresh = migrating.catalog(cursor, fresh_schema)
            except errors.InsufficientPrivilege:
                # Only an owner can make a second schema to compare with; the rows are checked all the same.
                return
        for kind, name, _ in sorted(held ^ fresh):
            yield Finding("the schema is the expected one", f"{kind} {name}", "differs, is missing or is too many")

    def purge(self) -> None:
        with translated(), self._own_connection() as connection, connection.cursor() as cursor:
            owned = "SELECT bool_and(pg_has_role(relowner, 'USAGE')) FROM pg_class WHERE oid = ANY(%s::regclass[])"
            if cursor.execute(owned, (list(rows.TABLES),)).fetchone() != (True,):
                raise Unavailable("only the owner of the tables can purge them; run it as that role")
            for table in rows.TABLES:
                connection.allow(MAINTENANCE_S)
                cursor.execute(f"VACUUM (FULL, ANALYZE) {table}".encode())

    def describe(self) -> StoreDescription:
        def work(cursor: Cursor[Any]) -> tuple[str, int]:
            [(server,)] = cursor.execute("SHOW server_version").fetchall()
            sizes = cursor.execute(
                "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class "
                "WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s) AND relkind = 'r'",
                (self._schema,),
            )
            return server, sizes.fetchall()[0][0]

        server, size = self._transact(READ, None, work)
        where = conninfo_to_dict(self._url)
        return StoreDescription(
            backend="postgresql",
            location=f"{where.get('host', 'localhost')}/{where.get('dbname', '')}, schema {self._schema}",
            schema_version=len(self._known),
            versions={"postgresql": server, "psycopg": version("psycopg")},
            durability=self._durability,
            bytes=size,
            degraded=self._degraded,
        )

    def files(self) -> tuple[StoreFile, ...]:
        return ()

    def close(self) -> None:
        self._pool.close(timeout=5.0)

    @contextmanager
    def _own_connection(self) -> Iterator[DeadlineConnection]:
        """A connection outside the pool, as the login role: for what an owner does."""
        connection = DeadlineConnection.connect(self._url, **self._connect_options())
        try:
            connection.allow(self._deadline_s)
            connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(self._schema)))
            self._limit_silence(connection, max(self._deadline_s, OWNER_SILENCE_S))
            yield connection
        finally:
            connection.close()

    # -- forks

    def before_fork(self) -> None:
        """Nothing to do: the parent keeps its connections, the child gets new ones."""

    def after_fork_in_parent(self) -> None:
        """Nothing changed."""

    def after_fork_in_child(self) -> None:
        # Closing an inherited connection would end it for the parent.
        immortalise(self._opened)
        self._opened = None
        self._opening = threading.Lock()


def _whose(owner: Owner | None, *, numbered: bool = False) -> tuple[str, tuple[str, ...]]:
    """The statement that tells row-level security whose rows this transaction is about, and answers with its number.

    Numbers are finite, and workers look for jobs of everybody all the time: only an owner's writes are given one.
    """
    if owner is None:
        return "SELECT set_config('perdure.everyone', 'on', true)", ()
    number = ", pg_current_xact_id()::text" if numbered else ""
    told = f"SELECT set_config('perdure.space', %s, true), set_config('perdure.user', %s, true){number}"
    return told, (owner.space, owner.user)
