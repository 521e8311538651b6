"""Taking back the end of a session: its messages leave the log, and what was learned from them alone is unlearned.

All of it is one action of the journal, and undoing that brings it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from datetime import datetime

from perdure.domain.conversation.digests import SPINE_ADDRESS, SPINE_SESSION
from perdure.domain.conversation.messages import Cursor, Message, MessageQuery, Session, Withdrawal
from perdure.domain.errors import Conflict, InvalidInput
from perdure.domain.knowledge.journal import Attribution, Operation
from perdure.domain.knowledge.keys import term_value
from perdure.domain.knowledge.memories import Statement, only_people, to_statement
from perdure.domain.knowledge.records import RecordKind, RecordQuery, record_kind
from perdure.domain.scope import Address, MessageId, Scope
from perdure.domain.text.rules import Json, brief
from perdure.domain.values import dataclass, replace
from perdure.engine.conversation.jobs import TALLY, TRANSCRIPT, session_job
from perdure.engine.knowledge.redaction import evidence_of
from perdure.ports.store import Tx, View
from perdure.services.conversation.sessions import Sessions, held_session, lock_sessions
from perdure.services.conversation.upkeep import JOBS_MAX
from perdure.services.index.writes import leave_digests
from perdure.services.jobs.idempotency import note_erasure
from perdure.services.knowledge.ledger import Ledger
from perdure.services.knowledge.undo import firsts
from perdure.services.lessons.rows import leave_lessons

POPPED_MAX = 1_000
ROWS_MAX = 10_000
WITHDRAW = "withdraw"


@dataclass(frozen=True, slots=True)
class Withdrawals:
    """The use case, on what sessions are dealt with by."""

    sessions: Sessions

    def pop(self, scope: Scope, session: str | None, count: int | None) -> list[Message]:
        """Take back the last exchange of an open session, or its last `count` messages; those that went, oldest first."""
        only_people(self.sessions.writer, "take back what was said", "the user does, with `perdure session pop`")
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= POPPED_MAX):
            raise InvalidInput(f"`messages` = {brief(count)} must be a whole number from 1 to {POPPED_MAX}")
        now, name = self.sessions.clock.now(), self.sessions.clock.new_id()
        return self.sessions.store.write(scope.owner, lambda tx: self._pop_in(tx, scope.address, session, count, (name, now)))

    def _pop_in(
        self, tx: Tx, address: Address, session: str | None, count: int | None, made: tuple[str, datetime]
    ) -> list[Message]:
        name, now = made
        note_erasure(tx, now)
        spines = tx.conversation.list_digests(SPINE_ADDRESS, SPINE_SESSION, "spine", limit=JOBS_MAX)
        told = {(one.address.agent, one.address.channel, one.session_number) for spine in spines for one in spine.sources}
        newest = tx.list_sessions(address, limit=1)
        lock_sessions(tx, told | {(one.address.agent, one.address.channel, one.number) for one in newest})
        found = held_session(tx, address, session)
        held = tx.find_session(address, found.number)
        if held is None or held.ended_at is not None:
            raise Conflict(f"session {brief(found.id, 80)} has ended; resume it, then take back its end")
        gone = _last(tx, held, count)
        if not gone:
            return []
        by = Attribution("user", now, f"the last {len(gone)} messages were taken back")
        self._cut(tx, held, gone, by)
        ledger = Ledger(tx, by)
        ledger.put(Withdrawal(name, address, held.number, held.learned_seq, tuple(gone)), WITHDRAW)
        unlearn_messages(tx, ledger, {one.id for one in gone})
        return gone

    def _cut(self, tx: Tx, held: Session, gone: list[Message], by: Attribution) -> None:
        last = gone[0].seq - 1
        tx.index.remove("message", [one.id for one in gone], now=by.at)
        void = [
            one for one in tx.conversation.list_digests(held.address, held.number, None, limit=JOBS_MAX) if one.last_seq > last
        ]
        tx.conversation.remove_digests(void, by=by)
        leave_digests(tx, void, now=by.at)
        leave_lessons(tx, void, by)
        left = tx.conversation.latest_digest(held.address, held.number, "fold")
        tx.conversation.cut_session(
            replace(
                held,
                messages=last,
                tokens=held.tokens - sum(one.tokens for one in gone),
                turns=held.turns - sum(one.role == "user" for one in gone),
                boundary_seq=0 if left is None else left.last_seq,
                spine_seq=min(held.spine_seq, last),
                learned_seq=min(held.learned_seq, last),
            ),
            by=by,
        )
        if held.spine_seq > last:
            self.sessions.renew_spine_of(tx, held, by)
        tx.conversation.forget_said(held.address)
        tx.enqueue(session_job(TALLY, held.address, held.number, by.at), now=by.at, queue_max=JOBS_MAX)
        if self.sessions.transcripts:
            tx.enqueue(session_job(TRANSCRIPT, held.address, held.number, by.at), now=by.at, queue_max=JOBS_MAX)


def _last(view: View, session: Session, count: int | None) -> list[Message]:
    """The last messages of a session: as many as asked for, or from the last word of the user on."""
    most = POPPED_MAX if count is None else count
    found = view.list_messages(
        MessageQuery(session.address, most, session.number, before=Cursor(session.number, session.messages + 1))
    )
    if count is not None:
        return found
    starts = [place for place, one in enumerate(found) if one.role == "user"]
    return found[starts[-1] :] if starts else found[-1:]


# -- what was learned


def unlearn_messages(tx: Tx, ledger: Ledger, gone: Set[MessageId]) -> None:
    """Take back what these messages alone have taught, and with it what it had replaced. Later words of others stay."""
    cited = {one.id: one for message in gone for one in ledger.citing(message)}
    doomed: set[tuple[RecordKind, str]] = set()
    for statement in cited.values():
        if _told_by(statement, gone):
            doomed.add(("statement", statement.id))
        else:
            ledger.put_statement(_without(statement, gone))
    for kind in _SPOKEN:
        rows = tx.records.list_(RecordQuery(kind, ROWS_MAX))
        doomed |= {(kind, one.key) for one in rows if gone & {said.message for said in evidence_of(one.body)}}
    origins = ((one.key, one.body["origins"]) for one in tx.records.list_(RecordQuery("lesson", ROWS_MAX)))
    doomed |= {("lesson", key) for key, told in origins if told and all(one["message"] in gone for one in told)}
    batches = {one.batch for kind, key in doomed for one in tx.records.operations_of(kind, key, limit=ROWS_MAX)[-1:]}
    ground: list[Operation] = []
    for batch in sorted(batches, reverse=True):
        for operation in firsts(tx.records.operations_in(batch)):
            if operation.kind in _GROUND:
                ground.append(operation)
            else:
                _take_back(tx, ledger, operation, doomed)
    for kind, key in sorted(doomed):
        if tx.records.find(kind, key) is not None:
            ledger.remove(kind, key, WITHDRAW)
    for operation in sorted(ground, key=lambda one: (one.kind != "memory", -one.seq)):
        _take_back_ground(tx, ledger, operation)


_SPOKEN: tuple[RecordKind, ...] = ("todo", "rejection", "instruction")
"""Kinds besides statements that name the places where they were said."""
_GROUND = ("memory", "entity")
"""Kinds that statements stand on."""


def _told_by(statement: Statement, gone: Set[MessageId]) -> bool:
    sources = {one.message for one in statement.evidence}
    return sources <= gone and statement.mentions <= len(statement.evidence)


def _without(statement: Statement, gone: Set[MessageId]) -> Statement:
    left = tuple(one for one in statement.evidence if one.message not in gone)
    return replace(statement, evidence=left, mentions=max(1, statement.mentions - len(statement.evidence) + len(left)))


def _take_back(tx: Tx, ledger: Ledger, operation: Operation, doomed: Set[tuple[RecordKind, str]]) -> None:
    kind = record_kind(operation.kind)
    if kind is None or (kind, operation.key) in doomed or not isinstance(operation.before, dict):
        return  # what is doomed is removed afterwards, whatever has become of it
    held = tx.records.find(kind, operation.key)
    if held is None or not _is_left_by(tx, operation, held.body):
        return
    if kind == "statement" and _has_rival(ledger, to_statement(operation.before), doomed):
        return
    ledger.put_body(kind, operation.key, operation.before, WITHDRAW)


def _take_back_ground(tx: Tx, ledger: Ledger, operation: Operation) -> None:
    """A memory or an entity that nothing is said of any more goes; one that was changed is as it was."""
    kind = record_kind(operation.kind)
    held = None if kind is None else tx.records.find(kind, operation.key)
    if kind is None or held is None:
        return
    if operation.before is None:
        if tx.records.count("statement", (kind, term_value(operation.key))) == 0:
            ledger.remove(kind, operation.key, WITHDRAW)
    elif isinstance(operation.before, dict) and _is_left_by(tx, operation, held.body):
        ledger.put_body(kind, operation.key, operation.before, WITHDRAW)


def _is_left_by(tx: Tx, operation: Operation, body: Json) -> bool:
    """Whether a row is as the action of that operation left it."""
    ends = [
        one.after
        for one in tx.records.operations_in(operation.batch)
        if one.key == operation.key and one.kind == operation.kind
    ]
    return bool(ends) and ends[-1] == dict(body)


def _has_rival(ledger: Ledger, statement: Statement, doomed: Iterable[tuple[RecordKind, str]]) -> bool:
    """Whether something else has taken the place of a statement since."""
    gone = {key for _, key in doomed} | {statement.id}
    rivals = (one for field, slot in statement.terms() if field == "slot" for one in ledger.in_slot(slot))
    return any(one.id not in gone and one.valid_to is None for one in rivals)
