"""Records: what is known, each piece under a key with a body, and with the terms by which it is found.

All knowledge is kept in this one form, so that every change of it can be journalled, undone and forgotten in one way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from perdure.domain.text.rules import Json
from perdure.domain.values import dataclass

RecordKind = Literal[
    "memory",
    "statement",
    "entity",
    "todo",
    "task",
    "suggestion",
    "rejection",
    "instruction",
    "lesson",
    "agent",
    "channel",
    "withdrawal",
]
RECORD_KINDS: tuple[RecordKind, ...] = get_args(RecordKind)


def record_kind(text: str) -> RecordKind | None:
    """`text` if there are records of that kind."""
    return next((kind for kind in RECORD_KINDS if kind == text), None)


TERM_BYTES_MAX = 400

Term = tuple[str, str]
"""A field and its value, such as ("entity", "person:john_doe")."""


@dataclass(frozen=True, slots=True)
class Record:
    """One piece of knowledge as it is held. `operation` is the journal's number of what wrote it."""

    kind: RecordKind
    key: str
    body: Mapping[str, Json]
    operation: int = 0


@dataclass(frozen=True, slots=True)
class RecordQuery:
    """Which records of a kind to list: all, or those with a term; highest key first, below `before`."""

    kind: RecordKind
    limit: int
    term: Term | None = None
    before: str | None = None


TALLY_FIELDS_MAX = 6


@dataclass(frozen=True, slots=True)
class ChangedMemories:
    """Which memories to list by their last change: visible to the agent, and of these kinds."""

    agent: str
    type: str | None = None
    fact_type: str | None = None
    archived: bool = False
    """Also archived ones."""
