"""Records of one owner in a SQL database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
AHEAD_MAX = 5_000
"""Records that are looked up ahead by one field."""
TALLIED = ("one", "two", "three", "four", "five", "six")
"""What the fields of a tally are called in its statement."""


class SqlRecords:
    """Of one transaction: what was looked up is known, until it is written or somebody else may have written it."""

    __slots__ = ("_by_term", "_gone", "_journal", "_known", "_locked", "_owner", "_run")

    def __init__(self, run: SqlStatements, owner: Owner, journal: SqlJournal) -> None:
        self._run = run
        self._owner = owner
        self._journal = journal
        self._known: dict[tuple[RecordKind, str], Record | None] = {}
        self._by_term: dict[tuple[RecordKind, str, str], list[Record]] = {}
        """What was looked up ahead: all records with a term, highest key first."""
        self._gone: dict[RecordKind, set[str]] = {}
        """Records that were removed, and whose terms are still there: those of a kind are found at one go."""
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
        self._by_term.clear()

    def look_ahead(self, kind: RecordKind, keys: Sequence[str], terms: Sequence[Term] = ()) -> None:
        if len(self._known) + len(keys) > KNOWN_MAX:
            self.look_again()
        lacking = [key for key in dict.fromkeys(keys) if (kind, key) not in self._known]
        found = {record.key: record for record in self.find_many(kind, lacking)}
        self._known |= {(kind, key): found.get(key) for key in lacking}
        for field in dict.fromkeys(field for field, _ in terms):
            values = list(dict.fromkeys(value for of, value in terms if of == field))
            rows = self._run.all("list_records_of", kind=kind, field=field, values=self._run.array(values), limit=AHEAD_MAX + 1)
            if len(rows) <= AHEAD_MAX:
                self._by_term |= {(kind, field, value): [] for value in values}
                for value, *row in rows:
                    self._by_term[kind, field, value].append(forms.to_record(tuple(row)))

    def find_many(self, kind: RecordKind, keys: Sequence[str]) -> list[Record]:
        if not keys:
            return []
        found = self._run.all("find_records", kind=kind, keys=self._run.array(list(keys)))
        return [forms.to_record(row) for row in found]

    def list_(self, query: RecordQuery) -> list[Record]:
        if query.term is not None and query.before is None:
            known = self._by_term.get((query.kind, *query.term))
            if known is not None:
                return known[: query.limit]
        name = "list_records" if query.term is None else "list_records_by"
        if query.before is None:
            name += "_all"
        found = self._run.all(name, kind=query.kind, **_of_term(query.term), before=query.before, limit=query.limit)
        return [forms.to_record(row) for row in found]

    def find_by(self, kind: RecordKind, field: str, values: Sequence[str]) -> dict[str, str]:
        if not values:
            return {}
        self.settle()
        found = self._run.all("find_records_by", kind=kind, field=field, values=self._run.array(list(values)))
        return dict(found)

    def count(self, kind: RecordKind, term: Term | None = None) -> int:
        self.settle()
        name = "count_records" if term is None else "count_records_by"
        [(count,)] = self._run.all(name, kind=kind, **_of_term(term))
        return int(count)

    def tally(self, kind: RecordKind, fields: Sequence[str], term: Term | None = None) -> list[tuple[tuple[Json, ...], int]]:
        name = "tally_records" if term is None else "tally_records_by"
        return self._tallied(name, kind, fields, kind=kind, **_of_term(term))

    def tally_current(self, fields: Sequence[str]) -> list[tuple[tuple[Json, ...], int]]:
        self.settle()
        return self._tallied("tally_current_memories", "memory", fields)

    def _tallied(self, name: str, of: RecordKind, fields: Sequence[str], **values: str) -> list[tuple[tuple[Json, ...], int]]:
        places = dict(zip(TALLIED, [*fields, *[fields[-1]] * (TALLY_FIELDS_MAX - len(fields))], strict=True))
        found = self._run.all(name, **values, **places)
        # One document of thousands of rows is parsed several times as quickly as each by itself.
        alike = json.loads(f"[{','.join(same for same, _ in found)}]")
        counts: dict[str, tuple[tuple[Json, ...], int]] = {}
        for same, (_, count) in zip(alike, found, strict=True):
            # What a body leaves out is the same as what it says at length.
            said = tuple(forms.usual(of, field, value) for field, value in zip(fields, same, strict=False))
            name = repr(said)
            counts[name] = (said, counts[name][1] + int(count) if name in counts else int(count))
        return [*counts.values()]

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
        self._journal.lock()
        self._locked = True
        self.look_again()

    def put(
        self, record: Record, terms: Sequence[Term], *, by: Attribution, action: str, was: Sequence[Term] | None = None
    ) -> int:
        kind, key = record.kind, record.key
        held = self.find(kind, key)
        row = forms.record_row(self._owner, record, self._journal.next())
        self._journal.record(forms.record_operation(row.operation, held, record, by, action), after=row.body)
        self._known.pop((kind, key), None)
        self._run.put("put_record", [row])
        if key in self._gone.get(kind, ()):
            self.settle()
        self._change_terms(record, terms, () if held is None else was)
        return row.operation

    def _change_terms(self, record: Record, terms: Sequence[Term], was: Sequence[Term] | None) -> None:
        kind, key = record.kind, record.key
        if was is None:
            self._gone.setdefault(kind, set()).add(key)
            self.settle()
            self._by_term.clear()
            was = ()
        for term in (*was, *terms):
            self._by_term.pop((kind, *term), None)
        for field, value in set(was).difference(terms):
            self._run.send("remove_term", kind=kind, field=field, value=value, key=key)
        if found := forms.term_rows(self._owner, record, [term for term in terms if term not in was]):
            self._run.put("put_term", found)

    def settle(self) -> None:
        """Remove the terms of what was removed."""
        gone, self._gone = self._gone, {}
        for kind, keys in gone.items():
            if not keys:
                continue
            self._run.send("remove_terms", kind=kind, keys=self._run.array(sorted(keys)))

    def remove(self, kind: RecordKind, key: str, *, by: Attribution, action: str) -> int:
        held = self.find(kind, key)
        operation = self._journal.record(forms.record_operation(self._journal.next(), held, None, by, action))
        self.look_again()
        self._gone.setdefault(kind, set()).add(key)
        self._run.send("remove_record", kind=kind, key=key)
        return operation

    def blank_operations(self, kind: str, key: str, *, name: str) -> int:
        return self._run.change("blank_operations", kind=kind, key=key, name=name)

    def retag(self, kind: RecordKind, terms: Mapping[str, Sequence[Term]]) -> None:
        self._gone.setdefault(kind, set()).update(terms)
        self.settle()
        self._by_term.clear()
        for key, found in terms.items():
            if rows := forms.term_rows(self._owner, Record(kind, key, {}), found):
                self._run.put("put_term", rows)


def _of_term(term: Term | None) -> dict[str, str]:
    return {} if term is None else {"field": term[0], "value": term[1]}


class SqlJournal:
    """The journal of one owner, in one transaction: every derived row is written with one of its operations."""

    __slots__ = ("_counted", "_last", "_owner", "_run")

    def __init__(self, run: SqlStatements, owner: Owner) -> None:
        self._run = run
        self._owner = owner
        self._counted = self._last = -1

    def lock(self) -> None:
        """Keep rivals off until the transaction ends, and look how many operations there are."""
        if self._last >= 0:
            return
        found = self._run.all(self._run.locked("find_owner"))
        if not found:
            self._run.send("make_owner")
            found = self._run.all(self._run.locked("find_owner"))
        self._counted = self._last = int(found[0][0])

    def next(self) -> int:
        """The number of the next operation."""
        self.lock()
        return self._last + 1

    def record(self, operation: Operation, *, after: str | None = None) -> int:
        """Write the next operation; its number. `after`: the text that is stored of what it left, if that is at hand."""
        self._run.put("insert_operation", [operation_row(self._owner, operation, after)])
        self._run.journalled.append(operation.seq)
        self._last = operation.seq
        return operation.seq

    def flush(self) -> None:
        """Note how many there are now."""
        if self._last != self._counted:
            self._run.send("count_operations", operations=self._last)
            self._counted = self._last
