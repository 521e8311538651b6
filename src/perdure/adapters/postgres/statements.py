"""The messages that begin and end a transaction, and the named queries in between, on a psycopg cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from psycopg import Cursor, sql

from perdure.adapters.postgres.connections import DeadlineConnection, translated
from perdure.adapters.sql.statements import Query, queries, replacement, selection
from perdure.domain.scope import Owner
from perdure.ports.store import Row
from perdure.ports.tables.rows import TABLES
from perdure.ports.tables.table import AnyRow

MARK = "%s"
WRITE = "BEGIN"
READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
FETCH_ROWS = 2_000
SENT_MAX = 50
"""Rows of one table that wait for the next statement; more are sent at once."""
COMMITS = "commits"
"""The one table that only PostgreSQL has: it is far enough away for an answer to be lost."""
ASK_COMMIT = f"""
INSERT INTO {COMMITS} (space, user_id, token, done) VALUES (%s, %s, %s, 0)
ON CONFLICT (space, user_id, token) DO UPDATE SET done = {COMMITS}.done
RETURNING done
"""
REMOVE_COMMITS = f"DELETE FROM {COMMITS} WHERE at < now() - make_interval(secs => %s)"
SQL = {name: Query(text, MARK) for name, text in queries("perdure.adapters.postgres").items()}
ANSWERING_CHANGES = frozenset(name for name, query in SQL.items() if "RETURNING" in query.sql)


PROPAGATE = "SET LOCAL citus.propagate_set_commands = 'local'"
"""Before all else that is set: what follows goes to every server that the transaction reaches."""


def begin(how: str, owner: Owner | None, schema: str, *, role: str | None, silence_s: float, spread: bool = False) -> bytes:
    """The message that begins a transaction, and sets what holds for it alone; if rows are `spread`, where they are, too."""
    if spread:
        how = f"{how}; {PROPAGATE}"
    # We give up at the deadline. A network that swallows packets keeps that from the server, which would hold our locks
    # until TCP finds out, by default after two hours: it gives up at the same time.
    silence_ms = max(1, round(silence_s * 1_000))
    parts = [how, f"SET LOCAL search_path TO {quoted(schema)}", f"SET LOCAL idle_in_transaction_session_timeout = {silence_ms}"]
    if role is not None:
        parts.append(f"SET LOCAL ROLE {quoted(role)}")
    if owner is None:
        parts.append("SET LOCAL perdure.everyone = 'on'")
    else:
        parts += [f"SET LOCAL perdure.space = {sql.quote(owner.space)}", f'SET LOCAL perdure."user" = {sql.quote(owner.user)}']
    return "; ".join(parts).encode()


def lock(token: int) -> bytes:
    """What a beginning goes on with: the transaction can be found by its token, by anyone who must end it."""
    return f"; SELECT pg_advisory_xact_lock({token})".encode()


def commit(noted: tuple[Owner, int] | None) -> bytes:
    """The message that ends a transaction; with an owner and a token, it leaves a row that says that it happened."""
    if noted is None:
        return b"COMMIT"
    owner, token = noted
    row = f"{sql.quote(owner.space)}, {sql.quote(owner.user)}, {token}, 1"
    return f"INSERT INTO {COMMITS} (space, user_id, token, done) VALUES ({row}); COMMIT".encode()


def quoted(name: str) -> str:
    return sql.Identifier(name).as_string()


class _NotYet(BaseException):
    """A work asks for something that is still to be fetched. Not an `Exception`: no work may take it for a failure."""


class PostgresStatements:
    """For one owner; for everybody if None, and then a query that asks for an owner is given one.

    `writing` makes look-ups lock what they find, because others write at the same time.

    The server may be far away, so statements travel together where they can. Those whose answer nobody waits for go with the
    next one that has an answer, in order. Of several works that only read, each runs until it lacks an answer; what all of
    them lack is fetched at once, and they run again with it.
    """

    __slots__ = ("_asked", "_cursor", "_fetched", "_lacking", "_owner", "_waiting", "_writing", "journalled")

    def __init__(self, cursor: Cursor[Any], owner: Owner | None = None, *, writing: bool) -> None:
        self._cursor = cursor
        self._owner = {} if owner is None else {"space": owner.space, "user_id": owner.user}
        self._writing = writing
        self._waiting: list[tuple[str, AnyRow]] = []
        self._asked: dict[int, list[Cursor[Any]]] = {}
        """Where among those that wait somebody will want the answer, and where it is put."""
        self._fetched: dict[tuple[str, str], list[AnyRow]] | None = None
        """What works that run together have fetched; None while there are none."""
        self._lacking: dict[tuple[str, str], tuple[str, AnyRow]] = {}
        self.journalled: list[int] = []

    def all(self, name: str, /, **values: Any) -> list[AnyRow]:
        query = SQL[name]
        values.update(self._owner)
        given = query.values(values)
        if name in ANSWERING_CHANGES:
            self._note_change()
        if self._fetched is None:
            return self._answer(query.sql, given).fetchall()
        key = (name, repr(given))
        if key not in self._fetched:
            self._lacking[key] = (query.sql, given)
            raise _NotYet
        return self._fetched[key]

    def ask(self, name: str, /, **values: Any) -> Callable[[], list[AnyRow]]:
        query = SQL[name]
        values.update(self._owner)
        answered = self._asked[len(self._waiting)] = []
        self._waiting.append((query.sql, query.values(values)))

        def rows() -> list[AnyRow]:
            self.flush()
            return answered[0].fetchall()

        return rows

    def together(self, works: Sequence[Callable[[], Any]]) -> list[Any]:
        if self._writing or len(works) == 1:
            return [work() for work in works]
        if self._fetched is not None:
            return self._attempt(works)
        self._fetched = {}
        try:
            while True:
                with suppress(_NotYet):
                    return self._attempt(works)
                keys, statements = [*self._lacking], [*self._lacking.values()]
                self._lacking = {}
                for key, cursor in zip(keys, self._send_all(statements), strict=True):
                    self._fetched[key] = cursor.fetchall()
        finally:
            self._fetched = None

    def _attempt(self, works: Sequence[Callable[[], Any]]) -> list[Any]:
        """Let each get as far as it can: what one of them lacks is no reason not to ask what the others do."""
        answers = []
        for work in works:
            with suppress(_NotYet):
                answers.append(work())
        if len(answers) < len(works):
            raise _NotYet
        return answers

    def change(self, name: str, /, **values: Any) -> int:
        query = SQL[name]
        values.update(self._owner)
        self._note_change()
        return self._answer(query.sql, query.values(values)).rowcount

    def change_row(self, name: str, row: NamedTuple) -> int:
        query = SQL[name]
        self._note_change()
        return self._answer(query.sql, query.of_row(row)).rowcount

    def send(self, name: str, /, **values: Any) -> None:
        query = SQL[name]
        values.update(self._owner)
        self._note_change()
        self._waiting.append((query.sql, query.values(values)))

    def put(self, name: str, rows: Sequence[NamedTuple]) -> None:
        # A refused row ends the transaction. The store then runs the work again, and says `Conflict` if that recurs.
        query = SQL[name]
        many = query.of_rows(rows)
        self._note_change()
        self._waiting += [(query.sql, one) for one in many[:SENT_MAX]]
        if len(many) > SENT_MAX:
            self.flush()
            self._cursor.executemany(query.sql, many[SENT_MAX:])

    def flush(self) -> None:
        """Send what still waits to be sent: a transaction ends with it."""
        if len(self._waiting) == 1 and not self._asked:
            [(statement, values)] = self._waiting
            self._waiting = []
            self._cursor.execute(statement, values)
        elif self._waiting:
            self._send_all([])

    def whole(self, table: str) -> Iterator[AnyRow]:
        query = selection(table, MARK, owned=True)
        return iter(self._answer(query.sql, query.values(self._owner)).fetchall())

    def replace(self, table: str, row: AnyRow) -> None:
        query = replacement(table, MARK)
        self._note_change()
        self._waiting.append((query.sql, query.of_row(TABLES[table].named(row))))

    def array(self, values: Sequence[str]) -> list[str]:
        return list(values)

    def _answer(self, statement: str, values: AnyRow) -> Cursor[Any]:
        if not self._waiting:
            return self._cursor.execute(statement, values)
        [answered] = self._send_all([(statement, values)])
        return answered

    def _send_all(self, statements: Sequence[tuple[str, AnyRow]]) -> list[Cursor[Any]]:
        """Send what waits, then these, in one message; the answers to these."""
        connection = self._cursor.connection
        waiting, self._waiting = self._waiting, []
        cursors = []
        with connection.pipeline():
            for statement, values in (*waiting, *statements):
                cursors.append(connection.cursor().execute(statement, values))
        for place, answered in self._asked.items():
            answered.append(cursors[place])
        self._asked = {}
        return cursors[len(waiting) :]

    def _note_change(self) -> None:
        if isinstance(self._cursor.connection, DeadlineConnection):
            self._cursor.connection.changed = True

    def shared(self, name: str) -> str:
        return f"{name}_shared" if self._writing else name

    def locked(self, name: str) -> str:
        return f"{name}_locked" if self._writing else name


class PostgresSnapshot:
    """All rows as of one moment, read page by page."""

    def __init__(self, connection: DeadlineConnection, schema_version: int, deadline_s: float) -> None:
        self.schema_version = schema_version
        self._connection = connection
        self._deadline_s = deadline_s

    def rows(self, table: str, owner: Owner | None = None) -> Iterator[Row]:
        query = selection(table, MARK, owned=owner is not None)
        values = () if owner is None else (owner.space, owner.user)
        self._connection.allow(self._deadline_s)
        with translated(), self._connection.cursor(name=f"rows_of_{table}") as cursor:
            cursor.execute(query.sql, values)
            while page := cursor.fetchmany(FETCH_ROWS):
                yield from page  # type: ignore[misc] # what the columns hold is stated in ports.tables
                self._connection.allow(self._deadline_s)
