"""Running the named queries of this folder on a psycopg cursor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from psycopg import Cursor, sql

from perdure.adapters.postgres.connections import DeadlineConnection
from perdure.adapters.sqlfiles import queries
from perdure.ports.rows import TABLES, AnyRow

SQL = queries("perdure.adapters.postgres")


class PostgresStatements:
    """`writing` makes look-ups lock what they find, because others write at the same time."""

    __slots__ = ("_cursor", "_writing", "journalled")

    def __init__(self, cursor: Cursor[Any], *, writing: bool) -> None:
        self._cursor = cursor
        self._writing = writing
        self.journalled: list[int] = []

    def all(self, name: str, values: tuple[Any, ...]) -> list[AnyRow]:
        return self._cursor.execute(SQL[name], values).fetchall()

    def change(self, name: str, values: tuple[Any, ...]) -> int:
        return self._cursor.execute(SQL[name], values).rowcount

    def put(self, name: str, many: Sequence[AnyRow]) -> None:
        # A refused row ends the transaction. The store then runs the work again, and says `Conflict` if that recurs.
        if len(many) == 1:
            self._cursor.execute(SQL[name], many[0])
        else:
            self._cursor.executemany(SQL[name], many)

    def whole(self, table: str, owner: tuple[str, str]) -> Iterator[AnyRow]:
        columns = sql.SQL(", ").join(map(sql.Identifier, TABLES[table].columns))
        query = sql.SQL("SELECT {} FROM {} WHERE space = %s AND user_id = %s").format(columns, sql.Identifier(table))
        return iter(self._cursor.execute(query, owner).fetchall())

    def replace(self, table: str, row: AnyRow) -> None:
        columns, key, *_ = TABLES[table]
        changes = sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in columns[key:])
        place = sql.SQL(" AND ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in columns[:key])
        query = sql.SQL("UPDATE {} SET {} WHERE {}").format(sql.Identifier(table), changes, place)
        self._cursor.execute(query, (*row[key:], *row[:key]))

    def array(self, values: Sequence[str]) -> list[str]:
        return list(values)

    def once(self) -> None:
        if isinstance(self._cursor.connection, DeadlineConnection):
            self._cursor.connection.once = True

    def shared(self, name: str) -> str:
        return f"{name}_shared" if self._writing else name

    def locked(self, name: str) -> str:
        return f"{name}_locked" if self._writing else name
