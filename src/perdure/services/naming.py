"""Which of the entities that are known a question names: by label, by alias, through merges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from perdure.domain.entities import slug
from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge import ENTITY_TYPES
from perdure.domain.records import RecordQuery
from perdure.domain.things import Entity
from perdure.engine.entries import entity_hash
from perdure.engine.indexing import short
from perdure.engine.lexicon import folded, lexemes, term_hash, words_with_terms
from perdure.ports.records import RecordView
from perdure.services.ledger import find_entity, merged_entity

WORDS_MAX = 40
"""So many words of a question are looked at for names."""
NAME_WORDS_MAX = 3


@dataclass(frozen=True, slots=True)
class Named:
    """Entities that a question names. `kin` maps a word of a name to the words of its other names."""

    refs: tuple[str, ...] = ()
    kin: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    required: tuple[frozenset[int], ...] = ()
    """The terms by which what names one of the entities asked for is known: all of a set."""


def names_in(records: RecordView, agent: str, text: str, wanted: Sequence[str]) -> Named:
    """The entities in `text`, and what stands for those that are `wanted`."""
    named = list(_called(records, agent, text))
    kin: dict[str, tuple[str, ...]] = {}
    for entity, words in named:
        others = [word for name in _names(entity) for word in name.split() if word not in words]
        for word in words:
            kin[word] = tuple(dict.fromkeys((*kin.get(word, ()), *others)))
    required = [terms for ref in wanted for terms in _terms(records, ref)]
    return Named(tuple(dict.fromkeys(entity.ref for entity, _ in named)), kin, tuple(required))


def _called(records: RecordView, agent: str, text: str) -> Iterator[tuple[Entity, tuple[str, ...]]]:
    if not records.list_(RecordQuery("entity", 1)):
        return
    refs: dict[str, tuple[str, ...]] = {}
    for phrase in dict.fromkeys(_phrases(text)):
        with suppress(InvalidInput):  # nothing of it can be seen
            name = slug(" ".join(phrase))
            refs |= {f"{kind}:{name}": phrase for kind in ENTITY_TYPES}
    keys = {record.key: record.key for record in records.find_many("entity", list(refs))}
    shorter = {short(ref): ref for ref in refs if ref not in keys}
    keys |= {shorter[value]: key for value, key in records.find_by("entity", "alias", list(shorter)).items()}
    for ref, key in keys.items():
        entity = merged_entity(records, key)
        if entity is not None and entity.visible_to in (None, agent):
            yield entity, tuple(word.casefold() for word in refs[ref])


def _phrases(text: str) -> Iterator[tuple[str, ...]]:
    """Runs of words of which the first begins with a capital; and any other word that says something, by itself."""
    words = [word for part in text.split() if (word := part.strip(".,;:!?\"'()[]’“”").removesuffix("'s").removesuffix("’s"))]
    words = words[:WORDS_MAX]
    anything = not any(word[:1].isupper() for word in words)
    telling = {word for word, _ in words_with_terms(text)}
    for start, word in enumerate(words):
        if anything or word[:1].isupper():
            for end in range(start + 1, min(start + NAME_WORDS_MAX, len(words)) + 1):
                yield tuple(words[start:end])
        elif folded(word) in telling:
            yield (word,)


def _names(entity: Entity) -> list[str]:
    aliases = [alias.partition(":")[2].replace("_", " ") for alias in entity.aliases]
    return [entity.label.casefold(), *aliases]


def _terms(records: RecordView, ref: str) -> list[frozenset[int]]:
    """Either the entity itself is named as such, or all words of one of its names are there."""
    entity = find_entity(records, ref)
    if entity is None:
        return [frozenset((entity_hash(ref),)), _words(ref.partition(":")[2].replace("_", " "))]
    return [frozenset((entity_hash(entity.ref),)), *(_words(name) for name in _names(entity))]


def _words(name: str) -> frozenset[int]:
    return frozenset(term_hash(term) for term in lexemes(name))
