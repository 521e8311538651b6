"""The blocks of a context that are lists: facts, instructions, lessons, todos, coverage, and what was found for a goal.

A list is cut between its lines, never within a budget it does not have; what was found is chosen by rank and shown in the
order in which it was said, with its date and its speaker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import lru_cache

from perdure.domain.context.context import Block
from perdure.domain.context.recall import Hit
from perdure.domain.knowledge.memories import ROLE_OF_TRUST, UNTRUSTED, Proposed, Trust
from perdure.domain.values import dataclass, replace
from perdure.engine.text.sentences import cut_text

Count = Callable[[str], int]
# With these a name could end the label it stands in, and begin another's words.
_IN_NAMES = re.compile(r"[^\w.@/+' -]")
SEPARATOR = "\n\n"
EXCERPT_SHARE = 0.3
"""One hit may take so much of the room for what was found; of a longer text, the beginning is shown."""
EXCERPT_CHARS_MIN = 120
TOKENS_PER_CHAR_MAX = 4
"""No tokeniser makes more of a character: what is far too short to exceed its share need not be counted."""
SPEAKER_CHARS_MAX = 40
UNTRUSTED_SHARE = 0.5
"""Of the room of any block, so much at most goes to anybody's words: a flood of them cannot push out what the user said."""
MISSES_MAX = 8
"""After so many hits in a row that do not fit, the rest is not tried."""


@dataclass(frozen=True, slots=True)
class ListLine:
    """One line of a list, and what it tells of: ids of statements, messages or other things."""

    text: str
    sources: tuple[str, ...] = ()
    weight: float = 0.0
    """When not all lines fit, those with the highest stay; of equals the first."""
    trust: Trust = "user"
    """Whose words it has. Any but the user's are marked as such."""


@dataclass(frozen=True, slots=True)
class ContextList:
    """A list that may be cut. `left_out` of it are not even here."""

    kind: str
    title: str
    source: str
    lines: tuple[ListLine, ...]
    share: float
    """How much of the whole budget it may take."""
    volatile: bool = False
    left_out: int = 0
    notes: tuple[str, ...] = ()
    """What went wrong when it was put together."""


def with_cost(block: Block, count: Count) -> Block:
    """`block` with what it costs, and what separates it from the next one."""
    return replace(block, tokens=count(block.render() + SEPARATOR))


def listed_block(listed: ContextList, tokens_max: int, count: Count, dropped: list[str]) -> Block | None:
    """All lines if they fit, else as many as do, by weight, in their order; None if not even one does.

    Of those that anybody may have written, as many as their share of the room holds.
    """
    listed = _within_share(listed, int(tokens_max * UNTRUSTED_SHARE), count)
    block = _of_lines(listed, len(listed.lines), count)
    kept = len(listed.lines)
    while block is not None and block.tokens > tokens_max:
        # By proportion first, then one by one: lines differ in length.
        kept = min(kept - 1, max(1, int(kept * tokens_max / block.tokens))) if kept > 1 else 0
        block = _of_lines(listed, kept, count)
    if block is not None:
        while kept < len(listed.lines):
            more = _of_lines(listed, kept + 1, count)
            if more is None or more.tokens > tokens_max:
                break
            block, kept = more, kept + 1
    missing = len(listed.lines) - kept + listed.left_out
    if missing:
        dropped.append(f"{listed.title}: {missing} of {len(listed.lines) + listed.left_out} left out")
    return block


def _within_share(listed: ContextList, tokens_max: int, count: Count) -> ContextList:
    """The list without the lightest of its untrusted lines, such that the others cost no more than that."""
    doubtful = [place for place, line in enumerate(listed.lines) if line.trust in UNTRUSTED]
    kept: set[int] = set()
    left = tokens_max
    for place in sorted(doubtful, key=lambda place: -listed.lines[place].weight):
        left -= count(listed.lines[place].text) + 2
        if left < 0:
            break
        kept.add(place)
    gone = set(doubtful) - kept
    lines = tuple(line for place, line in enumerate(listed.lines) if place not in gone)
    return replace(listed, lines=lines, left_out=listed.left_out + len(gone))


