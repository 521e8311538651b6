"""Key-value state in plain dicts."""

from __future__ import annotations

from datetime import datetime

from perdure.adapters.memory.held import OwnerRows
from perdure.domain.errors import Conflict
from perdure.domain.scope import Owner
from perdure.domain.state import KeyInfo, Revision
from perdure.ports import rows


class MemoryState:
    def __init__(self, held: OwnerRows, owner: Owner) -> None:
        self._held = held
        self._owner = owner

    def find(self, key: str) -> Revision | None:
        return max(self._revisions(key), key=lambda revision: revision.number, default=None)

    def find_revision(self, key: str, number: int) -> Revision | None:
        return next((revision for revision in self._revisions(key) if revision.number == number), None)

    def find_request(self, key: str, request: str) -> Revision | None:
        return next((revision for revision in self._revisions(key) if revision.request == request), None)

    def list_keys(self, *, now: datetime, prefix: str, after: str | None, limit: int) -> list[KeyInfo]:
        found = []
        for row in self._held.of("state_keys"):
            key = row[2]
            latest = self.find(key)
            if latest is not None and latest.alive(now) and key.startswith(prefix) and key > (after or ""):
                found.append(rows.to_key_info(row))
        return found[:limit]

    def list_revisions(self, key: str, *, limit: int, before: int | None = None) -> list[Revision]:
        newest_first = sorted(self._revisions(key), key=lambda revision: -revision.number)
        return [revision for revision in newest_first if before is None or revision.number < before][:limit]

    def put(self, revision: Revision, *, keep: int) -> None:
        latest = self.find(revision.key)
        if revision.number != (1 if latest is None else latest.number + 1):
            raise Conflict(f"key {revision.key!r:.80} is not at revision {revision.number - 1} any more; load it again")
        self._held.put("state_keys", rows.key_row(self._owner, revision))
        self._held.put("state_revisions", rows.revision_row(self._owner, revision))
        for old in self._revisions(revision.key):
            if old.number <= revision.number - keep:
                self._held.remove("state_revisions", rows.revision_row(self._owner, old)[:4])

    def remove(self, key: str) -> int:
        gone = self._revisions(key)
        for revision in gone:
            self._held.remove("state_revisions", rows.revision_row(self._owner, revision)[:4])
        for row in self._held.of("state_keys", key):
            self._held.remove("state_keys", row[:3])
        return len(gone)

    def _revisions(self, key: str) -> list[Revision]:
        return [rows.to_revision(row) for row in self._held.of("state_revisions", key)]
