"""Lessons as records of one owner, inside one transaction: read by book, taken in, ended, archived, and taken out for good.

Folds draw lessons, too: which of them may be kept, the job that settles them, and what becomes of them with their folds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from perdure.domain.conversation.agent_state import to_channel_agent
from perdure.domain.conversation.digests import Digest
from perdure.domain.jobs import NewJob
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.keys import term_value
from perdure.domain.knowledge.records import RecordQuery
from perdure.domain.lessons import Book, EndedBy, Lesson, LessonOrigin, LessonSource, books_of, to_lesson
from perdure.domain.scope import DEFAULT, Scope, shared_owner
from perdure.domain.text.rules import compact_json
from perdure.domain.values import dataclass, replace
from perdure.engine.conversation.jobs import LESSONS
from perdure.engine.lessons import (
    LESSON_LINE_CHARS_MAX,
    answering,
    in_order,
    lesson_id,
    over_budget,
    sameness,
    taken_in,
    why_no_lesson,
    without_origins,
)
from perdure.ports.store import Tx, View
from perdure.services.index.writes import enter_record
from perdure.services.knowledge.ledger import Ledger

ROWS_MAX = 20_000
"""Lessons of one book that are looked at, shown or not."""
READER = "lessons/1"


@dataclass(frozen=True, slots=True)
class LessonDraft:
    """Words that are to become a lesson."""

    text: str
    source: LessonSource
    origin: LessonOrigin | None = None
    earlier_us: int = 0
    """By so much it counts as older than the moment it is taken in: what comes at once keeps its order."""


@dataclass(frozen=True, slots=True)
class AddressLessons:
    """The lessons that hold at an address, the widest scope first, and what went wrong with their files."""

    agent: str
    lessons: tuple[Lesson, ...]
    notes: tuple[str, ...] = ()

    def with_own(self, own: Iterable[Lesson]) -> AddressLessons:
        """With those of the user; the same words stand there once."""
        found: dict[str, Lesson] = {}
        for one in (*self.lessons, *own):
            found.setdefault(sameness(one.text), one)
        return replace(self, lessons=tuple(found.values()))


def space_lessons(view: View, scope: Scope) -> tuple[str, tuple[Lesson, ...]]:
    """The agent that answers at an address, and the lessons there that reach all users. In a transaction of the space."""
    channel, space = scope.address.channel, scope.owner.space

    def answering_agent() -> str:
        held = view.records.find("channel", channel) if scope.address.agent == DEFAULT else None
        return answering(scope.address.agent, None if held is None else to_channel_agent(held.body).agent)

    def of_agent() -> tuple[str, list[Lesson]]:
        agent = answering_agent()
        return agent, lessons_in(view, Book(shared_owner(space), "agent", agent))

    everywhere, (agent, told) = view.together(lambda: lessons_in(view, Book(shared_owner(space), "global")), of_agent)
    return agent, tuple(seen_by(one, scope.owner.user) for one in (*everywhere, *told))


def own_lessons(view: View, scope: Scope) -> list[Lesson]:
    """The lessons of the user at an address."""
    books = [book for book in books_of(scope.owner.space, scope.owner, scope.address, "") if book.owner == scope.owner]
    found = view.together(*(partial(lessons_in, view, book) for book in books))
    return [seen_by(one, scope.owner.user) for told in found for one in told]


def seen_by(lesson: Lesson, user: str) -> Lesson:
    """A lesson as one user may see it: not where others have talked."""
    own = tuple(replace(origin, by=user) for origin in lesson.origins if origin.by in ("", user))
    return lesson if own == lesson.origins else replace(lesson, origins=own)


def lessons_in(view: View, book: Book, *, archived: bool = False, ended: bool = False) -> list[Lesson]:
    """The lessons of a book that are shown, as they came; with those that are archived, or were taken back."""
    states = ["shown_in", *(["archived_in"] if archived else []), *(["ended_in"] if ended else [])]
    found = [
        to_lesson(record.body)
        for state in states
        for record in view.records.list_(RecordQuery("lesson", ROWS_MAX, (state, term_value(book.name))))
    ]
    return list(in_order(found))


def shown_ids(view: View, book: Book) -> list[str]:
    """The ids of the lessons that a book shows, the highest first."""
    return [record.key for record in view.records.list_(RecordQuery("lesson", ROWS_MAX, ("shown_in", term_value(book.name))))]


def find_lesson(view: View, key: str) -> Lesson | None:
    held = view.records.find("lesson", key)
    return None if held is None else to_lesson(held.body)


def take_in(tx: Tx, book: Book, drafts: Sequence[LessonDraft], by: Attribution) -> list[Lesson]:
    """Keep words as lessons of the book, each once, and make room for them; as they are held afterwards.

    The same words from the same place change nothing. Locks the records of the owner.
    """
    if not drafts:
        return []
    ledger = Ledger(tx, by)
    keys = []
    for draft in drafts:
        key = lesson_id(book, draft.text)
        held = find_lesson(tx, key)
        at = by.at - timedelta(microseconds=draft.earlier_us)
        made = taken_in(held, book, draft.text, source=draft.source, origin=draft.origin, now=at)
        if made is not None:
            ledger.put(made, "add" if held is None else "mention")
        keys.append(key)
    if ledger.writes:
        make_room(tx, ledger, book)
    return [held for key in dict.fromkeys(keys) if (held := find_lesson(tx, key)) is not None]


def make_room(tx: Tx, ledger: Ledger, book: Book) -> None:
    """Archive what is over the book's budget."""
    for one in over_budget(lessons_in(tx, book)):
        ledger.put(replace(one, archived_at=ledger.at), "archive")