def mark(trust: Trust | None) -> str:
    """How a thing is marked that is not in the user's own words; empty for what is."""
    return "" if trust in (None, "user") else f" ({ROLE_OF_TRUST[trust]})"


def _of_lines(listed: ContextList, count_lines: int, count: Count) -> Block | None:
    if not count_lines:
        return None
    heaviest = sorted(range(len(listed.lines)), key=lambda place: -listed.lines[place].weight)[:count_lines]
    lines = [listed.lines[place] for place in sorted(heaviest)]
    sources = tuple(source for line in lines for source in line.sources)
    # A line break in a text must not begin another line.
    text = "\n".join(" ".join(_marked(line).split()) for line in lines)
    return with_cost(
        Block(
            kind=listed.kind,
            title=listed.title,
            source=listed.source,
            text=text,
            tokens=0,
            volatile=listed.volatile,
            sources=sources,
        ),
        count,
    )


def _marked(line: ListLine) -> str:
    """The line with its mark behind the bullet: at its end, the words themselves could have one."""
    if not mark(line.trust):
        return line.text
    return f"-{mark(line.trust)} {line.text.removeprefix('- ')}"


@dataclass(frozen=True, slots=True)
class _HitText:
    hit: Hit
    text: str
    whole: bool


@dataclass(frozen=True, slots=True)
class _HitLine:
    """What was found as it stands in a block."""

    hit: Hit
    whole: bool
    day: tuple[str, str]
    words: tuple[str, str, str]
    """The same words of the same day are told once."""
    line: str
    tokens: int


def found_block(
    cards: Sequence[EntityCard], hits: Sequence[Hit], tokens_max: int, count: Count, dropped: list[str]
) -> Block | None:
    """Cards on top, then the best of what was found, within the budget; of untrusted things, no more than their share."""
    return FoundLines(cards, hits, tokens_max, count).block(dropped)


class FoundLines:
    """Cards and what was found, for one room. A line is made and counted once, however often it is packed."""

    def __init__(self, cards: Sequence[EntityCard], hits: Sequence[Hit], tokens_max: int, count: Count) -> None:
        self._most, self._count = tokens_max, count
        self._untrusted_most = int(tokens_max * UNTRUSTED_SHARE)
        self._cards, self._untrusted = _cards_within(cards, self._untrusted_most, count)
        self._card_lines = [card.line for card in self._cards]
        while (top := _memories_block(self._card_lines, [], count)).tokens > tokens_max and self._card_lines:
            self._card_lines.pop()
        self._top_tokens = top.tokens if self._card_lines else count(top.render())
        self._carded = [fact.id for card in self._cards[: len(self._card_lines)] for fact in card.facts]
        told = set(self._carded)
        self._hits = [hit for hit in hits if hit.id not in told]
        self._made: dict[int, _HitLine] = {}

    def block(self, dropped: list[str], shown: Collection[str] = ()) -> Block | None:
        """The block without the things that are `shown` elsewhere; None if there is nothing to tell."""
        wanted = [place for place, hit in enumerate(self._hits) if hit.id not in shown]
        chosen = self._chosen(wanted)
        block = _memories_block(self._card_lines, chosen, self._count)
        while chosen and block.tokens > self._most:
            chosen.pop()
            block = _memories_block(self._card_lines, chosen, self._count)
        if len(chosen) < len(wanted):
            dropped.append(f"{len(wanted) - len(chosen)} of {len(wanted)} things that were found")
        if len(self._card_lines) < len(self._cards):
            dropped.append(f"{len(self._cards) - len(self._card_lines)} of {len(self._cards)} entity cards")
        if not self._card_lines and not chosen:
            return None
        return replace(block, sources=tuple(dict.fromkeys((*self._carded, *(one.hit.id for one in chosen if one.whole)))))

    def _chosen(self, wanted: Sequence[int]) -> list[_HitLine]:
        chosen: list[_HitLine] = []
        days: set[tuple[str, str]] = set()
        said: set[tuple[str, str, str]] = set()
        spent, doubtful, misses = self._top_tokens, self._untrusted, 0
        for place in wanted:
            one = self._line(place)
            if one.hit.kind == "message" and one.words in said:
                continue  # the same words of the same day, once
            cost = one.tokens + 2 + (0 if one.day in days else self._count(_heading(one.hit)) + 2)
            untrusted = one.hit.trust in UNTRUSTED
            if untrusted and doubtful + cost > self._untrusted_most:
                continue  # no miss: however many there are, what the user said comes after them
            if spent + cost > self._most:
                misses += 1
                if misses > MISSES_MAX:
                    break
                continue
            misses = 0
            chosen.append(one)
            days.add(one.day)
            said.add(one.words)
            spent += cost
            doubtful += cost if untrusted else 0
        return chosen

    def _line(self, place: int) -> _HitLine:
        made = self._made.get(place)
        if made is None:
            hit = self._hits[place]
            shown = _excerpt(hit, max(1, int(self._most * EXCERPT_SHARE)), self._count)
            day, speaker = _day(hit), _speaker(hit)
            line = _line(shown, speaker)
            made = _HitLine(hit, shown.whole, day, (day[0], speaker, shown.text), line, self._count(line))
            self._made[place] = made
        return made


