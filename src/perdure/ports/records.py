"""The knowledge part of the store: records found by key or by term, and the operations that wrote them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from perdure.domain.errors import Conflict
from perdure.domain.journal import Attribution, Operation
from perdure.domain.records import RECORD_KINDS, Record, RecordKind, RecordQuery, Term
from perdure.domain.scope import Owner
from perdure.domain.text import Json
from perdure.ports.rows import AnyRow, dump, readable


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

    def operations_of(self, kind: str, key: str, *, limit: int) -> list[Operation]:
        """The journal of one row, newest first, whatever wrote it."""

    def operations_in(self, batch: int) -> list[Operation]:
        """The operations of one action, in order."""

    def find_echoes(self, hashes: Sequence[str], *, until: datetime | None = None) -> set[str]:
        """Those of `hashes` that stand in the register of what was put into prompts; `until`: since no later than then."""


class RecordTx(RecordView, Protocol):
    def lock(self) -> None:
        """Nobody else writes records of this owner until the transaction ends: what is read after this stays so."""

    def put(self, record: Record, terms: Sequence[Term], *, by: Attribution, action: str) -> int:
        """Insert or replace a record and its terms, and journal it; the number of that operation."""

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

    def retag(self, kind: RecordKind, key: str, terms: Sequence[Term]) -> None:
        """Replace the terms of a record whose body was rewritten."""


def record_row(owner: Owner, record: Record, operation: int) -> AnyRow:
    return (owner.space, owner.user, record.kind, record.key, dump(dict(record.body)), operation)


def to_record(row: AnyRow) -> Record:
    return readable("records", _read_record, row)


def _read_record(row: AnyRow) -> Record:
    _, _, kind, key, body, operation = row
    if kind not in RECORD_KINDS:
        raise ValueError(kind)
    held = json.loads(body)
    if not isinstance(held, dict):
        raise ValueError(key)
    return Record(kind, key, held, operation)


def term_rows(owner: Owner, record: Record, terms: Sequence[Term]) -> list[AnyRow]:
    return [(owner.space, owner.user, record.kind, field, value, record.key) for field, value in dict.fromkeys(terms)]


def record_operation(seq: int, held: Record | None, record: Record | None, by: Attribution, action: str) -> Operation:
    """The journal entry of putting `record` where `held` is, or of removing it if None."""
    subject = record if record is not None else held
    if subject is None:
        raise Conflict("there is no such record to remove; read again")
    before: Json = None if held is None else dict(held.body)
    after: Json = None if record is None else dict(record.body)
    return Operation(seq, by.at, by.actor, action, subject.kind, subject.key, before, after, by.why, by.batch or seq)
