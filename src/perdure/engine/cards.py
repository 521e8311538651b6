"""Entity cards: the few facts about each person, place, organisation or project that what was found is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from perdure.domain.memories import Trust

FACTS_MAX = 3
IMPORTANCE_MIN = 2
CARDS_MAX = 12
_MARKS: dict[Trust, str] = {"user": "", "agent": " (assistant)", "tool": " (tool)", "import": " (import)"}


@dataclass(frozen=True, slots=True)
class Fact:
    """A current statement with what decides whether it stands on a card."""

    id: str
    text: str
    entities: tuple[str, ...]
    importance: int
    pinned: bool
    created_at: datetime
    trust: Trust = "user"


@dataclass(frozen=True, slots=True)
class Card:
    entity: str
    facts: tuple[Fact, ...]

    @property
    def line(self) -> str:
        """A line for the user's words, and one for those of each other source, which is named: facts may hold semicolons."""
        lines = []
        for trust, mark in _MARKS.items():
            # On one line: a line break in a fact must not begin another card.
            facts = [" ".join(fact.text.split()).rstrip(".;") for fact in self.facts if fact.trust == trust]
            lines += [f"[{self.entity}]{mark}: {'; '.join(facts)}"] if facts else []
        return "\n".join(lines)


def cards_of(entities: Sequence[str], facts: Iterable[Fact], *, shown: frozenset[str] = frozenset()) -> tuple[Card, ...]:
    """One card for each of `entities` that has facts worth one, in their order; each fact stands on one card only.

    Worth it is what is pinned, or has an importance of at least 2; pinned first, then by importance, then the newest.
    """
    worth = [fact for fact in facts if (fact.pinned or fact.importance >= IMPORTANCE_MIN) and fact.id not in shown]
    worth.sort(key=lambda fact: (fact.pinned, fact.importance, fact.created_at, fact.id), reverse=True)
    used: set[str] = set()
    cards: list[Card] = []
    for entity in dict.fromkeys(entities):
        mine = [fact for fact in worth if entity in fact.entities and fact.id not in used][:FACTS_MAX]
        if mine and len(cards) < CARDS_MAX:
            used |= {fact.id for fact in mine}
            cards.append(Card(entity, tuple(mine)))
    return tuple(cards)
