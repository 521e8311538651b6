"""Lessons: a book as text that people edit, the rows behind it, and the rules of both.

What counts as a lesson, how new ones join what is written, what each side changed since they last agreed; whom a lesson may
reach, what becomes of one that is said again, and which ones make room.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime

from perdure.domain.lessons import BY_PEOPLE, SPACE_SCOPES, Book, Lesson, LessonOrigin, LessonScope, LessonSource, RefusedLesson
from perdure.domain.scope import DEFAULT, Owner, Scope, shared_owner
from perdure.domain.text.fences import JOINERS, has_stray_joiners
from perdure.domain.text.patterns import pattern
from perdure.domain.values import dataclass, replace
from perdure.engine.search.lexicon import lexemes
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
        return "is no rule, or has hidden characters"
    # The line as it was given: a longer one would be cut, and half a lesson may say the opposite.
    if len(" ".join(text.split())) > chars_max + MARKUP_CHARS:
        return f"has more than {chars_max} characters"
    if ECHOES.search(lesson):
        return "repeats the words of a prompt"
    return "is an order to a model" if _ORDERS.search(lesson) else None


BOOK_LESSONS_MAX = 200
BOOK_CHARS_MAX = 20_000
"""What a book shows; beyond either, those that were drawn least often are archived, of equals the oldest."""
ORIGINS_MAX = 20


@dataclass(frozen=True, slots=True)
class LessonPlace:
    """Where a lesson is drawn, and what is set about that place."""

    scope: Scope
    casual: bool = False
    private: bool = False
    shared: bool = False
    mapped: str | None = None
    """The agent that the channel is mapped to."""
    configured: str = ""
    """The setting `lessons_scope`."""
    sole_user: str = ""
    """The setting `user`: the one user of a set-up that has but one."""
    confined: bool = False
    """Whether the writer may reach this user alone."""

    @property
    def owner(self) -> Owner:
        return self.scope.owner

    @property
    def agent(self) -> str:
        """The agent that answers here."""
        return answering(self.scope.address.agent, self.mapped)


@dataclass(frozen=True, slots=True)
class LessonTarget:
    """The book that a lesson belongs into, and why it is not the one that was asked for, if so."""

    book: Book
    note: str | None = None


def answering(agent: str, mapped: str | None) -> str:
    """The agent of a scope; where the caller left that open, the one its channel is mapped to."""
    return mapped if agent == DEFAULT and mapped is not None else agent


def default_scope(place: LessonPlace) -> LessonScope:
    """Whom a lesson reaches that names nobody: everybody in a set-up of one user, else only whom it was drawn with."""
    if place.configured:
        wanted: LessonScope = next(scope for scope in ("global", "agent", "user", "channel") if scope == place.configured)
        return wanted
    if place.shared:
        return "channel"
    if place.private or place.sole_user != place.owner.user:
        return "user"
    return "global" if place.mapped is None else "agent"


def target_of(place: LessonPlace, scope: LessonScope | None = None, agent: str | None = None) -> LessonTarget:
    """Where a lesson goes that a fold or a model draws here. With `agent`, or scope `agent`, it is meant for one agent.

    What is said where others listen in, or in private, reaches nobody else, whatever is asked for; nor does a model reach
    further than lessons go here without its asking: where there are several users, what one of them says stays theirs.
    """
    usual = default_scope(place)
    wanted = scope if scope is not None else "agent" if agent is not None else usual
    named = agent if agent is not None else place.agent
    if wanted in SPACE_SCOPES:
        if place.shared:
            why = "others talk on this channel, so it is a lesson of the channel"
            return LessonTarget(_own(place, "channel", agent), why)
        if place.private:
            return LessonTarget(_own(place, "user", agent), "this talk is private, so it is a lesson of the user")
        if usual not in SPACE_SCOPES:
            set_so = f"`lessons_scope` = {place.configured}" if place.configured else "there may be other users, so it"
            return LessonTarget(
                _own(place, usual, agent),
                f"{set_so} lets no lesson reach others" if place.configured else f"{set_so} stays theirs",
            )
        return LessonTarget(space_book(place, wanted, named))
    return LessonTarget(_own(place, wanted, agent))


def refusal_of(place: LessonPlace, scope: LessonScope) -> str | None:
    """Why a lesson of that scope must not be written or changed from here; None if it may."""
    if scope in SPACE_SCOPES and place.shared:
        return f"others talk on this channel, and a lesson of scope `{scope}` reaches everybody; use scope `channel`"
    if scope in SPACE_SCOPES and place.confined:
        return f"a lesson of scope `{scope}` reaches every user, and you may access only some of them; use scope `user`"
    return None


def space_book(place: LessonPlace, scope: LessonScope, agent: str) -> Book:
    owner = shared_owner(place.owner.space)
    return Book(owner, "agent", agent) if scope == "agent" else Book(owner, "global")


def _own(place: LessonPlace, scope: LessonScope, agent: str | None) -> Book:
    """A book of the user's own; of private talk, or for a named agent, one that only that agent sees."""
    only = agent if agent is not None else place.scope.address.agent if place.private else None
    return Book(place.owner, scope, only, place.scope.address.channel if scope == "channel" else None)


