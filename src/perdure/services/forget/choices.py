"""What is to go when something is forgotten: rows that are held, and rows of which only the journal tells.

Forgetting what the overseer noted: its decisions quote goals, and goals are made of what people say.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from perdure.domain.conversation.messages import Cursor, Message, MessageQuery
from perdure.domain.errors import InvalidInput, NotFound
from perdure.domain.knowledge.entities import Entity, from_body
from perdure.domain.knowledge.memories import to_memory, trust_of_message
from perdure.domain.knowledge.proposals import Evidence
from perdure.domain.knowledge.records import RECORD_KINDS, Record, RecordKind, RecordQuery, record_kind
from perdure.domain.lessons import to_lesson
from perdure.domain.oversight import Decision
from perdure.domain.scope import Address, MessageId
from perdure.domain.text.rules import Json
from perdure.domain.values import dataclass, field, replace
from perdure.engine.knowledge.redaction import RecordHistory, evidence_of, exact_redactor, first_name, name_redactor
from perdure.ports.store import Tx, View
from perdure.ports.tables.redaction import reworded
from perdure.services.knowledge.ledger import find_entity

ROWS_MAX = 100_000
OPERATIONS_PER_PAGE = 1_000
BLANK = "forgotten:"
"""How the journal calls what is forgotten, with a number."""
LOOSE: tuple[RecordKind, ...] = ("suggestion", "rejection", "todo", "task", "instruction", "lesson", "withdrawal")
"""Kinds that refer to nothing: what they are about stands in their words."""
NAMED: tuple[RecordKind, ...] = ("memory", "entity")
"""Kinds whose keys are made of names."""

Row = tuple[RecordKind, str]
Strike = Callable[[str], str]
Body = Mapping[str, Any]


def _as_it_is(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """What is to go: rows, the places in messages that they came from, whole messages, and words wherever they stand."""

    doomed: frozenset[Row] = frozenset()
    said: frozenset[Evidence] = frozenset()
    whole: frozenset[MessageId] = frozenset()
    strike: Strike = _as_it_is
    pasts: Mapping[Row, RecordHistory] = field(default_factory=dict)
    left: Strike = _as_it_is
    """If nothing is held: words that may still stand in files, if it was forgotten by a process that died over it."""

    @property
    def nothing(self) -> bool:
        return not self.doomed and not self.whole and self.strike is _as_it_is


def entity_plan(view: View, ref: str) -> ForgetPlan:
    known = _OwnerRecords(view)
    entities = {key: from_body(Entity, body) for key, body in known.last("entity").items()}
    group = _one_and_the_same(view, entities, ref)
    doomed: set[Row] = {("entity", one) for one in group if one in entities}
    memories = {key for key, body in known.last("memory").items() if group & {_primary(key), *body["entities"][:1]}}
    doomed |= {("memory", key) for key in memories}
    doomed |= {
        ("statement", key) for key, body in known.last("statement").items() if body["memory"] in memories or group & _refs(body)
    }
    if not doomed:
        return ForgetPlan(left=name_redactor(_names(group, (), ())))
    others = [from_body(Entity, body) for key, body in known.held["entity"].items() if key not in group]
    strike = name_redactor(_names(group, [entities[one] for one in group if one in entities], others))
    for kind in LOOSE:
        doomed |= {(kind, key) for key, body in known.last(kind).items() if reworded(dict(body), strike) != dict(body)}
    return ForgetPlan(frozenset(doomed), known.spoken_in(doomed), strike=strike, pasts=known.pasts)


def memory_plan(view: View, key: str, agent: str) -> ForgetPlan:
    known = _OwnerRecords(view)
    memory = known.last("memory").get(key)
    if memory is None or memory["visible_to"] not in (None, agent):
        return ForgetPlan()
    doomed: set[Row] = {("memory", key)}
    for name, body in known.last("statement").items():
        if body["memory"] == key or key in known.past("statement", name).homes:
            doomed.add(("statement", name))
    said = known.spoken_in(doomed)
    for kind in ("rejection", "instruction"):
        for name, body in known.last(kind).items():
            if any(_overlap(one, other) for one in evidence_of(body) for other in said):
                doomed.add((kind, name))
    return _without_orphans(known, ForgetPlan(frozenset(doomed), said, pasts=known.pasts))


def messages_choice(view: View, address: Address, first: str, last: str) -> ForgetPlan:
    gone = frozenset(message.id for message in _run(view, address, first, last))
    known = _OwnerRecords(view)
    doomed: set[Row] = set()
    for key in known.last("statement"):
        sources = {one.message for one in known.evidence("statement", key)}
        if sources and sources <= gone:
            doomed.add(("statement", key))
    for kind in ("todo", "rejection", "instruction"):
        doomed |= {(kind, key) for key in known.last(kind) if gone & {one.message for one in known.evidence(kind, key)}}
    for key, body in known.last("lesson").items():
        if body["origins"] and all(one["message"] in gone for one in body["origins"]):
            doomed.add(("lesson", key))
    return _without_orphans(known, ForgetPlan(frozenset(doomed), whole=gone, pasts=known.pasts))


def tells_of_people(view: View, choice: ForgetPlan) -> bool:
    """Whether the choice takes words of a person: what they said or keep, or a name that stands in it or in their messages."""
    for kind, key in choice.doomed:
        held = view.records.find(kind, key)
        if held is not None and kind in _OF_PEOPLE and _OF_PEOPLE[kind](held.body):
            return True
    cited = view.find_messages([*choice.whole, *(MessageId(one.message) for one in choice.said)])
    if any(_is_of_user(message) for message in cited.values()):
        return True
    if choice.strike is _as_it_is:
        return False
    theirs = (one.body for kind, is_theirs in _OF_PEOPLE.items() for one in all_of(view, kind) if is_theirs(one.body))
    if any(reworded(dict(body), choice.strike) != dict(body) for body in theirs):
        return True
    return any(_is_of_user(message) and choice.strike(message.content) != message.content for message in _all_messages(view))


_OF_PEOPLE: Mapping[RecordKind, Callable[[Body], bool]] = {
    "statement": lambda body: body["trust"] == "user",
    "memory": lambda body: to_memory(body).is_kept,
    "instruction": lambda _body: True,
    "todo": lambda body: body["source"] != "agent",
    "lesson": lambda body: to_lesson(body).trust == "user",
}


def _is_of_user(message: Message) -> bool:
    return trust_of_message(message.role, message.metadata) == "user"


def _all_messages(view: View) -> Iterator[Message]:
    addresses = {one.address for one in view.list_sessions(None, limit=ROWS_MAX)}
    for address in addresses:
        after = Cursor(0, 0)
        while page := view.list_messages(MessageQuery(address, OPERATIONS_PER_PAGE, after=after)):
            yield from page
            after = Cursor(page[-1].session_number, page[-1].seq)


def _without_orphans(known: _OwnerRecords, choice: ForgetPlan) -> ForgetPlan:
    """The choice, with entities that nothing is about any more, and what was asked about them or what goes."""
    orphans = known.left_alone(choice.doomed)
    rows: set[Row] = {("entity", ref) for ref in orphans}
    doomed = choice.doomed | rows
    # That they were seen with others is forgotten, too.
    strike = exact_redactor(ref.partition(":")[2] for ref in orphans) if orphans else _as_it_is
    return replace(choice, doomed=doomed | known.asking_about(doomed), strike=strike)


def all_of(view: View, kind: RecordKind) -> list[Record]:
    return view.records.list_(RecordQuery(kind, ROWS_MAX))


class _OwnerRecords:
    """All records of an owner as they are, and what the journal tells of them and of those that are no more."""

    def __init__(self, view: View) -> None:
        self.held = {kind: {record.key: record.body for record in all_of(view, kind)} for kind in RECORD_KINDS}
        self.pasts: dict[Row, RecordHistory] = {}
        before: int | None = None
        while page := view.list_operations(limit=OPERATIONS_PER_PAGE, before=before):
            for operation in page:
                kind = record_kind(operation.kind)
                if kind is not None and not operation.key.startswith(BLANK):
                    self.pasts.setdefault((kind, operation.key), RecordHistory()).tell(operation)
            before = page[-1].seq

    def last(self, kind: RecordKind) -> dict[str, Body]:
        """Every record of a kind: as it is, or as it was last."""
        gone = {key: past.body for (of, key), past in self.pasts.items() if of == kind and past.body is not None}
        return {**gone, **self.held[kind]}

    def past(self, kind: RecordKind, key: str) -> RecordHistory:
        return self.pasts.get((kind, key)) or RecordHistory()

    def evidence(self, kind: RecordKind, key: str) -> set[Evidence]:
        return evidence_of(self.held[kind].get(key, {})) | self.past(kind, key).evidence

    def spoken_in(self, doomed: Iterable[Row]) -> frozenset[Evidence]:
        """Where the statements among these were said."""
        return frozenset(one for kind, key in doomed if kind == "statement" for one in self.evidence(kind, key))

    def asking_about(self, doomed: Iterable[Row]) -> set[Row]:
        """Suggestions that concern these rows."""
        keys = {key for _, key in doomed}
        return {("suggestion", key) for key, body in self.last("suggestion").items() if keys & set(body["subjects"])}

    def left_alone(self, doomed: Container[Row]) -> set[str]:
        """Entities that these statements told of, and no other does, with those merged into them."""
        told: set[str] = set()
        still: set[str] = set()
        for key, body in self.last("statement").items():
            if ("statement", key) in doomed:
                told |= _refs(body)
            elif key in self.held["statement"]:
                still |= _refs(body)
        entities = {key: from_body(Entity, body) for key, body in self.last("entity").items()}
        return _with_merged(entities, (told - still) & entities.keys())


def _one_and_the_same(view: View, entities: Mapping[str, Entity], ref: str) -> set[str]:
    """The references of the entity that `ref` means, now or when it was last known, and of all merged into it."""
    held = find_entity(view.records, ref)
    if held is not None:
        return _with_merged(entities, {ref, held.ref})
    group = {ref} if ref in entities else {ref, *(one.ref for one in entities.values() if ref in one.aliases)}
    while more := {entities[one].merged_into for one in group if one in entities} - group - {None}:
        group |= {one for one in more if one is not None}
    return _with_merged(entities, group)


def _with_merged(entities: Mapping[str, Entity], group: set[str]) -> set[str]:
    found = set(group)
    while more := {one.ref for one in entities.values() if one.merged_into in found} - found:
        found |= more
    return found


def _names(group: Iterable[str], entities: Iterable[Entity], others: Iterable[Entity]) -> list[str]:
    """Every name they go by; a first name only if nobody else has it."""
    slugs = {*group, *(alias for one in entities for alias in one.aliases)}
    names = {slug.partition(":")[2].replace("_", " ") for slug in slugs} | {one.label for one in entities}
    taken = {one.label for one in others} | {first_name(one.label) for one in others}
    called = {first_name(one.label) for one in entities if one.type == "person"}
    return sorted(names | {name for name in called if name is not None and name not in taken})


def _refs(statement: Body) -> set[str]:
    return {statement["subject"], *statement["entities"]}


def _primary(key: str) -> str:
    """The entity that a memory's key names."""
    parts = key.split("|")
    return ":".join(parts[1:3])


