"""Forgetting: the data goes, and everything derived from it; what is left is made anew from what is left.

It is the one use case that changes what is otherwise never changed. A second run finds nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from perdure.domain.conversation.digests import SPINE_ADDRESS, SPINE_SESSION, Digest
from perdure.domain.conversation.messages import Message
from perdure.domain.conversation.tally import reported_usage
from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.keys import check_ref, parse_ref, term_value
from perdure.domain.knowledge.memories import Writer, only_people, to_memory
from perdure.domain.knowledge.records import RECORD_KINDS, Record
from perdure.domain.scope import Address, MessageId, Owner, Scope
from perdure.domain.text.rules import brief, compact_json, utf8_size
from perdure.domain.times.instants import from_us
from perdure.domain.values import dataclass, field, replace
from perdure.engine.conversation.jobs import TALLY, session_job
from perdure.engine.knowledge.redaction import FORGOTTEN, RecordHistory, without_spans
from perdure.engine.knowledge.terms import terms_of
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.ports.tables.knowledge import to_record
from perdure.ports.tables.log import to_message
from perdure.ports.tables.redaction import renamed
from perdure.ports.tables.table import AnyRow
from perdure.services.conversation.sessions import lock_sessions
from perdure.services.conversation.transcripts import Transcripts, anew_job, place_of
from perdure.services.conversation.upkeep import JOBS_MAX
from perdure.services.forget.choices import (
    BLANK,
    NAMED,
    ROWS_MAX,
    ForgetPlan,
    Row,
    Strike,
    all_of,
    drop_at,
    drop_telling,
    entity_plan,
    memory_plan,
    messages_choice,
    tells_of_people,
)
from perdure.services.index.writes import ZONE, enter_messages, enter_record, enter_series, enter_state, leave_digests
from perdure.services.jobs.erasure import Erasures
from perdure.services.jobs.idempotency import note_erasure
from perdure.services.lessons.lessons import Lessons
from perdure.services.lessons.rows import leave_lessons

Place = tuple[Address, int]


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What was removed, and what is being rebuilt."""

    removed: dict[str, int] = field(default_factory=dict)
    """Rows that were deleted, by kind."""
    redacted: dict[str, int] = field(default_factory=dict)
    """Rows in which words were struck out, by table."""
    sessions: int = 0
    """Sessions whose digests and transcripts are made anew."""
    lessons: int = 0
    transcripts: int = 0
    bytes_remain: str = ""
    """Until when bytes of it stay on the disk, and what keeps them; empty: they are gone."""
    remaining: tuple[str, ...] = ()
    """Names that perdure does not change, such as state keys and series called after what is forgotten."""
    pending: int = 0
    """Jobs that have still to learn from messages, which may name it: forget it again when they are done."""

    @property
    def nothing(self) -> bool:
        """True if there was nothing to forget."""
        return not (any(self.removed.values()) or any(self.redacted.values()) or self.lessons or self.transcripts)


NOT_ITS_OWN = ("forget what the user said", "the user does, with `perdure forget` or on the page")