def _cards_within(cards: Sequence[EntityCard], tokens_max: int, count: Count) -> tuple[Sequence[EntityCard], int]:
    """The cards without the untrusted facts that are beyond the share, and what the others of those cost."""
    kept: list[EntityCard] = []
    spent = 0
    for card in cards:
        facts = []
        for fact in card.facts:
            cost = count(fact.text) + 2 if fact.trust in UNTRUSTED else 0
            if spent + cost <= tokens_max:
                facts.append(fact)
                spent += cost
        if facts:
            kept.append(replace(card, facts=tuple(facts)))
    return kept, spent


def _memories_block(cards: Sequence[str], chosen: Sequence[_HitLine], count: Count) -> Block:
    # What is known comes first, the newest on top: of two that clash, that is the one which holds.
    known = sorted((one for one in chosen if one.hit.kind == "memory"), key=lambda one: one.hit.at, reverse=True)
    parts = [*cards, *(one.line for one in known)]
    day: tuple[str, str] | None = None
    said = (one for one in chosen if one.hit.kind != "memory")
    for one in sorted(said, key=lambda one: (one.hit.at, one.hit.seq or 0)):
        if one.day != day:
            day = one.day
            parts.append(_heading(one.hit))
        parts.append(one.line)
    block = Block("memories", "Relevant memories", "found for this goal, oldest first", "\n".join(parts), 0, volatile=True)
    return with_cost(block, count)


def _day(hit: Hit) -> tuple[str, str]:
    return hit.at.date().isoformat(), hit.session or ""


def _heading(hit: Hit) -> str:
    return (
        f"On {hit.at:%Y-%m-%d}:"
        if hit.session is None
        else f"On {hit.at:%Y-%m-%d}, session {' '.join(_IN_NAMES.sub(' ', hit.session[-8:]).split())}:"
    )


def _line(shown: _HitText, speaker: str) -> str:
    hit = shown.hit
    if hit.kind == "message":
        return f"- {speaker}: {shown.text}{_now(hit)}"
    if hit.kind == "memory" and hit.proposes is not None:
        return f"- {PROPOSED[hit.proposes]}{mark(hit.trust)}: {shown.text}{_now(hit)}"
    if hit.kind == "memory":
        return f"- known{_validity(hit)}{mark(hit.trust)}: {shown.text}"
    return f"- {hit.kind}{mark(hit.trust)}: {shown.text}"


