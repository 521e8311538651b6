"""Standing instructions: orders of the user to one agent, found in the messages that give them, or changed by hand.

Another agent neither sees nor changes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter

from perdure.domain.conversation.messages import Message
from perdure.domain.errors import InvalidInput, NotFound
from perdure.domain.knowledge.entities import Instruction, OrderKind, from_body
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.keys import term_value
from perdure.domain.knowledge.memories import WRITER_KEY, Writer, only_people
from perdure.domain.knowledge.proposals import Evidence
from perdure.domain.knowledge.records import RecordQuery
from perdure.domain.limits import Limits
from perdure.domain.scope import ID_BYTES_MAX, MessageId, Scope
from perdure.domain.text.rules import check_id, utf8_size
from perdure.domain.times.instants import to_us
from perdure.domain.values import dataclass, replace
from perdure.engine.extraction.order_topics import says_same_order, withdraws
from perdure.engine.extraction.orders import OrderSpan, standing_instructions
from perdure.engine.text.hygiene import fingerprint, hides_something, holds_secret, refusal
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.knowledge.ledger import Ledger

STANDING_MAX = 50
"""Orders that stand for one agent; the oldest gives way."""
ORDERS_AT_ONCE_MAX = 200
"""Of messages that are read together, the last ones: years of talk are no reason for an endless transaction."""
EVIDENCE_MAX = 100
CLOCKS_DIFFER_MAX = timedelta(days=1)
"""Times are the callers': by up to this much, what was said later may bear an earlier one."""
READER = "instructions/1"
_START_MAX = 2**12 - 1


@dataclass(frozen=True, slots=True)
class OrderSentence:
    """A sentence of a message that gives or takes back a standing order."""

    content: str
    start: int
    end: int
    kind: OrderKind
    prints: frozenset[str]
    """Fingerprints of its sentence and line, by which an echo is known."""


Orders = Mapping[MessageId, tuple[OrderSentence, ...]]


def orders_in(messages: Iterable[Message]) -> Orders:
    """What the user orders in these messages. Pure: done before the transaction that keeps it."""
    said = [one for one in messages if one.role == "user" and WRITER_KEY not in one.metadata]
    found = {one.id: _orders(one.content) for one in said}
    some = {message: orders for message, orders in found.items() if orders}
    left = ORDERS_AT_ONCE_MAX
    for message in reversed(list(some)):
        some[message] = some[message][:left]
        left -= len(some[message])
    return {message: orders for message, orders in some.items() if orders}


def take_in(tx: Tx, messages: Sequence[Message], orders: Orders, *, now: datetime) -> int:
    """Keep what `orders_in` found in these messages; how many records that changed.

    Locks the records of the owner if there is something to keep, so call it after the sessions are locked and before
    counters and jobs are touched. Taking the same words in again changes nothing, also if that was undone meanwhile.
    """
    said = [(message, order) for message in messages for order in orders.get(message.id, ())]
    fresh = [(message, order) for message, order in said if not _is_echo(tx, message, order)]
    if not fresh:
        return 0
    ledger = Ledger(tx, Attribution(READER, now, "the user said so"))
    for message, order in fresh:
        ledger.next_action()
        _take(tx, ledger, message, order)
    return ledger.writes


def _is_echo(tx: Tx, message: Message, order: OrderSentence) -> bool:
    """Whether these words had been put into a prompt when they were said."""
    return bool(order.prints and tx.records.find_echoes(sorted(order.prints), until=message.at))


def take_order(tx: Tx, ledger: Ledger, message: Message, place: Evidence) -> None:
    """Keep a sentence of a message that was found to be an order only when it was looked through."""
    order = _order(message.content, OrderSpan(place.start, place.end, "order"))
    if _may_be_kept(order.content, order.kind) and not _is_echo(tx, message, order):
        _take(tx, ledger, message, order)


