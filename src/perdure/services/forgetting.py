"""Forgetting: the data goes, and everything derived from it; what is left is made anew from what is left.

It is the one use case that changes what is otherwise never changed. A second run finds nothing more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from perdure.domain.digests import SPINE_ADDRESS, SPINE_SESSION, Digest
from perdure.domain.entities import parse_ref
from perdure.domain.errors import InvalidInput, NotFound
from perdure.domain.journal import Attribution
from perdure.domain.memories import Statement, to_memory, to_statement
from perdure.domain.messages import Cursor, Message, MessageQuery
from perdure.domain.records import Record, RecordKind, RecordQuery
from perdure.domain.scope import Address, MessageId, Owner, Scope
from perdure.domain.things import Entity, from_body
from perdure.engine.indexing import short, terms_of
from perdure.engine.redacting import FORGOTTEN, first_name, name_redactor, without_spans
from perdure.engine.upkeep import TALLY, session_job
from perdure.ports import rows
from perdure.ports.clock import Clock
from perdure.ports.records import to_record
from perdure.ports.store import Store, Tx, View
from perdure.services.ledger import find_entity
from perdure.services.lessons import LessonBook
from perdure.services.sweeping import JOBS_MAX
from perdure.services.transcripts import Transcripts, place_of

ROWS_MAX = 100_000
Place = tuple[Address, int]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What is gone, and what is being made anew."""

    removed: dict[str, int] = field(default_factory=dict)
    """Rows that were deleted, by kind."""
    redacted: dict[str, int] = field(default_factory=dict)
    """Rows in which words were struck out, by table."""
    sessions: int = 0
    """Sessions whose digests and transcripts are made anew."""
    lessons: int = 0
    transcripts: int = 0
    remaining: tuple[str, ...] = ()
    """Names that perdure does not change, such as state keys and series called after what is forgotten."""

    @property
    def nothing(self) -> bool:
        """True if there was nothing to forget."""
        return not (any(self.removed.values()) or any(self.redacted.values()) or self.lessons or self.transcripts)


