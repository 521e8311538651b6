"""What each kind of record is found by, derived from its body alone, so that undoing a change restores it whole."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from perdure.domain.agents import to_agent, to_channel_agent
from perdure.domain.instructions import Instruction
from perdure.domain.lessons import to_lesson
from perdure.domain.memories import to_memory, to_statement
from perdure.domain.records import TERM_BYTES_MAX, RecordKind, Term
from perdure.domain.things import AgentTask, Entity, Rejection, Suggestion, Todo, from_body


def terms_of(kind: RecordKind, body: Mapping[str, Any]) -> tuple[Term, ...]:
    """The terms of a record of that kind with that body."""
    return tuple((field, short(value)) for field, value in _terms(kind, body))


def short(value: str) -> str:
    """A term's value as it is indexed: long ones by their digest, so that they fit into an index row."""
    raw = value.encode()
    return value if len(raw) <= TERM_BYTES_MAX else f"sha256:{hashlib.sha256(raw).hexdigest()}"


def _terms(kind: RecordKind, body: Mapping[str, Any]) -> tuple[Term, ...]:
    if kind == "memory":
        return to_memory(body).terms()
    if kind == "statement":
        return to_statement(body).terms()
    if kind == "entity":
        return from_body(Entity, body).terms()
    if kind == "todo":
        return from_body(Todo, body).terms()
    if kind == "task":
        return from_body(AgentTask, body).terms()
    if kind == "instruction":
        return from_body(Instruction, body).terms()
    if kind == "lesson":
        return to_lesson(body).terms()
    if kind == "agent":
        return to_agent(body).terms()
    if kind == "channel":
        return to_channel_agent(body).terms()
    if kind == "suggestion":
        return from_body(Suggestion, body).terms()
    return from_body(Rejection, body).terms()
