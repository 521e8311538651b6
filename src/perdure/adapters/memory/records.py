"""Records in plain dicts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from perdure.adapters.memory.held import OwnerRows
from perdure.domain.journal import Attribution, Operation
from perdure.domain.records import Record, RecordKind, RecordQuery, Term
from perdure.domain.scope import Owner
from perdure.domain.times import to_us
from perdure.ports import records as forms
from perdure.ports import rows


class MemoryRecords:
    def __init__(self, held: OwnerRows, owner: Owner) -> None:
        self._held = held
        self._owner = owner

    def find(self, kind: RecordKind, key: str) -> Record | None:
        row = self._held.tables["records"].get((self._owner.space, self._owner.user, kind, key))
        return None if row is None else forms.to_record(row)

    def find_many(self, kind: RecordKind, keys: Sequence[str]) -> list[Record]:
        return [record for key in sorted(set(keys)) if (record := self.find(kind, key)) is not None]

    def list_(self, query: RecordQuery) -> list[Record]:
        found = [record for record in self._all(query.kind, query.term) if query.before is None or record.key < query.before]
        return sorted(found, key=lambda record: record.key, reverse=True)[: query.limit]

    def find_by(self, kind: RecordKind, field: str, values: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for row in self._held.of("record_terms", kind, field):
            if row[4] in values:
                found.setdefault(row[4], row[5])
        return found

    def count(self, kind: RecordKind, term: Term | None = None) -> int:
        return len(self._all(kind, term))

    def _all(self, kind: RecordKind, term: Term | None) -> list[Record]:
        if term is None:
            return [forms.to_record(row) for row in self._held.of("records", kind)]
        return [
            forms.to_record(self._held.tables["records"][(*row[:3], row[5])])
            for row in self._held.of("record_terms", kind, *term)
        ]

    def operations_of(self, kind: str, key: str, *, limit: int) -> list[Operation]:
        found = [operation for operation in self._operations() if (operation.kind, operation.key) == (kind, key)]
        return found[::-1][:limit]

    def operations_in(self, batch: int) -> list[Operation]:
        return [operation for operation in self._operations() if operation.batch == batch]

    def _operations(self) -> list[Operation]:
        return [rows.to_operation(row) for row in self._held.of("operations")]

    def find_echoes(self, hashes: Sequence[str], *, until: datetime | None = None) -> set[str]:
        known = {row[2] for row in self._held.of("echoes") if until is None or row[3] <= to_us(until)}
        return known & set(hashes)

    def put_echoes(self, hashes: Sequence[str], *, at: datetime, keep: int) -> None:
        for one in dict.fromkeys(hashes):
            self._held.put("echoes", (self._owner.space, self._owner.user, one, to_us(at)))
        newest_first = sorted(self._held.of("echoes"), key=lambda row: (-row[3], row[2]))
        for row in newest_first[keep:]:
            self._held.remove("echoes", row[:3])

    def remove_echoes(self) -> int:
        found = self._held.of("echoes")
        for row in found:
            self._held.remove("echoes", row[:3])
        return len(found)

    def lock(self) -> None:
        """The whole store is locked while a transaction runs."""
        owner = (self._owner.space, self._owner.user)
        if owner not in self._held.tables["owners"]:
            self._held.put("owners", (*owner, 0))

    def put(self, record: Record, terms: Sequence[Term], *, by: Attribution, action: str) -> int:
        held = self.find(record.kind, record.key)
        operation = self._record(forms.record_operation(self._next(), held, record, by, action))
        self._drop_terms(record.kind, record.key)
        self._held.put("records", forms.record_row(self._owner, record, operation))
        for row in forms.term_rows(self._owner, record, terms):
            self._held.put("record_terms", row)
        return operation

    def remove(self, kind: RecordKind, key: str, *, by: Attribution, action: str) -> int:
        operation = self._record(forms.record_operation(self._next(), self.find(kind, key), None, by, action))
        self._drop_terms(kind, key)
        self._held.remove("records", (self._owner.space, self._owner.user, kind, key))
        return operation

    def blank_operations(self, kind: str, key: str, *, name: str) -> int:
        found = [row for row in self._held.of("operations") if (row[6], row[7]) == (kind, key)]
        for row in found:
            self._held.put("operations", (*row[:7], name, None, None, "forgotten", *row[11:]))
        return len(found)

    def retag(self, kind: RecordKind, key: str, terms: Sequence[Term]) -> None:
        self._drop_terms(kind, key)
        for row in forms.term_rows(self._owner, Record(kind, key, {}), terms):
            self._held.put("record_terms", row)

    def _drop_terms(self, kind: RecordKind, key: str) -> None:
        for row in self._held.of("record_terms", kind):
            if row[5] == key:
                self._held.remove("record_terms", row[:6])

    def _next(self) -> int:
        return len(self._held.tables["operations"]) + 1

    def _record(self, operation: Operation) -> int:
        self._held.put("owners", (self._owner.space, self._owner.user, operation.seq))
        self._held.put("operations", rows.operation_row(self._owner, operation))
        return operation.seq
