"""Key-value state of one owner in a SQL database."""

from __future__ import annotations

from datetime import datetime

from perdure.adapters.statements import MAX_INTEGER, Statements
from perdure.domain.errors import Conflict
from perdure.domain.scope import Owner
from perdure.domain.state import KeyInfo, Revision
from perdure.domain.times import to_us
from perdure.ports import rows


class SqlState:
    __slots__ = ("_owner", "_prefix", "_run")

    def __init__(self, run: Statements, owner: Owner) -> None:
        self._run = run
        self._owner = owner
        self._prefix = (owner.space, owner.user)

    def find(self, key: str) -> Revision | None:
        # In two steps: under a lock, the first tells which revision it is now; the second then finds it.
        found = self._run.all(self._run.locked("state_revision"), (*self._prefix, key))
        return self.find_revision(key, found[0][0]) if found else None

    def find_revision(self, key: str, number: int) -> Revision | None:
        return self._one("find_state_revision", key, number)

    def find_request(self, key: str, request: str) -> Revision | None:
        return self._one("find_state_request", key, request)

    def list_keys(self, *, now: datetime, prefix: str, after: str | None, limit: int) -> list[KeyInfo]:
        values = (*self._prefix, after or "", prefix, len(prefix), prefix, to_us(now), limit)
        return [rows.to_key_info(row) for row in self._run.all("list_state", values)]

    def list_revisions(self, key: str, *, limit: int, before: int | None = None) -> list[Revision]:
        top = MAX_INTEGER if before is None else before
        found = self._run.all("list_state_revisions", (*self._prefix, key, top, limit))
        return [rows.to_revision(row) for row in found]

    def put(self, revision: Revision, *, keep: int) -> None:
        row = rows.key_row(self._owner, revision)
        if revision.number == 1:
            self._run.put("insert_state_key", [row])
        elif self._run.change("update_state_key", (*row[3:], *row[:3], revision.number - 1)) == 0:
            raise Conflict(f"key {revision.key!r:.80} is not at revision {revision.number - 1} any more; load it again")
        self._run.put("insert_state_revision", [rows.revision_row(self._owner, revision)])
        self._run.change("forget_state_revisions", (*self._prefix, revision.key, revision.number - keep))

    def remove(self, key: str) -> int:
        removed = self._run.change("remove_state_revisions", (*self._prefix, key))
        self._run.change("remove_state_key", (*self._prefix, key))
        return removed

    def _one(self, name: str, *values: object) -> Revision | None:
        found = self._run.all(name, (*self._prefix, *values))
        return rows.to_revision(found[0]) if found else None
