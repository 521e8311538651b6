"""The rows of one owner in plain dicts, with a log of what to put back if a transaction fails."""

from __future__ import annotations

from perdure.ports.rows import TABLES, AnyRow


class OwnerRows:
    def __init__(self) -> None:
        self.tables: dict[str, dict[AnyRow, AnyRow]] = {name: {} for name in TABLES}
        self._undo: list[tuple[str, AnyRow, AnyRow | None]] = []

    def put(self, table: str, row: AnyRow) -> None:
        key = row[: TABLES[table].key]
        self._undo.append((table, key, self.tables[table].get(key)))
        self.tables[table][key] = row

    def remove(self, table: str, key: AnyRow) -> None:
        self._undo.append((table, key, self.tables[table].pop(key)))

    def commit(self) -> None:
        self._undo.clear()

    def roll_back(self) -> None:
        for table, key, row in reversed(self._undo):
            if row is None:
                del self.tables[table][key]
            else:
                self.tables[table][key] = row
        self._undo.clear()

    def of(self, table: str, *prefix: object) -> list[AnyRow]:
        """Rows by primary key; with `prefix`, those whose key goes on with it behind the owner."""
        held = self.tables[table]
        return [held[key] for key in sorted(held) if key[2 : 2 + len(prefix)] == prefix]
