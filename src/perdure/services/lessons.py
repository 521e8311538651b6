"""The lesson book of an owner: lessons are added once each, by a job, to a text that people edit too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perdure.domain.errors import InvalidInput, LimitExceeded
from perdure.domain.jobs import Job
from perdure.domain.scope import Owner
from perdure.engine.lessons import lessons_of, with_lessons
from perdure.ports.lessons import LessonFiles
from perdure.services.work import Handler

BOOK_CHARS_MAX = 4_000_000


@dataclass(frozen=True, slots=True)
class LessonBook:
    files: LessonFiles

    def append(self, owner: Owner, lessons: Sequence[str]) -> tuple[str, ...]:
        """Add those of `lessons` that say something and are not in the book yet; which these were, as they stand there."""
        if isinstance(lessons, str) or not all(isinstance(lesson, str) for lesson in lessons):
            raise InvalidInput("`lessons` holds something that is not text; pass a list of `str`")

        def change(book: str) -> tuple[str, tuple[str, ...]]:
            text, new = with_lessons(book, lessons)
            if new and len(text) > BOOK_CHARS_MAX:
                raise LimitExceeded(
                    f"the lesson book would have more than {BOOK_CHARS_MAX} characters; shorten it by hand first"
                )
            return text, new

        return self.files.edit(owner, change)

    def read(self, owner: Owner) -> tuple[str, ...]:
        """The lessons as they stand in the book now."""
        return lessons_of(self.files.read(owner))

    def text(self, owner: Owner) -> str:
        """The whole book, with what people wrote around the lessons."""
        return self.files.read(owner)

    def strike(self, owner: Owner, unwanted: Callable[[str], bool]) -> int:
        """Take lines out of the book; how many."""

        def change(book: str) -> tuple[str, int]:
            lines = book.splitlines(keepends=True)
            kept = [line for line in lines if not unwanted(line)]
            return "".join(kept), len(lines) - len(kept)

        return self.files.edit(owner, change)

    def erase(self, owner: Owner) -> bool:
        """Delete the book. False if there is none."""
        return self.files.erase(owner)


def lessons_handler(book: LessonBook) -> Handler:
    """Write the lessons of a job's payload into its owner's book. Twice is once: they are known by then."""

    def handle(job: Job) -> None:
        book.append(job.owner, job.payload.get("lessons", ()))

    return handle
