"""The knowledge part of the store: records found by key or by term, and the operations that wrote them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from perdure.domain.errors import Conflict
from perdure.domain.knowledge.journal import Attribution, Operation
from perdure.domain.knowledge.records import RECORD_KINDS, ChangedMemories, Record, RecordKind, RecordQuery, Term
from perdure.domain.scope import Owner
from perdure.domain.text.rules import Json, compact_json
from perdure.domain.times.instants import from_us, to_us
from perdure.ports.tables.table import AnyRow, Table


class RecordView(Protocol):
    def find(self, kind: RecordKind, key: str) -> Record | None:
        """The record as held. In `write`, it is locked until the transaction ends."""

    def find_many(self, kind: RecordKind, keys: Sequence[str]) -> list[Record]:
        """Those of `keys` that are held, by key."""

    def list_(self, query: RecordQuery) -> list[Record]:
        """Records of a kind, or those with a term, highest key first."""

    def find_by(self, kind: RecordKind, field: str, values: Sequence[str]) -> dict[str, str]:
        """For each of `values` that a record has as a term of this field: the key of the first such record."""

    def count(self, kind: RecordKind, term: Term | None = None) -> int:
        """How many there are."""

    def tally(self, kind: RecordKind, fields: Sequence[str], term: Term | None = None) -> list[tuple[tuple[Json, ...], int]]:
        """How many records, or of those with a term, have the same values in these fields of the body; in any order.

        At most `TALLY_FIELDS_MAX` fields. One that a body does not have counts as null.
        """

    def tally_current(self, fields: Sequence[str]) -> list[tuple[tuple[Json, ...], int]]:
        """The same of the memories that have a current statement."""

    def changed_memories(self, asked: ChangedMemories) -> list[tuple[str, int]]:
        """The keys of these memories with the microsecond of their last change, the newest change first, then by key."""

    def operations_of(self, kind: str, key: str, *, limit: int) -> list[Operation]:
        """The journal of one row, newest first, whatever wrote it."""

    def operations_in(self, batch: int) -> list[Operation]:
        """The operations of one action, in order."""

    def find_echoes(self, hashes: Sequence[str], *, until: datetime | None = None) -> set[str]:
        """Those of `hashes` that stand in the register of what was put into prompts; `until`: since no later than then."""


class RecordTx(RecordView, Protocol):
    def look_ahead(self, kind: RecordKind, keys: Sequence[str], terms: Sequence[Term] = ()) -> None:
        """Many of these will be asked for, one after the other: they may be looked up together now."""

    def lock(self) -> None:
        """Nobody else writes records of this owner until the transaction ends: what is read after this stays so."""

    def put(
        self, record: Record, terms: Sequence[Term], *, by: Attribution, action: str, was: Sequence[Term] | None = None
    ) -> int:
        """Insert or replace a record and its terms, and journal it; the number of that operation.

        `was`: the terms of the record that it replaces, if they are known.
        """

    def remove(self, kind: RecordKind, key: str, *, by: Attribution, action: str) -> int:
        """Delete a record and its terms, and journal it; the number of that operation. `Conflict` if it is not held."""

    def put_echoes(self, hashes: Sequence[str], *, at: datetime, keep: int) -> None:
        """Add to the register; beyond the `keep` newest, the oldest are forgotten."""

    def remove_echoes(self) -> int:
        """Empty the register; how many there were."""

    def blank_operations(self, kind: str, key: str, *, name: str) -> int:
        """Forget what the journal holds of a row that is no more; how many operations that were.

        Who changed it and when stays. The bodies go, and the row is called `name` from now on.
        """

    def retag(self, kind: RecordKind, terms: Mapping[str, Sequence[Term]]) -> None:
        """Replace the terms of records whose bodies were rewritten, by key."""


# -- the stored form ---------------------------------------------------------------------------------------------------


class OwnerRow(NamedTuple):
    space: str
    user_id: str
    operations: int


class OperationRow(NamedTuple):
    space: str
    user_id: str
    seq: int
    at_us: int
    actor: str
    action: str
    kind: str
    key: str
    before: str | None
    after: str | None
    why: str
    batch: int


class RecordRow(NamedTuple):
    space: str
    user_id: str
    kind: str
    key: str
    body: str
    operation: int


class RecordTermRow(NamedTuple):
    space: str
    user_id: str
    kind: str
    field: str
    value: str
    key: str


class EchoRow(NamedTuple):
    space: str
    user_id: str
    hash: str
    at_us: int


OWNERS = Table("owners", OwnerRow, 2)
OPERATIONS = Table("operations", OperationRow, 3)
RECORDS = Table("records", RecordRow, 4)
RECORD_TERMS = Table("record_terms", RecordTermRow, 6)
ECHOES = Table("echoes", EchoRow, 3)


def operation_row(owner: Owner, operation: Operation, after: str | None = None) -> OperationRow:
    """The row of an operation; `after`: the text that is stored of what it left, if that is at hand."""
    if after is None and operation.after is not None:
        after = _text(operation, operation.after)
    return OperationRow(
        space=owner.space,
        user_id=owner.user,
        seq=operation.seq,
        at_us=to_us(operation.at),
        actor=operation.actor,
        action=operation.action,
        kind=operation.kind,
        key=operation.key,
        before=None if operation.before is None else _text(operation, operation.before),
        after=after,
        why=operation.why,
        batch=operation.batch or operation.seq,
    )


def _text(operation: Operation, state: Json) -> str:
    return stored(operation.kind, operation.key, state)


def to_operation(row: AnyRow) -> Operation:
    return OPERATIONS.read(row, _read_operation)


def _read_operation(row: OperationRow) -> Operation:
    return Operation(
        seq=row.seq,
        at=from_us(row.at_us),
        actor=row.actor,
        action=row.action,
        kind=row.kind,
        key=row.key,
        before=None if row.before is None else restored(row.kind, row.key, row.before),
        after=None if row.after is None else restored(row.kind, row.key, row.after),
        why=row.why,
        batch=row.batch,
    )


def record_row(owner: Owner, record: Record, operation: int) -> RecordRow:
    return RecordRow(
        space=owner.space,
        user_id=owner.user,
        kind=record.kind,
        key=record.key,
        body=stored(record.kind, record.key, record.body),
        operation=operation,
    )


def to_record(row: AnyRow) -> Record:
    return RECORDS.read(row, _read_record)


def _read_record(row: RecordRow) -> Record:
    if row.kind not in RECORD_KINDS:
        raise ValueError(row.kind)
    body = restored(row.kind, row.key, row.body)
    if not isinstance(body, dict):
        raise ValueError(row.key)
    return Record(row.kind, row.key, body, row.operation)


def term_rows(owner: Owner, record: Record, terms: Sequence[Term]) -> list[RecordTermRow]:
    return [
        RecordTermRow(
            space=owner.space,
            user_id=owner.user,
            kind=record.kind,
            field=field,
            value=value,
            key=record.key,
        )
        for field, value in dict.fromkeys(terms)
    ]


def echo_rows(owner: Owner, hashes: Sequence[str], at: datetime) -> list[EchoRow]:
    at_us = to_us(at)
    return [EchoRow(owner.space, owner.user, one, at_us) for one in dict.fromkeys(hashes)]


def record_operation(seq: int, held: Record | None, record: Record | None, by: Attribution, action: str) -> Operation:
    """The journal entry of putting `record` where `held` is, or of removing it if None."""
    subject = record if record is not None else held
    if subject is None:
        raise Conflict("there is no such record to remove; read again")
    before = None if held is None else _as_json(held.body)
    after = None if record is None else _as_json(record.body)
    return operation_by(by, seq, action=action, kind=subject.kind, key=subject.key, before=before, after=after)


def _as_json(body: Mapping[str, Json]) -> Json:
    return body if isinstance(body, dict) else dict(body)


def operation_by(by: Attribution, seq: int, *, action: str, kind: str, key: str, before: Json, after: Json) -> Operation:
    """The journal entry of a change that `by` attributes."""
    return Operation(
        seq=seq,
        at=by.at,
        actor=by.actor,
        action=action,
        kind=kind,
        key=key,
        before=before,
        after=after,
        why=by.why,
        batch=by.batch or seq,
    )


# -- bodies: stored without what nearly all of them say, and what the key says already. One that was shortened has a mark, so
# that others, such as those of earlier versions, are read as they are. Of a name that a person may have forgotten nothing is
# left out: forgetting finds it in the stored text.

_MARK = ""
"""No field of a body is called so."""
_FORM = 1
_FIELDS: Mapping[str, Mapping[str, Json]] = {
    "memory": {
        "key": None,
        "type": None,
        "entity_type": None,
        "fact_type": None,
        "entities": [],
        "label": None,
        "created_at": None,
        "updated_at": None,
        "importance": 1,
        "pinned": False,
        "status": "ACTIVE",
        "source": "user",
        "confidence": 1.0,
        "visible_to": None,
        "folds": [],
        "folded_into": None,
    },
    "statement": {
        "id": None,
        "memory": None,
        "content": None,
        "subject": "user",
        "entities": [],
        "valid_from": None,
        "recorded_at": None,
        "last_mentioned": None,
        "attribute": None,
        "value": None,
        "time_words": None,
        "start_stated": False,
        "confidence": 1.0,
        "importance": 1,
        "source": "user",
        "trust": "user",
        "evidence": [],
        "mentions": 1,
        "mention_days": None,
        "valid_to": None,
        "closed_at": None,
        "closed_by": None,
        "reason": None,
        "visible_to": None,
    },
    "entity": {
        "ref": None,
        "type": None,
        "label": None,
        "created_at": None,
        "aliases": [],
        "merged_into": None,
        "seen_with": [],
        "visible_to": None,
    },
}
"""Every field of a body, in its order, with what nearly all say there."""
_SAME_AS = {
    "memory": (("updated_at", "created_at"),),
    "statement": (("recorded_at", "valid_from"), ("last_mentioned", "valid_from")),
    "entity": (),
}


_FOLLOWING = frozenset(("updated_at", "recorded_at", "last_mentioned", "id", "mention_days"))
"""Fields that follow from others."""


def stored(kind: str, key: str, body: Json) -> str:
    """The text that is stored of a body."""
    fields = _FIELDS.get(kind)
    if fields is None or not isinstance(body, Mapping) or not fields.keys() <= body.keys():
        return compact_json(dict(body) if isinstance(body, Mapping) else body)
    short: dict[str, Json] = {_MARK: _FORM, **body}
    for name, value in fields.items():
        if short[name] == value and name not in _FOLLOWING:
            del short[name]
    for name, other in _SAME_AS[kind]:
        if body[name] == body[other]:
            short.pop(name, None)
    if kind == "statement":
        if body["id"] == key:
            del short["id"]
        if body["mention_days"] == _days_of(body):
            del short["mention_days"]
    return compact_json(short)


def restored(kind: str, key: str, text: str) -> Any:
    """The body that was stored."""
    short = json.loads(text)
    if not isinstance(short, dict) or _MARK not in short:
        return short
    if short.pop(_MARK) != _FORM:
        raise ValueError("the body is stored in a form that this version does not know")
    body = {name: [] if value == [] else value for name, value in _FIELDS[kind].items()} | short
    for name, other in _SAME_AS[kind]:
        if name not in short:
            body[name] = body[other]
    if kind == "statement":
        if "id" not in short:
            body["id"] = key
        if "mention_days" not in short:
            body["mention_days"] = _days_of(body)
    return body


def usual(kind: str, field: str, value: Any) -> Any:
    """The value of a field that was looked up in a stored body, where what is not there may be left out."""
    return _FIELDS[kind].get(field) if value is None and kind in _FIELDS else value


def _days_of(body: Mapping[str, Any]) -> list[str]:
    return [from_us(body["last_mentioned"]).date().isoformat()]
