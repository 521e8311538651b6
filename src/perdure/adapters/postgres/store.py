"""The `Store` on PostgreSQL."""

from __future__ import annotations

import logging
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from importlib.metadata import version
from itertools import groupby
from typing import Any, TypeVar

import psycopg
from psycopg import Cursor, errors, sql
from psycopg_pool import ConnectionPool

from perdure.adapters.forks import immortalise, watch_forks
from perdure.adapters.postgres import cluster as clusters
from perdure.adapters.postgres import contents
from perdure.adapters.postgres import schema as migrating
from perdure.adapters.postgres.connections import (
    AbandonedTransactions,
    AnswerLost,
    DeadlineConnection,
    DeadlineExceeded,
    Servers,
    again,
    translated,
)
from perdure.adapters.postgres.contents import LEFT_TO_A_JOB, MAINTENANCE_S, PROBE, rewrite
from perdure.adapters.postgres.statements import (
    ASK_COMMIT,
    COMMITS,
    MARK,
    READ,
    REMOVE_COMMITS,
    WRITE,
    PostgresSnapshot,
    PostgresStatements,
    begin,
    commit,
    lock,
    quoted,
)
from perdure.adapters.sql.statements import deletion, migrations, refuse_newer
from perdure.adapters.sql.statements import schema as schema_sql
from perdure.adapters.sql.transaction import SqlTx
from perdure.domain.errors import Conflict, Unavailable
from perdure.domain.jobs import Claim, Job, QueueReport, claimed
from perdure.domain.models import Usage
from perdure.domain.reports import DistributionReport, Finding, StoreDescription, StoreFile
from perdure.domain.scope import Owner
from perdure.domain.times.instants import to_us
from perdure.ports.store import Features, Progress, Row, Tx, View
from perdure.ports.tables.jobs import claim_values, job_row, to_job, to_queue_report
from perdure.ports.tables.oversight import to_usage
from perdure.ports.tables.rows import TABLES
from perdure.ports.tables.table import AnyRow

# The driver and its pool report every lost connection. Anyone who configures logging gets that; others are not to be disturbed.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

T = TypeVar("T")
PACKAGE = "perdure.adapters.postgres"
TRIES_MAX = 8
RETRY_FIRST_S = 0.002
MOVED_S = 0.2
"""The pause before a server is looked for that takes writes."""
READ_ONLY = "the store can only be read, perhaps a replica: calls that read answer and record nothing; write to the primary"
LOOKED_AT = 20
"""Of so many jobs that are due some are left when other workers have taken theirs."""
TOKEN_BITS = 63
COMMITS_KEPT_S = 3_600
"""A token is asked for until its call's deadline; clocks of servers may differ by minutes, not by an hour."""
OWNER_SILENCE_S = 600.0
"""A restore reads its file between two statements, and a backup writes one: that may take longer than a call."""