PROPOSED: dict[Proposed, str] = {
    "value": "proposed, not confirmed by the user",
    "end": "proposed to be over, not confirmed by the user",
    "correction": "proposed as a correction, not confirmed by the user",
}


def _now(hit: Hit) -> str:
    """What holds now instead, behind words that say otherwise."""
    told = "; ".join(" ".join(one.text.split()) for one in hit.current)
    return f" [what holds now: {told}]" if told else ""


def _speaker(hit: Hit) -> str:
    """The name on one line, with the role that it cannot take from itself."""
    return _named(hit.speaker, ROLE_OF_TRUST["import" if hit.trust is None else hit.trust])


@lru_cache(maxsize=256)
def _named(speaker: str, role: str) -> str:
    name = " ".join(_IN_NAMES.sub(" ", speaker).split())[:SPEAKER_CHARS_MAX] or role
    return name if name == role else f"{name} ({role})"


def _validity(hit: Hit) -> str:
    if hit.valid_to is not None:
        return f" until {_date(hit.valid_to)}"
    return f" since {_date(hit.valid_from)}" if hit.valid_from is not None else ""


def _date(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d}"


def _excerpt(hit: Hit, tokens_max: int, count: Count) -> _HitText:
    """The text on one line's terms: without line breaks, and not longer than its share."""
    text = " ".join(hit.text.split())
    if len(text) * TOKENS_PER_CHAR_MAX <= tokens_max or (tokens := count(text)) <= tokens_max:
        return _HitText(hit, text, whole=True)
    chars = max(EXCERPT_CHARS_MIN, int(len(text) * tokens_max / tokens))
    while chars > EXCERPT_CHARS_MIN and count(cut_text(text, chars)) + 2 > tokens_max:
        chars = int(chars * 0.85)
    return _HitText(hit, f"{cut_text(text, chars)} […]", whole=False)


FACTS_MAX = 3


IMPORTANCE_MIN = 2


CARDS_MAX = 12


_MARKS: dict[Trust, str] = {"user": "", "agent": " (assistant)", "tool": " (tool)", "import": " (import)"}


@dataclass(frozen=True, slots=True)
class CardFact:
    """A current statement with what decides whether it stands on a card."""

    id: str
    text: str
    entities: tuple[str, ...]
    importance: int
    pinned: bool
    created_at: datetime
    trust: Trust = "user"


@dataclass(frozen=True, slots=True)
class EntityCard:
    entity: str
    facts: tuple[CardFact, ...]

    @property
    def line(self) -> str:
        """A line for the user's words, and one for those of each other source, which is named: facts may hold semicolons."""
        lines = []
        for trust, mark in _MARKS.items():
            # On one line: a line break in a fact must not begin another card.
            facts = [" ".join(fact.text.split()).rstrip(".;") for fact in self.facts if fact.trust == trust]
            lines += [f"[{self.entity}]{mark}: {'; '.join(facts)}"] if facts else []
        return "\n".join(lines)


def cards_of(
    entities: Sequence[str], facts: Iterable[CardFact], *, shown: frozenset[str] = frozenset()
) -> tuple[EntityCard, ...]:
    """One card for each of `entities` that has facts worth one, in their order; each fact stands on one card only.

    Worth it is what is pinned, or has an importance of at least 2; pinned first, then by importance, then the newest.
    """
    worth = [fact for fact in facts if (fact.pinned or fact.importance >= IMPORTANCE_MIN) and fact.id not in shown]
    worth.sort(key=lambda fact: (fact.pinned, fact.importance, fact.created_at, fact.id), reverse=True)
    used: set[str] = set()
    cards: list[EntityCard] = []
    for entity in dict.fromkeys(entities):
        mine = [fact for fact in worth if entity in fact.entities and fact.id not in used][:FACTS_MAX]
        if mine and len(cards) < CARDS_MAX:
            used |= {fact.id for fact in mine}
            cards.append(EntityCard(entity, tuple(mine)))
    return tuple(cards)
