"""Records in plain dicts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from perdure.adapters.memory.tables import OwnerTables
from perdure.domain.knowledge.journal import Attribution, Operation
from perdure.domain.knowledge.memories import to_memory
from perdure.domain.knowledge.records import ChangedMemories, Record, RecordKind, RecordQuery, Term
from perdure.domain.text.rules import Json, compact_json
from perdure.domain.times.instants import to_us
from perdure.ports.tables import knowledge as forms
from perdure.ports.tables.knowledge import ECHOES, OPERATIONS, OWNERS, RECORD_TERMS, RECORDS, OwnerRow


class MemoryRecords:
    def __init__(self, tables: OwnerTables) -> None:
        self._tables = tables
        self._owner = tables.owner

    def find(self, kind: RecordKind, key: str) -> Record | None:
        row = self._tables.find(RECORDS, kind, key)
        return None if row is None else forms.to_record(row)

    def find_many(self, kind: RecordKind, keys: Sequence[str]) -> list[Record]:
        return [record for key in sorted(set(keys)) if (record := self.find(kind, key)) is not None]

    def list_(self, query: RecordQuery) -> list[Record]:
        keys = [key for key in self._keys(query.kind, query.term) if query.before is None or key < query.before]
        return self.find_many(query.kind, sorted(keys, reverse=True)[: query.limit])[::-1]

    def find_by(self, kind: RecordKind, field: str, values: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for row in self._tables.of(RECORD_TERMS, kind, field):
            if row.value in values:
                found.setdefault(row.value, row.key)
        return found

    def count(self, kind: RecordKind, term: Term | None = None) -> int:
        return len(self._keys(kind, term))

    def _keys(self, kind: RecordKind, term: Term | None) -> list[str]:
        if term is None:
            return [row.key for row in self._tables.of(RECORDS, kind)]
        return [row.key for row in self._tables.of(RECORD_TERMS, kind, *term)]

    def tally(self, kind: RecordKind, fields: Sequence[str], term: Term | None = None) -> list[tuple[tuple[Json, ...], int]]:
        return _tallied(self.find_many(kind, self._keys(kind, term)), fields)

    def tally_current(self, fields: Sequence[str]) -> list[tuple[tuple[Json, ...], int]]:
        current = {row.value for row in self._tables.of(RECORD_TERMS, "statement", "current")}
        held = self.find_many("memory", self._keys("memory", None))
        return _tallied([record for record in held if record.key in current], fields)

    def changed_memories(self, asked: ChangedMemories) -> list[tuple[str, int]]:
        found = []
        for record in self.find_many("memory", self._keys("memory", None)):
            held = to_memory(record.body)
            if (
                held.visible_to in (None, asked.agent)
                and asked.type in (None, held.type)
                and asked.fact_type in (None, held.fact_type)
                and (asked.archived or held.status == "ACTIVE")
            ):
                found.append((record.key, to_us(held.updated_at)))
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))

    def operations_of(self, kind: str, key: str, *, limit: int) -> list[Operation]:
        found = [row for row in self._tables.of(OPERATIONS) if (row.kind, row.key) == (kind, key)]
        return [forms.to_operation(row) for row in found[::-1][:limit]]

    def operations_in(self, batch: int) -> list[Operation]:
        found = (forms.to_operation(row) for row in self._tables.of(OPERATIONS))
        return [operation for operation in found if operation.batch == batch]

    def find_echoes(self, hashes: Sequence[str], *, until: datetime | None = None) -> set[str]:
        known = {row.hash for row in self._tables.of(ECHOES) if until is None or row.at_us <= to_us(until)}
        return known & set(hashes)

    def put_echoes(self, hashes: Sequence[str], *, at: datetime, keep: int) -> None:
        for row in forms.echo_rows(self._owner, hashes, at):
            self._tables.put(ECHOES, row)
        newest_first = sorted(self._tables.of(ECHOES), key=lambda row: (-row.at_us, row.hash))
        for row in newest_first[keep:]:
            self._tables.remove(ECHOES, row)

    def remove_echoes(self) -> int:
        found = self._tables.of(ECHOES)
        for row in found:
            self._tables.remove(ECHOES, row)
        return len(found)

    def lock(self) -> None:
        """The whole store is locked while a transaction runs."""
        if self._tables.find(OWNERS) is None:
            self._tables.put(OWNERS, OwnerRow(self._owner.space, self._owner.user, 0))

    def look_ahead(self, kind: RecordKind, keys: Sequence[str], terms: Sequence[Term] = ()) -> None:
        """All of it is at hand."""

    def put(
        self, record: Record, terms: Sequence[Term], *, by: Attribution, action: str, was: Sequence[Term] | None = None
    ) -> int:
        held = self.find(record.kind, record.key)
        operation = self._record(forms.record_operation(self._next(), held, record, by, action))
        self._drop_terms(record.kind, record.key)
        self._tables.put(RECORDS, forms.record_row(self._owner, record, operation))
        for row in forms.term_rows(self._owner, record, terms):
            self._tables.put(RECORD_TERMS, row)
        return operation

    def remove(self, kind: RecordKind, key: str, *, by: Attribution, action: str) -> int:
        held = self.find(kind, key)
        operation = self._record(forms.record_operation(self._next(), held, None, by, action))
        self._drop_terms(kind, key)
        self._tables.remove_key(RECORDS, kind, key)
        return operation

    def blank_operations(self, kind: str, key: str, *, name: str) -> int:
        found = [row for row in self._tables.of(OPERATIONS) if (row.kind, row.key) == (kind, key)]
        for row in found:
            self._tables.put(OPERATIONS, row._replace(key=name, before=None, after=None, why="forgotten"))
        return len(found)

    def retag(self, kind: RecordKind, terms: Mapping[str, Sequence[Term]]) -> None:
        for key, found in terms.items():
            self._drop_terms(kind, key)
            for row in forms.term_rows(self._owner, Record(kind, key, {}), found):
                self._tables.put(RECORD_TERMS, row)

    def _drop_terms(self, kind: RecordKind, key: str) -> None:
        for row in self._tables.of(RECORD_TERMS, kind):
            if row.key == key:
                self._tables.remove(RECORD_TERMS, row)

    def _next(self) -> int:
        return len(self._tables.each(OPERATIONS)) + 1

    def _record(self, operation: Operation) -> int:
        self._tables.put(OWNERS, OwnerRow(self._owner.space, self._owner.user, operation.seq))
        self._tables.put(OPERATIONS, forms.operation_row(self._owner, operation))
        return operation.seq


def _tallied(records: Sequence[Record], fields: Sequence[str]) -> list[tuple[tuple[Json, ...], int]]:
    found = Counter(compact_json([record.body.get(name) for name in fields]) for record in records)
    return [(tuple(json.loads(values)), count) for values, count in found.items()]
