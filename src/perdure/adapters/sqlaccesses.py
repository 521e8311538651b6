"""The access log of one owner in a SQL database."""

from __future__ import annotations

from collections.abc import Callable

from perdure.adapters.statements import MAX_INTEGER, Statements
from perdure.domain.accesses import Access
from perdure.domain.scope import ERASURES, Owner
from perdure.ports import accesses as forms
from perdure.ports.index import to_head
from perdure.ports.rows import AnyRow


class SqlAccesses:
    __slots__ = ("_owner", "_prefix", "_run")

    def __init__(self, run: Statements, owner: Owner) -> None:
        self._run = run
        self._owner = owner
        self._prefix = (owner.space, owner.user)

    def standing(self) -> forms.Standing:
        # The head first: forgetting locks it before it commits, so what is read after it is how things stand.
        head = self._run.all(self._run.shared("index_head"), self._prefix)
        found = self._run.all("state_revision", (*self._prefix, ERASURES))
        return forms.Standing(int(found[0][0]) if found else 0, to_head(head[0]).incarnation if head else "")

    def list_accesses(self, *, limit: int, before: str | None = None) -> list[Access]:
        top, name = MAX_INTEGER, ""
        if before is not None:
            found = self._find(before)
            if found is None:
                return []
            _, _, name, top, *_ = found
        return [forms.to_access(row) for row in self._run.all("list_accesses", (*self._prefix, top, top, name, limit))]

    def put_access(self, access: Access, *, keep: int) -> bool:
        held = self._find(access.id)
        if held is not None:
            if (ended := forms.ended(held, self._owner, access)) is not None:
                self._run.replace("accesses", ended)
                return True
            forms.refuse_another(forms.to_access(held), self._owner, access)
            return False
        [(last,)] = self._run.all("last_access", self._prefix)
        self._run.put("insert_access", [forms.access_row(self._owner, access, last + 1)])
        self._run.change("bound_accesses", (*self._prefix, last + 1 - keep))
        return True

    def strike_names(self, gone: Callable[[str], bool]) -> int:
        rows = [forms.struck(row, gone) for row in self._run.whole("accesses", self._prefix)]
        changed = [row for row in rows if row is not None]
        for row in changed:
            self._run.replace("accesses", row)
        return len(changed)

    def _find(self, name: str) -> AnyRow | None:
        found = self._run.all("find_access", (*self._prefix, name))
        return found[0] if found else None
