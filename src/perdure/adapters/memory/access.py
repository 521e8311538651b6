"""The access log, in plain dicts."""

from __future__ import annotations

from collections.abc import Callable

from perdure.adapters.memory.tables import OwnerTables
from perdure.domain.access import Access
from perdure.domain.scope import ERASURES
from perdure.ports.tables import access as forms
from perdure.ports.tables.access import ACCESSES, AccessRow
from perdure.ports.tables.index import INDEX_HEADS
from perdure.ports.tables.series import STATE_KEYS


class MemoryAccesses:
    def __init__(self, tables: OwnerTables) -> None:
        self._tables = tables
        self._owner = tables.owner

    def standing(self) -> forms.OwnerVersion:
        head = self._tables.find(INDEX_HEADS)
        key = self._tables.find(STATE_KEYS, ERASURES)
        return forms.OwnerVersion(0 if key is None else key.revision, "" if head is None else head.incarnation)

    def version(self) -> forms.OwnerVersion:
        return self.standing()

    def list_accesses(self, *, limit: int, before: str | None = None) -> list[Access]:
        rows = self._newest_first()
        if before is not None:
            names = [row.id for row in rows]
            rows = rows[names.index(before) + 1 :] if before in names else []
        return [forms.to_access(row) for row in rows[:limit]]

    def put_access(self, access: Access, *, keep: int) -> bool:
        held = self._tables.find(ACCESSES, access.id)
        if held is not None:
            if (ended := forms.ended_row(held, self._owner, access)) is not None:
                self._tables.put(ACCESSES, ended)
                return True
            forms.refuse_another(forms.to_access(held), self._owner, access)
            return False
        rows = self._newest_first()
        last = rows[0].number if rows else 0
        self._tables.put(ACCESSES, forms.access_row(self._owner, access, last + 1))
        for row in rows:
            if row.number <= last + 1 - keep:
                self._tables.remove(ACCESSES, row)
        return True

    def strike_names(self, gone: Callable[[str], bool]) -> int:
        rows = [forms.row_without_names(row, gone) for row in self._tables.of(ACCESSES)]
        changed = [row for row in rows if row is not None]
        for row in changed:
            self._tables.put(ACCESSES, row)
        return len(changed)

    def _newest_first(self) -> list[AccessRow]:
        return sorted(self._tables.of(ACCESSES), key=lambda row: (row.number, row.id), reverse=True)
