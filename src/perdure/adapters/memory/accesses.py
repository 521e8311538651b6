"""The access log, in plain dicts."""

from __future__ import annotations

from collections.abc import Callable

from perdure.adapters.memory.held import OwnerRows
from perdure.domain.accesses import Access
from perdure.domain.scope import ERASURES, Owner
from perdure.ports import accesses as forms
from perdure.ports.index import to_head
from perdure.ports.rows import AnyRow


class MemoryAccesses:
    def __init__(self, held: OwnerRows, owner: Owner) -> None:
        self._held = held
        self._owner = owner

    def standing(self) -> forms.Standing:
        owner = (self._owner.space, self._owner.user)
        head, key = self._held.tables["index_heads"].get(owner), self._held.tables["state_keys"].get((*owner, ERASURES))
        return forms.Standing(0 if key is None else int(key[3]), "" if head is None else to_head(head).incarnation)

    def list_accesses(self, *, limit: int, before: str | None = None) -> list[Access]:
        rows = self._newest_first()
        if before is not None:
            names = [row[2] for row in rows]
            rows = rows[names.index(before) + 1 :] if before in names else []
        return [forms.to_access(row) for row in rows[:limit]]

    def put_access(self, access: Access, *, keep: int) -> bool:
        held = self._held.tables["accesses"].get((self._owner.space, self._owner.user, access.id))
        if held is not None:
            if (ended := forms.ended(held, self._owner, access)) is not None:
                self._held.put("accesses", ended)
                return True
            forms.refuse_another(forms.to_access(held), self._owner, access)
            return False
        rows = self._newest_first()
        last = rows[0][3] if rows else 0
        self._held.put("accesses", forms.access_row(self._owner, access, last + 1))
        for row in rows:
            if row[3] <= last + 1 - keep:
                self._held.remove("accesses", row[:3])
        return True

    def strike_names(self, gone: Callable[[str], bool]) -> int:
        rows = [forms.struck(row, gone) for row in self._held.of("accesses")]
        changed = [row for row in rows if row is not None]
        for row in changed:
            self._held.put("accesses", row)
        return len(changed)

    def _newest_first(self) -> list[AnyRow]:
        return sorted(self._held.of("accesses"), key=lambda row: (row[3], row[2]), reverse=True)