# -- one lesson


def lesson_id(book: Book, text: str) -> str:
    """The same for the same words in the same book, no matter who writes them first."""
    line = as_lesson(text) or text
    return hashlib.sha256(f"{book.name}\x1f{sameness(line)}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def taken_in(
    held: Lesson | None, book: Book, text: str, *, source: LessonSource, origin: LessonOrigin | None, now: datetime
) -> Lesson | None:
    """The lesson after these words were drawn, said or written; None if that changes nothing.

    What a person took back stays so until a person says it again. What was archived is shown again.
    """
    origins = () if origin is None else (origin,)
    if held is None:
        return Lesson(
            id=lesson_id(book, text),
            text=as_lesson(text) or text,
            scope=book.scope,
            created_at=now,
            agent=book.agent,
            channel=book.channel,
            source=source,
            origins=origins,
        )
    known = origin is not None and origin in held.origins
    if known and held.ended_at is None and (held.archived_at is None or source == "compaction"):
        # What a person says again stands for their own word from then on.
        return replace(held, source=source) if source == "user" and held.source not in BY_PEOPLE else None
    if held.ended_by in BY_PEOPLE and source not in BY_PEOPLE:
        return None
    if source == "file" and held.ended_at is None and (held.is_shown or held.source == "file"):
        return None  # what has no room to be shown may well stand in the file
    together = tuple(dict.fromkeys((*held.origins, *origins)))[-ORIGINS_MAX:]
    said = "user" if source == "user" else held.source
    return replace(
        held, source=said, origins=together, mentions=held.mentions + 1, archived_at=None, ended_at=None, ended_by=None
    )


def without_origins(held: Lesson, gone: Sequence[LessonOrigin], now: datetime) -> Lesson | None:
    """The lesson when folds no longer stand that drew it; None if that changes nothing. Without any, it stands no longer."""
    left = tuple(origin for origin in held.origins if origin not in gone)
    if left == held.origins:
        return None
    if left or held.source in BY_PEOPLE or held.ended_at is not None:
        return replace(held, origins=left)
    return replace(held, origins=left, ended_at=now, ended_by="undo")


# -- many


def over_budget(lessons: Sequence[Lesson]) -> list[Lesson]:
    """Those of a book's shown lessons that have to be archived: what models drew goes before what a person wrote."""
    spare, chars = len(lessons), sum(len(one.text) for one in lessons)
    gone: list[Lesson] = []
    for one in sorted(lessons, key=lambda one: (one.source in BY_PEOPLE, one.mentions, one.created_at, one.id)):
        if spare <= BOOK_LESSONS_MAX and chars <= BOOK_CHARS_MAX:
            break
        if not one.pinned:
            gone.append(one)
            spare, chars = spare - 1, chars - len(one.text)
    return gone


def fitness(request: str, texts: Sequence[str]) -> list[float]:
    """How well each text fits a request, by the words they have in common: rare ones count more."""
    asked = set(lexemes(request))
    if not asked:
        return [0.0] * len(texts)
    terms = [set(lexemes(text)) for text in texts]
    often = Counter(term for own in terms for term in own & asked)
    return [sum(math.log(1 + len(texts) / often[term]) for term in own & asked) for own in terms]


def weights(lessons: Sequence[Lesson], request: str) -> list[float]:
    """By what lessons are chosen when not all fit: pinned ones first, then what fits the request, then the newest."""
    fitting = fitness(request, [one.text for one in lessons])
    most = max(fitting, default=0.0) or 1.0
    newest = {index: rank for rank, index in enumerate(sorted(range(len(lessons)), key=lambda i: lessons[i].created_at))}
    return [
        2.0 * one.pinned + fitting[index] / most + 0.001 * newest[index] / max(1, len(lessons))
        for index, one in enumerate(lessons)
    ]
