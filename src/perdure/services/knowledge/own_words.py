"""What is kept in the user's own words goes with the messages that said it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.keys import term_value
from perdure.domain.knowledge.memories import OWN_WORDS
from perdure.domain.knowledge.records import RecordKind, RecordQuery, record_kind
from perdure.domain.scope import MessageId
from perdure.engine.knowledge.redaction import evidence_of
from perdure.ports.store import Tx, View
from perdure.services.index.writes import enter_record

PAGE = 1_000
BLANK = "forgotten:"
"""How the journal calls what is forgotten, with a number."""
KINDS: tuple[RecordKind, ...] = ("statement", "todo")

Row = tuple[RecordKind, str]


def leave_own_words(tx: Tx, gone: Collection[str], by: Attribution) -> int:
    """As part of the transaction that removed the messages `gone`: what only repeats them goes too, with its past in the
    journal, and so does a memory that states nothing more; how many statements and todos that were.
    """
    if not gone:
        return 0
    tx.records.lock()
    sources = _repeating(tx)
    cited = {MessageId(one) for messages in sources.values() for one in messages if not messages.isdisjoint(gone)}
    left = set(tx.find_messages(sorted(cited))) if cited else set()
    doomed = sorted(row for row, said in sources.items() if not said.isdisjoint(gone) and said.isdisjoint(left))
    _drop_questions(tx, {key for _, key in doomed}, by)
    for kind, key in doomed:
        held = tx.records.find(kind, key)
        _remove(tx, (kind, key), by)
        home = None if held is None else held.body.get("memory")
        if isinstance(home, str) and tx.records.count("statement", ("memory", term_value(home))) == 0:
            _remove(tx, ("memory", home), by)
    return len(doomed)


def _remove(tx: Tx, row: Row, by: Attribution) -> None:
    kind, key = row
    if tx.records.find(kind, key) is not None:
        number = tx.records.remove(kind, key, by=by, action="forget")
        enter_record(tx, kind, key, None, now=by.at)
    else:
        number = next((one.seq for one in tx.records.operations_of(kind, key, limit=1)), 0)
    tx.records.blank_operations(kind, key, name=f"{BLANK}{number}")


def _drop_questions(tx: Tx, keys: Collection[str], by: Attribution) -> None:
    """What was asked about rows that go needs no answer."""
    asked = [key for key, body in _rows_of(tx, "suggestion") if not set(body["subjects"]).isdisjoint(keys)]
    for key in asked:
        _remove(tx, ("suggestion", key), by)


def _repeating(view: View) -> dict[Row, set[str]]:
    """The messages that each record in the user's own words has ever cited, also if it was undone."""
    found: dict[Row, set[str]] = {}
    for kind in KINDS:
        for key, body in _rows_of(view, kind):
            _tell(found, (kind, key), body)
    before: int | None = None
    while page := view.list_operations(limit=PAGE, before=before):
        for operation in page:
            kind_of = record_kind(operation.kind)
            if kind_of in KINDS and not operation.key.startswith(BLANK):
                for body in (operation.before, operation.after):
                    if isinstance(body, Mapping):
                        _tell(found, (kind_of, operation.key), body)
        before = page[-1].seq
    return found


def _tell(found: dict[Row, set[str]], row: Row, body: Mapping[str, Any]) -> None:
    if body.get("source") == OWN_WORDS:
        found.setdefault(row, set()).update(one.message for one in evidence_of(body))


def _rows_of(view: View, kind: RecordKind) -> Iterator[tuple[str, Mapping[str, Any]]]:
    before: str | None = None
    while page := view.records.list_(RecordQuery(kind, PAGE, before=before)):
        yield from ((record.key, record.body) for record in page)
        before = page[-1].key
