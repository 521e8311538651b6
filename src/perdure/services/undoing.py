"""Undo: rows go back to what they were, unless others stand on what they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from perdure.domain.errors import Conflict, InvalidInput, LimitExceeded, NotFound
from perdure.domain.journal import Attribution, Operation
from perdure.domain.limits import NUMBER_MAX
from perdure.domain.memories import to_statement
from perdure.domain.records import Record, RecordKind, RecordQuery, record_kind
from perdure.domain.scope import Owner
from perdure.domain.text import Json, brief
from perdure.engine.attributes import is_single_valued
from perdure.engine.indexing import short
from perdure.engine.undoing import UNDO, firsts, standing
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx
from perdure.services.ledger import Ledger

ACTIONS_MAX = 1_000
ROWS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Undoing:
    store: Store
    clock: Clock

    def undo(self, owner: Owner, number: int, *, cascade: bool) -> int:
        """Take back the action that an operation belongs to; the number of the action that does so.

        `Conflict` if later actions build on it, unless `cascade`, which takes those back, too. Undoing an undo does it again.
        """
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= NUMBER_MAX:
            raise InvalidInput(f"`operation` = {brief(number)} must be the number of an operation; the journal lists them")
        now = self.clock.now()

        def work(tx: Tx) -> int:
            ledger = Ledger(tx, Attribution("user", now, f"undo {number}"))
            taken_back = list(firsts(_to_undo(tx, number, cascade=cascade)))
            for operation in taken_back:
                _restore(tx, ledger, operation)
            _check_ground(tx, taken_back)
            if ledger.action is None:
                raise Conflict(f"operation {number} left nothing that could be undone")
            return ledger.action

        return self.store.write(owner, work)


def _to_undo(tx: Tx, number: int, *, cascade: bool) -> list[Operation]:
    """The operations to take back."""
    first = [one for one in tx.list_operations(limit=1, before=number + 1) if one.seq == number]
    if not first:
        raise NotFound(f"there is no operation {number}; the journal lists them")
    actions = {first[0].batch}
    while True:
        operations = [one for action in actions for one in tx.records.operations_in(action)]
        later = _later(tx, operations) - actions
        if not later:
            return operations
        if not cascade:
            told = ", ".join(map(str, sorted(later)[:5]))
            raise Conflict(f"later actions build on operation {number}: {told}; undo them first, or say `cascade=True`")
        actions |= later
        if len(actions) > ACTIONS_MAX:
            raise LimitExceeded(f"undoing operation {number} would take back more than {ACTIONS_MAX} actions")


def _later(tx: Tx, operations: list[Operation]) -> set[int]:
    """The actions that would lose their ground if these operations were taken back."""
    rows = {(one.kind, one.key) for one in operations}
    newest = {(one.kind, one.key): one for one in sorted(operations, key=lambda one: one.seq)}
    found = {action for operation in newest.values() for action in _since(tx, operation)}
    for operation in firsts(operations):
        found |= {_made_by(tx, record) for record in _needing(tx, operation) if (record.kind, record.key) not in rows}
    return found


def _since(tx: Tx, operation: Operation) -> Iterator[int]:
    """The actions that have changed a row since an operation, if it is not what that left."""
    kind = record_kind(operation.kind)
    if kind is None:
        raise Conflict(f"operation {operation.seq} concerns a {operation.kind}, which is not undone here")
    held = tx.records.find(kind, operation.key)
    if (None if held is None else dict(held.body)) == operation.after:
        return
    since = [one for one in _standing(tx, kind, operation.key) if one.seq > operation.seq]
    if not since:
        raise Conflict(f"operation {operation.seq} was undone already; undo what undid it to have it again")
    yield from (one.batch for one in since)


def _needing(tx: Tx, operation: Operation) -> Iterator[Record]:
    """Rows that need what an operation left: they would point nowhere, or two would fill one place."""
    if operation.before is None and operation.kind in ("memory", "entity"):
        yield from tx.records.list_(RecordQuery("statement", ROWS_MAX, (operation.kind, short(operation.key))))
    if operation.kind == "entity" and _names(operation.before) != _names(operation.after):
        # Other names have meant it since: what was said under them would be about somebody else.
        named = tx.records.list_(RecordQuery("statement", ROWS_MAX, ("entity", short(operation.key))))
        yield from (record for record in named if _made_by(tx, record) > operation.batch)
    if operation.kind == "statement" and isinstance(operation.before, Mapping):
        before = to_statement(operation.before)
        name = next((value for field, value in before.terms() if field == "slot"), None)
        if name is not None and before.valid_to is None and is_single_valued(before.attribute):
            rivals = tx.records.list_(RecordQuery("statement", ROWS_MAX, ("slot", short(name))))
            yield from (record for record in rivals if record.body.get("valid_to") is None)


def _names(entity: Json) -> Json:
    return entity.get("aliases") if isinstance(entity, Mapping) else None


def _made_by(tx: Tx, record: Record) -> int:
    """The action that a row owes its existence."""
    history = _standing(tx, record.kind, record.key)
    return next((one.batch for one in reversed(history) if one.before is None), history[0].batch if history else 0)


def _standing(tx: Tx, kind: RecordKind, key: str) -> list[Operation]:
    return standing(tx.records.operations_of(kind, key, limit=ROWS_MAX)[::-1])


def _check_ground(tx: Tx, operations: Iterable[Operation]) -> None:
    """`Conflict` if something is back that tells of what is not there: another undo may have taken that away since."""
    for operation in operations:
        body = operation.before
        if not isinstance(body, Mapping) or operation.kind not in ("statement", "memory"):
            continue
        needed: list[tuple[RecordKind, str]] = [("entity", str(ref)) for ref in body.get("entities") or ()]
        needed += [("memory", str(body.get("memory")))] if operation.kind == "statement" else []
        for kind, key in needed:
            if tx.records.find(kind, key) is None:
                raise Conflict(
                    f"undoing operation {operation.seq} would bring back what tells of {kind} {key!r:.60}, "
                    "which is there no longer; undo what took that away first"
                )


def _restore(tx: Tx, ledger: Ledger, operation: Operation) -> None:
    kind = record_kind(operation.kind)
    if kind is None:
        raise Conflict(f"operation {operation.seq} concerns a {operation.kind}, which is not undone here")
    if isinstance(operation.before, Mapping):
        ledger.put_body(kind, operation.key, operation.before, UNDO)
    elif tx.records.find(kind, operation.key) is not None:
        ledger.remove(kind, operation.key, UNDO)
