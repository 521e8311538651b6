"""The rows of one owner in plain dicts, with a log of what to put back if a transaction fails."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, TypeVar

from perdure.domain.scope import Owner
from perdure.ports.tables.rows import TABLES
from perdure.ports.tables.table import AnyRow, Table

R = TypeVar("R", bound=NamedTuple)


class OwnerTables:
    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.rows: dict[str, dict[AnyRow, Any]] = {name: {} for name in TABLES}
        self._undo: list[tuple[str, AnyRow, AnyRow | None]] = []

    def find(self, table: Table[R], *key: object) -> R | None:
        """The row whose primary key goes on with `key` behind the owner."""
        return self.rows[table.name].get((self.owner.space, self.owner.user, *key))

    def each(self, table: Table[R]) -> Collection[R]:
        """All rows, in no order."""
        return self.rows[table.name].values()

    def of(self, table: Table[R], *prefix: object) -> list[R]:
        """Rows by primary key; with `prefix`, those whose key goes on with it behind the owner."""
        held = self.rows[table.name]
        end = 2 + len(prefix)
        return [held[key] for key in sorted(key for key in held if key[2:end] == prefix)]

    def put(self, table: Table[R], row: R) -> None:
        held, key = self.rows[table.name], table.key_of(row)
        self._undo.append((table.name, key, held.get(key)))
        held[key] = row

    def remove(self, table: Table[R], row: R) -> None:
        _, _, *key = table.key_of(row)
        self.remove_key(table, *key)

    def remove_key(self, table: Table[R], *key: object) -> None:
        """Delete the row whose primary key goes on with `key` behind the owner."""
        whole = (self.owner.space, self.owner.user, *key)
        self._undo.append((table.name, whole, self.rows[table.name].pop(whole)))

    def commit(self) -> None:
        self._undo.clear()

    def roll_back(self) -> None:
        for table, key, row in reversed(self._undo):
            if row is None:
                del self.rows[table][key]
            else:
                self.rows[table][key] = row
        self._undo.clear()
