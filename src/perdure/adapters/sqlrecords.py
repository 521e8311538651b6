"""Records of one owner in a SQL database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from perdure.adapters.sqljournal import SqlJournal
from perdure.adapters.statements import Statements
from perdure.domain.journal import Attribution, Operation
from perdure.domain.records import Record, RecordKind, RecordQuery, Term
from perdure.domain.scope import Owner
from perdure.domain.times import to_us
from perdure.ports import records as forms
from perdure.ports import rows

EVER_US = 2**62
"""Later than any instant."""


class SqlRecords:
    __slots__ = ("_journal", "_owner", "_prefix", "_run")

    def __init__(self, run: Statements, owner: Owner) -> None:
        self._run = run
        self._owner = owner
        self._prefix = (owner.space, owner.user)
        self._journal = SqlJournal(run, owner)

    def find(self, kind: RecordKind, key: str) -> Record | None:
        found = self._run.all(self._run.locked("find_record"), (*self._prefix, kind, key))
        return forms.to_record(found[0]) if found else None

    def find_many(self, kind: RecordKind, keys: Sequence[str]) -> list[Record]:
        if not keys:
            return []
        found = self._run.all("find_records", (*self._prefix, kind, self._run.array(list(keys))))
        return [forms.to_record(row) for row in found]

    def list_(self, query: RecordQuery) -> list[Record]:
        name = "list_records" if query.term is None else "list_records_by"
        values: tuple[object, ...] = (*self._prefix, query.kind, *(query.term or ()))
        if query.before is None:
            name += "_all"
        else:
            values += (query.before,)
        return [forms.to_record(row) for row in self._run.all(name, (*values, query.limit))]

    def find_by(self, kind: RecordKind, field: str, values: Sequence[str]) -> dict[str, str]:
        if not values:
            return {}
        found = self._run.all("find_records_by", (*self._prefix, kind, field, self._run.array(list(values))))
        return {row[0]: row[1] for row in found}

    def count(self, kind: RecordKind, term: Term | None = None) -> int:
        name = "count_records" if term is None else "count_records_by"
        [(count,)] = self._run.all(name, (*self._prefix, kind, *(term or ())))
        return int(count)

    def operations_of(self, kind: str, key: str, *, limit: int) -> list[Operation]:
        return [rows.to_operation(row) for row in self._run.all("operations_of", (*self._prefix, kind, key, limit))]

    def operations_in(self, batch: int) -> list[Operation]:
        return [rows.to_operation(row) for row in self._run.all("operations_in", (*self._prefix, batch))]

    def find_echoes(self, hashes: Sequence[str], *, until: datetime | None = None) -> set[str]:
        if not hashes:
            return set()
        latest = EVER_US if until is None else to_us(until)
        return {row[0] for row in self._run.all("find_echoes", (*self._prefix, self._run.array(list(hashes)), latest))}

    def put_echoes(self, hashes: Sequence[str], *, at: datetime, keep: int) -> None:
        if hashes:
            self._run.put("put_echo", [(*self._prefix, one, to_us(at)) for one in dict.fromkeys(hashes)])
            self._run.change("bound_echoes", (*self._prefix, *self._prefix, keep))

    def remove_echoes(self) -> int:
        return self._run.change("remove_echoes", self._prefix)

    def lock(self) -> None:
        self._run.change("make_owner", self._prefix)
        self._run.all(self._run.locked("find_owner"), self._prefix)

    def put(self, record: Record, terms: Sequence[Term], *, by: Attribution, action: str) -> int:
        held = self.find(record.kind, record.key)
        operation = self._journal.record(lambda seq: forms.record_operation(seq, held, record, by, action))
        if held is not None:
            self._run.change("remove_terms", (*self._prefix, record.kind, record.key))
        self._run.put("put_record", [forms.record_row(self._owner, record, operation)])
        if found := forms.term_rows(self._owner, record, terms):
            self._run.put("put_term", found)
        return operation

    def remove(self, kind: RecordKind, key: str, *, by: Attribution, action: str) -> int:
        held = self.find(kind, key)
        operation = self._journal.record(lambda seq: forms.record_operation(seq, held, None, by, action))
        self._run.change("remove_terms", (*self._prefix, kind, key))
        self._run.change("remove_record", (*self._prefix, kind, key))
        return operation

    def blank_operations(self, kind: str, key: str, *, name: str) -> int:
        return self._run.change("blank_operations", (name, *self._prefix, kind, key))

    def retag(self, kind: RecordKind, key: str, terms: Sequence[Term]) -> None:
        self._run.change("remove_terms", (*self._prefix, kind, key))
        if found := forms.term_rows(self._owner, Record(kind, key, {}), terms):
            self._run.put("put_term", found)
