"""Lessons: taken in from folds, from models and from people, each into the book that its scope says; shown, ended, archived.

Lessons of the scopes `user` and `channel` are the user's own. Those of the scopes `global` and `agent` belong to the space:
they are written in a transaction of their own, which a job repeats if need be, and reach every user of the space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime

from perdure.domain.conversation.agent_state import AgentState, to_channel_agent
from perdure.domain.conversation.digests import Digest
from perdure.domain.errors import InvalidInput, NotFound, PerdureError
from perdure.domain.jobs import Job, NewJob
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.memories import Writer, actor_of, only_people
from perdure.domain.lessons import (
    BY_PEOPLE,
    LESSON_SCOPES,
    SPACE_SCOPES,
    Book,
    EndedBy,
    Lesson,
    LessonOrigin,
    LessonScope,
    LessonSource,
    RefusedLesson,
    ReplyReport,
    books_of,
)
from perdure.domain.limits import Limits
from perdure.domain.scope import DEFAULT, ID_BYTES_MAX, Address, Owner, Scope, shared_owner
from perdure.domain.text.rules import check_choice, check_id, utf8_size
from perdure.domain.text.secrets import secret_in, without_secrets
from perdure.domain.values import dataclass, replace
from perdure.engine.conversation.jobs import LESSONS
from perdure.engine.lessons import (
    LESSON_LINE_CHARS_MAX,
    LessonPlace,
    LessonTarget,
    answering,
    lessons_of,
    refusal_of,
    sameness,
    space_book,
    target_of,
    why_no_lesson,
    without_lessons,
)
from perdure.engine.models.replies import APPENDS_MAX, split_reply
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.knowledge.ledger import Ledger
from perdure.services.lessons.mirror import Mirrors
from perdure.services.lessons.rows import (
    QUEUE_MAX,
    READER,
    AddressLessons,
    LessonDraft,
    agents_with_lessons,
    end,
    find_lesson,
    fold_job,
    fold_origin,
    forget_drawn,
    former_ref,
    keepable,
    lesson_drafts,
    lessons_in,
    make_room,
    own_lessons,
    seen_by,
    space_lessons,
    take_in,
    unlearn,
    was_drawn_by,
    was_drawn_with,
    why_drawn,
    withdraw,
)

FOLDS_MAX = 10_000
SESSIONS_MAX = 100_000
MIRROR_KEY = "mirror"
REPLY_BYTES_MAX = 4_000_000

TAKEN_BACK = "was taken back by a person, and only a person brings it back"


@dataclass(frozen=True, slots=True)
class Lessons:
    store: Store
    clock: Clock
    limits: Limits
    mirrors: Mirrors
    configured: str = ""
    """The setting `lessons_scope`."""
    sole_user: str = ""
    """The setting `user`."""
    confined: bool = False
    """Whether what reaches every user of the space may only be read."""
    writer: Writer = "user"
    """Whose word a lesson is: what an agent adds is its own note, and reaches no further than lessons from here do."""

    # -- reading

    def place(self, scope: Scope) -> LessonPlace:
        """What is set about an address."""
        state = self.store.read(scope.owner, lambda view: view.conversation.find_agent_state(scope.address))
        return self._place(scope, state, self.mapped(scope.owner.space, scope.address.channel))

    def _place(self, scope: Scope, state: AgentState | None, mapped: str | None) -> LessonPlace:
        held = state or AgentState(scope.address)
        configured, sole = self.configured, self.sole_user
        if self.confined:
            configured, sole = "" if configured in SPACE_SCOPES else configured, ""
        return LessonPlace(
            scope=scope,
            casual=held.casual,
            private=held.private,
            shared=held.shared,
            mapped=mapped,
            configured=configured,
            sole_user=sole,
            confined=self.confined,
        )

    def mapped(self, space: str, channel: str) -> str | None:
        """The agent that a channel is mapped to."""
        held = self.store.read(shared_owner(space), lambda view: view.records.find("channel", channel))
        return None if held is None else to_channel_agent(held.body).agent

    def for_address(self, scope: Scope) -> AddressLessons:
        """What holds here, edits by hand included."""
        shared = self.shared_at(scope)
        return shared.with_own(self.store.read(scope.owner, lambda view: own_lessons(view, scope)))

    def shared_at(self, scope: Scope) -> AddressLessons:
        """What holds here for all users. Before, what was edited by hand is taken over, of the user's own books, too."""
        space = scope.owner.space
        notes: list[str] = []
        if self.mirrors.files is not None:
            agent = scope.address.agent
            if agent == DEFAULT:
                agent = answering(agent, self.mapped(space, scope.address.channel))
            notes = self.mirrors.tried(books_of(space, scope.owner, scope.address, agent))
        agent, found = self.store.read(shared_owner(space), lambda view: space_lessons(view, scope))
        return AddressLessons(agent, found, tuple(notes))

    def list_(self, scope: Scope, wanted: LessonScope | None, *, archived: bool, ended: bool, limit: int) -> list[Lesson]:
        """The lessons that hold here; with those that are kept but not shown, or that were taken back."""
        rows = self.limits.page(limit)
        _check_scope(wanted)
        place = self.place(scope)
        books = [book for book in self._books(place) if wanted in (None, book.scope)]
        self.mirrors.tried(books)
        found = self._read(books, scope, lambda view, book: lessons_in(view, book, archived=archived, ended=ended))
        return found[:rows]

    def _books(self, place: LessonPlace) -> tuple[Book, ...]:
        return books_of(place.owner.space, place.owner, place.scope.address, place.agent)

    def _read(self, books: Sequence[Book], scope: Scope, read: Callable[[View, Book], list[Lesson]]) -> list[Lesson]:
        found: list[Lesson] = []
        for owner in dict.fromkeys(book.owner for book in books):
            mine = [book for book in books if book.owner == owner]
            told = self.store.read(owner, lambda view: [one for book in mine for one in read(view, book)])  # noqa: B023
            found += [seen_by(one, scope.owner.user) for one in told]
        return found

    # -- writing by hand

    def add(self, scope: Scope, text: str, wanted: LessonScope | None = None, agent: str | None = None) -> Lesson:
        """Keep a lesson. The same words from the same place change nothing, from another one they count a mention."""
        utf8_size(text, "`text`")
        place, target = self._target(scope, wanted, agent)
        if (why := why_no_lesson(text)) is not None:
            raise InvalidInput(f"the lesson {why}; say it differently")
        source: LessonSource = "user" if self.writer == "user" else "model"
        if source == "model" and self._taken_back(scope, (*self._books(place), target.book), text):
            raise InvalidInput(f"the lesson {TAKEN_BACK}; leave it")
        drafts = [LessonDraft(text, source, _origin(scope, target.book))]
        actor = actor_of(self.writer, scope.address.agent)
        return seen_by(self._keep(target.book, drafts, actor, target.note or "lesson")[0], place.owner.user)

    def change(self, scope: Scope, key: str, how: str) -> Lesson:
        """`end`, `archive`, `restore`, `pin` or `unpin` a lesson that holds here."""
        check_id(key, "lesson", bytes_max=ID_BYTES_MAX)
        place = self.place(scope)
        books = self._books(place)
        by = Attribution(actor_of(self.writer, scope.address.agent), self.clock.now(), how)

        def work(tx: Tx) -> Lesson | None:
            ledger = Ledger(tx, by)
            held = find_lesson(tx, key)
            book = None if held is None else _book_of(books, held)
            if held is None or book is None:
                return None
            if (why := refusal_of(place, held.scope)) is not None:
                raise InvalidInput(f"lesson {key!r:.80} cannot be changed from here: {why}")
            if how not in ("end", "archive") or held.trust == "user" or held.pinned or held.ended_by in BY_PEOPLE:
                only_people(self.writer, "decide on lessons of people", f"the user does, with `perdure lesson {how} {key}`")
            _carry_out(ledger, held, how, "user" if self.writer == "user" else "undo")
            if how in ("restore", "unpin"):
                make_room(tx, ledger, book)
            self._enqueue_mirror(tx, book, by.at)
            return find_lesson(tx, key)

        for owner in dict.fromkeys(book.owner for book in books):
            changed = self.store.write(owner, work)
            if changed is not None:
                book = _book_of(books, changed)
                self.mirrors.tried([] if book is None else [book])
                return seen_by(changed, scope.owner.user)
        raise NotFound(f"no lesson {key!r:.80} holds here; list them with `lessons.list()`")

    def text(self, scope: Scope, wanted: LessonScope | None = None, agent: str | None = None) -> str:
        """A book as text: that of a scope, by default the one that lessons from here go to."""
        return self.mirrors.text(self._target(scope, wanted, agent)[1].book)

    def edit(
        self, scope: Scope, text: str, wanted: LessonScope | None = None, agent: str | None = None, *, was: str | None = None
    ) -> tuple[RefusedLesson, ...]:
        """Put another text in the place of a book; lines that are no lessons are named, and not taken in."""
        only_people(self.writer, "edit a book of lessons", "add one with `lessons.add`")
        utf8_size(text, "`text`")
        if was is not None:
            utf8_size(was, "`was`")
        told, refused = _without_secret_lines(text)
        return (*refused, *self.mirrors.replace(self._target(scope, wanted, agent)[1].book, told, was))

    def _target(self, scope: Scope, wanted: LessonScope | None, agent: str | None) -> tuple[LessonPlace, LessonTarget]:
        """The book that a person means; what they may not write is refused. An agent reaches no further than a model does."""
        _check_scope(wanted)
        if agent is not None:
            check_id(agent, "agent", bytes_max=ID_BYTES_MAX)
            if wanted not in (None, "agent"):
                raise InvalidInput(f"`agent` is given for a lesson of scope `{wanted}`; leave one of them out")
        place = self.place(scope)
        if self.writer == "agent":
            return place, target_of(place, wanted, agent)
        chosen = wanted if wanted is not None else "agent" if agent is not None else None
        if chosen is not None and (why := refusal_of(place, chosen)) is not None:
            raise InvalidInput(f"`scope` = {chosen!r}: {why}")
        if chosen in SPACE_SCOPES:
            return place, LessonTarget(space_book(place, chosen, agent or place.agent))
        return place, target_of(place, chosen)

    # -- from models

    def take_from(self, scope: Scope, reply: str, message: str | None = None) -> ReplyReport:
        """Take the lines out of a model's reply that are meant for the memory, and keep what they say."""
        if utf8_size(reply, "`reply`") > REPLY_BYTES_MAX:
            raise InvalidInput(f"`reply` has more than {REPLY_BYTES_MAX} bytes; pass what the model said, not a document")
        if message is not None:
            check_id(message, "message", bytes_max=ID_BYTES_MAX)
        text, appends = split_reply(reply)
        if not appends:
            return ReplyReport(text)
        place = self.place(scope)
        kept: list[Lesson] = []
        refused = [RefusedLesson(one.text, f"is one of more than {APPENDS_MAX} in one reply") for one in appends[APPENDS_MAX:]]
        notes: dict[str, None] = {}
        for one in appends[:APPENDS_MAX]:
            why = "is said in casual talk, from which no lessons are drawn" if place.casual else None
            why = why or _bad_agent(one.agent) or why_no_lesson(one.text, chars_max=LESSON_LINE_CHARS_MAX)
            if why is not None:
                refused.append(RefusedLesson(one.text, why))
                continue
            target = target_of(place, agent=one.agent)
            if self._taken_back(scope, (*self._books(place), target.book), one.text):
                refused.append(RefusedLesson(one.text, TAKEN_BACK))
                continue
            notes |= {} if target.note is None else {target.note: None}
            drafts = [LessonDraft(one.text, "model", _origin(scope, target.book, message))]
            [made] = self._keep(target.book, drafts, f"agent:{scope.address.agent}", target.note or "MEMORY_APPEND")
            if made.ended_at is None:
                kept.append(made)
            else:
                refused.append(RefusedLesson(one.text, TAKEN_BACK))
        return ReplyReport(text, tuple(seen_by(one, scope.owner.user) for one in kept), tuple(refused), tuple(notes))

    def _taken_back(self, scope: Scope, books: Sequence[Book], text: str) -> bool:
        """Whether a person took these words back, in whichever of the books that hold here."""
        words = sameness(text)
        ended = self._read(tuple(dict.fromkeys(books)), scope, lambda view, book: lessons_in(view, book, ended=True))
        return any(one.ended_by in BY_PEOPLE and sameness(one.text) == words for one in ended if one.ended_at is not None)

    def _keep(self, book: Book, drafts: Sequence[LessonDraft], actor: str, why: str) -> list[Lesson]:
        by = Attribution(actor, self.clock.now(), why)

        def work(tx: Tx) -> list[Lesson]:
            kept = take_in(tx, book, drafts, by)
            self._enqueue_mirror(tx, book, by.at)
            return kept

        kept = self.store.write(book.owner, work)
        self.mirrors.tried([book])
        return kept

    # -- from folds

    def learn(self, tx: Tx, owner: Owner, digest: Digest, now: datetime) -> None:
        """As part of the transaction that stores a fold: keep the user's own lessons, have the others carried over."""
        if not digest.lessons:
            return
        scope = Scope(owner, digest.address)
        # Whether the channel is mapped matters only for lessons that are not the user's own.
        place = self._place(scope, tx.conversation.find_agent_state(digest.address), None)
        target = target_of(place)
        if target.book.owner == owner:
            take_in(tx, target.book, keepable(lesson_drafts(digest)), Attribution(READER, now, why_drawn(digest, target.note)))
        if target.book.owner != owner or self.mirrors.keeps(target.book):
            tx.enqueue(fold_job(digest, now), now=now, queue_max=QUEUE_MAX)

    def carry(self, owner: Owner, digest: Digest) -> None:
        """What the job of a fold does, at once: the next prompt should know. If it cannot be done now, the job does it."""
        if digest.lessons:
            with suppress(PerdureError):
                self._settle(owner, digest.address, digest.session_number, digest.version)

    def unfold(self, tx: Tx, digest: Digest, now: datetime) -> None:
        """As part of the transaction that undoes a fold: take back what nothing else speaks for."""
        if digest.lessons:
            withdraw(tx, [fold_origin(digest)], Attribution("user", now, "the fold was undone"))
            tx.enqueue(fold_job(digest, now), now=now, queue_max=QUEUE_MAX)

    def handle(self, job: Job) -> None:
        """Bring the lessons of one fold, or of all of them, to where they belong; and the files up to date. Twice is once."""
        payload = job.payload
        if "session_number" in payload:
            address = Address(payload["agent"], payload["channel"])
            self._settle(job.owner, address, payload["session_number"], payload["version"])
        elif MIRROR_KEY in payload:
            self._sync_all(job.owner)
        elif not payload:
            self._take_all(job.owner)
        # A job of an earlier version carries the words; the fold that drew them is taken in by the job without a payload.

    def _settle(self, owner: Owner, address: Address, number: int, version: int) -> None:
        fold = self.store.read(owner, lambda view: view.conversation.find_digest(address, number, "fold", version))
        origin = LessonOrigin("", address.agent, address.channel, number, version)
        if fold is None or fold.undone:
            self._drop(owner, replace(origin, by=owner.user), for_good=fold is None)
            return

        def holds(view: View) -> bool:
            view.find_session(address, number)  # locked by anyone who forgets or undoes: it waits for us, or was faster
            return view.conversation.find_digest(address, number, "fold", version) == fold

        target = target_of(self.place(Scope(owner, address)))
        home = target.book.owner
        # The user's own were kept with the fold, but for those that are older than this.
        if home != owner or not self.store.read(owner, lambda view: was_drawn_by(view, origin)):
            by = Attribution(READER, self.clock.now(), why_drawn(fold, target.note))
            drafts = keepable(lesson_drafts(fold, "" if home == owner else owner.user))
            self.store.write(home, lambda tx: take_in(tx, target.book, drafts, by) if home != owner or holds(tx) else None)
            # Forgotten while we wrote for all: anyone who forgets looks there afterwards, and so do we.
            if home != owner and not self.store.read(owner, holds):
                self._drop(owner, replace(origin, by=owner.user), for_good=True)
                return
        self.mirrors.sync(target.book)

    def _drop(self, owner: Owner, origin: LessonOrigin, *, for_good: bool) -> None:
        """A fold is no more: neither is what it alone has taught to all."""
        shared = shared_owner(owner.space)
        by = Attribution(READER, self.clock.now(), "the fold is no more")
        if self.store.read(shared, lambda view: was_drawn_by(view, origin)):
            if for_good:
                gone = self.store.write(shared, lambda tx: unlearn(tx, [origin], by))
                self._take_out(gone, owner.space)
            else:
                self.store.write(shared, lambda tx: withdraw(tx, [origin], by))
            self._sync_all(shared)
        self._sync_all(owner)

    def _take_out(self, gone: Iterable[Lesson], space: str) -> int:
        """Lessons of the space are gone for good: so are their lines."""
        count = 0
        for one in gone:
            book = Book(shared_owner(space), one.scope, one.agent)
            count += self.mirrors.take_out(book, {one.id})
        return count

    def _take_all(self, owner: Owner) -> None:
        """Take in what the folds of an owner have drawn before lessons were records of their own."""
        sessions = self.store.read(owner, lambda view: view.list_sessions(None, limit=SESSIONS_MAX))
        for address in sorted({session.address for session in sessions}, key=lambda one: (one.agent, one.channel)):
            folds = self.store.read(
                owner,
                lambda view: view.conversation.list_digests(address, None, "fold", limit=FOLDS_MAX),  # noqa: B023
            )
            for fold in sorted(folds, key=lambda fold: (fold.made_at, fold.session_number, fold.version)):
                if fold.lessons and not fold.undone:
                    self._settle(owner, address, fold.session_number, fold.version)
            # Until then they were found by other names.
            stale = sorted({former_ref(address.agent, text) for fold in folds for text in fold.lessons})
            self.store.write(owner, lambda tx: tx.index.remove("lesson", stale, now=self.clock.now()))  # noqa: B023

    def _sync_all(self, owner: Owner) -> None:
        for book in self.store.read(owner, lambda view: _all_books(view, owner)):
            self.mirrors.sync(book)

    def _enqueue_mirror(self, tx: Tx, book: Book, now: datetime) -> None:
        if self.mirrors.keeps(book):
            tx.enqueue(NewJob(LESSONS, MIRROR_KEY, now, {MIRROR_KEY: True}), now=now, queue_max=QUEUE_MAX)

    # -- forgetting

    def forget(self, owner: Owner, unwanted: Callable[[str], bool], by: Attribution) -> int:
        """Take out of the space, rows and files, what this user's talk alone has taught and is unwanted; how many lessons."""
        shared = shared_owner(owner.space)
        if not self.store.read(shared, lambda view: was_drawn_with(view, owner.user)):
            return 0
        gone = self.store.write(shared, lambda tx: forget_drawn(tx, owner.user, unwanted, by))
        self._take_out(gone, owner.space)
        return len(gone)

    def strike(self, owner: Owner, unwanted: Callable[[str], bool]) -> int:
        """Take lines out of the user's own file."""
        return self.mirrors.strike(Book(owner, "user"), unwanted)

    def erase(self, owner: Owner) -> bool:
        """Delete the user's own file."""
        return self.mirrors.erase(Book(owner, "user"))


