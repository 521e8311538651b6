"""perdure on PostgreSQL with the conditions taken out of its own statements: then only row-level security is left.

Every statement that perdure sends is looked at on its way out. Beside that, statements nobody would write on purpose are run on
perdure's own connections: everything of each table, changed or deleted without a condition, or stored as somebody else's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import errors, sql

import perdure
from perdure.adapters.postgres.store import READ, WRITE, PostgresStore
from perdure.domain.scope import Owner
from perdure.ports.tables import rows
from proof.crowd import Person
from proof.harness import Round

CONDITION = re.compile(r'((?:\w+\.)?"?space"? = %s) AND ((?:\w+\.)?"?user_id"? = %s)')
ANYBODY = "(%s::text IS NOT NULL AND %s::text IS NOT NULL)"
"""As many values as before, and true for every row."""


@contextmanager
def without_conditions(round: Round) -> Iterator[None]:
    """Whatever is sent meanwhile asks for the rows of everybody. The answer should be that of the right question."""
    # Cursors that fetch by pages have a way of their own to run a statement.
    ways = [(psycopg.Cursor, "execute"), (psycopg.Cursor, "executemany"), (psycopg.ServerCursor, "execute")]
    plain = {way: getattr(*way) for way in ways}

    def stripped(way: tuple[type, str]) -> Any:
        def send(self: psycopg.Cursor[Any], query: Any, *values: Any, **more: Any) -> Any:
            text = query.as_string(self) if isinstance(query, sql.Composable) else query
            text = text.decode() if isinstance(text, bytes) else text
            changed, count = CONDITION.subn(ANYBODY, text)
            if count:
                round.met("a statement without its condition was run")
            return plain[way](self, changed if count else query, *values, **more)

        return send

    for kind, name in ways:
        setattr(kind, name, stripped((kind, name)))
    try:
        yield
    finally:
        for (kind, name), was in plain.items():
            setattr(kind, name, was)


def ask_for_everything(round: Round, engine: perdure.Engine, person: Person, victim: Person) -> None:
    """Through perdure's own transactions, as one person: no statement may touch a row of anybody else."""
    store = engine._store
    assert isinstance(store, PostgresStore)
    own, other = Owner(person.space, person.user), Owner(victim.space, victim.user)
    for table, spec in rows.TABLES.items():
        theirs = store._transact(READ, other, lambda cursor, table=table: cursor.execute(f"SELECT * FROM {table}").fetchall())
        with round.guarded("row-level security"):
            _read_all(round, store, own, table)
            _change_all(round, store, own, table, spec.columns)
            if theirs:
                _store_as(round, store, own, table, theirs[0])
    _without_saying_who(round, store)
    _role(round, store)


def _read_all(round: Round, store: PostgresStore, own: Owner, table: str) -> None:
    seen = store._transact(READ, own, lambda cursor: cursor.execute(f"SELECT * FROM {table}").fetchall())
    foreign = [row[:2] for row in seen if row[:2] != (own.space, own.user)]
    round.check(not foreign, "row-level security", f"a SELECT of all of {table} as {own} saw rows of {foreign[:3]}")
    round.met("a table was read without a condition")


class _Undone(Exception):
    """Ends a trial; nothing of it remains."""


def _change_all(round: Round, store: PostgresStore, own: Owner, table: str, columns: tuple[str, ...]) -> None:
    statements = {
        "UPDATE": f"UPDATE {table} SET {columns[-1]} = {columns[-1]}",
        "DELETE": f"DELETE FROM {table}",
    }
    count = f"SELECT count(*) FROM {table} WHERE space = %s AND user_id = %s"
    [(mine,)] = store._transact(READ, own, lambda cursor: cursor.execute(count, (own.space, own.user)).fetchall())
    for kind, statement in statements.items():
        touched = []

        def work(cursor: Any, statement: str = statement, touched: list[int] = touched) -> None:
            try:
                touched.append(cursor.execute(statement).rowcount)
            except errors.ForeignKeyViolation:
                touched.append(mine)  # its own rows refer to one another; the others' were not in the way
            raise _Undone

        with suppress(_Undone):
            store._transact(WRITE, own, work)
        round.check(
            touched == [mine], "row-level security", f"{kind} of all of {table} as {own} touched {touched}, not its {mine} rows"
        )
        round.met("a table was changed without a condition")


def _store_as(round: Round, store: PostgresStore, own: Owner, table: str, row: tuple[Any, ...]) -> None:
    """A row of somebody else, stored again, and one of its own given away."""
    other = Owner(str(row[0]), str(row[1]))
    marks = ", ".join(["%s"] * len(row))
    given_away = f"UPDATE {table} SET space = %s, user_id = %s"
    for statement, values in (
        (f"INSERT INTO {table} VALUES ({marks})", row),
        (f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT DO NOTHING", row),
        (given_away, (other.space, other.user)),
    ):
        outcome = []

        def work(cursor: Any, statement: str = statement, values: Any = values, outcome: list[str] = outcome) -> None:
            try:
                count = cursor.execute(statement.encode(), values).rowcount
                outcome.append("nothing" if count == 0 else "done")
            except errors.InsufficientPrivilege:
                outcome.append("refused")
            except psycopg.errors.IntegrityError as error:
                outcome.append(f"told: {type(error).__name__}")
            raise _Undone

        with suppress(_Undone):
            store._transact(WRITE, own, work)
        # Not even "it is there already": that would tell that somebody has such a row.
        round.check(
            outcome in (["refused"], ["nothing"]), "row-level security", f"as {own}: {statement:.90} for {other}: {outcome}"
        )
        round.met("a row was stored as another's")


def _without_saying_who(round: Round, store: PostgresStore) -> None:
    """A connection of the pool between two calls stands for nobody, even if it has a schema and a role."""
    with store._pool.connection() as connection, connection.transaction():
        connection.execute(sql.SQL("SET LOCAL search_path TO {}").format(sql.Identifier(store._schema)))
        if store._role is not None:
            connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(store._role)))
        for table in rows.TABLES:
            try:
                with connection.transaction():
                    [(count,)] = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchall()
            except errors.InvalidTextRepresentation:
                continue  # refused aloud: whose rows are meant did not arrive
            round.check(count == 0, "row-level security", f"a pooled connection sees {count} rows of {table} after its call")
    round.met("a connection that stands for nobody was asked")


def _role(round: Round, store: PostgresStore) -> None:
    question = (
        "SELECT r.rolname, r.rolsuper OR r.rolbypassrls, EXISTS (SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n "
        "ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relowner = r.oid), "
        "(SELECT bool_and(relrowsecurity AND relforcerowsecurity) FROM pg_class WHERE relname = ANY(%s) "
        "AND relnamespace = current_schema()::regnamespace) FROM pg_roles AS r WHERE r.rolname = current_user"
    )
    names = (list(rows.TABLES),)
    [(name, exempt, owns, forced)] = store._transact(WRITE, None, lambda cursor: cursor.execute(question, names).fetchall())
    round.check(not exempt, "row-level security", f"perdure works as {name}, whom row-level security does not bind")
    round.check(bool(forced), "row-level security", "a table has no forced row-level security")
    if owns:
        round.met("the owner of the tables was bound, too")
    else:
        round.met("a role that owns nothing was bound")
