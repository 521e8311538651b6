"""Lessons as lines of a book that people edit too: what counts as one, and how new ones join what is written.

A book as text that people edit, and the rows behind it: what each side changed since they last agreed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from perdure.domain.lessons import Lesson, RefusedLesson
from perdure.domain.text.joiners import JOINERS, has_stray_joiners
from perdure.domain.text.patterns import pattern
from perdure.engine.text.cues import either
from perdure.engine.text.hygiene import flaw

LESSON_CHARS_MAX = 500
LESSON_LINE_CHARS_MAX = 240
MARKUP_CHARS = 10
"""What a bullet before a lesson may have."""
LESSON_WEIGHT_MIN = 6
"""Letters and digits a lesson has at least; those of scripts that say more with one character count twice."""

_BULLET = pattern(r" {0,3}[-*+](?:[ \t]+(?P<text>.*))?")
_LEADING = pattern(r"(?:[-*+•‣◦·–—>#]+|\(?[0-9]{1,3}[.)]|\[[ xX]?\])(?:\s+|$)")
_BREAK = pattern(r"[#>|]|[0-9]+[.)][ \t]|([-*_=])\1\1+\s*$")
"""A line right below a bullet that does not carry it on."""
_FENCE = pattern(r" {0,3}(`{3,}|~{3,})")
_COMMENT_END = "-->"
_EDGES = " \t\"'“”„‘’«».,;:!…*_`"
_BLANKS = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0")
"""Letters and marks that show nothing."""
_SELECTORS = pattern("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2}")
"""One of these picks a shape for the character before it; a row of them carries a hidden text."""

_NOTHING = pattern(lambda: either("no lesson"))
_ORDERS = pattern(lambda: either("injection in a lesson"), re.IGNORECASE)
ECHOES = pattern(lambda: either("echo of a prompt"), re.IGNORECASE)
"""A model that repeats its prompt has not summarised."""


def as_lesson(text: str) -> str | None:
    """`text` as one line without its bullet; None if it says nothing, or hides something.

    Characters that nobody sees are no accident in a text that steers a model: such a line is refused, not cleaned.
    """
    line = " ".join(text.split())
    while match := _LEADING.match(line):
        line = line[match.end() :]
    if len(line) > LESSON_CHARS_MAX:
        line = line[: LESSON_CHARS_MAX - 1].rsplit(" ", 1)[0] + "…"
    if _hides(line) or _weight(line) < LESSON_WEIGHT_MIN or _NOTHING.fullmatch(sameness(line)):
        return None
    return line


def sameness(lesson: str) -> str:
    """What two lessons have in common if they are the same one: case, spacing, quotes and the full stop do not count."""
    return " ".join(unicodedata.normalize("NFKC", lesson).casefold().split()).strip(_EDGES)


def lessons_of(book: str) -> tuple[str, ...]:
    """The lessons in the book, in order: its bullets, each as one line. Other text is its readers' own."""
    bullets, _ = _layout(_lines(book))
    return tuple(text for text in (bullet.text for bullet in bullets) if text)