@dataclass(frozen=True, slots=True)
class Forgetting:
    store: Store
    clock: Clock
    transcripts: Transcripts | None
    book: LessonBook | None

    def forget_user(self, owner: Owner) -> Forgotten:
        """Everything of the user, in the store and in files."""
        count = self.store.erase(owner)
        files = 0 if self.transcripts is None else self.transcripts.erase(owner)
        lessons = 0 if self.book is None else int(self.book.erase(owner))
        self.store.purge()
        return Forgotten({"rows": count}, lessons=lessons, transcripts=files)

    def forget_entity(self, scope: Scope, ref: str) -> Forgotten:
        """A person, place, organisation or project: all that is known of it, and its name wherever it stands."""

        def names_of(view: View) -> tuple[list[Entity], list[str]]:
            entity = find_entity(view.records, str(parse_ref(ref)))
            return ([], []) if entity is None else _names(view, entity)

        entities, names = self.store.read(scope.owner, names_of)
        if not entities:
            return Forgotten()
        refs = {entity.ref for entity in entities}
        strike = name_redactor(names)

        def choose(view: View) -> _Choice:
            said = [one for one in _statements(view) if refs & {one.subject, *one.entities}]
            doomed: set[Row] = {("entity", ref) for ref in refs} | {("statement", one.id) for one in said}
            for record in _all(view, "memory"):
                if refs & set(to_memory(record.body).entities[:1]):
                    doomed.add(("memory", record.key))
            for kind in LOOSE:
                doomed |= {(kind, one.key) for one in _all(view, kind) if _mentions(one, strike)}
            return _Choice(doomed, said)

        return self._forget(scope.owner, choose, strike)

    def forget_memory(self, scope: Scope, key: str) -> Forgotten:
        """One memory with its past, and the words of the messages that it came from."""

        def choose(view: View) -> _Choice:
            held = view.records.find("memory", key)
            if held is None or to_memory(held.body).visible_to not in (None, scope.address.agent):
                return _Choice(set(), [])
            found = view.records.list_(RecordQuery("statement", ROWS_MAX, ("memory", short(key))))
            said = [to_statement(record.body) for record in found]
            doomed: set[Row] = {("statement", one.id) for one in said}
            return _Choice(doomed | {("memory", key)}, said)

        return self._forget(scope.owner, choose, lambda text: text)

    def forget_messages(self, scope: Scope, first: str, last: str) -> Forgotten:
        """The words of a run of messages of this address, ends included, and what was learned from them alone."""

        def choose(view: View) -> _Choice:
            gone = {message.id for message in _run(view, scope.address, first, last)}
            alone = [one for one in _statements(view) if one.evidence and {e.message for e in one.evidence} <= gone]
            doomed: set[Row] = {("statement", one.id) for one in alone}
            for kind in ("todo", "rejection"):
                held = view.records.list_(RecordQuery(kind, ROWS_MAX))
                doomed |= {(kind, one.key) for one in held if gone & set(_messages_of(one))}
            return _Choice(doomed, alone, frozenset(gone))

        return self._forget(scope.owner, choose, lambda text: text)

    # -- how

    def _forget(self, owner: Owner, choose: Callable[[View], _Choice], strike: Callable[[str], str]) -> Forgotten:
        now = self.clock.now()
        by = Attribution("user", now, "forget")

        def work(tx: Tx) -> tuple[Forgotten, list[Place]]:
            tx.records.lock()
            choice = choose(tx)
            removed = _remove(tx, choice.doomed, by)
            removed["memory"] = removed.get("memory", 0) + _remove_empty(tx, by)
            touched, struck = _strike_messages(tx, choice)
            changed = tx.rewrite(strike)
            named = [rows.to_message((*row, "")) for row in changed["messages"]]
            touched |= {(message.address, message.session_number) for message in named}
            for row in changed["records"]:
                record = to_record(row)
                tx.records.retag(record.kind, record.key, terms_of(record.kind, record.body))
            removed["digest"] = _drop_digests(tx, touched, strike, by)
            if touched:
                tx.records.remove_echoes()
            for address, number in touched:
                tx.enqueue(session_job(TALLY, address, number, now), now=now, queue_max=JOBS_MAX)
            redacted = {table: len(found) for table, found in changed.items() if found}
            redacted["messages"] = redacted.get("messages", 0) + struck
            report = Forgotten(
                {kind: count for kind, count in removed.items() if count},
                {table: count for table, count in redacted.items() if count},
                len(touched),
                remaining=_remaining(tx, strike),
            )
            return report, sorted(touched, key=lambda place: (place[0].agent, place[0].channel, place[1]))

        report, touched = self.store.write(owner, work)
        files = self._drop_transcripts(owner, touched)
        lessons = 0 if self.book is None else self.book.strike(owner, lambda line: strike(line) != line)
        self.store.purge()
        return replace(report, transcripts=files, lessons=lessons)

    def _drop_transcripts(self, owner: Owner, touched: list[Place]) -> int:
        """They are written again by jobs, from what is left."""
        if self.transcripts is None:
            return 0
        sessions = self.store.read(owner, lambda view: [view.find_session(*place) for place in touched])
        return sum(self.transcripts.remove(place_of(owner, session)) for session in sessions if session is not None)


Row = tuple[RecordKind, str]
LOOSE: tuple[RecordKind, ...] = ("suggestion", "rejection", "todo", "task")


@dataclass(frozen=True, slots=True)
class _Choice:
    """What is to go: records, the statements whose words are struck out of their messages, and whole messages."""

    doomed: set[Row]
    said: list[Statement]
    whole: frozenset[MessageId] = frozenset()


def _names(view: View, entity: Entity) -> tuple[list[Entity], list[str]]:
    """The entity with those merged into it, and every name they go by."""
    everyone = [from_body(Entity, record.body) for record in _all(view, "entity")]
    entities = [one for one in everyone if entity.ref in (one.ref, one.merged_into)]
    names: set[str] = set()
    for one in entities:
        names |= {one.label, *(slug.partition(":")[2].replace("_", " ") for slug in (one.ref, *one.aliases))}
    others = [one for one in everyone if one not in entities]
    taken = {one.label for one in others} | {first_name(one.label) for one in others}
    called = first_name(entity.label)
    if entity.type == "person" and called is not None and called not in taken:
        names.add(called)
    return entities, sorted(names)


