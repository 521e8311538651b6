"""What a question asks for, as far as it can be told without a model: terms and their weights, whose words, which time.

Pure: the same question at the same moment gives the same `SearchQuestion`. What is near in meaning to a word comes in as
`near`; the question's vector is made elsewhere, of `SearchQuestion.meaning`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache

from perdure.domain.conversation.messages import ROLES
from perdure.domain.text.patterns import pattern
from perdure.domain.times.instants import to_us
from perdure.domain.times.spans import Span, span_or_none
from perdure.domain.values import dataclass
from perdure.engine.search.lexicon import QUESTION_CHARS_MAX, folded, lexemes, question_words, term_hash
from perdure.engine.text import cues
from perdure.engine.times.mentions import TimeMention, find_times

Kin = Callable[[str], Sequence[tuple[str, float]]]
"""Words that may stand in for a (folded) word, each with how near it is, 0 to 1, nearest first; none if it is not known."""

TERMS_MAX = 64
"""Of a pasted page, the first words are the question."""
SPEAKERS_MAX = 2_000
"""With more speakers than that, names are words like others."""

# Weights: set by hand and checked on LongMemEval, LoCoMo and BEAM, where values near them do about as well.
FRAME_WEIGHT = 0.4
"""Of words that shape a question more than they say what it is about: `how many different kinds`."""
TIME_WEIGHT = 0.3
"""Of the words of a time: the message that was written then does not repeat the date."""
NEARNESS_MIN = 0.5
NEAR_PER_WORD_MAX = 8
DAY_US = 86_400_000_000
SLACK_US = DAY_US
SLACK_OF_AGE = 0.05
"""People date by memory: the longer ago, the less exactly."""


@dataclass(frozen=True, slots=True)
class SoughtTerm:
    """A term that is looked for. `kin_of` is the place among the terms of the one it stands in for, -1 for the asker's own."""

    term: str
    hash: int
    weight: float
    kin_of: int = -1


@dataclass(frozen=True, slots=True)
class QuestionTime:
    """A half-open stretch of time that the question names, and how far beside it a hit may lie."""

    start_us: int
    end_us: int
    slack_us: int


