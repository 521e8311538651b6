"""The `Store` on one SQLite file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw

from perdure.adapters.forks import watch_forks
from perdure.adapters.sql.statements import (
    Query,
    deletion,
    insertion,
    migrations,
    queries,
    refuse_newer,
    replacement,
    schema,
    selection,
)
from perdure.adapters.sql.transaction import SqlTx
from perdure.adapters.sqlite import schema as migrating
from perdure.adapters.sqlite.cipher import Cipher
from perdure.adapters.sqlite.connections import DISTRUSTED, FORK_WAIT_S, SqlitePool, in_our_words, translated
from perdure.adapters.sqlite.erasure import ANNOUNCED, SqliteErasure
from perdure.adapters.sqlite.group_commit import Ticket, WriterGroup
from perdure.domain.errors import Conflict, InvalidInput, PerdureError, Unavailable
from perdure.domain.jobs import Claim, Job, QueueReport, claimed
from perdure.domain.models import Usage
from perdure.domain.reports import DistributionReport, Finding, StoreDescription, StoreFile
from perdure.domain.scope import Owner
from perdure.domain.text.rules import brief
from perdure.domain.times.instants import to_us
from perdure.ports.store import Features, Progress, Row, Tx, View, not_distributed
from perdure.ports.tables.index import INDEX_SINCE, seed_rows
from perdure.ports.tables.jobs import claim_values, job_row, to_job, to_queue_report
from perdure.ports.tables.oversight import to_usage
from perdure.ports.tables.rows import LEAVING, TABLES, holds_rows, owned
from perdure.ports.tables.table import AnyRow

MARK = "?"
SQL = {name: Query(text, MARK) for name, text in queries("perdure.adapters.sqlite").items()}


class SqliteStatements:
    """For one owner; for everybody if None, and then a query that asks for an owner is given one."""

    __slots__ = ("_connection", "_owner", "journalled")

    def __init__(self, connection: apsw.Connection, owner: Owner | None = None) -> None:
        self._connection = connection
        self._owner = {} if owner is None else {"space": owner.space, "user_id": owner.user}
        self.journalled: list[int] = []

    def all(self, name: str, /, **values: Any) -> list[AnyRow]:
        query = SQL[name]
        values.update(self._owner)
        return self._connection.execute(query.sql, query.values(values)).fetchall()

    def ask(self, name: str, /, **values: Any) -> Callable[[], list[AnyRow]]:
        return lambda: self.all(name, **values)

    def change(self, name: str, /, **values: Any) -> int:
        query = SQL[name]
        values.update(self._owner)
        self._connection.execute(query.sql, query.values(values))
        return self._connection.changes()

    def send(self, name: str, /, **values: Any) -> None:
        self.change(name, **values)

    def together(self, works: Sequence[Callable[[], Any]]) -> list[Any]:
        return [work() for work in works]

    def change_row(self, name: str, row: NamedTuple) -> int:
        query = SQL[name]
        self._connection.execute(query.sql, query.of_row(row))
        return self._connection.changes()

    def put(self, name: str, rows: Sequence[NamedTuple]) -> None:
        query = SQL[name]
        many = query.of_rows(rows)
        try:
            if len(many) == 1:
                self._connection.execute(query.sql, many[0])
            else:
                self._connection.executemany(query.sql, many)
        except apsw.ConstraintError as error:
            raise Conflict(f"another row holds that place or id ({error}); read again, then decide") from error

    def whole(self, table: str) -> Iterator[AnyRow]:
        query = selection(table, MARK, owned=True)
        return self._connection.execute(query.sql, query.values(self._owner))

    def replace(self, table: str, row: AnyRow) -> None:
        query = replacement(table, MARK)
        values = query.of_row(TABLES[table].named(row))
        self._connection.execute(query.sql, values)

    def array(self, values: Sequence[str]) -> str:
        return json.dumps(values, ensure_ascii=False)

    def shared(self, name: str) -> str:
        return name

    def locked(self, name: str) -> str:
        # A writing transaction has the whole file to itself.
        return name


T = TypeVar("T")
PACKAGE = "perdure.adapters.sqlite"
BUSY_S = 30.0
SYNCHRONOUS = ("FULL", "NORMAL")
LOCKS_DROPPED = (
    "locks: this process has lost its locks on the file, since something in it, such as Python's own `sqlite3`, has opened and "
    "closed the same file: other processes may write at the same time and damage it; stop that, then open the store again"
)


class SqliteSnapshot:
    def __init__(self, connection: apsw.Connection, schema_version: int, owner: Owner | None) -> None:
        self.schema_version = schema_version
        self._connection = connection
        self._owner = owner

    def rows(self, table: str, owner: Owner | None = None) -> Iterator[Row]:
        owner = owner if self._owner is None else self._owner
        query = selection(table, MARK, owned=owner is not None)
        values = () if owner is None else (owner.space, owner.user)
        with translated():
            yield from self._connection.execute(query.sql, values)


class SqliteStore:
    """Durable with `synchronous="FULL"`: what `write` returned is on the disk. `"NORMAL"` is faster; a power cut may
    then take the last writes with it, though never half of one. With a `key` the file is encrypted."""

    features = Features(durable=True, shared=True, erases_in_place=True, row_security=False)

    def __init__(self, path: str | Path, *, synchronous: str = "FULL", busy_s: float = BUSY_S, key: str = "") -> None:
        if synchronous not in SYNCHRONOUS:
            raise InvalidInput(f"`synchronous` = {brief(synchronous)} is unknown; use FULL or NORMAL")
        self._path = Path(path).absolute()
        if self._path.is_dir():
            raise InvalidInput(f"{self._path} is a folder; name the file in it, such as {self._path / 'perdure.db'}")
        self._busy_s = busy_s
        self._synchronous = synchronous
        self._known = migrations(PACKAGE)
        self._cipher = Cipher(str(self._path), key) if key else None
        _make_private(self._path)
        self._connections = SqlitePool(str(self._path), synchronous=synchronous, busy_s=busy_s, cipher=self._cipher)
        self._erasure = SqliteErasure(self._path, self._connections, encrypted=self._cipher is not None)
        self._group = WriterGroup(self._commit)
        with translated(self._path):
            migrating.refuse_foreign(str(self._path), busy_s, self._known, self._cipher)
        watch_forks(self)
        with translated(self._path), self._connections.own() as connection:
            migrating.migrate(connection, self._known, schema(PACKAGE))

    # -- transactions

    def read(self, owner: Owner, work: Callable[[View], T], *, deadline_s: float | None = None) -> T:
        with translated(), self._connections.reader(deadline_s) as connection:
            connection.execute("BEGIN")
            try:
                return work(SqlTx(SqliteStatements(connection, owner), owner))
            finally:
                connection.execute("ROLLBACK")

    def write(self, owner: Owner, work: Callable[[Tx], T], *, deadline_s: float | None = None) -> T:
        def run(connection: apsw.Connection) -> T:
            tx = SqlTx(SqliteStatements(connection, owner), owner)
            result = work(tx)
            tx.finish()
            return result

        return self._submit(run, deadline_s)

    def _submit(self, work: Callable[[apsw.Connection], T], deadline_s: float | None = None) -> T:
        ticket = Ticket(work)
        self._group.submit(ticket, self._busy_s if deadline_s is None else deadline_s)
        if ticket.error is not None:
            raise ticket.error
        result: T = ticket.result
        return result

    def _commit(self, batch: Sequence[Ticket]) -> None:
        """Run the batch in one transaction and note every outcome; raises only what must reach the leader's own thread."""
        try:
            try:
                self._commit_once(batch)
            except apsw.ReadOnlyError:
                # Connections that were opened while the disk was in trouble can only read. Nothing was written: once more.
                self._commit_once(batch)
        except (apsw.Error, PerdureError) as error:
            for ticket in batch:
                if ticket.error is None:
                    ticket.error = in_our_words(error) if isinstance(error, apsw.Error) else error
        except BaseException:
            for ticket in batch[1:]:
                ticket.error = Unavailable("the write was interrupted together with another one; try again")
            raise

    def _commit_once(self, batch: Sequence[Ticket]) -> None:
        with self._connections.writer(self._busy_s) as connection:
            try:
                self._commit_on(connection, batch)
                self._connections.check_file()
            except BaseException as error:
                if not isinstance(error, apsw.Error) or isinstance(error, DISTRUSTED):
                    self._connections.drop_writer()
                raise

    def _commit_on(self, connection: apsw.Connection, batch: Sequence[Ticket]) -> None:
        """One transaction for all. Savepoints would cost each ticket two statements, so a ticket that fails after having
        written makes the others start over without it; that is rare, and work may always run again."""
        runnable = list(batch)
        while runnable:
            connection.execute("BEGIN IMMEDIATE")
            try:
                spoiler = self._run_until_spoiled(connection, runnable)
                if spoiler is None:
                    connection.execute("COMMIT")
                    return
                runnable.remove(spoiler)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _run_until_spoiled(self, connection: apsw.Connection, runnable: Sequence[Ticket]) -> Ticket | None:
        """Run each ticket's work; the first one that failed and left changes behind, if any."""
        for ticket in runnable:
            changes = connection.total_changes()
            ticket.error = None
            try:
                ticket.result = ticket.work(connection)
            except apsw.Error as error:
                if not connection.in_transaction or isinstance(error, DISTRUSTED):
                    # SQLite rolled everything back (disk full, I/O error), or the connection is not to be trusted (it
                    # could be opened for reading only): nobody's work in it survives.
                    raise
                ticket.error = in_our_words(error)
            except Exception as error:  # noqa: BLE001 - the plugin edge: whatever the work raised belongs to its own caller
                ticket.error = error
            if ticket.error is not None and connection.total_changes() != changes:
                return ticket
        return None

    # -- jobs of all owners

    def claim(self, claim: Claim) -> list[Job]:
        def due(connection: apsw.Connection) -> list[Job]:
            run = SqliteStatements(connection)
            values = claim_values(claim, run.array(claim.kinds))
            found = run.all("due_jobs", **values)
            found = found or run.all("stranded_jobs", **values)
            return [to_job(row) for row in found]

        def take(connection: apsw.Connection) -> list[Job]:
            jobs = [claimed(job, claim) for job in due(connection)]
            SqliteStatements(connection).put("put_job", [job_row(job) for job in jobs])
            return jobs

        # Looking takes no lock, and most of the time nothing is due.
        with translated(), self._connections.reader() as connection:
            if not due(connection):
                return []
        return self._submit(take)

    def queue(self, now: datetime) -> QueueReport:
        with translated(), self._connections.reader() as connection:
            return to_queue_report(SqliteStatements(connection).all("count_jobs"), now)

    def list_dead(self, *, limit: int) -> list[Job]:
        with translated(), self._connections.reader() as connection:
            return [to_job(row) for row in SqliteStatements(connection).all("list_dead", limit=limit)]

    def usage(self) -> list[Usage]:
        with translated(), self._connections.reader() as connection:
            return [to_usage(row) for row in SqliteStatements(connection).all("total_usage")]

    def remove_done(self, *, before: datetime) -> int:
        def work(connection: apsw.Connection) -> int:
            return SqliteStatements(connection).change("remove_done", before_us=to_us(before))

        return self._submit(work)

    # -- the store as a whole

    def erase(self, owner: Owner) -> int:
        def work(connection: apsw.Connection) -> int:
            removed = 0
            for table in reversed(TABLES):
                connection.execute(deletion(table, MARK).sql, (owner.space, owner.user))
                removed += connection.changes()
            return removed

        return self._submit(work)

    @contextmanager
    def snapshot(self, owner: Owner | None = None) -> Iterator[SqliteSnapshot]:
        with translated(), self._connections.reader() as connection:
            connection.execute("BEGIN")
            try:
                yield SqliteSnapshot(connection, len(migrating.applied(connection)), owner)
            finally:
                connection.execute("ROLLBACK")

    def restore(self, schema_version: int, tables: Iterable[tuple[str, Iterator[Row]]], *, replace: bool) -> Mapping[str, int]:
        refuse_newer(schema_version, self._known)
        with translated(), self._connections.own() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if not replace and any(connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() for table in TABLES):
                    raise Conflict(
                        f"the store at {self._path} is not empty; choose a new one, or replace it with `replace=True`"
                    )
                counts = self._refill(connection, schema_version, tables)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            return counts

    def _refill(
        self, connection: apsw.Connection, schema_version: int, tables: Iterable[tuple[str, Iterator[Row]]]
    ) -> Mapping[str, int]:
        connection.execute("PRAGMA defer_foreign_keys = ON")
        same = schema_version == len(self._known)
        for table in (*reversed(TABLES), *(() if same else ("perdure_migrations",))):
            connection.execute(f"DELETE FROM {table}" if same else f"DROP TABLE {table}")
        for migration in () if same else self._known[:schema_version]:
            migrating.apply(connection, migration)
        counts: dict[str, int] = {}
        for table, content in tables:
            counts[table] = 0
            for row in content:
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
                counts[table] += 1
        for migration in self._known[schema_version:]:
            migrating.apply(connection, migration)
        if schema_version >= INDEX_SINCE and "index_heads" not in counts:
            SqliteStatements(connection).change("seed_index_heads")
            SqliteStatements(connection).change("seed_index_jobs")
        return counts

    def refill(self, owner: Owner, tables: Iterable[tuple[str, Iterator[Row]]], *, replace: bool) -> Mapping[str, int]:
        with translated(), self._connections.own() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                for table in reversed(LEAVING):
                    connection.execute(deletion(table, MARK).sql, (owner.space, owner.user))
                    if connection.changes() and not replace:
                        raise holds_rows(owner)
                counts: dict[str, int] = {}
                for table, content in tables:
                    counts[table] = 0
                    for row in content:
                        connection.execute(insertion(table, MARK).sql, owned(owner, row))
                        counts[table] += 1
                for table, row in seed_rows(owner, os.urandom(8).hex(), counts):
                    connection.execute(insertion(table, MARK).sql, row)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            return counts

    def check(self) -> Iterator[Finding]:
        with translated(), self._connections.reader() as connection:
            for (problem,) in connection.execute("PRAGMA integrity_check(100)"):
                if problem != "ok":
                    yield Finding("the file's pages are sound", str(self._path), str(problem))
            for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
                yield Finding("every reference has its target", f"{table} row {row}", f"nothing in {parent}")
            fresh = apsw.Connection(":memory:")
            migrating.create(fresh, schema(PACKAGE), self._known)
            for kind, name, _ in sorted(migrating.catalog(connection) ^ migrating.catalog(fresh)):
                yield Finding("the schema is the expected one", f"{kind} {name}", "differs, is missing or is too many")

    def overwrite(self) -> str:
        with translated():
            return self._erasure.within_call()

    def purge(self, progress: Progress | None = None) -> None:
        with translated():
            self._erasure.whole(progress, self._busy_s)

    def describe(self) -> StoreDescription:
        full = self._synchronous == "FULL"
        degraded: tuple[str, ...] = () if full else ("durability: `synchronous` is NORMAL",)
        with translated():
            degraded += (ANNOUNCED,) if self._erasure.due() else ()
            degraded += (LOCKS_DROPPED,) if self._connections.locks_dropped() else ()
        return StoreDescription(
            backend="sqlite",
            location=str(self._path),
            schema_version=len(self._known),
            versions=self._cipher.versions
            if self._cipher is not None
            else {"sqlite": apsw.sqlite_lib_version(), "apsw": apsw.apsw_version()},
            durability="every write is synced before it returns" if full else "a power cut may lose the last writes",
            bytes=sum(file.bytes for file in self.files()),
            degraded=degraded,
            encryption="none" if self._cipher is None else "every page of the file, by SQLCipher",
        )

    def distribute(self) -> DistributionReport:
        raise not_distributed("an SQLite file")

    def files(self) -> tuple[StoreFile, ...]:
        candidates = (Path(f"{self._path}{suffix}") for suffix in ("", "-wal", "-shm"))
        return tuple(StoreFile(path, path.stat().st_size) for path in candidates if path.exists())

    def close(self) -> None:
        self._connections.close()

    # -- forks

    def before_fork(self) -> None:
        self._group.drain(FORK_WAIT_S)
        self._connections.before_fork()

    def after_fork_in_parent(self) -> None:
        self._connections.after_fork_in_parent()

    def after_fork_in_child(self) -> None:
        self._connections.after_fork_in_child()
        self._group = WriterGroup(self._commit)


def _make_private(path: Path) -> None:
    """A new file is its owner's alone: it holds what people said. The WAL gets the same permissions from SQLite."""
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