def _all(view: View, kind: RecordKind) -> list[Record]:
    return view.records.list_(RecordQuery(kind, ROWS_MAX))


def _statements(view: View) -> list[Statement]:
    return [to_statement(record.body) for record in _all(view, "statement")]


def _mentions(record: Record, strike: Callable[[str], str]) -> bool:
    text = rows.dump(dict(record.body))
    return strike(text) != text


def _messages_of(record: Record) -> list[str]:
    evidence = record.body.get("evidence")
    return [str(one["message"]) for one in evidence if isinstance(one, dict)] if isinstance(evidence, list) else []


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


def _remove(tx: Tx, doomed: set[Row], by: Attribution) -> dict[str, int]:
    removed: dict[str, int] = {}
    for kind, key in sorted(doomed):
        if tx.records.find(kind, key) is None:
            continue
        number = tx.records.remove(kind, key, by=by, action="forget")
        tx.records.blank_operations(kind, key, name=f"forgotten:{number}")
        removed[kind] = removed.get(kind, 0) + 1
    return removed


def _remove_empty(tx: Tx, by: Attribution) -> int:
    """Memories that state nothing any more."""
    empty: set[Row] = set()
    for record in _all(tx, "memory"):
        folded = to_memory(record.body).folded_into is not None
        if not folded and tx.records.count("statement", ("memory", short(record.key))) == 0:
            empty.add(("memory", record.key))
    return _remove(tx, empty, by).get("memory", 0)


def _strike_messages(tx: Tx, choice: _Choice) -> tuple[set[Place], int]:
    """Mask the spans that statements came from, and blank whole messages; the sessions concerned, and how many messages."""
    spans: dict[MessageId, list[tuple[int, int]]] = {}
    for statement in choice.said:
        for one in statement.evidence:
            spans.setdefault(MessageId(one.message), []).append((one.start, one.end))
    held = tx.find_messages([*spans, *choice.whole]) if spans or choice.whole else {}
    touched: set[Place] = set()
    count = 0
    for message in held.values():
        whole = message.id in choice.whole
        content = FORGOTTEN if whole else without_spans(message.content, spans[message.id])
        if content != message.content:
            tx.redact(replace(message, content=content, metadata={} if whole else message.metadata))
            touched.add((message.address, message.session_number))
            count += 1
    return touched, count


def _drop_digests(tx: Tx, touched: set[Place], strike: Callable[[str], str], by: Attribution) -> int:
    """Whatever tells of these sessions, or names what is forgotten, goes and is made anew; the spine with it."""
    talk = tx.conversation
    count = 0
    for session in talk.sessions_by_activity("", limit=ROWS_MAX):
        held = talk.list_digests(session.address, session.number, None, limit=ROWS_MAX)
        place = (session.address, session.number)
        if place in touched or any(strike(_words(one)) != _words(one) for one in held):
            talk.remove_digests(held, by=by)
            touched.add(place)
            count += len(held)
            talk.forget_said(session.address)
            if session.boundary_seq:
                tx.put_sessions([replace(session, boundary_seq=0)])
    spines = talk.list_digests(SPINE_ADDRESS, SPINE_SESSION, "spine", limit=ROWS_MAX)
    if not touched and not any(strike(_words(one)) != _words(one) for one in spines):
        return count
    for source in (source for spine in spines for source in spine.sources):
        session_of = tx.find_session(source.address, source.session_number)
        if session_of is not None and session_of.deleted_at is None and session_of.spine_seq >= source.first_seq:
            tx.put_sessions([replace(session_of, spine_seq=source.first_seq - 1)])
    talk.remove_digests(spines, by=by)
    return count + len(spines)


def _words(digest: Digest) -> str:
    return "\n".join((digest.text, *digest.pinned, *digest.lessons, rows.dump(dict(digest.fields))))


def _remaining(view: View, strike: Callable[[str], str]) -> tuple[str, ...]:
    """Names that callers chose themselves and that are not changed under their feet."""
    found = view.series.list_series(after=None, limit=ROWS_MAX)
    return tuple(f"series {one.name!r:.80}" for one in found if strike(one.name) != one.name)
