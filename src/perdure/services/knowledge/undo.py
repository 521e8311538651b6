"""Which operations on a row still have an effect: an undo takes it back to an earlier state, and what lay between is over.

Undo: rows go back to what they were, unless others stand on what they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from perdure.domain.conversation.messages import CallState, Withdrawal, to_withdrawal
from perdure.domain.errors import Conflict, InvalidInput, LimitExceeded, NotFound
from perdure.domain.knowledge.journal import Attribution, Operation
from perdure.domain.knowledge.keys import term_value
from perdure.domain.knowledge.memories import Writer, actor_of, only_people, to_statement
from perdure.domain.knowledge.records import Record, RecordKind, RecordQuery, record_kind
from perdure.domain.limits import NUMBER_MAX
from perdure.domain.scope import Scope
from perdure.domain.text.rules import Json, brief
from perdure.domain.values import dataclass, replace
from perdure.engine.conversation.jobs import TALLY, session_job
from perdure.engine.extraction.predicates import is_single_valued
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx
from perdure.services.knowledge.ledger import Ledger

UNDO = "undo"


def standing(operations: Sequence[Operation]) -> list[Operation]:
    """Of the operations on one row, oldest first, those that lead to its state as it is now.

    What was undone is over, until that is undone in turn; a new change makes it final.
    """
    line: list[Operation] = []
    reached = 0
    for operation in operations:
        if operation.action == UNDO and (place := _place(line, reached, operation.after)) is not None:
            reached = place
            continue
        del line[reached:]
        line.append(operation)
        reached += 1
    return line[:reached]


def _place(line: Sequence[Operation], reached: int, state: object) -> int | None:
    """How far along `line` the row was in that state: the nearest such place, before or behind where it is."""
    states = [line[0].before if line else None, *(operation.after for operation in line)]
    places = [place for place, held in enumerate(states) if held == state and place != reached]
    return min(places, key=lambda place: abs(place - reached), default=None)


def firsts(operations: Sequence[Operation]) -> list[Operation]:
    """For each row, the earliest of its operations: what that one found is what undoing all of them restores."""
    earliest: dict[tuple[str, str], Operation] = {}
    for operation in sorted(operations, key=lambda one: one.seq):
        earliest.setdefault((operation.kind, operation.key), operation)
    return sorted(earliest.values(), key=lambda one: -one.seq)


ACTIONS_MAX = 1_000
ROWS_MAX = 10_000
QUEUE_MAX = 2**31


@dataclass(frozen=True, slots=True)
class UndoService:
    store: Store
    clock: Clock
    writer: Writer = "user"

    def undo(self, scope: Scope, number: int, *, cascade: bool) -> int:
        """Take back the action that an operation belongs to; the number of the action that does so.

        `Conflict` if later actions build on it, unless `cascade`, which takes those back, too. Undoing an undo does it again.
        """
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= NUMBER_MAX:
            raise InvalidInput(f"`operation` = {brief(number)} must be the number of an operation; the journal lists them")
        now = self.clock.now()

        def work(tx: Tx) -> int:
            _lock_withdrawn(tx, number)  # sessions before records, as everywhere
            ledger = Ledger(tx, Attribution(actor_of(self.writer, scope.address.agent), now, f"undo {number}"))
            operations = _to_undo(tx, number, cascade=cascade)
            if not all(one.actor.startswith("agent:") for one in operations):
                only_people(self.writer, "undo what others did", f"the user does, with `perdure undo {number}`")
            taken_back = list(firsts(operations))
            for operation in taken_back:
                _restore(tx, ledger, operation)
            _check_ground(tx, taken_back)
            if ledger.action is None:
                raise Conflict(f"operation {number} left nothing that could be undone")
            return ledger.action

        return self.store.write(scope.owner, work)


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
        yield from tx.records.list_(RecordQuery("statement", ROWS_MAX, (operation.kind, term_value(operation.key))))
    if operation.kind == "entity" and _names(operation.before) != _names(operation.after):
        # Other names have meant it since: what was said under them would be about somebody else.
        named = tx.records.list_(RecordQuery("statement", ROWS_MAX, ("entity", term_value(operation.key))))
        yield from (record for record in named if _made_by(tx, record) > operation.batch)
    if operation.kind == "statement" and isinstance(operation.before, Mapping):
        before = to_statement(operation.before)
        name = next((value for field, value in before.terms() if field == "slot"), None)
        if name is not None and before.valid_to is None and is_single_valued(before.attribute):
            rivals = tx.records.list_(RecordQuery("statement", ROWS_MAX, ("slot", term_value(name))))
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
                    f"undoing operation {operation.seq} would restore text about {kind} {key!r:.60}, "
                    "which is there no longer; undo what took that away first"
                )


def _restore(tx: Tx, ledger: Ledger, operation: Operation) -> None:
    kind = record_kind(operation.kind)
    if kind is None:
        raise Conflict(f"operation {operation.seq} concerns a {operation.kind}, which is not undone here")
    if isinstance(operation.before, Mapping):
        if kind == "withdrawal":
            raise Conflict("what was brought back into the talk is taken back again with `conversation.pop`, not by an undo")
        ledger.put_body(kind, operation.key, operation.before, UNDO)
    elif tx.records.find(kind, operation.key) is not None:
        ledger.remove(kind, operation.key, UNDO)
        if kind == "withdrawal":
            _put_back(tx, to_withdrawal(operation.after), ledger.at)
            # The log has the words again: the journal needs no copy.
            tx.records.blank_operations(kind, operation.key, name=f"withdrawn:{operation.seq}")


def _lock_withdrawn(tx: Tx, number: int) -> None:
    """Lock the session that an action took messages of, if it did."""
    for first in tx.list_operations(limit=1, before=number + 1):
        for one in tx.records.operations_in(first.batch):
            if one.kind == "withdrawal" and one.before is None and isinstance(one.after, Mapping):
                held = to_withdrawal(one.after)
                tx.latest_session(held.address)
                tx.find_session(held.address, held.session_number)


def _put_back(tx: Tx, taken: Withdrawal, now: datetime) -> None:
    """The end of a session that was taken back is in the log again."""
    session = tx.find_session(taken.address, taken.session_number)
    if session is None or session.deleted_at is not None or session.messages != taken.messages[0].seq - 1:
        raise Conflict("the talk has gone on since its end was taken back; that can be undone no longer")
    said = taken.messages
    known = {call.id: call for call in tx.find_calls(taken.address, [one.tool_call_id for one in said if one.tool_call_id])}
    tx.put_sessions(
        [
            replace(
                session,
                messages=said[-1].seq,
                tokens=session.tokens + sum(one.tokens for one in said),
                turns=session.turns + sum(one.role == "user" for one in said),
                learned_seq=max(session.learned_seq, taken.learned_seq),
            )
        ]
    )
    tx.append(said)
    calls = {call.id: CallState(taken.session_number, call.id, call.name, one.seq) for one in said for call in one.tool_calls}
    for one in said:
        call = None if one.tool_call_id is None else calls.get(one.tool_call_id) or known.get(one.tool_call_id)
        if call is not None and call.session_number == taken.session_number:
            calls[call.id] = replace(call, result_seq=one.seq, failed=one.failed)
    tx.put_calls(taken.address, calls.values())
    tx.enqueue(session_job(TALLY, taken.address, taken.session_number, now), now=now, queue_max=QUEUE_MAX)
