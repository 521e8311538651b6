"""What a curator would do: fold what is scattered, flag what clashes. It archives, and leaves pinned memories alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from perdure.domain.memories import MemoryRecord, Statement, record_key
from perdure.engine.sameness import is_negative, meaning

DUE_AFTER = timedelta(hours=24)
DUE_MEMORIES = 25
FOLD_MEMORIES_MIN = 3
FOLD_STATEMENTS_MIN = 5
FOLDS_MAX = 5
"""Of one run, as in the origin."""
FOLD_IMPORTANCE = 2
CLASH_SHARE = 0.6


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
    originals = tuple(replace(memory, status="ARCHIVED", folded_into=home, updated_at=now) for memory in group)
    return Fold(into, moved, originals)


def clashes(statements: Sequence[Statement], is_single_valued: Callable[[str | None], bool]) -> list[Clash]:
    """Pairs that look contradictory and that no attribute decides. Only suggested, never acted on."""
    found: list[Clash] = []
    current = sorted((one for one in statements if one.is_current()), key=lambda one: one.recorded_at)
    for index, one in enumerate(current):
        rivals = [other for other in current[index + 1 :] if other.subject == one.subject]
        told = [(other, _clash(one, other, is_single_valued)) for other in rivals]
        found += [Clash(one, other, why) for other, why in told if why is not None]
    return found


def _clash(one: Statement, other: Statement, is_single_valued: Callable[[str | None], bool]) -> str | None:
    if one.attribute is not None and one.attribute == other.attribute:
        return f"two values of {one.attribute}" if is_single_valued(one.attribute) and one.value != other.value else None
    first, second = {word for word, _ in meaning(one.content)}, {word for word, _ in meaning(other.content)}
    shared = len(first & second) / max(1, min(len(first), len(second)))
    if shared >= CLASH_SHARE and is_negative(one.content) != is_negative(other.content):
        return "one denies what the other says"
    return None
