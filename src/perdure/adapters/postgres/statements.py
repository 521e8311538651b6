"""Running the named queries of this folder on a psycopg cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import Cursor

from perdure.adapters.sqlfiles import queries
from perdure.ports.rows import AnyRow

SQL = queries("perdure.adapters.postgres")


class PostgresStatements:
    """`writing` makes look-ups lock what they find, because others write at the same time."""

    __slots__ = ("_cursor", "_writing")

    def __init__(self, cursor: Cursor[Any], *, writing: bool) -> None:
        self._cursor = cursor
        self._writing = writing

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

    def array(self, values: Sequence[str]) -> list[str]:
        return list(values)

    def locked(self, name: str) -> str:
        return f"{name}_locked" if self._writing else name
