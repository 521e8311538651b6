"""Records of one owner in a SQL database."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime

from perdure.adapters.sql.statements import SqlStatements
from perdure.domain.knowledge.journal import Attribution, Operation
from perdure.domain.knowledge.records import TALLY_FIELDS_MAX, ChangedMemories, Record, RecordKind, RecordQuery, Term
from perdure.domain.scope import Owner
from perdure.domain.text.rules import Json
from perdure.domain.times.instants import to_us
from perdure.ports.tables import knowledge as forms
from perdure.ports.tables.knowledge import operation_row

EVER_US = 2**62
"""Later than any instant."""
KNOWN_MAX = 10_000
"""Records that are kept at hand."""
TALLIED = ("one", "two", "three", "four", "five", "six")
"""What the fields of a tally are called in its statement."""


class SqlRecords:
    """Of one transaction: what was looked up is known, until it is written or somebody else may have written it."""

    __slots__ = ("_journal", "_known", "_locked", "_owner", "_run")

    def __init__(self, run: SqlStatements, owner: Owner) -> None:
        self._run = run
        self._owner = owner
        self._journal = SqlJournal(run, owner)
        self._known: dict[tuple[RecordKind, str], Record | None] = {}
        self._locked = False

    def find(self, kind: RecordKind, key: str) -> Record | None:
        place = (kind, key)
        if place not in self._known:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            found = self._run.all(self._run.locked("find_record"), kind=kind, key=key)
            self._known[place] = forms.to_record(found[0]) if found else None
        return self._known[place]

    def look_again(self) -> None:
        """What was looked up may have been written in another way."""
        self._known.clear()

    def find_many(self, kind: RecordKind, keys: Sequence[str]) -> list[Record]:
        if not keys:
            return []
        found = self._run.all("find_records", kind=kind, keys=self._run.array(list(keys)))
        return [forms.to_record(row) for row in found]

    def list_(self, query: RecordQuery) -> list[Record]:
        name = "list_records" if query.term is None else "list_records_by"
        if query.before is None:
            name += "_all"
        found = self._run.all(name, kind=query.kind, **_of_term(query.term), before=query.before, limit=query.limit)
        return [forms.to_record(row) for row in found]

    def find_by(self, kind: RecordKind, field: str, values: Sequence[str]) -> dict[str, str]:
        if not values:
            return {}
        found = self._run.all("find_records_by", kind=kind, field=field, values=self._run.array(list(values)))
        return dict(found)

    def count(self, kind: RecordKind, term: Term | None = None) -> int:
        name = "count_records" if term is None else "count_records_by"
        [(count,)] = self._run.all(name, kind=kind, **_of_term(term))
        return int(count)

    def tally(self, kind: RecordKind, fields: Sequence[str], term: Term | None = None) -> list[tuple[tuple[Json, ...], int]]:
        return self._tallied("tally_records" if term is None else "tally_records_by", fields, kind=kind, **_of_term(term))

    def tally_current(self, fields: Sequence[str]) -> list[tuple[tuple[Json, ...], int]]:
        return self._tallied("tally_current_memories", fields)

    def _tallied(self, name: str, fields: Sequence[str], **values: str) -> list[tuple[tuple[Json, ...], int]]:
        places = dict(zip(TALLIED, [*fields, *[fields[-1]] * (TALLY_FIELDS_MAX - len(fields))], strict=True))
        found = self._run.all(name, **values, **places)
        # One document of thousands of rows is parsed several times as quickly as each by itself.
        alike = json.loads(f"[{','.join(same for same, _ in found)}]")
        return [(tuple(same[: len(fields)]), int(count)) for same, (_, count) in zip(alike, found, strict=True)]

    def changed_memories(self, asked: ChangedMemories) -> list[tuple[str, int]]:
        found = self._run.all(
            "changed_memories", agent=asked.agent, type=asked.type, fact_type=asked.fact_type, archived=int(asked.archived)
        )
        return [(key, int(changed_us)) for key, changed_us in found]

    def operations_of(self, kind: str, key: str, *, limit: int) -> list[Operation]:
        return [forms.to_operation(row) for row in self._run.all("operations_of", kind=kind, key=key, limit=limit)]

    def operations_in(self, batch: int) -> list[Operation]:
        return [forms.to_operation(row) for row in self._run.all("operations_in", batch=batch)]

    def find_echoes(self, hashes: Sequence[str], *, until: datetime | None = None) -> set[str]:
        if not hashes:
            return set()
        latest = EVER_US if until is None else to_us(until)
        return {found for (found,) in self._run.all("find_echoes", hashes=self._run.array(list(hashes)), until_us=latest)}

    def put_echoes(self, hashes: Sequence[str], *, at: datetime, keep: int) -> None:
        if hashes:
            self._run.put("put_echo", forms.echo_rows(self._owner, hashes, at))
            self._run.send("bound_echoes", keep=keep)

    def remove_echoes(self) -> int:
        return self._run.change("remove_echoes")

    def lock(self) -> None:
        if self._locked:
            return
        self._run.send("make_owner")
        self._run.all(self._run.locked("find_owner"))
        self._locked = True
        self.look_again()

    def put(self, record: Record, terms: Sequence[Term], *, by: Attribution, action: str) -> int:
        held = self.find(record.kind, record.key)
        operation = self._journal.record(lambda seq: forms.record_operation(seq, held, record, by, action))
        self._known.pop((record.kind, record.key), None)
        if held is not None:
            self._run.send("remove_terms", kind=record.kind, key=record.key)
        self._run.put("put_record", [forms.record_row(self._owner, record, operation)])
        if found := forms.term_rows(self._owner, record, terms):
            self._run.put("put_term", found)
        return operation

    def remove(self, kind: RecordKind, key: str, *, by: Attribution, action: str) -> int:
        held = self.find(kind, key)
        operation = self._journal.record(lambda seq: forms.record_operation(seq, held, None, by, action))
        self._known.pop((kind, key), None)
        self._run.send("remove_terms", kind=kind, key=key)
        self._run.send("remove_record", kind=kind, key=key)
        return operation

    def blank_operations(self, kind: str, key: str, *, name: str) -> int:
        return self._run.change("blank_operations", kind=kind, key=key, name=name)

    def retag(self, kind: RecordKind, key: str, terms: Sequence[Term]) -> None:
        self._run.send("remove_terms", kind=kind, key=key)
        if found := forms.term_rows(self._owner, Record(kind, key, {}), terms):
            self._run.put("put_term", found)


def _of_term(term: Term | None) -> dict[str, str]:
    return {} if term is None else {"field": term[0], "value": term[1]}


class SqlJournal:
    """The journal of one owner: every derived row is written with one of its operations."""

    __slots__ = ("_owner", "_run")

    def __init__(self, run: SqlStatements, owner: Owner) -> None:
        self._run = run
        self._owner = owner

    def record(self, make: Callable[[int], Operation]) -> int:
        """Write the operation that `make` gives for the next number; that number."""
        [(seq,)] = self._run.all("next_operation")
        operation = make(int(seq))
        self._run.put("insert_operation", [operation_row(self._owner, operation)])
        self._run.journalled.append(operation.seq)
        return operation.seq