@dataclass(frozen=True, slots=True)
class SearchQuestion:
    """A question, understood."""

    terms: tuple[SoughtTerm, ...]
    meaning: str
    """What to make the question's vector of: its words without names of speakers and function words."""
    named: frozenset[str] = frozenset()
    """Speakers the question is about, as they were given; none when it names none, or all."""
    of_the_assistant: bool = False
    """It asks for what the assistant said, not for what people told."""
    stretches: tuple[QuestionTime, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The asker's own terms."""
        return tuple(sought.term for sought in self.terms if sought.kin_of < 0)

    @property
    def roles(self) -> tuple[str, ...]:
        """Whose words are asked for; empty for the usual, which is what people said."""
        return ("assistant",) if self.of_the_assistant else ()

    @property
    def time_range(self) -> Span | None:
        """From the first to the last moment of the times that are asked about."""
        if not self.stretches:
            return None
        return span_or_none(min(one.start_us for one in self.stretches), max(one.end_us for one in self.stretches))


def understand(
    question: str,
    asked_at: datetime | None,
    zone: str,
    *,
    speakers: Sequence[str] = (),
    kin: Kin | None = None,
    near: Kin | None = None,
) -> SearchQuestion:
    """What `question`, asked at that moment in that zone among those speakers, asks for.

    `kin` knows other words for the same thing, names included; `near` knows words of like meaning, by their cosine.

    Without `asked_at`, only times that are the same whenever one asks are understood (`May 2023`, not `last week`).
    """
    question = question[:QUESTION_CHARS_MAX]
    words = list(question_words(question))
    called = _speakers_named(question, speakers)
    names = {word for found in called.values() for word in found}
    kept = [(word, terms) for word, terms in words if word not in names] or words
    times = _times(question, asked_at, zone)
    own = _weighted(kept, times)
    return SearchQuestion(
        terms=(*own.values(), *_stand_ins(own, kept, kin, near and _but_names(near, question))),
        meaning=_meaning(kept, times) or question,
        named=frozenset(called) if len(called) < len(speakers) else frozenset(),
        of_the_assistant=_OF_THE_ASSISTANT.search(question) is not None,
        stretches=tuple(stretch for stretch in (_question_time(time, asked_at) for time in times) if stretch),
    )


def _meaning(words: Sequence[tuple[str, list[str]]], times: Sequence[TimeMention]) -> str:
    """The words that say what is meant: `in May` is no nearer to `in June` than to anything else."""
    dated = {term for time in times for term in lexemes(time.words)}
    return " ".join(word for word, terms in words if not dated.issuperset(terms)) or " ".join(word for word, _ in words)


def _weighted(words: Sequence[tuple[str, list[str]]], times: Sequence[TimeMention]) -> dict[str, SoughtTerm]:
    dated = {term for time in times for term in lexemes(time.words)}
    frame = _frame()
    own: dict[str, SoughtTerm] = {}
    for _, terms in words:
        for term in terms:
            if term not in own and len(own) < TERMS_MAX:
                weight = TIME_WEIGHT if term in dated else FRAME_WEIGHT if term in frame else 1.0
                own[term] = SoughtTerm(term, term_hash(term), weight)
    return own


def _stand_ins(
    own: dict[str, SoughtTerm], words: Sequence[tuple[str, list[str]]], kin: Kin | None, near: Kin | None
) -> tuple[SoughtTerm, ...]:
    """Terms that stand in for the asker's, which weigh the less the farther they are."""
    places = {term: place for place, term in enumerate(own)}
    added: dict[str, SoughtTerm] = {}
    for word, terms in words:
        whole = own.get(terms[0])
        if whole is None or not word.isalpha():
            continue
        found = [*(kin(word) if kin else ())]
        # Words that shape the question, and those of a time, need no others like them.
        found += near(word)[:NEAR_PER_WORD_MAX] if near and whole.weight == 1 else ()
        for other, nearness in found:
            term = _term_of(other)
            weight = whole.weight * (nearness - NEARNESS_MIN) / (1 - NEARNESS_MIN)
            if term and term not in own and weight > (added[term].weight if term in added else 0.0):
                added[term] = SoughtTerm(term, term_hash(term), weight, places[terms[0]])
    return tuple(added.values())


def _but_names(near: Kin, question: str) -> Kin:
    """Names have nothing near them: what is like `Rachel` is only another name."""
    names = {folded(word) for word in _INSIDE_CAPITAL.findall(question)}
    return lambda word: () if word in names else near(word)


_INSIDE_CAPITAL = pattern(r"(?<=[\w,;:'’\"“)] )[^\W\d_a-z][\w]+|(?<=['\"“‘(])[^\W\d_a-z][\w]+")


@lru_cache(maxsize=20_000)
def _term_of(word: str) -> str:
    return next(iter(lexemes(word)), "")


# Who is asked about.

_NAME_CHARS_MIN = 3
_WORDS = pattern(r"[^\W_]+")
_CAPITALISED = pattern(r"\b[^\W\d_a-z][^\W\d_]+")
# What `you` once said; not what you are asked to say now (`can you suggest`), which is answered by what the user told.
_OF_THE_ASSISTANT = pattern(
    lambda: (
        rf"\byou(?:['’]ve| have| had| also| just| previously| earlier| once)* (?:{cues.either('you said')})\b|"
        rf"\bdid you (?:\w+ )?(?:{cues.either('did you say')})\b|"
        rf"\b(?:{cues.either('have you')})\b[^.?!]{{0,40}}\b(?:{cues.either('have said')})\b"
    ),
    re.IGNORECASE,
)


def _speakers_named(question: str, speakers: Sequence[str]) -> dict[str, set[str]]:
    """The speakers whose name the question has, with the (folded) words that name them.

    A name is the whole of it, a word of it that no other speaker has, or a beginning of such a word as people shorten
    names. It must be written as a name: with a capital, unless the question has none at all.
    """
    if not 0 < len(speakers) <= SPEAKERS_MAX:
        return {}
    names = {speaker: _name_words(speaker) for speaker in speakers}
    capitals = {folded(word) for word in _CAPITALISED.findall(question)}
    said = _WORDS.findall(folded(question))
    written = capitals or set(said)
    spoken = f" {' '.join(said)} "
    shared = Counter(word for words in names.values() for word in set(words))
    called: dict[str, set[str]] = {}
    for speaker, words in names.items():
        own = [word for word in words if shared[word] == 1 and len(word) >= _NAME_CHARS_MIN]
        found = {one for one in written for name in own if one == name or (one in capitals and _shortens(one, name))}
        if words and f" {' '.join(words)} " in spoken and not written.isdisjoint(words):
            found.update(words)
        if found:
            called[speaker] = found
    return called


def _shortens(word: str, name: str) -> bool:
    return len(word) >= _NAME_CHARS_MIN and len(name) > len(word) and name.startswith(word)


@lru_cache(maxsize=SPEAKERS_MAX)
def _name_words(speaker: str) -> tuple[str, ...]:
    words = tuple(_WORDS.findall(folded(speaker)))
    return () if words and words[0] in ROLES and len(words) == 1 else words


# When.

# `participated in a week ago`: the little word belongs to the verb, and `in a week` would be the future.
_STRAY = pattern(
    r"\b(?:in|on|at)\s+(?=(?:an?|one|two|three|four|five|six|\d{1,3}|a (?:few|couple of))\s+(?:day|week|month|year)s?\s+ago\b)",
    re.IGNORECASE,
)
_UP_TO_NOW = pattern(r"\b(?:last|past|previous|recent)\b", re.IGNORECASE)
_ONE_DAY, _OTHER_DAY = datetime(2031, 3, 6, 12, tzinfo=UTC), datetime(2019, 10, 22, 12, tzinfo=UTC)


def _times(question: str, asked_at: datetime | None, zone: str) -> list[TimeMention]:
    text = _STRAY.sub(lambda stray: " " * len(stray[0]), question)
    if asked_at is not None:
        return find_times(text, asked_at, zone)
    # What means the same on two days far apart is absolute.
    other = {(time.start, time.first, time.last) for time in find_times(text, _OTHER_DAY, zone)}
    return [time for time in find_times(text, _ONE_DAY, zone) if (time.start, time.first, time.last) in other]


def _question_time(time: TimeMention, asked_at: datetime | None) -> QuestionTime | None:
    """The stretch in which an answer was said, or of which it speaks. Open beginnings and repetitions tell nothing of that."""
    if time.kind in ("recurring", "until"):
        return None
    last = time.last
    # What is asked of `the past month` was said in it or since: also `last month`, which is told of until today.
    if asked_at is not None and (time.kind == "since" or (time.kind == "span" and _UP_TO_NOW.search(time.words))):
        last = max(last, asked_at)
    age_us = max(0, to_us(asked_at) - to_us(last)) if asked_at is not None else 0
    return QuestionTime(to_us(time.first), to_us(last), SLACK_US + int(SLACK_OF_AGE * age_us))


@cache
def _frame() -> frozenset[str]:
    """The terms of words that shape a question more than they say what it is about."""
    return frozenset(lexemes(" ".join(cues.entries("frame of a question"))))
