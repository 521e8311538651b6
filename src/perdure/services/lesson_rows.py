"""Lessons as records of one owner, inside one transaction: read by book, taken in, ended, archived, and taken out for good."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from perdure.domain.digests import Digest
from perdure.domain.journal import Attribution
from perdure.domain.lessons import Book, EndedBy, Lesson, LessonSource, Origin, to_lesson
from perdure.domain.records import RecordQuery
from perdure.engine.indexing import short
from perdure.engine.lesson_rules import lesson_id, over_budget, taken_in, without_origins
from perdure.engine.mirroring import in_order
from perdure.ports.store import Tx, View
from perdure.services.entering import enter_record
from perdure.services.ledger import Ledger

ROWS_MAX = 20_000
"""Lessons of one book that are looked at, shown or not."""
READER = "lessons/1"


@dataclass(frozen=True, slots=True)
class Draft:
    """Words that are to become a lesson."""

    text: str
    source: LessonSource
    origin: Origin | None = None
    earlier_us: int = 0
    """By so much it counts as older than the moment it is taken in: what comes at once keeps its order."""


def lessons_in(view: View, book: Book, *, archived: bool = False, ended: bool = False) -> list[Lesson]:
    """The lessons of a book that are shown, as they came; with those that are archived, or were taken back."""
    states = ["shown_in", *(["archived_in"] if archived else []), *(["ended_in"] if ended else [])]
    found = [
        to_lesson(record.body)
        for state in states
        for record in view.records.list_(RecordQuery("lesson", ROWS_MAX, (state, short(book.name))))
    ]
    return list(in_order(found))


def shown_ids(view: View, book: Book) -> list[str]:
    """The ids of the lessons that a book shows, the highest first."""
    return [record.key for record in view.records.list_(RecordQuery("lesson", ROWS_MAX, ("shown_in", short(book.name))))]


def find_lesson(view: View, key: str) -> Lesson | None:
    held = view.records.find("lesson", key)
    return None if held is None else to_lesson(held.body)


def take_in(tx: Tx, book: Book, drafts: Sequence[Draft], by: Attribution) -> list[Lesson]:
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


def fold_origin(digest: Digest, user: str = "") -> Origin:
    """A fold as what a lesson comes from; in a book of the space, with whose fold it is."""
    return Origin(user, digest.address.agent, digest.address.channel, digest.session_number, digest.version)


def drawn(digest: Digest, user: str = "") -> list[Draft]:
    origin, count = fold_origin(digest, user), len(digest.lessons)
    return [Draft(text, "compaction", origin, count - place) for place, text in enumerate(digest.lessons)]


def withdraw(tx: Tx, origins: Iterable[Origin], by: Attribution) -> int:
    """Folds that drew lessons were undone: what nothing else speaks for stands no longer. How many lessons that changed."""
    ledger = Ledger(tx, by)
    for held, gone in _drawn_by(tx, origins):
        changed = without_origins(held, gone, by.at)
        if changed is not None:
            ledger.put(changed, "withdraw")
    return ledger.writes


def unlearn(tx: Tx, origins: Iterable[Origin], by: Attribution) -> list[Lesson]:
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
    for record in tx.records.list_(RecordQuery("lesson", ROWS_MAX, ("by", short(user)))):
        held = to_lesson(record.body)
        own = [origin for origin in held.origins if origin.by == user]
        left = without_origins(held, own, by.at)
        if unwanted(held.text) and left is not None and _take_out(tx, held, by, left):
            removed.append(held)
    return removed


def was_drawn_by(view: View, origin: Origin) -> bool:
    """Whether a lesson is held that came from there."""
    return bool(view.records.list_(RecordQuery("lesson", 1, ("origin", origin.name))))


def was_drawn_with(view: View, user: str) -> bool:
    """Whether a lesson is held that came from this user's talk."""
    return bool(view.records.list_(RecordQuery("lesson", 1, ("by", short(user)))))


def agents_with_lessons(view: View) -> list[str]:
    """The agents of a space that have lessons of their own."""
    found = (to_lesson(record.body) for record in view.records.list_(RecordQuery("lesson", ROWS_MAX)))
    return sorted({one.agent for one in found if one.scope == "agent" and one.agent is not None})


def _drawn_by(tx: Tx, origins: Iterable[Origin]) -> list[tuple[Lesson, list[Origin]]]:
    found: dict[str, tuple[Lesson, list[Origin]]] = {}
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