@dataclass(frozen=True, slots=True)
class Instructions:
    store: Store
    clock: Clock
    limits: Limits
    writer: Writer = "user"

    def add(self, scope: Scope, text: str) -> Instruction:
        """Keep an order for this agent; the same words again change nothing."""
        only_people(self.writer, "give itself the user's orders", "keep a lesson instead, with `lessons.add`")
        utf8_size(text, "`text`")
        content = text.strip()
        if (reason := refusal(content)) is not None:
            raise InvalidInput(f"the instruction {reason}; say it differently")
        # What was said before is read first: orders take effect in the order in which they were given.
        self.store.read(scope.owner, lambda _view: None)
        now = self.clock.now()
        made = Instruction(self.clock.new_id(), scope.address.agent, content, now, source="added")
        by = Attribution("user", now, "instruction")

        def work(tx: Tx) -> Instruction:
            return _keep(Ledger(tx, by), standing_in(tx, made.agent), made)

        return self.store.write(scope.owner, work)

    def list_(self, scope: Scope, *, limit: int, withdrawn: bool = False) -> list[Instruction]:
        """This agent's orders, the newest last; those that were withdrawn only if asked for."""
        rows = self.limits.page(limit)
        field = "agent" if withdrawn else "open"
        return self.store.read(scope.owner, lambda view: _instructions(view, field, scope.address.agent, rows))

    def withdraw(self, scope: Scope, key: str) -> Instruction:
        """It stands no longer; one that was withdrawn stays as it is."""
        only_people(self.writer, "withdraw the user's orders", "the user does, with `perdure instruction withdraw`")
        check_id(key, "instruction", bytes_max=ID_BYTES_MAX)
        by = Attribution("user", self.clock.now(), "withdraw")

        def work(tx: Tx) -> Instruction:
            ledger = Ledger(tx, by)
            held = tx.records.find("instruction", key)
            one = None if held is None else from_body(Instruction, held.body)
            if one is None or one.agent != scope.address.agent:
                raise NotFound(f"this agent has no instruction {key!r:.80}; list them with `instructions.list()`")
            return _withdraw(ledger, one, "withdrawn by hand")

        return self.store.write(scope.owner, work)


def standing_orders(view: View, agent: str, rows: int) -> list[Instruction]:
    """So many of the orders that stand for an agent, the newest last."""
    return _instructions(view, "open", agent, rows)


def standing_in(view: View, agent: str) -> list[Instruction]:
    """The orders that stand for an agent, the newest last: all of them belong into its context."""
    return _instructions(view, "open", agent, STANDING_MAX + ORDERS_AT_ONCE_MAX)


# -- what is said


def _orders(text: str) -> tuple[OrderSentence, ...]:
    return tuple(_order(text, one) for one in standing_instructions(text) if _may_be_kept(text[one.start : one.end], one.kind))


def _may_be_kept(content: str, kind: OrderKind) -> bool:
    """No secrets, nothing hidden; and what is taken back is not itself kept, so it may sound like an order to a model."""
    if kind == "withdrawal":
        return not hides_something(content) and not holds_secret(content)
    return refusal(content) is None


def _order(text: str, found: OrderSpan) -> OrderSentence:
    content = text[found.start : found.end]
    # What perdure puts into a prompt has headings and fences: a message that is this sentence and nothing else was typed.
    pieces = () if text.strip() == content else (content, *_lines_at(text, found))
    return OrderSentence(content, found.start, found.end, found.kind, frozenset(map(fingerprint, pieces)))


def _lines_at(text: str, found: OrderSpan) -> list[str]:
    start = text.rfind("\n", 0, found.start) + 1
    end = text.find("\n", found.end)
    return text[start : len(text) if end < 0 else end].splitlines()


# -- what becomes of it


