"""Running the named queries of this folder on an apsw connection."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from perdure.adapters.sqlfiles import queries
from perdure.domain.errors import Conflict
from perdure.ports.rows import TABLES, AnyRow

SQL = queries("perdure.adapters.sqlite")


class SqliteStatements:
    __slots__ = ("_connection", "journalled")

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.journalled: list[int] = []

    def all(self, name: str, values: tuple[Any, ...]) -> list[AnyRow]:
        return self._connection.execute(SQL[name], values).fetchall()

    def change(self, name: str, values: tuple[Any, ...]) -> int:
        self._connection.execute(SQL[name], values)
        return self._connection.changes()

    def put(self, name: str, many: Sequence[AnyRow]) -> None:
        try:
            if len(many) == 1:
                self._connection.execute(SQL[name], many[0])
            else:
                self._connection.executemany(SQL[name], many)
        except apsw.ConstraintError as error:
            raise Conflict(f"another row holds that place or id ({error}); read again, then decide") from error

    def whole(self, table: str, owner: tuple[str, str]) -> Iterator[AnyRow]:
        columns = ", ".join(TABLES[table].columns)
        return self._connection.execute(f"SELECT {columns} FROM {table} WHERE space = ? AND user_id = ?", owner)

    def replace(self, table: str, row: AnyRow) -> None:
        columns, key, *_ = TABLES[table]
        changes = ", ".join(f"{name} = ?" for name in columns[key:])
        place = " AND ".join(f"{name} = ?" for name in columns[:key])
        self._connection.execute(f"UPDATE {table} SET {changes} WHERE {place}", (*row[key:], *row[:key]))

    def array(self, values: Sequence[str]) -> str:
        return json.dumps(values, ensure_ascii=False)

    def once(self) -> None:
        """Nothing is run again here but what was rolled back."""

    def shared(self, name: str) -> str:
        return name

    def locked(self, name: str) -> str:
        # A writing transaction has the whole file to itself.
        return name
