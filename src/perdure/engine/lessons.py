"""Lessons as lines of a book that people edit too: what counts as one, and how new ones join what is written."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

LESSON_CHARS_MAX = 500
LESSON_WEIGHT_MIN = 6
"""Letters and digits a lesson has at least; those of scripts that say more with one character count twice."""

_BULLET = re.compile(r" {0,3}[-*+](?:[ \t]+(?P<text>.*))?")
_LEADING = re.compile(r"(?:[-*+•‣◦·–—>#]+|\(?[0-9]{1,3}[.)]|\[[ xX]?\])(?:\s+|$)")
_BREAK = re.compile(r"[#>|]|[0-9]+[.)][ \t]|([-*_=])\1\1+\s*$")
"""A line right below a bullet that does not carry it on."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_COMMENT_END = "-->"
_EDGES = " \t\"'“”„‘’«».,;:!…*_`"
_BLANKS = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0")
"""Letters and marks that show nothing."""
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2}")
"""One of these picks a shape for the character before it; a row of them carries a hidden text."""

# What models write when there is nothing to say, or around what they say.
_NOTHING = re.compile(
    r"(?:lessons?(?: learned)?|memory|summary|context|key (?:points|takeaways)|notes?)"
    r"|(?:none|nothing|n/?a|nil|null|empty|not applicable)"
    r"(?: (?:so far|yet|here|identified|found|noted|to (?:add|note|report)))?"
    r"|(?:there (?:are|were|is) )?(?:no|nothing)(?: (?:new|specific|notable|significant|particular|further|additional))*"
    r"(?: (?:lessons?|learnings?|insights?|takeaways|corrections|mistakes))?"
    r"(?: (?:were|was|have been|to be|could be))?(?: (?:learned|identified|found|noted|extracted|recorded|drawn|added))?"
    r"(?: (?:from|in|during) th(?:is|e) (?:conversation|session|chat|exchange))?"
    r"|(?:sure|certainly|of course|okay|ok)\b.*\b(?:lessons?|summary)"
    r"|(?:here|these|below|the following) (?:are|is|were)\b.*\b(?:lessons?|summary|takeaways|points)(?: \w+){0,5}"
)


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
        char in _BLANKS or (unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs") and not _joins(line, index))
        for index, char in enumerate(line)
    ) or bool(_SELECTORS.search(line))


def _joins(line: str, index: int) -> bool:
    """Whether the character is one that joins or parts its neighbours: emoji and several scripts need them."""
    around = line[index - 1 : index] + line[index + 1 : index + 2]
    return line[index] in "\u200c\u200d" and len(around) == 2 and not any(char.isascii() or char.isspace() for char in around)