def end(ledger: Ledger, lesson: Lesson, by: EndedBy) -> Lesson:
    """It stands no longer; one that ended stays as it is."""
    if lesson.ended_at is not None:
        return lesson
    over = replace(lesson, ended_at=ledger.at, ended_by=by)
    ledger.put(over, "end")
    return over


# -- what folds have drawn


def fold_origin(digest: Digest, user: str = "") -> LessonOrigin:
    """A fold as what a lesson comes from; in a book of the space, with whose fold it is."""
    return LessonOrigin(user, digest.address.agent, digest.address.channel, digest.session_number, digest.version)


def lesson_drafts(digest: Digest, user: str = "") -> list[LessonDraft]:
    origin, count = fold_origin(digest, user), len(digest.lessons)
    return [LessonDraft(text, "compaction", origin, count - place) for place, text in enumerate(digest.lessons)]


def withdraw(tx: Tx, origins: Iterable[LessonOrigin], by: Attribution) -> int:
    """Folds that drew lessons were undone: what nothing else speaks for stands no longer. How many lessons that changed."""
    ledger = Ledger(tx, by)
    for held, gone in _drawn_by(tx, origins):
        changed = without_origins(held, gone, by.at)
        if changed is not None:
            ledger.put(changed, "withdraw")
    return ledger.writes


def unlearn(tx: Tx, origins: Iterable[LessonOrigin], by: Attribution) -> list[Lesson]:
    """What lessons were drawn from is gone for good: so are they, unless something else speaks for them. Those that went."""
    tx.records.lock()
    removed = []
    for held, gone in _drawn_by(tx, origins):
        left = without_origins(held, gone, by.at)
        if left is not None and _take_out(tx, held, by, left):
            removed.append(held)
    return removed


def forget_drawn(tx: Tx, user: str, unwanted: Callable[[str], bool], by: Attribution) -> list[Lesson]:
    """Take out what one user's talk has taught to all, as far as it is unwanted, with its past; those that went.

    What others have taught, too, stays; that this user did is forgotten.
    """
    tx.records.lock()
    removed = []
    for record in tx.records.list_(RecordQuery("lesson", ROWS_MAX, ("by", term_value(user)))):
        held = to_lesson(record.body)
        own = [origin for origin in held.origins if origin.by == user]
        left = without_origins(held, own, by.at)
        if unwanted(held.text) and left is not None and _take_out(tx, held, by, left):
            removed.append(held)
    return removed