class PostgresStore:
    """Works under a role that row-level security binds, whatever role the URL logs in as.

    Nothing is set for a session: a pooler such as pgbouncer gives each transaction another one. What a transaction needs
    (schema, role, whose rows) it sets for itself, in the message that begins it.
    """

    features = Features(durable=True, shared=True, erases_in_place=False, row_security=True)

    def __init__(self, url: str, *, schema: str = "perdure", pool_max: int = 10, deadline_s: float = 30.0) -> None:
        with translated():
            self._servers = Servers(url, deadline_s=deadline_s)
        self._schema = schema
        self._pool_max = pool_max
        self._deadline_s = deadline_s
        self._known = migrations(PACKAGE)
        self._degraded: tuple[str, ...] = ()
        self._durability = "every commit is synced before it returns"
        with translated(), self._owner_connection() as connection, connection.cursor() as cursor:
            migrating.migrate(cursor, schema, self._known, schema_sql(PACKAGE))
            self._look_around(cursor)
            self._note_durability(cursor)
        self._abandoned = AbandonedTransactions()
        self._opened: ConnectionPool[DeadlineConnection] | None = self._servers.pool(pool_max, self._abandoned)
        self._opening = threading.Lock()
        watch_forks(self)

    def _look_around(self, cursor: Cursor[Any]) -> None:
        """Whether the tables are on many servers, and under which role requests are served."""
        found = clusters.look(cursor, self._schema)
        self._spread = found is not None and found.spread
        self._refusal: str | None = None
        self._role: str | None = None
        try:
            self._role = migrating.app_role(cursor, self._schema)
        except errors.InsufficientPrivilege:
            if self._spread and not migrating.exempt(cursor):
                self._refusal = clusters.OWNER_SERVES
            else:
                self._degraded += ("row-level security: the login role is exempt from it and may not create another role",)

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
                self._opened = self._servers.pool(self._pool_max, self._abandoned)
            return self._opened

    # -- transactions

    def read(self, owner: Owner, work: Callable[[View], T], *, deadline_s: float | None = None) -> T:
        def run(cursor: Cursor[Any]) -> T:
            return work(SqlTx(PostgresStatements(cursor, owner, writing=False), owner))

        return self._transact(READ, owner, run, deadline_s)

    def write(self, owner: Owner, work: Callable[[Tx], T], *, deadline_s: float | None = None) -> T:
        def run(cursor: Cursor[Any]) -> T:
            statements = PostgresStatements(cursor, owner, writing=True)
            tx = SqlTx(statements, owner)
            result = work(tx)
            tx.finish()
            statements.flush()
            return result

        return self._transact(WRITE, owner, run, deadline_s)

    def _transact(self, how: str, owner: Owner | None, work: Callable[[Cursor[Any]], T], deadline_s: float | None = None) -> T:
        """Run `work` for one owner, or for everyone if None; again if a rival or the network was in the way."""
        if self._refusal is not None and owner is not None:
            raise Unavailable(self._refusal)
        seconds = self._deadline_s if deadline_s is None else deadline_s
        until = time.monotonic() + seconds
        tries = 0
        with translated():
            while True:
                try:
                    return self._transact_once(how, owner, work, max(0.1, until - time.monotonic()))
                except AnswerLost as lost:
                    if self._was_committed(lost, until):
                        result: T = lost.result  # type: ignore[assignment] # of this very work
                        return result
                    tries += 1
                    if tries >= TRIES_MAX or time.monotonic() >= until:
                        raise
                except psycopg.Error as error:
                    if self._servers.moved(error) and time.monotonic() + MOVED_S < until:
                        time.sleep(MOVED_S)
                        continue
                    tries += 1
                    if tries >= TRIES_MAX or not again(error) or time.monotonic() >= until:
                        raise
                time.sleep(RETRY_FIRST_S * 2**tries * random.random())

    def _transact_once(self, how: str, owner: Owner | None, work: Callable[[Cursor[Any]], T], seconds: float) -> T:
        beginning = begin(how, owner, self._schema, role=self._role, silence_s=self._deadline_s, spread=self._spread)
        token = secrets.randbits(TOKEN_BITS) if how == WRITE and owner is not None else None
        with self._pool.connection(timeout=seconds) as connection, connection.cursor() as cursor:
            connection.allow(seconds)
            connection.changed = False
            try:
                cursor.execute(beginning if token is None else beginning + lock(token), prepare=False)
                result = work(cursor)
                noted = (owner, token) if owner is not None and token is not None and connection.changed else None
                connection.warned = False
                try:
                    cursor.execute(commit(noted), prepare=False)
                except (psycopg.OperationalError, psycopg.InternalError) as error:
                    if how == WRITE and not isinstance(error, DeadlineExceeded):
                        raise AnswerLost(noted, result) from error
                    raise
                if connection.warned and how == WRITE:
                    # It is done here, and perhaps nowhere else: somebody cancelled the wait for a synchronous replica.
                    raise AnswerLost(noted, result)
                return result
            except BaseException as error:
                if not connection.closed:
                    connection.rollback()
                elif token is not None:
                    self._abandoned.note(token)
                if self._servers.left(connection, error):
                    self._pool.drain()
                raise

    def _was_committed(self, lost: AnswerLost, until: float) -> bool:
        """What became of a commit whose answer did not arrive: it holds a row with its token, or never will.

        We put such a row ourselves. That waits for a transaction that is still at it; it keeps one that has not come so far
        from committing ever; and what it says is as durable as a commit of ours, on replicas too. A number of the server
        would not do: after a crash or a failover it is given to somebody else.

        False also of a work that changed nothing of an owner's: it may run again. If nobody can be asked, `lost` is raised.
        """
        if lost.noted is None:
            return False
        owner, token = lost.noted

        def ask(cursor: Cursor[Any]) -> bool:
            [(done,)] = cursor.execute(ASK_COMMIT, (owner.space, owner.user, token)).fetchall()
            return bool(done)

        while time.monotonic() < until:
            try:
                return self._transact_once(WRITE, owner, ask, max(0.1, until - time.monotonic()))
            except psycopg.Error as error:
                if not again(error) and not isinstance(error, AnswerLost) and not self._servers.moved(error):
                    break
            time.sleep(RETRY_FIRST_S)
        raise lost

    # -- jobs of all owners

    def claim(self, claim: Claim) -> list[Job]:
        """Looks without a lock whose jobs wait, then claims them owner by owner, each where its rows are."""

        def look(cursor: Cursor[Any]) -> list[Owner]:
            run = PostgresStatements(cursor, writing=False)
            values = claim_values(replace(claim, limit=max(claim.limit, LOOKED_AT)), run.array(claim.kinds))
            found = run.all("due_jobs", **values) or run.all("stranded_jobs", **values)
            return [to_job(row).owner for row in found]

        jobs: list[Job] = []
        owners = [claim.owner] * claim.limit if claim.owner is not None else self._transact(READ, None, look)
        for owner, waiting in groupby(owners):
            if len(jobs) == claim.limit:
                break
            wanted = min(claim.limit - len(jobs), len(list(waiting)))
            jobs += self._claim_of(replace(claim, owner=owner, limit=wanted), owner)
        return jobs

    def _claim_of(self, claim: Claim, owner: Owner) -> list[Job]:
        def work(cursor: Cursor[Any]) -> list[Job]:
            run = PostgresStatements(cursor, owner, writing=True)
            values = claim_values(claim, run.array(claim.kinds))
            found = run.all("due_jobs_locked", **values) or run.all("stranded_jobs_locked", **values)
            jobs = [claimed(to_job(row), claim) for row in found]
            if jobs:
                run.put("put_job", [job_row(job) for job in jobs])
                run.flush()
            return jobs

        return self._transact(WRITE, owner, work)

    def queue(self, now: datetime) -> QueueReport:
        return to_queue_report(self._of_all_owners("count_jobs"), now)

    def list_dead(self, *, limit: int) -> list[Job]:
        return [to_job(row) for row in self._of_all_owners("list_dead", limit=limit)]

    def usage(self) -> list[Usage]:
        return [to_usage(row) for row in self._of_all_owners("total_usage")]

    def remove_done(self, *, before: datetime) -> int:
        def work(cursor: Cursor[Any]) -> int:
            cursor.execute(REMOVE_COMMITS, (COMMITS_KEPT_S,))
            return PostgresStatements(cursor, writing=True).change("remove_done", before_us=to_us(before))

        return self._transact(WRITE, None, work)

    def _of_all_owners(self, name: str, **values: Any) -> list[AnyRow]:
        return self._transact(READ, None, lambda cursor: PostgresStatements(cursor, writing=False).all(name, **values))

    # -- the store as a whole

    def erase(self, owner: Owner) -> int:
        def work(cursor: Cursor[Any]) -> int:
            removed = 0
            cursor.execute(deletion(COMMITS, MARK).sql, (owner.space, owner.user))
            for table in reversed(TABLES):
                removed += cursor.execute(deletion(table, MARK).sql, (owner.space, owner.user)).rowcount
            return removed

        return self._transact(WRITE, owner, work)

    @contextmanager
    def snapshot(self, owner: Owner | None = None) -> Iterator[PostgresSnapshot]:
        # Outside the pool: a long backup must not keep others from working.
        with translated(), self._owner_connection() as connection:
            with connection.cursor() as cursor:
                role = None if owner is None else self._role
                silence_s = max(self._deadline_s, OWNER_SILENCE_S)
                cursor.execute(begin(READ, owner, self._schema, role=role, silence_s=silence_s, spread=self._spread))
                version = len(migrating.applied(cursor, self._schema))
            try:
                yield PostgresSnapshot(connection, version, self._deadline_s)
            finally:
                if not connection.closed:
                    connection.allow(self._deadline_s)
                    connection.rollback()

    def restore(self, schema_version: int, tables: Iterable[tuple[str, Iterator[Row]]], *, replace: bool) -> Mapping[str, int]:
        refuse_newer(schema_version, self._known)
        with translated(), self._owner_transaction(None) as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (migrating.LOCK,))
            if not replace:
                for table in TABLES:
                    if cursor.execute(f"SELECT 1 FROM {table} LIMIT 1".encode()).fetchone() is not None:
                        raise Conflict("the store is not empty; choose an empty store, or replace it (`replace`, `--replace`)")
            counts = contents.take_over(cursor, schema_version, tables, self._known, self._deadline_s)
            if self._role is not None:
                migrating.app_role(cursor, self._schema)
        if self._spread and schema_version < len(self._known):
            # The tables of an older backup were made anew, on this server.
            self.distribute()
        return counts

    def refill(self, owner: Owner, tables: Iterable[tuple[str, Iterator[Row]]], *, replace: bool) -> Mapping[str, int]:
        mine = (owner.space, owner.user)
        with translated(), self._owner_transaction(owner) as cursor:
            # Of two at once for one owner, the second waits here and then finds rows.
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))", ("\x1f".join(mine), migrating.LOCK))
            return contents.fill(cursor, owner, tables, replace=replace, deadline_s=self._deadline_s)

    def check(self) -> Iterator[Finding]:
        fresh_schema = f"{self._schema}_fresh"
        with translated(), self._owner_transaction(None) as cursor:
            held = migrating.catalog(cursor, self._schema)
            cluster = clusters.look(cursor, self._schema)
            if cluster is not None and cluster.spread:
                # The one to compare with is nobody's business but this server's.
                cursor.execute("SET LOCAL citus.enable_ddl_propagation = off")
                yield from clusters.findings(cluster)
            try:
                with cursor.connection.transaction(force_rollback=True):
                    cursor.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(fresh_schema)))
                    cursor.execute(sql.SQL("SET LOCAL search_path TO {}").format(sql.Identifier(fresh_schema)))
                    migrating.create(cursor, schema_sql(PACKAGE), self._known)
                    fresh = migrating.catalog(cursor, fresh_schema)
            except (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction):
                # Only an owner can make a second schema to compare with, and no replica; the rows are checked all the same.
                return
        for kind, name, _ in sorted(clusters.differences(held, fresh, cluster)):
            yield Finding("the schema is the expected one", f"{kind} {name}", "differs, is missing or is too many")

    def overwrite(self) -> str:
        return LEFT_TO_A_JOB

    def purge(self, progress: Progress | None = None) -> None:
        tables = [f"{quoted(self._schema)}.{table}" for table in (PROBE, *TABLES, COMMITS)]
        with translated(), self._owner_connection() as connection:
            rewrite(connection, tables, wait_s=self._deadline_s, progress=progress)

    def describe(self) -> StoreDescription:
        def work(cursor: Cursor[Any]) -> tuple[str, str, bool, int, clusters.Cluster | None]:
            look = "SELECT current_setting('server_version'), current_setting('transaction_read_only') = 'on'"
            [(server, read_only)] = cursor.execute(look).fetchall()
            cluster = clusters.look(cursor, self._schema)
            size = clusters.size(cursor, self._schema, cluster)
            return self._servers.location(cursor.connection), server, read_only, size, cluster

        location, server, read_only, size, cluster = self._transact(WRITE, None, work)
        versions = {"postgresql": server, "psycopg": version("psycopg")}
        degraded = [*self._degraded, *([READ_ONLY] if read_only else [])]
        if cluster is not None:
            versions["citus"] = cluster.version
            degraded += [*clusters.degraded(cluster), *(self._lost_on_the_way() if cluster.spread else ())]
        return StoreDescription(
            backend="postgresql",
            location=f"{location}, schema {self._schema}",
            schema_version=len(self._known),
            versions=versions,
            durability=self._durability,
            bytes=size,
            degraded=tuple(degraded),
            read_only=read_only,
        )

    def distribute(self) -> DistributionReport:
        with translated(), self._owner_connection() as connection, connection.cursor() as cursor:
            cluster = clusters.prepare(cursor, self._schema, self._role)
            connection.allow(MAINTENANCE_S)
            placed = tuple(table for table in clusters.IN_ORDER if clusters.place(cursor, self._schema, table))
            clusters.leave_nothing(cursor, self._schema)
            self._look_around(cursor)
        if self._refusal is None and (lost := self._lost_on_the_way()):
            raise Unavailable(f"the tables are distributed, but cannot be used yet: {lost[0]}")
        return DistributionReport(cluster.nodes, placed, len(clusters.IN_ORDER) - len(placed))

    def _lost_on_the_way(self) -> list[str]:
        if self._refusal is not None:
            return [f"cluster: {self._refusal}"]
        return clusters.lost_on_the_way(partial(self._transact, READ), self._schema)

    def files(self) -> tuple[StoreFile, ...]:
        return ()

    def close(self) -> None:
        self._pool.close(timeout=5.0)

    @contextmanager
    def _owner_connection(self) -> Iterator[DeadlineConnection]:
        """A connection outside the pool, as the login role: for what an owner does."""
        connection = DeadlineConnection.connect(self._servers.address(), prepare_threshold=None, **self._servers.options())
        try:
            connection.allow(self._deadline_s)
            yield connection
        finally:
            connection.close()

    @contextmanager
    def _owner_transaction(self, owner: Owner | None) -> Iterator[Cursor[Any]]:
        """One transaction on such a connection; for one owner, under the role that row-level security binds."""
        silence_s = max(self._deadline_s, OWNER_SILENCE_S)
        role = None if owner is None else self._role
        with self._owner_connection() as connection, connection.cursor() as cursor:
            cursor.execute(begin(WRITE, owner, self._schema, role=role, silence_s=silence_s, spread=self._spread))
            yield cursor
            cursor.execute("COMMIT")

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