def with_lessons(book: str, lessons: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """The book with those of `lessons` that are new to it below its last bullet, and which these were.

    Nothing that stands in the book changes.
    """
    known = {sameness(lesson) for lesson in lessons_of(book)}
    new: list[str] = []
    for text in lessons:
        lesson = as_lesson(text)
        if lesson is not None and sameness(lesson) not in known:
            known.add(sameness(lesson))
            new.append(lesson)
    if not new:
        return book, ()
    lines = _lines(book)
    bullets, place = _layout(lines)
    above, below = lines[:place], lines[place:]
    end = "\r\n" if "\r\n" in book else "\n"
    if above and not above[-1].endswith("\n"):
        above[-1] += end
    added = [f"- {lesson}{end}" for lesson in new]
    if not bullets:
        # A list of its own, so it stands apart from the text around it.
        added[:0] = [end] if above and above[-1].strip("\ufeff \t\r\n") else []
        added += [end] if below else []
    return "".join((*above, *added, *below)), tuple(new)


def without_lessons(book: str, unwanted: Callable[[str], bool]) -> str:
    """The book without the lines of those bullets that are not wanted; everything else stays as it stands."""
    lines = _lines(book)
    bullets, _ = _layout(lines)
    gone = [bullet for bullet in bullets if (text := bullet.text) and unwanted(text)]
    doomed = {number for bullet in gone for number in range(bullet.first, bullet.last + 1)}
    return "".join(line for number, line in enumerate(lines) if number not in doomed)


@dataclass(slots=True)
class _Bullet:
    texts: list[str]
    first: int
    last: int
    """The numbers of its first and last line."""

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def _layout(lines: Sequence[str]) -> tuple[list[_Bullet], int]:
    """The bullets of a book, and the number of the line before which new ones belong."""
    covered, unclosed = _covered(lines)
    bullets: list[_Bullet] = []
    current: _Bullet | None = None
    after_blank = False
    for number, line in enumerate(lines):
        bullet = None if number in covered else _BULLET.fullmatch(_bare(line))
        if bullet:
            current = _Bullet([bullet["text"] or ""], number, number)
            bullets.append(current)
        elif number in covered:
            # What begins as part of a bullet ends as part of it.
            goes_on = current is not None and number - 1 in covered and current.last == number - 1
            if current is not None and (goes_on or line[0] in " \t"):
                current.last = number
            else:
                current = None
        elif not line.strip():
            after_blank = True
            continue
        elif current is not None and (line[0] in " \t" or not (after_blank or _BREAK.match(line))):
            current.texts.append(line.strip())
            current.last = number
        else:
            current = None
        after_blank = False
    place = bullets[-1].last + 1 if bullets else len(lines)
    # Below a fence or comment that nobody closed, new bullets would be part of it.
    return bullets, place if unclosed is None else min(place, unclosed)


def _covered(lines: Sequence[str]) -> tuple[set[int], int | None]:
    """The lines inside code fences and comments, where nothing is a bullet; and where one begins that never ends."""
    covered: set[int] = set()
    began, end = 0, ""
    for number, line in enumerate(lines):
        text = _bare(line).strip()
        if end:
            covered.add(number)
            closed = end in text if end == _COMMENT_END else text.startswith(end) and not text.strip(end[0])
            end = "" if closed else end
        elif fence := _FENCE.match(_bare(line)):
            covered.add(number)
            began, end = number, fence[1]
        elif text.startswith("<!--"):
            covered.add(number)
            began, end = number, "" if _COMMENT_END in text[4:] else _COMMENT_END
    return covered, began if end else None


def _bare(line: str) -> str:
    return line.removeprefix("\ufeff").rstrip("\r\n")


def _lines(book: str) -> list[str]:
    # Not `splitlines`: that also breaks at characters which end no line in Markdown.
    return re.findall(r"[^\n]*\n|[^\n]+", book)


def _weight(line: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in line if char.isalnum())


def _hides(line: str) -> bool:
    return any(
        char in _BLANKS or (unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs") and char not in JOINERS) for char in line
    ) or bool(_SELECTORS.search(line) or (any(one in line for one in JOINERS) and has_stray_joiners(line)))


Name = Callable[[str], str]
"""The id that a line has in the book."""


@dataclass(frozen=True, slots=True)
class BookEdits:
    """What a text says that the rows do not know yet."""

    added: tuple[str, ...]
    """Lines that somebody wrote."""
    removed: tuple[str, ...]
    """Ids of lessons whose lines somebody took out."""
    refused: tuple[RefusedLesson, ...]


def by_hand(text: str, base: Collection[str], name: Name) -> BookEdits:
    """What people did to the text since it held the lessons `base`."""
    lines = {name(line): line for line in lessons_of(text)}
    refused = {key: why for key, line in lines.items() if key not in base and (why := why_no_lesson(line)) is not None}
    return BookEdits(
        tuple(line for key, line in lines.items() if key not in base and key not in refused),
        tuple(key for key in base if key not in lines),
        tuple(RefusedLesson(lines[key], why) for key, why in refused.items()),
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


def clean_lessons(lines: Iterable[str]) -> tuple[str, ...]:
    """Those of `lines` that are lessons, one line each, each once: no boilerplate, no echo, no order, nothing invisible."""
    found: dict[str, str] = {}
    for line in lines:
        lesson = as_lesson(line)
        if lesson is not None and why_no_lesson(lesson, chars_max=LESSON_LINE_CHARS_MAX) is None:
            found.setdefault(sameness(lesson), lesson)
    return tuple(found.values())


def why_no_lesson(text: str, *, chars_max: int = LESSON_CHARS_MAX) -> str | None:
    """Why `text` must not be kept as a lesson; None if nothing speaks against it."""
    wrong = flaw(text)
    if wrong is not None:
        return wrong
    lesson = as_lesson(text)
    if lesson is None:
        return "says nothing that could be followed, or has characters that nobody sees"
    # The line as it was given: a longer one would be cut, and half a lesson may say the opposite.
    if len(" ".join(text.split())) > chars_max + MARKUP_CHARS:
        return f"has more than {chars_max} characters"
    if ECHOES.search(lesson):
        return "repeats the words of a prompt"
    return "is an order to a model" if _ORDERS.search(lesson) else None
