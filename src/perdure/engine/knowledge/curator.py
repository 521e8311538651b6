"""What a curator would do: fold what is scattered, flag what clashes. It archives, and leaves pinned memories alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import combinations, product

from perdure.domain.knowledge.memories import OWN_WORDS, USER, MemoryRecord, Statement, record_key
from perdure.domain.text.patterns import pattern
from perdure.domain.values import dataclass, replace
from perdure.engine.extraction.predicates import is_single_valued
from perdure.engine.knowledge.sameness import is_negative, meaning, same_value, words_in_order
from perdure.engine.words import sections

DUE_AFTER = timedelta(hours=24)
DUE_MEMORIES = 25
FOLD_MEMORIES_MIN = 3
FOLD_STATEMENTS_MIN = 5
FOLDS_MAX = 5
"""Of one run, as in the origin."""
FOLD_IMPORTANCE = 2
CLASH_SHARE = 0.6
"""Of the words of a statement, so many must be denied."""
DENIAL = "one denies what the other says"
READ = "said again in words that a rule reads"
TEXT_CHARS_MAX = 200
"""A longer text says more than one thing."""

_NAMED = frozenset(("name", "lives_in", "from", "works_at", "studies_at"))
_COUNTED = frozenset(("birthday", "birth_year", "phone"))
_WHO = r"(?:(?i:the|my) )?[^\W_]+(?:['’]s)?|[A-Z][\w.-]*(?: [A-Z][\w.'’-]*){1,3}"
_TELLS = pattern(lambda: rf"(?:(?P<who>{_WHO}) )??(?:(?i:is) (?P<age>\d{{1,3}})(?i: years old)|{_wordings()})")
_OWN = frozenset(("", "i", "user", "currently", "now", "still"))
_LEADING = pattern(r"(?:(?:my|the)(?: |$))+")
_PARTLY = pattern(lambda: rf"\b(?:{'|'.join(_listed('partly'))})\b", re.IGNORECASE)
_TAIL = pattern(lambda: rf"[,;(]|\.\s|\s(?:{'|'.join(_listed('more'))})\s", re.IGNORECASE)
_ARTICLE = pattern(r"^(?:an?|the) ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fold:
    """Several memories of one entity as one. Their current statements move into it; each keeps its id and its past."""

    into: MemoryRecord
    statements: tuple[Statement, ...]
    originals: tuple[MemoryRecord, ...]


@dataclass(frozen=True, slots=True)
class Clash:
    """Two current statements that can hardly both be so."""

    one: Statement
    other: Statement
    why: str


def is_due(now: datetime, memories: int, ran_at: datetime | None, memories_then: int | None) -> bool:
    """After a day, or after enough new memories; never without any."""
    if memories == 0:
        return False
    if ran_at is None:
        return True
    return now - ran_at >= DUE_AFTER or memories - (memories_then or 0) >= DUE_MEMORIES


def folds(memories: Sequence[MemoryRecord], statements: Mapping[str, Sequence[Statement]], now: datetime) -> list[Fold]:
    """Which memories to fold: those of one primary entity and one visibility, if they are many and none is pinned."""
    groups: dict[tuple[str, str, str | None], list[MemoryRecord]] = {}
    for memory in memories:
        if memory.entities and not memory.pinned and memory.status == "ACTIVE" and memory.source != "curated_fold":
            groups.setdefault((memory.entities[0], memory.type, memory.visible_to), []).append(memory)
    made = []
    for (ref, _, _), group in sorted(groups.items(), key=lambda one: (-len(one[1]), one[0][0])):
        said = [statement for memory in group for statement in statements.get(memory.record_key, ())]
        if len(group) >= FOLD_MEMORIES_MIN and len(said) >= FOLD_STATEMENTS_MIN:
            made.append(_fold(ref, group, said, now))
    return made[:FOLDS_MAX]


def _fold(ref: str, group: Sequence[MemoryRecord], said: Sequence[Statement], now: datetime) -> Fold:
    first = min(group, key=lambda memory: memory.created_at)
    entity_type, _, slug = ref.partition(":")
    # A key of its own, so that what is said next still finds the memory of its own kind of fact.
    key = f"{first.type.lower()}|{entity_type}|{slug}|fold"
    into = MemoryRecord(
        key=key,
        type=first.type,
        entity_type=first.entity_type,
        fact_type="fact",
        entities=tuple(dict.fromkeys(ref for memory in group for ref in memory.entities)),
        label=first.label,
        created_at=now,
        updated_at=now,
        importance=max(FOLD_IMPORTANCE, *(memory.importance for memory in group)),
        source="curated_fold",
        confidence=min(memory.confidence for memory in group),
        visible_to=first.visible_to,
        folds=tuple(memory.record_key for memory in group),
    )
    home = record_key(key, first.visible_to)
    moved = tuple(replace(one, memory=home) for one in sorted(said, key=lambda one: (one.recorded_at, one.id)))
    originals = tuple(
        replace(memory, status="ARCHIVED", folded_into=home, updated_at=now, told=_ids_of(memory, said)) for memory in group
    )
    return Fold(into, moved, originals)


def read_since(statements: Sequence[Statement], now: datetime) -> Iterator[Statement]:
    """Statements in the user's own words, closed, of which another one has read every word that matters from what was said
    later.
    """
    current = [one for one in statements if one.is_current(now)]
    read: dict[tuple[str, int], list[Statement]] = {}
    for one in current:
        if one.source != OWN_WORDS and one.attribute is not None:
            for word in meaning(one.content):
                read.setdefault(word, []).append(one)
    for own in current:
        told = meaning(own.content) if own.source == OWN_WORDS else ()
        words = {(word, count) for word, count in told if word not in _listed("naming")}
        for one in read.get(min(words), ()) if words else ():
            later = one.last_mentioned > own.last_mentioned and one.trust == own.trust and one.visible_to == own.visible_to
            if later and words <= meaning(one.content) and is_negative(own.content) == is_negative(one.content):
                yield own.closed(valid_to=max(own.valid_from, one.valid_from), at=now, by=one.id, reason=READ)
                break


def _ids_of(memory: MemoryRecord, said: Sequence[Statement]) -> tuple[str, ...]:
    return tuple(one.id for one in said if one.memory == memory.record_key)


def clashes(statements: Sequence[Statement]) -> Iterator[Clash]:
    """Pairs that look contradictory, the newer one first. Only suggested, never acted on."""
    groups: dict[tuple[str, str | None], list[Statement]] = {}
    for one in sorted((one for one in statements if one.is_live()), key=lambda one: (one.recorded_at, one.id)):
        groups.setdefault((one.subject, one.visible_to), []).append(one)
    for group in groups.values():
        yield from _rival_values(group)
        yield from _denials(group)


def _rival_values(group: Sequence[Statement]) -> Iterator[Clash]:
    told: dict[tuple[str, str], dict[str, tuple[Statement, str]]] = {}
    for one in group:
        if (known := _value_of(one)) is not None:
            # Of those that give one value in the same words, the newest speaks for all.
            told.setdefault((known.who, known.attribute), {})[known.value.casefold()] = (one, known.value)
    for (_, attribute), values in told.items():
        for (older, value), (newer, other) in combinations(values.values(), 2):
            if _overlap(older, newer) and are_rivals(attribute, value, other):
                when = newer.last_mentioned.date().isoformat()
                yield Clash(newer, older, f"two values of {attribute}, the newer of {when}")


def _denials(group: Sequence[Statement]) -> Iterator[Clash]:
    pairs = {*denied_pairs([one.content for one in group]), *_denied_values(group)}
    for said, denial in sorted(pairs):
        newer, older = group[max(said, denial)], group[min(said, denial)]
        if _overlap(newer, older):
            yield Clash(newer, older, DENIAL)


def _denied_values(group: Sequence[Statement]) -> Iterator[tuple[int, int]]:
    """Places of statements of one attribute and value, one of which denies it."""
    said: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
    for place, one in enumerate(group):
        if one.attribute is not None and one.value is not None:
            sides = said.setdefault((one.attribute, one.value.casefold()), ([], []))
            sides[is_negative(one.content)].append(place)
    for affirmed, denied in said.values():
        yield from product(affirmed, denied)


def _value_of(statement: Statement) -> AttributeValue | None:
    """The value of what has one at a time, by the attribute or, without one, by the words."""
    if statement.attribute is None:
        known = value_in_words(statement.content)
        # Whose words they are, the subject tells better than the words; without one they may be about anybody.
        return known if known is None or statement.subject == USER else replace(known, who="")
    if not is_single_valued(statement.attribute) or not statement.value or is_negative(statement.content):
        return None
    return AttributeValue("", statement.attribute, statement.value)


def _overlap(one: Statement, other: Statement) -> bool:
    return (other.valid_to is None or one.valid_from < other.valid_to) and (
        one.valid_to is None or other.valid_from < one.valid_to
    )


# -- contradictions between texts


@dataclass(frozen=True, slots=True)
class AttributeValue:
    """What a text says of an attribute that has one value at a time. `who` is empty for the user."""

    who: str
    attribute: str
    value: str


@lru_cache(maxsize=4096)
def value_in_words(text: str) -> AttributeValue | None:
    """`Lives in Rome`, `Anna lives in Rome`; None for all that is worded in another way, doubted, or only partly so."""
    found = _TELLS.fullmatch(text.strip().rstrip(".!")) if len(text) <= TEXT_CHARS_MAX else None
    if found is None or is_negative(text) or _PARTLY.search(text):
        return None
    attribute = found.lastgroup or ""
    value = found[attribute].strip()
    who = _LEADING.sub("", (found["who"] or "").replace("’", "'").removesuffix("'s").casefold())
    if who in _listed("doubt") or (attribute in _NAMED and not (value[0].isupper() or value[0].isdigit())):
        return None
    if attribute in _COUNTED and not any(char.isdigit() for char in value):
        return None
    if attribute == "favorite":
        attribute = f"favorite_{found['what'].lower()}"
    return AttributeValue("" if who in _OWN else who, attribute, value)


def are_rivals(attribute: str, one: str, other: str) -> bool:
    """Whether two values can hardly both be so: neither is the other in other words, nor only says more."""
    words, others = {word for word, _ in meaning(one)}, {word for word, _ in meaning(other)}
    if not words or not others or words <= others or others <= words:
        return False
    first, second = _ARTICLE.sub("", one), _ARTICLE.sub("", other)
    heads = _TAIL.split(first)[0], _TAIL.split(second)[0]
    return not same_value(attribute, first, second) and not same_value(attribute, *heads)


def denied_pairs(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Places of a text and of another that denies it: the same words in order, from the first on.

    What is said may have more words: who does not like tea does not like green tea. The denial may not: who does not
    drink coffee in the evening drinks coffee.
    """
    words = [_carrying(text) for text in texts]
    negative = [is_negative(text) for text in texts]
    saying: dict[str, list[int]] = {}
    for place, said in enumerate(words):
        if not negative[place]:
            for word in dict.fromkeys(said):
                saying.setdefault(word, []).append(place)
    for place, denied in enumerate(words):
        if negative[place] and denied:
            fewest = min((saying.get(word, []) for word in denied), key=len)
            yield from ((said, place) for said in fewest if _is_denied(words[said], denied))


@lru_cache(maxsize=10_000)
def _carrying(text: str) -> tuple[str, ...]:
    loose = _listed("loose")
    return tuple(word for word in words_in_order(text) if word not in loose and not is_negative(word))


def _is_denied(said: tuple[str, ...], denied: tuple[str, ...]) -> bool:
    if said[0] != denied[0] or len(denied) < CLASH_SHARE * len(said):
        return False
    rest = iter(said)
    return all(word in rest for word in denied)


def _listed(heading: str) -> tuple[str, ...]:
    return sections(__package__, "statements.txt")[heading]


def _wordings() -> str:
    """How a statement of what has one value at a time goes on, by attribute."""
    by_heading = ((heading.partition(": "), entries) for heading, entries in sections(__package__, "statements.txt").items())
    return "|".join(
        rf"(?i:{'|'.join(entries)}) (?P<{attribute}>.+)" for (kind, _, attribute), entries in by_heading if kind == "attribute"
    )