def _overlap(one: Evidence, other: Evidence) -> bool:
    return one.message == other.message and one.start < other.end and other.start < one.end


def _run(view: View, address: Address, first: str, last: str) -> list[Message]:
    found = view.find_messages([MessageId(first), MessageId(last)])
    places = []
    for name in (first, last):
        message = found.get(MessageId(name))
        if message is None or message.address != address:
            raise NotFound(f"no message {name!r:.80} at this address")
        places.append(Cursor(message.session_number, message.seq))
    low, high = places
    if low > high:
        raise InvalidInput("the first message comes after the last; swap them")
    after, before = Cursor(low.session_number, low.seq - 1), Cursor(high.session_number, high.seq + 1)
    return view.list_messages(MessageQuery(address, ROWS_MAX, after=after, before=before))


QUOTE_CHARS_MIN = 4
"""Shorter words of a message stand everywhere, and tell nothing."""
GOAL_CHARS_MIN = 12
"""A note of this length that stands in a message was taken from it; a shorter one may be a word of ours."""
QUOTES_MAX = 1_000
"""Beyond so many forgotten texts, nobody compares: all decisions go."""


def drop_telling(tx: Tx, choice: ForgetPlan, words: Sequence[str]) -> int:
    """Forget the decisions that quote `words` or what records said that go, or that name such a record; how many.

    Before names are struck out everywhere: after that, a quotation would not be recognised.
    """
    quotes = {quote for text in (*words, *_contents(choice)) if len(quote := _folded(text)) >= QUOTE_CHARS_MIN}
    keys = {key for _, key in choice.doomed}
    together = "\n".join(quotes)

    def tells(decision: Decision) -> bool:
        notes = list(_texts(dict(decision.body)))
        folded = [_folded(note) for note in notes]
        return (
            len(quotes) > QUOTES_MAX
            or not keys.isdisjoint(notes)
            or any(len(note) >= GOAL_CHARS_MIN and note in together for note in folded)
            or any(quote in note for note in folded for quote in quotes)
        )

    held = tx.oversight.list_decisions(limit=ROWS_MAX)
    return tx.oversight.remove_decisions([one.id for one in held if tells(one)])


def drop_at(tx: Tx, addresses: Container[Address]) -> int:
    """Forget the decisions at addresses where words were struck out: a goal may say in other words what they said."""
    held = tx.oversight.list_decisions(limit=ROWS_MAX)
    return tx.oversight.remove_decisions([one.id for one in held if one.address in addresses])


def _contents(choice: ForgetPlan) -> Iterator[str]:
    """What the records said that go."""
    for row in choice.doomed:
        past = choice.pasts.get(row)
        for name in ("content", "text"):
            said = None if past is None or past.body is None else past.body.get(name)
            if isinstance(said, str):
                yield said


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