@dataclass(frozen=True, slots=True)
class ForgetService:
    store: Store
    read_up: Store
    """The same; who reads there first learns from what was said a moment ago."""
    clock: Clock
    transcripts: Transcripts | None
    lessons: Lessons
    erasures: Erasures
    zone: str = ZONE
    writer: Writer = "user"
    """Who wants it forgotten: an agent forgets its own words alone."""

    def forget(
        self, scope: Scope, *, entity: str | None, memory: str | None, messages: tuple[str, str] | None, user: bool
    ) -> ForgetReport:
        """Exactly one of these."""
        if not isinstance(user, bool):
            raise InvalidInput(f"`user` = {brief(user)} must be True or False; `forget` is about the user of this handle")
        if messages is not None and (not isinstance(messages, tuple | list) or len(messages) != 2):
            raise InvalidInput(f"`messages` = {brief(messages, 60)} must be two message ids: the first and the last")
        given = {"entity": entity, "memory": memory, "messages": messages, "user": user or None}
        chosen = [name for name, value in given.items() if value is not None]
        if len(chosen) != 1:
            raise InvalidInput(f"`forget` was given {', '.join(chosen) or 'nothing'}; name exactly one thing")
        if entity is not None:
            return self.forget_entity(scope, check_ref(entity))
        if memory is not None:
            utf8_size(memory, "`memory`")
            return self.forget_memory(scope, memory)
        return self.forget_user(scope.owner) if messages is None else self.forget_messages(scope, *messages)

    def forget_user(self, owner: Owner) -> ForgetReport:
        """Everything of the user, in the store and in files."""
        only_people(self.writer, *NOT_ITS_OWN)
        self.erasures.foresee()
        count = self.store.erase(owner)
        files = 0 if self.transcripts is None else self.transcripts.erase(owner)
        by = Attribution("user", self.clock.now(), "forget")
        lessons = int(self.lessons.erase(owner)) + self.lessons.forget(owner, lambda _text: True, by)
        remain = self.erasures.carry_out()
        return ForgetReport({"rows": count}, lessons=lessons, transcripts=files, bytes_remain=remain)

    def forget_entity(self, scope: Scope, ref: str) -> ForgetReport:
        """A person, place, organisation or project: all that is known of it, and its name wherever it stands."""
        # Only what is known can be struck out.
        self.read_up.read(scope.owner, lambda view: entity_plan(view, str(parse_ref(ref))))
        return self._forget(scope.owner, lambda view: entity_plan(view, str(parse_ref(ref))))

    def forget_memory(self, scope: Scope, key: str) -> ForgetReport:
        """One memory with its past, and the words of the messages that it came from.

        Statements that moved on into a fold, or to another name of its entity, are of it.
        """
        return self._forget(scope.owner, lambda view: memory_plan(view, key, scope.address.agent))

    def forget_messages(self, scope: Scope, first: str, last: str) -> ForgetReport:
        """The words of a run of messages of this address, ends included, and what was learned from them alone."""
        return self._forget(scope.owner, lambda view: messages_choice(view, scope.address, first, last))

    # -- how

    def _forget(self, owner: Owner, choose: Callable[[View], ForgetPlan]) -> ForgetReport:
        by = Attribution("user", self.clock.now(), "forget")

        def work(tx: Tx) -> tuple[ForgetReport, list[Place], Strike]:
            note_erasure(tx, by.at)
            # Sessions before the journal and records, as everywhere: any of them may turn out to tell of it.
            held = tx.list_sessions(None, limit=ROWS_MAX)
            lock_sessions(tx, ((one.address.agent, one.address.channel, one.number) for one in held))
            tx.records.lock()
            choice = choose(tx)
            if choice.nothing:
                return ForgetReport(), [], choice.left
            if self.writer == "agent" and tells_of_people(tx, choice):
                only_people(self.writer, *NOT_ITS_OWN)
            report, touched = _carry_out(tx, choice, by, self.zone)
            if self.transcripts is not None:
                # Their files are removed once this is stored; should we die before that, the job does it.
                for address, number in touched:
                    tx.enqueue(anew_job(address, number, by.at), now=by.at, queue_max=JOBS_MAX)
            return report, sorted(touched, key=lambda place: (place[0].agent, place[0].channel, place[1])), choice.strike

        self.erasures.foresee()
        report, touched, strike = self.store.write(owner, work)
        files = self._drop_transcripts(owner, touched)
        lessons = self.lessons.strike(owner, lambda line: strike(line) != line)
        lessons += self.lessons.forget(owner, lambda text: strike(text) != text, by)
        remain = self.erasures.carry_out()
        return replace(report, transcripts=files, lessons=lessons, bytes_remain=remain)

    def _drop_transcripts(self, owner: Owner, touched: list[Place]) -> int:
        """They are written again by jobs, from what is left."""
        if self.transcripts is None:
            return 0
        sessions = self.store.read(owner, lambda view: [view.find_session(*place) for place in touched])
        return sum(self.transcripts.remove(place_of(owner, session)) for session in sessions if session is not None)


