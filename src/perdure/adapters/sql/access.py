"""The access log of one owner in a SQL database."""

from __future__ import annotations

from collections.abc import Callable

from perdure.adapters.sql.statements import MAX_INTEGER, SqlStatements
from perdure.domain.access import Access
from perdure.domain.scope import ERASURES, Owner
from perdure.ports.tables import access as forms
from perdure.ports.tables.index import to_head


class SqlAccesses:
    __slots__ = ("_owner", "_run")

    def __init__(self, run: SqlStatements, owner: Owner) -> None:
        self._run = run
        self._owner = owner

    def standing(self) -> forms.OwnerVersion:
        # The head first: forgetting locks it before it commits, so what is read after it is how things stand.
        head = self._run.all(self._run.shared("index_head"))
        found = self._run.all("state_revision", key=ERASURES)
        return forms.OwnerVersion(int(found[0][0]) if found else 0, to_head(head[0]).incarnation if head else "")

    def version(self) -> forms.OwnerVersion:
        [(count, incarnation)] = self._run.all("owner_version", key=ERASURES)
        return forms.OwnerVersion(int(count), incarnation)

    def list_accesses(self, *, limit: int, before: str | None = None) -> list[Access]:
        top, last_id = MAX_INTEGER, ""
        if before is not None:
            found = self._find(before)
            if found is None:
                return []
            top, last_id = found.number, found.id
        return [forms.to_access(row) for row in self._run.all("list_accesses", top=top, last_id=last_id, limit=limit)]

    def put_access(self, access: Access, *, keep: int) -> bool:
        held = self._find(access.id)
        if held is not None:
            if (ended := forms.ended_row(held, self._owner, access)) is not None:
                self._run.replace("accesses", ended)
                return True
            forms.refuse_another(forms.to_access(held), self._owner, access)
            return False
        [(last,)] = self._run.all("last_access")
        self._run.put("insert_access", [forms.access_row(self._owner, access, last + 1)])
        self._run.send("bound_accesses", last=last + 1 - keep)
        return True

    def strike_names(self, gone: Callable[[str], bool]) -> int:
        rows = [forms.row_without_names(row, gone) for row in self._run.whole("accesses")]
        changed = [row for row in rows if row is not None]
        for row in changed:
            self._run.replace("accesses", row)
        return len(changed)

    def _find(self, access_id: str) -> forms.AccessRow | None:
        found = self._run.all("find_access", id=access_id)
        return forms.ACCESSES.named(found[0]) if found else None