def _take(tx: Tx, ledger: Ledger, message: Message, order: OrderSentence) -> None:
    agent = message.address.agent
    evidence = Evidence(message.id, order.start, order.end, message.at)
    key = _key(evidence)
    if _was_taken(tx, key, evidence):
        return
    said_at = min(message.at, ledger.at)  # a clock far ahead must not keep it the newest for years
    standing = standing_in(tx, agent)
    named = None if order.kind == "order" else _withdrawn_by(order.content, standing, order.kind, said_at)
    if named is not None:
        _withdraw(ledger, replace(named, evidence=_joined_evidence(named.evidence, (evidence,))), "the user took it back")
    elif order.kind != "withdrawal":
        _keep(ledger, standing, Instruction(key, agent, order.content, said_at, evidence=(evidence,)))


def _was_taken(tx: Tx, key: str, evidence: Evidence) -> bool:
    """Whether these very words were taken in before, whatever became of it."""
    if tx.records.operations_of("instruction", key, limit=1):
        return True
    citing = tx.records.list_(RecordQuery("instruction", STANDING_MAX, ("message", term_value(evidence.message))))
    return any(evidence in from_body(Instruction, record.body).evidence for record in citing)


def _keep(ledger: Ledger, standing: Sequence[Instruction], made: Instruction) -> Instruction:
    """Put an order beside those that stand: it may be one of them, take the place of one, or push the oldest out."""
    same = next((one for one in standing if says_same_order(one.content, made.content)), None)
    if same is not None:
        return _said_again(ledger, same, made)
    rival = _withdrawn_by(made.content, standing, "order", made.created_at)
    if rival is not None:
        _withdraw(ledger, rival, "another order took its place")
    ledger.put(made, "add")
    left = sorted((*(one for one in standing if one != rival), made), key=attrgetter("said_at"))
    for one in left[: max(0, len(left) - STANDING_MAX)]:
        _withdraw(ledger, one, f"more than {STANDING_MAX} stand")
    return made


def _said_again(ledger: Ledger, held: Instruction, again: Instruction) -> Instruction:
    if not again.evidence:
        return held
    evidence = _joined_evidence(held.evidence, again.evidence)
    changed = replace(held, evidence=evidence, repeated_at=max(held.said_at, again.created_at))
    ledger.put(changed, "mention")
    return changed


def _withdrawn_by(content: str, standing: Sequence[Instruction], kind: OrderKind, at: datetime) -> Instruction | None:
    """The order that these words put out of force. What was said long before an order, and is imported late, does not."""
    before = [one for one in standing if one.said_at - at <= CLOCKS_DIFFER_MAX]
    index = withdraws(content, [one.content for one in before], kind=kind)
    return None if index is None else before[index]


def _withdraw(ledger: Ledger, one: Instruction, reason: str) -> Instruction:
    if one.state == "withdrawn":
        return one
    over = replace(one, state="withdrawn", ended_at=ledger.at, reason=reason)
    ledger.put(over, "withdraw")
    return over


def _joined_evidence(held: tuple[Evidence, ...], new: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    return tuple(dict.fromkeys((*held, *new)))[-EVIDENCE_MAX:]


def _instructions(view: View, field: str, agent: str, rows: int) -> list[Instruction]:
    found = view.records.list_(RecordQuery("instruction", rows, (field, term_value(agent))))
    # Messages of one append often have one time: then the order of being written is that of being said.
    in_order = sorted(found, key=lambda record: record.operation)
    return sorted((from_body(Instruction, record.body) for record in in_order), key=attrgetter("said_at"))


def _key(evidence: Evidence) -> str:
    """The id of the order in these words: always the same, and in the order of being said, as ids of the clock are."""
    digest = hashlib.sha256(f"{evidence.message}\0{evidence.start}\0{evidence.end}".encode()).digest()
    milliseconds = min(max(to_us(evidence.at) // 1_000, 0), 2**48 - 1)
    place = min(evidence.start, _START_MAX)
    rest = int.from_bytes(digest[:8], "big") & (2**62 - 1)
    from uuid import UUID

    return str(UUID(int=milliseconds << 80 | 7 << 76 | place << 64 | 2 << 62 | rest))
