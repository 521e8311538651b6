"""Whom a lesson may reach, what becomes of one that is said again, and which ones make room. Decides; writes nothing."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from perdure.domain.lessons import BY_PEOPLE, SPACE_SCOPES, Book, Lesson, LessonOrigin, LessonScope, LessonSource
from perdure.domain.scope import DEFAULT, Owner, Scope, shared_owner
from perdure.engine.lessons.book import as_lesson, sameness
from perdure.engine.search.lexicon import lexemes

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
