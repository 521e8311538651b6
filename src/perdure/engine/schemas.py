"""JSON schemas of what models are asked for. Every name is required and no other allowed, as strict servers want it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from perdure.domain.digests import SESSION_FIELDS, SPINE_SECTIONS
from perdure.domain.knowledge import ENTITY_TYPES, FACT_TYPES, MEMORY_TYPES, TODO_KINDS
from perdure.domain.text import Json

Schema = Mapping[str, Json]

TEXT: Final[Schema] = {"type": "string"}
ENTRIES_MAX, PROPOSALS_MAX, TODOS_MAX, ENTITIES_MAX = 20, 20, 8, 10
"""A small model that is told no end repeats itself until it is cut off."""
TEXTS: Final[Schema] = {"type": "array", "items": {"type": "string"}, "maxItems": ENTRIES_MAX}


def an_object(**properties: Json) -> Schema:
    """The schema of an object with exactly these names."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


FOLD: Final = an_object(context=TEXT, lessons=TEXTS)
SESSION: Final = an_object(**{name: TEXT if name in ("one_liner", "tone") else TEXTS for name in SESSION_FIELDS})
SPINE: Final = an_object(**dict.fromkeys(SPINE_SECTIONS, TEXTS))
EXTRACTION: Final = an_object(
    proposals={
        "type": "array",
        "maxItems": PROPOSALS_MAX,
        "items": an_object(
            n={"type": "integer"},
            quote=TEXT,
            type=one_of(*MEMORY_TYPES),
            fact_type=one_of(*FACT_TYPES),
            content=TEXT,
            entities={"type": "array", "maxItems": ENTITIES_MAX, "items": an_object(type=one_of(*ENTITY_TYPES), label=TEXT)},
            attribute={"type": ["string", "null"]},
            value={"type": ["string", "null"]},
            ended={"type": "boolean"},
            corrects={"type": "boolean"},
            confidence={"type": "number"},
        ),
    },
    todos={
        "type": "array",
        "maxItems": TODOS_MAX,
        "items": an_object(n={"type": "integer"}, quote=TEXT, kind=one_of(*TODO_KINDS), content=TEXT, done={"type": "boolean"}),
    },
)
