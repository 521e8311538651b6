"""A memory in the form of the document that asked for it, under that document's own names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from perdure.domain.knowledge.memories import MemoryWithStatements
from perdure.domain.text.rules import Json, check_choice
from perdure.domain.values import dataclass

MemoryForm = Literal["full", "seed"]
MEMORY_FORMS: tuple[MemoryForm, ...] = ("full", "seed")


@dataclass(frozen=True, slots=True)
class SeedMemory(MemoryWithStatements, Mapping[str, Json]):
    """The same memory as a mapping of `entityRefs`, `memoryKey`, `personaId` and so on: `one["entityRefs"]`, `dict(one)`."""

    def __iter__(self) -> Iterator[str]:
        return iter(seed_dict(self))

    def __len__(self) -> int:
        return len(seed_dict(self))

    def __getitem__(self, name: str) -> Json:
        return seed_dict(self)[name]


def seed_dict(found: MemoryWithStatements) -> dict[str, Json]:
    """What the seed says a memory has (S3-5 to S3-16), and what it says."""
    memory = found.memory
    return {
        "id": memory.record_key,
        "memoryKey": memory.key,
        "type": memory.type,
        "content": found.content,
        "entityRefs": list(memory.entities),
        "entityLabel": memory.label,
        "subtype": {"entityType": memory.entity_type, "factType": memory.fact_type},
        "importance": memory.importance,
        "pinned": memory.pinned,
        "source": memory.source,
        "status": memory.status,
        "confidence": memory.confidence,
        "personaId": memory.visible_to,
        "createdAt": memory.created_at.isoformat(),
        "updatedAt": memory.updated_at.isoformat(),
    }


def in_form(found: MemoryWithStatements, form: MemoryForm) -> MemoryWithStatements:
    """The memory in the form that was asked for."""
    check_choice(form, "form", MEMORY_FORMS)
    return found if form == "full" else SeedMemory(found.memory, found.statements)