def was_drawn_by(view: View, origin: LessonOrigin) -> bool:
    """Whether a lesson is held that came from there."""
    return bool(view.records.list_(RecordQuery("lesson", 1, ("origin", origin.name))))


def was_drawn_with(view: View, user: str) -> bool:
    """Whether a lesson is held that came from this user's talk."""
    return bool(view.records.list_(RecordQuery("lesson", 1, ("by", term_value(user)))))


def agents_with_lessons(view: View) -> list[str]:
    """The agents of a space that have lessons of their own."""
    found = (to_lesson(record.body) for record in view.records.list_(RecordQuery("lesson", ROWS_MAX)))
    return sorted({one.agent for one in found if one.scope == "agent" and one.agent is not None})


def _drawn_by(tx: Tx, origins: Iterable[LessonOrigin]) -> list[tuple[Lesson, list[LessonOrigin]]]:
    found: dict[str, tuple[Lesson, list[LessonOrigin]]] = {}
    for origin in dict.fromkeys(origins):
        for record in tx.records.list_(RecordQuery("lesson", ROWS_MAX, ("origin", origin.name))):
            found.setdefault(record.key, (to_lesson(record.body), []))[1].append(origin)
    return list(found.values())


def _take_out(tx: Tx, held: Lesson, by: Attribution, left: Lesson) -> bool:
    """Remove the lesson and what the journal holds of it. If something else speaks for it, it is put back without its past."""
    number = tx.records.remove("lesson", held.id, by=by, action="forget")
    tx.records.blank_operations("lesson", held.id, name=f"forgotten:{number}")
    enter_record(tx, "lesson", held.id, None, now=by.at)
    tx.index.remove_packs()  # they are copies of what was indexed before
    if left.origins or held.source == "file":
        Ledger(tx, by).put(left, "add")
        return False
    return True


QUEUE_MAX = 2**31
"""Work that other work causes is not turned away."""


def leave_lessons(tx: Tx, digests: Iterable[Digest], by: Attribution) -> list[Lesson]:
    """As part of the transaction that removes folds for good: what they alone have taught goes with them; what that was.

    Jobs see to what they have taught to others than this user.
    """
    folds = [digest for digest in digests if digest.kind == "fold" and digest.lessons]
    gone = unlearn(tx, [fold_origin(digest) for digest in folds], by) if folds else []
    for digest in folds:
        tx.enqueue(fold_job(digest, by.at), now=by.at, queue_max=QUEUE_MAX)
    return gone


def keepable(drafts: Iterable[LessonDraft]) -> list[LessonDraft]:
    """Those that may be kept."""
    return [draft for draft in drafts if why_no_lesson(draft.text, chars_max=LESSON_LINE_CHARS_MAX) is None]


def why_drawn(digest: Digest, note: str | None) -> str:
    refused = len(digest.lessons) - len(keepable(lesson_drafts(digest)))
    told = [f"session {digest.session_number}, fold {digest.version}", *([] if note is None else [note])]
    return "; ".join([*told, *([f"{refused} lines were no lessons"] if refused else [])])


def former_ref(agent: str, text: str) -> str:
    """By what the index knew a lesson when it was a part of its fold."""
    return compact_json([agent, hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()])


def fold_job(digest: Digest, due_at: datetime) -> NewJob:
    """Settles what a fold has taught, by what has become of it until then. It carries no words."""
    address, number = digest.address, digest.session_number
    name = f"{address.agent}\x1f{address.channel}\x1f{number}\x1f{digest.version}"
    payload = {"agent": address.agent, "channel": address.channel, "session_number": number, "version": digest.version}
    return NewJob(LESSONS, hashlib.sha256(name.encode()).hexdigest()[:32], due_at, payload)
