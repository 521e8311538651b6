"""What each kind of record is found by, derived from its body alone, so that undoing a change restores it whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.domain.conversation.agent_state import to_agent, to_channel_agent
from perdure.domain.conversation.messages import to_withdrawal
from perdure.domain.knowledge.entities import AgentTask, Entity, Instruction, Rejection, Suggestion, Todo, from_body
from perdure.domain.knowledge.keys import entity_ref, memory_key, term_value
from perdure.domain.knowledge.memories import USER, record_key, slot, to_memory, to_statement
from perdure.domain.knowledge.proposals import EntityName, Proposal
from perdure.domain.knowledge.records import RecordKind, Term
from perdure.domain.lessons import to_lesson
from perdure.engine.names.compare import name_keys


def terms_of(kind: RecordKind, body: Mapping[str, Any]) -> tuple[Term, ...]:
    """The terms of a record of that kind with that body."""
    return tuple((field, term_value(value)) for field, value in _terms(kind, body))


def terms_in(value: Any) -> tuple[Term, ...]:
    """The same of the value itself."""
    found = _entity_terms(value) if isinstance(value, Entity) else value.terms()
    return tuple((field, term_value(name)) for field, name in found)


NAME_KEY = "name key"
"""The field by which an entity is found from other spellings of its name."""


UNKEYED: Term = ("name keys", "none yet")
"""On entities from before there were such keys, put there by a migration."""


def _entity_terms(entity: Entity) -> tuple[Term, ...]:
    if entity.merged_into is not None:
        return entity.terms()
    return (*entity.terms(), *((NAME_KEY, key) for key in name_keys(EntityName(entity.type, entity.label))))


def _terms(kind: RecordKind, body: Mapping[str, Any]) -> tuple[Term, ...]:
    if kind == "memory":
        return to_memory(body).terms()
    if kind == "statement":
        return to_statement(body).terms()
    if kind == "entity":
        return _entity_terms(from_body(Entity, body))
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
    if kind == "withdrawal":
        return to_withdrawal(body).terms()
    if kind == "suggestion":
        return from_body(Suggestion, body).terms()
    return from_body(Rejection, body).terms()


def place_of(proposal: Proposal, visible_to: str | None) -> tuple[str, str | None]:
    """The memory and the slot where a proposal will be kept, unless its names mean others than they say."""
    first = proposal.entities[0] if proposal.entities else None
    key = memory_key(
        proposal.type,
        None if first is None else first.type,
        None if first is None else entity_ref(first.type, first.label),
        proposal.fact_type,
        content=proposal.content,
    )
    if proposal.attribute is None:
        return record_key(key, visible_to), None
    subject = USER if proposal.subject is None else entity_ref(proposal.subject.type, proposal.subject.label)
    name = slot(subject, proposal.attribute)
    return record_key(key, visible_to), name if visible_to is None else f"{name}@{visible_to}"