def _carry_out(ledger: Ledger, held: Lesson, how: str, by: EndedBy) -> None:
    if how == "end":
        end(ledger, held, by)
    elif how == "archive":
        ledger.put(held if held.archived_at is not None else replace(held, archived_at=ledger.at), "archive")
    elif how == "restore":
        ledger.put(replace(held, archived_at=None, ended_at=None, ended_by=None, mentions=held.mentions + 1), "restore")
    else:
        ledger.put(replace(held, pinned=how == "pin"), how)


def _all_books(view: View, owner: Owner) -> list[Book]:
    if owner != shared_owner(owner.space):
        return [Book(owner, "user")]
    return [Book(owner, "global"), *(Book(owner, "agent", agent) for agent in agents_with_lessons(view))]


def _book_of(books: Iterable[Book], lesson: Lesson) -> Book | None:
    """The one of `books` that a lesson stands in."""
    place = (lesson.scope, lesson.agent, lesson.channel)
    return next((book for book in books if (book.scope, book.agent, book.channel) == place), None)


def _origin(scope: Scope, book: Book, message: str | None = None) -> LessonOrigin:
    by = "" if book.owner == scope.owner else scope.owner.user
    return LessonOrigin(by, scope.address.agent, scope.address.channel, message=message)


def _without_secret_lines(text: str) -> tuple[str, tuple[RefusedLesson, ...]]:
    """A book without the bullets that hold secrets, which are no lessons, and with markers in the rest: it becomes a file."""
    if secret_in(text) is None:
        return text, ()
    held = [line for line in lessons_of(text) if secret_in(line) is not None]
    rest = without_lessons(text, lambda line: secret_in(line) is not None)
    return without_secrets(rest), tuple(RefusedLesson(without_secrets(line), "looks like a secret") for line in held)


def _bad_agent(agent: str | None) -> str | None:
    try:
        if agent is not None:
            check_id(agent, "agent", bytes_max=ID_BYTES_MAX)
    except InvalidInput:
        return "names an agent by an id that is none"
    return None


def _check_scope(wanted: object) -> None:
    if wanted is not None:
        check_choice(wanted, "scope", LESSON_SCOPES)
