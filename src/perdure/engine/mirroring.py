"""A book as text that people edit, and the rows behind it: what each side changed since they last agreed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from perdure.domain.lessons import Lesson, Refused
from perdure.engine.lessons import lessons_of, with_lessons, without_lessons
from perdure.engine.replies import why_no_lesson

Name = Callable[[str], str]
"""The id that a line has in the book."""


@dataclass(frozen=True, slots=True)
class Edited:
    """What a text says that the rows do not know yet."""

    added: tuple[str, ...]
    """Lines that somebody wrote."""
    removed: tuple[str, ...]
    """Ids of lessons whose lines somebody took out."""
    refused: tuple[Refused, ...]


def by_hand(text: str, base: Collection[str], name: Name) -> Edited:
    """What people did to the text since it held the lessons `base`."""
    lines = {name(line): line for line in lessons_of(text)}
    refused = {key: why for key, line in lines.items() if key not in base and (why := why_no_lesson(line)) is not None}
    return Edited(
        tuple(line for key, line in lines.items() if key not in base and key not in refused),
        tuple(key for key in base if key not in lines),
        tuple(Refused(lines[key], why) for key, why in refused.items()),
    )


def brought_up(text: str, base: Collection[str], rows: Mapping[str, Lesson], name: Name) -> tuple[str, tuple[str, ...]]:
    """The text with what is new in the rows, without what they hold no longer; and the lessons that then stand in it.

    What a person wrote stays where it is, even if there is no room to show it to agents; so does all that is no bullet.
    """
    there = set(base) & {name(line) for line in lessons_of(text)}
    over = {key for key in there if key not in rows or not (rows[key].is_shown or _is_own_hand(rows[key]))}
    kept = without_lessons(text, lambda line: name(line) in over) if over else text
    standing = {name(line) for line in lessons_of(kept)}
    new = [one.text for one in in_order(rows.values()) if one.is_shown and one.id not in standing]
    full, _ = with_lessons(kept, new)
    return full, tuple(dict.fromkeys(key for line in lessons_of(full) if (key := name(line)) in rows))


def in_order(lessons: Collection[Lesson]) -> Sequence[Lesson]:
    """As they came: what stands first in a prompt stays there."""
    return sorted(lessons, key=lambda one: (one.created_at, one.id))


def _is_own_hand(lesson: Lesson) -> bool:
    return lesson.source == "file" and lesson.ended_at is None