def _carry_out(tx: Tx, choice: ForgetPlan, by: Attribution, zone: str) -> tuple[ForgetReport, set[Place]]:
    held = _names_held(tx)
    removed, blanked = _remove(tx, choice.doomed, choice.pasts, by)
    removed["memory"] = removed.get("memory", 0) + _remove_empty(tx, choice.pasts, by)
    struck, words = _strike_messages(tx, choice)
    removed["decision"] = drop_telling(tx, choice, words)
    changed = tx.rewrite(choice.strike)
    blanked += _settle_names(tx, changed["records"], choice, by)
    messages = {message.id: message for message in struck}
    messages |= {message.id: message for message in (to_message((*row, "")) for row in changed["messages"])}
    known = tx.index.find_entries("message", list(messages))
    # What nobody has read yet is read as it is now.
    enter_messages(tx, [messages[MessageId(ref)] for ref in known], zone, now=by.at)
    enter_state(tx, {str(row[2]) for row in changed["state_revisions"]}, now=by.at)
    enter_series(tx, {str(row[2]) for row in changed["series"]}, now=by.at)
    touched = {(message.address, message.session_number) for message in messages.values()}
    removed["digest"] = _drop_digests(tx, touched, choice.strike, by)
    removed["decision"] += drop_at(tx, {address for address, _ in touched})
    if touched:
        tx.records.remove_echoes()
    # Packs are copies of what was indexed before.
    tx.index.remove_packs()
    for address, number in touched:
        tx.enqueue(session_job(TALLY, address, number, by.at), now=by.at, queue_max=JOBS_MAX)
    tx.index.head()  # which keeps off who would log one of these names just now
    tx.accesses.strike_names(_named_by(choice, held - _names_held(tx)))
    redacted = {table: len(found) for table, found in changed.items()}
    redacted |= {"messages": len(messages), "operations": redacted["operations"] + blanked}
    report = ForgetReport(
        {kind: count for kind, count in removed.items() if count},
        {table: count for table, count in redacted.items() if count},
        len(touched),
        remaining=_remaining(tx, choice.strike),
    )
    return report, touched


def _names_held(view: View) -> set[str]:
    return {record.key for kind in RECORD_KINDS for record in all_of(view, kind)}


def _named_by(choice: ForgetPlan, removed: set[str]) -> Callable[[str], bool]:
    """Whether a name in the access log is that of a record that went, or has in it what is struck out."""
    gone = removed | {key for _, key in choice.doomed}
    strike = choice.strike
    return lambda name: name in gone or strike(name) != name or renamed(name, strike) != name


def _remove(tx: Tx, doomed: Iterable[Row], pasts: Mapping[Row, RecordHistory], by: Attribution) -> tuple[dict[str, int], int]:
    """Rows that are gone now, by kind, and how many operations were blanked of rows that had gone before."""
    removed: dict[str, int] = {}
    blanked = 0
    for kind, key in sorted(doomed):
        if tx.records.find(kind, key) is not None:
            number = tx.records.remove(kind, key, by=by, action="forget")
            tx.records.blank_operations(kind, key, name=f"{BLANK}{number}")
            enter_record(tx, kind, key, None, now=by.at)
            removed[kind] = removed.get(kind, 0) + 1
        elif (kind, key) in pasts:
            blanked += tx.records.blank_operations(kind, key, name=f"{BLANK}{pasts[(kind, key)].newest}")
    return removed, blanked


def _remove_empty(tx: Tx, pasts: Mapping[Row, RecordHistory], by: Attribution) -> int:
    """Remove memories that state nothing any more; what is left of the others does not refer to them."""
    removed = 0
    while True:
        memories = [to_memory(record.body) for record in all_of(tx, "memory")]
        held = {memory.record_key for memory in memories}
        empty: list[Row] = [
            ("memory", memory.record_key)
            for memory in memories
            if memory.folded_into not in held and tx.records.count("statement", ("memory", term_value(memory.record_key))) == 0
        ]
        if not empty:
            break
        removed += _remove(tx, empty, pasts, by)[0]["memory"]
    for memory in memories:
        into = memory.folded_into if memory.folded_into in held else None
        loose = replace(memory, folds=tuple(key for key in memory.folds if key in held), folded_into=into)
        if loose != memory:
            record = Record("memory", memory.record_key, loose.body())
            tx.records.put(record, terms_of("memory", record.body), by=by, action="forget")
    return removed


