"""Books as text that people edit: before a prompt is built, and after lessons have changed, both sides are brought together.

An edit by hand wins. A line that was taken out ends its lesson, a line that was written becomes one; then what is new in the
store joins the text, and what ended there leaves it. Everything else in the text is its readers' own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from perdure.domain.errors import Corrupt, LimitExceeded, Unavailable
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.lessons import Book, Lesson, RefusedLesson
from perdure.domain.values import dataclass
from perdure.engine.lessons import BookEdits, brought_up, by_hand, lesson_id, lessons_of, without_lessons
from perdure.ports.clock import Clock
from perdure.ports.files import LessonFiles
from perdure.ports.store import Store, Tx, View
from perdure.services.knowledge.ledger import Ledger
from perdure.services.lessons.rows import LessonDraft, end, find_lesson, lessons_in, shown_ids, take_in

TEXT_CHARS_MAX = 4_000_000
LINES_PER_WRITE = 500
"""So many lines that were written by hand are taken in at once: a transaction stays short."""
BY_HAND = "memory.md"
ANOTHERS = (
    "it was left by another store, or before this user was forgotten; "
    "delete the note beside it to take its lines in, or delete both"
)


@dataclass(frozen=True, slots=True)
class Mirrors:
    store: Store
    clock: Clock
    files: LessonFiles | None

    def keeps(self, book: Book) -> bool:
        """Whether this process keeps the book as a file."""
        return self.files is not None and self.files.keeps(book)

    def sync(self, book: Book) -> tuple[RefusedLesson, ...]:
        """Bring file and store together; what was written by hand but is no lesson. Cheap if nobody changed anything."""
        if self.files is None or not self.files.keeps(book):
            return ()
        rows = self._rows(book)
        if self.files.is_as_left(book, rows) or self.files.is_anothers(book, rows):
            return ()
        return self._edit(book, lambda text: text or "")

    def tried(self, books: Iterable[Book]) -> list[str]:
        """As `sync`, for several; what went wrong, or was not taken for a lesson. A file in disorder must not keep an agent
        from being answered."""
        notes = []
        for book in books:
            if self.files is not None and self.files.keeps(book) and self.files.is_anothers(book, self._rows(book)):
                notes.append(f"{BY_HAND}: {ANOTHERS}")
            try:
                notes += [f"{BY_HAND}: a line {one.why}; it is not shown" for one in self.sync(book)]
            except (Corrupt, Unavailable, LimitExceeded) as error:
                notes.append(f"{BY_HAND}: {error}")
        return notes

    def text(self, book: Book) -> str:
        """The book as it stands: the file with all that people wrote around the lessons, or a list of them."""
        if self.files is not None and self.files.keeps(book):
            self.sync(book)
            return self.files.read(book)
        return brought_up("", (), {one.id: one for one in self._lessons(book)}, _name(book))[0]

    def replace(self, book: Book, text: str, was: str | None) -> tuple[RefusedLesson, ...]:
        """Put a text in the place of the book, as a person would do it with an editor who had read `was`."""
        if self.files is None or not self.files.keeps(book):
            shown = self._lessons(book)
            base = {one.id for one in shown} if was is None else set(_keys(book, was))
            return (*self._take_over(book, by_hand(text, base, _name(book))), *_strays(text))
        name = _name(book)

        def change(held: str) -> str:
            if was is None or was == held:
                return text
            # Lines that came in meanwhile were not seen by the editor, and stay.
            unseen = set(_keys(book, held)) - set(_keys(book, was)) - set(_keys(book, text))
            rows = {one.id: one for one in self._lessons(book) if one.id in unseen}
            return brought_up(text, (), rows, name)[0]

        return self._edit(book, change)

    def strike(self, book: Book, unwanted: Callable[[str], bool]) -> int:
        """Take lines out of the file, whatever they are; how many. What they said must have left the store before.

        The rest is brought together as by `sync`: the note beside the file then says so, and nobody would look again.
        """
        if self.files is None or not self.files.keeps(book) or not self.files.read(book):
            return 0
        struck = 0

        def without(text: str) -> str:
            nonlocal struck
            whole = without_lessons(text, unwanted)  # a bullet of several lines goes as a whole
            kept = "".join(line for line in whole.splitlines(keepends=True) if not unwanted(line))
            struck = text.count("\n") - kept.count("\n")
            return kept

        def in_anothers(held: str | None, _base: frozenset[str]) -> tuple[str, Sequence[str], None]:
            return without(held or ""), (), None

        if self.files.is_anothers(book, self._rows(book)):
            self.files.edit(book, in_anothers, rows=lambda: "/")
        else:
            self._edit(book, without)
        return struck

    def take_out(self, book: Book, keys: Collection[str]) -> int:
        """Take the lines of lessons that are no more out of the file; how many lines."""
        name = _name(book)
        return self.strike(book, lambda line: any(name(text) in keys for text in (line, *lessons_of(line))))

    def erase(self, book: Book) -> bool:
        """Delete the file. False if there is none."""
        return self.files is not None and self.files.keeps(book) and self.files.erase(book)

    # -- how

    def _edit(self, book: Book, by_us: Callable[[str], str]) -> tuple[RefusedLesson, ...]:
        assert self.files is not None  # noqa: S101 - the callers have looked
        name = _name(book)
        gone: set[str] = set()
        seen = ""

        def change(held: str | None, left: frozenset[str]) -> tuple[str, Sequence[str], tuple[RefusedLesson, ...]]:
            nonlocal seen
            # If it is called again, what was taken out in the text before and stands in this one was written again.
            base = left - gone
            text = by_us(held or "")
            if len(text) > TEXT_CHARS_MAX:
                raise LimitExceeded(f"{BY_HAND} has more than {TEXT_CHARS_MAX} characters; shorten it")
            refused: tuple[RefusedLesson, ...] = ()
            if held is not None or text:
                # A file that is gone says nothing: it is written again.
                edited = by_hand(text, base, name)
                gone.update(edited.removed)
                refused = self._take_over(book, edited)
            # Noted as what the file has: a lesson that comes in from now on is for the next one who looks.
            seen = self._rows(book)
            rows = {one.id: one for one in self.store.read(book.owner, lambda view: lessons_in(view, book, archived=True))}
            full, ids = brought_up(text, base, rows, name)
            return full, ids, refused

        return self.files.edit(book, change, rows=lambda: seen or self._rows(book))

    def _take_over(self, book: Book, edited: BookEdits) -> tuple[RefusedLesson, ...]:
        """What people did to the text, done to the lessons. Doing it again changes nothing."""
        by = Attribution("user", self.clock.now(), BY_HAND)

        def remove(tx: Tx) -> None:
            ledger = Ledger(tx, by)
            for key in edited.removed:
                held = find_lesson(tx, key)
                if held is not None:
                    end(ledger, held, "file")

        if edited.removed:
            self.store.write(book.owner, remove)
        count = len(edited.added)
        drafts = [LessonDraft(line, "file", earlier_us=count - place) for place, line in enumerate(edited.added)]
        for start in range(0, count, LINES_PER_WRITE):
            some = drafts[start : start + LINES_PER_WRITE]
            self.store.write(book.owner, lambda tx: take_in(tx, book, some, by))  # noqa: B023 - it runs before the next turn
        return edited.refused

    def _lessons(self, book: Book) -> list[Lesson]:
        return self.store.read(book.owner, lambda view: lessons_in(view, book))

    def _rows(self, book: Book) -> str:
        """A mark of this store, which is another one after it was restored, and what stands for the lessons that it shows."""

        def work(view: View) -> tuple[str, str]:
            return view.index.head().incarnation, "".join(shown_ids(view, book))

        mark, ids = self.store.read(book.owner, work)
        return f"{mark}/{hashlib.sha256(ids.encode()).hexdigest() if ids else ''}"


def _name(book: Book) -> Callable[[str], str]:
    return lambda line: lesson_id(book, line)


def _keys(book: Book, text: str) -> list[str]:
    return [lesson_id(book, line) for line in lessons_of(text)]


def _strays(text: str) -> Iterator[RefusedLesson]:
    """Lines that are kept nowhere where there is no file: they are no lessons, and no headings."""
    rest = (line.strip() for line in without_lessons(text, lambda _: True).splitlines())
    return (
        RefusedLesson(line, "does not begin with `- `, so it is no lesson")
        for line in rest
        if line and not line.startswith("#")
    )
