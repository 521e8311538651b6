"""A judge of change: whether what is said now ends or replaces something that is known, in whatever words either was said.

It looks at pairs: a note, and a sentence of the user. What it sees are words that both share, the sides of a life that both are
about, words of ending and changing in four languages, whose doing it is, another number or day, and how much the sentence
sounds like a change at all (`judge`) and beside the note (`pair_words`). `changes.txt` holds the words;
`tools/build_judge.py` fits the weights on labelled pairs and writes `changes.json`.
What would leave the wrong thing standing is less bad than what takes away the right one: whatever the score, nothing is closed
by a question, a wish, a story, or what happened to somebody else.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache

from perdure.domain.text.patterns import pattern
from perdure.domain.values import dataclass
from perdure.engine.extraction.judge import JudgeTable, judge
from perdure.engine.knowledge.pair_words import PairTable, masked, pair_score, places
from perdure.engine.words import fitted, sections

FILE = "changes.json"
PHRASE_WORDS_MAX = 4
PREFIX_CHARS_MIN = 3
SAID_WORDS_MAX = 30
"""The labelled messages have fewer words than that: how much a longer one sounds like a change, nobody has learned."""
STEM_CHARS_MIN, PART_CHARS_MIN = 4, 5
"""Words are alike that begin with so many letters alike, or of which one, of so many letters, is part of the other."""
FAR = 12
"""Words further apart than this have nothing to do with one another."""

_WORD = pattern(r"[^\W_]+")
_CAPITAL = pattern(r"\b[A-ZÀ-Þ][\w'’-]+")
_NAME = pattern(r"\b[A-ZÀ-Þ0-9][\w'’-]+")
_FIRST = pattern(r"\W*([A-ZÀ-Þ]\w+) (?!and |und |et |y )")
_OWNER = pattern(r"(\w+)['’]s\b")


@dataclass(frozen=True, slots=True)
class WordsSaid:
    """A text as the judge of change sees it."""

    words: tuple[str, ...]
    cues: Mapping[str, int]
    """What is there of `changes.txt`, each heading with the place of its first word."""
    content: tuple[str, ...]
    """Words that carry what it is about."""
    topics: frozenset[str]
    slots: Mapping[str, frozenset[str]]
    """Its numbers, days and months."""
    sides: frozenset[str]
    """The sides of a life that it is about, and the people."""
    marks: frozenset[str]
    """Of its words, what two that are alike have in common: texts without a common one share no word."""


@cache
def _table() -> Mapping[str, float]:
    """Weights of the features, with `bias` and the score `from` which a note is closed."""
    return {name: float(weight) for name, weight in fitted(__package__, FILE).items()}


def closing(known: str, said: str) -> float:
    """How surely the words said end or replace what is known: from nought on they do. The same words, the same answer.

    That all of a note is no longer so ends it, whatever the rest sounds like.
    """
    note, told = taken_apart(known), taken_apart(said)
    if len(told.words) > SAID_WORDS_MAX or is_barred(seen := _features(known, said)):
        return -math.inf
    seen["beside"] = pair_score(pair_places(note, told))
    table = _table()
    score = table["bias"] + sum(table[name] * value for name, value in seen.items()) - table["from"]
    return max(score, 0.0) if seen["denied"] == 1.0 and not seen["name first"] else score


def closed_by(said: str, known: Sequence[str]) -> int | None:
    """Which of the notes the words said end or replace, if any: the surest."""
    told = taken_apart(said)
    if "?" in said or not _SAID_BARS.isdisjoint(told.cues):
        return None  # whatever the note
    scored = [(closing(note, said), -place) for place, note in enumerate(known) if are_linked(taken_apart(note), told)]
    best = max(scored, default=(-math.inf, 0))
    return -best[1] if best[0] >= 0 else None


def are_linked(note: WordsSaid, told: WordsSaid) -> bool:
    """Whether both share a topic or a word: else they have nothing to do with one another."""
    if not note.sides.isdisjoint(told.sides):
        return True
    if note.marks.isdisjoint(told.marks):
        return False
    return any(_alike(word, other) for word in note.content for other in told.content)


def is_barred(seen: Mapping[str, float]) -> bool:
    """Whether these features speak against any change, whatever the others say."""
    other = (seen["first is other"] or seen["other's"]) and (not seen["note of other"] or not seen["same person"])
    return bool(other or any(seen[name] for name in _BARS) or not seen["linked"])


_SAID_BARS = frozenset(("fiction", "still", "news"))
_BARS = ("asks", "says fiction", "owner", "says still", "says news", "note happened")
_SAID = (
    "end",
    "change",
    "negation",
    "more",
    "still",
    "wish",
    "fiction",
    "once",
    "second",
    "past",
    "question",
    "self",
    "other",
    "news",
)
_PLACED = ("end", "change", "self", "other", "negation")
SLOTS = ("number", "day", "month")
_NOTED = ("partner", "family", "person", "pet", "work", "home", "vehicle", "event")


def features(known: str, said: str, taught: JudgeTable | None = None, beside: PairTable | None = None) -> dict[str, float]:
    """What the judge goes by, by name. `taught`, `beside`: how sentences sound alone and beside notes, if not by the tables
    that are shipped.
    """
    return _features(known, said, taught) | {"beside": pair_score(pair_places(taken_apart(known), taken_apart(said)), beside)}


def _features(known: str, said: str, taught: JudgeTable | None = None) -> dict[str, float]:
    """The same, but for how the sentence sounds beside the note: that takes long, and most pairs are barred without it."""
    note, told = taken_apart(known), taken_apart(said)
    heard = judge(said, taught)
    hits = [word for word in note.content if any(_alike(word, other) for other in told.content)]
    at = _shared(note.content, told.words)
    shared, names = note.topics & told.topics, _names(known)
    named = sum(any(_alike(name, word) for word in told.words) for name in names)
    seen = {f"says {cue}": float(cue in told.cues) for cue in _SAID}
    seen |= {f"where {cue}": float(min(told.cues.get(cue, FAR), FAR)) for cue in _PLACED}
    seen |= {f"note of {topic}": float(f"topic: {topic}" in note.cues) for topic in _NOTED}
    seen |= _whose(note, told, said) | _slots(note, told)
    cued = [told.cues[cue] for cue in ("end", "change") if cue in told.cues]
    linked = float(bool(hits)) + float(bool(shared)) + seen["same role"]
    new = [word for found in _CAPITAL.finditer(said, 1) for word in _plain_words(found[0]) if word not in note.content]
    return seen | {
        "asks": float("?" in said),
        "turn": heard.turn,
        "lasts": heard.score,
        "beside": 0.0,
        "hits": float(min(len(hits), 3)),
        "share of note": len(hits) / max(1, len(note.content)),
        "share of said": len(at) / max(1, len(told.content)),
        "longest hit": float(min(max(map(len, hits), default=0), FAR)),
        "first hit": float(min(at[0] if at else FAR, FAR)),
        "named": float(min(named, 2)),
        "note names": float(bool(names)),
        "shared topics": float(min(len(shared), 3)),
        "other topics": float(bool(note.topics and told.topics and not shared)),
        "linked": linked,
        "linked end": linked * seen["says end"],
        "linked change": linked * seen["says change"],
        "linked turn": (linked > 0) * heard.turn,
        "hit turn": bool(hits) * heard.turn,
        "topic turn": bool(shared) * heard.turn,
        "no longer": seen["says negation"] * seen["says more"],
        "denied": len(hits) / max(1, len(note.content)) * seen["says negation"] * seen["says more"],
        "note denies": float("deny" in note.cues),
        "note of self": float("self" in note.cues),
        "note words": float(min(len(note.words), 30)),
        "note happened": float("happened" in note.cues),
        "both deny": float("deny" in note.cues and "deny" in told.cues),
        "denied no more": float("deny" in note.cues and "deny" not in told.cues and bool(hits or shared)),
        "named elsewhere": float(bool(named and not shared and note.topics and told.topics) and seen["note of person"] > 0),
        "near": float(min((abs(one - two) for one in at for two in cued), default=FAR)),
        "new name": float(min(len(new), 2)),
        "words": float(min(len(told.words), 30)),
        "death": float("death" in told.cues),
        "plain end": float("plain end" in told.cues),
        "and I": float("and I" in told.cues),
    }


def pair_places(note: WordsSaid, told: WordsSaid) -> list[int]:
    """The places of a note and a sentence in the table of pairs."""
    shared = {told.words[place] for place in _shared(note.content, told.words)}
    return places(told.words, masked(told.words, shared, _entries("person")), note.topics)


@lru_cache(maxsize=16)
def _shared(content: tuple[str, ...], words: tuple[str, ...]) -> tuple[int, ...]:
    """The places of those words that a note has, too."""
    return tuple(place for place, word in enumerate(words) if any(_alike(one, word) for one in content))


def _slots(note: WordsSaid, told: WordsSaid) -> dict[str, float]:
    """Whether both name a number, a day or a month, and the same one or another."""
    found: dict[str, float] = {}
    for slot in SLOTS:
        held, new = note.slots[slot], told.slots[slot]
        found[f"same {slot}"] = float(not held.isdisjoint(new))
        found[f"other {slot}"] = float(bool(held and new) and held.isdisjoint(new))
    return found


def _of_slot(words: Sequence[str], slot: str) -> frozenset[str]:
    exact, prefixes = _headings()
    return frozenset(
        word
        for word in words
        if slot in exact.get(word, ())
        or any(slot in prefixes.get(word[:size], ()) for size in range(PREFIX_CHARS_MIN, len(word) + 1))
        or (slot == "number" and word[0].isdigit())
    )


def _whose(note: WordsSaid, told: WordsSaid, said: str) -> dict[str, float]:
    """Whether the words tell of the user, or of somebody whom the note does not name."""
    people, before = _entries("person"), _entries("before a person")
    roles = {one for one in note.cues if one.startswith("who: ")}
    strange = [
        place
        for place, word in enumerate(told.words)
        if word in people and not any(_alike(word, one) for one in note.words) and roles.isdisjoint(_headings()[0][word])
    ]
    owners = [_plain(found[1]) for found in _OWNER.finditer(said)]
    first = _FIRST.match(said)
    return {
        "first is other": float(bool(strange) and strange[0] <= 3),
        "other's": float(any(before & set(told.words[max(0, place - 2) : place]) for place in strange)),
        "owner": float(any(one not in _entries("is") and not any(_alike(one, word) for word in note.words) for one in owners)),
        "note of other": float(any(word in people for word in note.words)),
        "same person": float(any(word in people and any(_alike(word, one) for one in told.words) for word in note.words)),
        "same role": float(not roles.isdisjoint(told.cues)),
        "name first": float(first is not None and told.words[:1] == (_plain(first[1]),) and _is_new(told.words[0], note)),
        "of nobody": float("self" not in told.cues),
        "first is self": float(told.cues.get("self", FAR) <= 1),
    }


def _is_new(word: str, note: WordsSaid) -> bool:
    """Whether a word is a name, as far as one can tell, that the note does not have."""
    return word not in _headings()[0] and word not in _empty() and not any(_alike(word, one) for one in note.words)


@lru_cache(maxsize=2_000)
def taken_apart(text: str) -> WordsSaid:
    """A text in words, with what the judge of change finds there."""
    words = tuple(_plain_words(text))
    exact, prefixes = _headings()
    cues: dict[str, int] = {}
    for start, word in enumerate(words):
        for size in range(1, PHRASE_WORDS_MAX + 1):
            for heading in exact.get(" ".join(words[start : start + size]), ()):
                cues.setdefault(heading, start)
        for size in range(PREFIX_CHARS_MIN, len(word) + 1):
            for heading in prefixes.get(word[:size], ()):
                cues.setdefault(heading, start)
    empty = _empty()
    content = tuple(word for word in words if word not in empty and (len(word) > 2 or word.isdigit()))
    topics = frozenset(heading for heading in cues if heading.startswith("topic: "))
    return WordsSaid(
        words=words,
        cues=cues,
        content=content,
        topics=topics,
        slots={slot: _of_slot(words, slot) for slot in SLOTS},
        sides=frozenset(one for one in cues if one.startswith(("topic: ", "who: "))),
        marks=frozenset(mark for word in content for mark in _marks(word)),
    )


def _marks(word: str) -> Iterator[str]:
    """The word and how it begins, and each run of letters that a part of it, which is a word, could begin with."""
    yield word
    if len(word) >= STEM_CHARS_MIN and not word.isdigit():
        yield word[:STEM_CHARS_MIN]
        yield from (word[start : start + PART_CHARS_MIN] for start in range(len(word) - PART_CHARS_MIN + 1))


@lru_cache(maxsize=2_000)
def _names(known: str) -> frozenset[str]:
    """Names and numbers of a note, but for its first word."""
    found = {word for match in _NAME.finditer(known, 1) for word in _plain_words(match[0])}
    return frozenset(found - _empty())


@lru_cache(maxsize=50_000)
def _alike(one: str, other: str) -> bool:
    """Whether two words are forms of one, or one is part of the other."""
    if one == other:
        return True
    shorter = min(len(one), len(other))
    if shorter < STEM_CHARS_MIN or one.isdigit() or other.isdigit():
        return False
    stem = max(STEM_CHARS_MIN, shorter - 2)
    if one[:stem] == other[:stem] and max(len(one), len(other)) - stem <= 5:
        return True
    return shorter >= PART_CHARS_MIN and (one in other or other in one)


def _plain_words(text: str) -> list[str]:
    return _WORD.findall(_plain(text))


def _plain(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text.lower().replace("ß", "ss"))
    return re.sub(r"['’]", "", "".join(char for char in apart if not unicodedata.combining(char)))


@cache
def _headings() -> tuple[Mapping[str, tuple[str, ...]], Mapping[str, tuple[str, ...]]]:
    """The headings of each entry, and of each beginning of words."""
    exact: dict[str, tuple[str, ...]] = {}
    prefixes: dict[str, tuple[str, ...]] = {}
    for heading, entries in _lists().items():
        for entry in entries:
            held, key = (prefixes, entry[:-1]) if entry.endswith("*") else (exact, entry)
            held[key] = (*held.get(key, ()), heading)
    return exact, prefixes


@cache
def _empty() -> frozenset[str]:
    """Words that do not tell what a text is about."""
    cues = (*(heading for heading in _SAID if heading not in ("fiction", "other")), "empty")
    return frozenset(entry for heading in cues for entry in _entries(heading) if " " not in entry)


@cache
def _entries(heading: str) -> frozenset[str]:
    return frozenset(_lists()[heading])


@cache
def _lists() -> Mapping[str, tuple[str, ...]]:
    """The entries of `changes.txt` by heading; commas part those of a line."""
    found = sections(__package__, "changes.txt")
    return {heading: tuple(one.strip() for line in rows for one in line.split(",")) for heading, rows in found.items()}