def _settle_names(tx: Tx, changed: Iterable[AnyRow], choice: ForgetPlan, by: Attribution) -> int:
    """Have records found by what they say now, and called so; how many operations of rows that had gone were blanked."""
    named = [
        (record, renamed(record.key, choice.strike) if record.kind in NAMED else record.key)
        for record in map(to_record, changed)
    ]
    for kind in RECORD_KINDS:
        same = [record for record, name in named if record.kind == kind and name == record.key]
        tx.records.retag(kind, {record.key: terms_of(kind, record.body) for record in same})
        for record in same:
            enter_record(tx, kind, record.key, record.body, now=by.at)
    for record, name in named:
        if name == record.key:
            continue
        terms = terms_of(record.kind, record.body)
        _remove(tx, [(record.kind, record.key)], choice.pasts, by)
        if tx.records.find(record.kind, name) is None:
            tx.records.put(Record(record.kind, name, record.body), terms, by=by, action="forget")
            enter_record(tx, record.kind, name, record.body, now=by.at)
    gone = [row for row in choice.pasts if row[0] in NAMED and renamed(row[1], choice.strike) != row[1]]
    return _remove(tx, gone, choice.pasts, by)[1]


def _strike_messages(tx: Tx, choice: ForgetPlan) -> tuple[list[Message], list[str]]:
    """Mask the spans that statements came from, and blank whole messages; those that this changed, and what they said."""
    spans: dict[MessageId, list[tuple[int, int]]] = {}
    for one in choice.said:
        spans.setdefault(MessageId(one.message), []).append((one.start, one.end))
    held = tx.find_messages([*spans, *choice.whole]) if spans or choice.whole else {}
    struck, words = [], []
    for message in held.values():
        if message.id in choice.whole:
            changed, said = _blanked(message), [message.content]
        else:
            changed = replace(message, content=without_spans(message.content, spans[message.id]))
            said = [message.content[start:end] for start, end in spans[message.id]]
        if changed != message:
            tx.redact(changed)
            struck.append(changed)
            words += said
    return struck, words


def _blanked(message: Message) -> Message:
    # Tallies count what providers reported; these are numbers, and stay.
    usage = dict(zip(("input_tokens", "output_tokens"), reported_usage(message), strict=True))
    return replace(
        message,
        content=FORGOTTEN,
        metadata={"usage": usage} if any(usage.values()) else {},
        tool_calls=tuple(replace(call, arguments=None) for call in message.tool_calls),
    )


def _drop_digests(tx: Tx, touched: set[Place], strike: Strike, by: Attribution) -> int:
    """Whatever tells of these sessions, or names what is forgotten, goes and is made anew; the spine with it."""
    talk = tx.conversation
    count = 0
    for session in talk.sessions_by_activity("", limit=ROWS_MAX):
        held = talk.list_digests(session.address, session.number, None, limit=ROWS_MAX)
        place = (session.address, session.number)
        if place in touched or any(strike(_words(one)) != _words(one) for one in held):
            talk.remove_digests(held, by=by)
            leave_digests(tx, held, now=by.at)
            leave_lessons(tx, held, by)
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
    leave_digests(tx, spines, now=by.at)
    return count + len(spines)


def _words(digest: Digest) -> str:
    return "\n".join((digest.text, *digest.pinned, *digest.lessons, compact_json(dict(digest.fields))))


def _remaining(view: View, strike: Strike) -> tuple[str, ...]:
    """Names that callers chose themselves and that are not changed under their feet."""
    ever = from_us(0)  # expired keys are still held
    keys = view.state.list_keys(now=ever, prefix="", after=None, limit=ROWS_MAX)
    series = view.series.list_series(after=None, limit=ROWS_MAX)
    sessions = view.list_sessions(None, limit=ROWS_MAX)
    named = [("state key", one.key) for one in keys] + [("series", one.name) for one in series]
    named += sorted({("agent", one.address.agent) for one in sessions} | {("channel", one.address.channel) for one in sessions})
    return tuple(f"{what} {name!r:.80}" for what, name in named if strike(name) != name)
