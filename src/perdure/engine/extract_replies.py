"""The extraction prompt's data, and the reader of its reply: what cannot be found word for word in a message is not taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perdure.domain.knowledge import (
    ENTITY_TYPES,
    EntityName,
    Evidence,
    Extraction,
    ExtractionRequest,
    Proposal,
    TodoProposal,
)
from perdure.domain.messages import Message
from perdure.domain.text import Json
from perdure.engine.answers import Unreadable
from perdure.engine.prompts import as_data, message_form
from perdure.engine.replies import json_object

PROPOSALS_MAX = 20
TODOS_MAX = 8


def extraction_data(request: ExtractionRequest) -> str:
    """What the prompt shows: known names, what was said before, then the numbered messages."""
    return "\n".join(_lines(request))


def _lines(request: ExtractionRequest) -> Iterator[str]:
    if request.known:
        yield as_data({"known": [f"{name.type}: {name.label}" for name in request.known]})
    for message in request.before:
        yield as_data({"before": message_form(message)})
    for number, message in enumerate(request.messages, 1):
        yield as_data({"n": number, **message_form(message)})


def read_extraction(reply: str, request: ExtractionRequest) -> Extraction | Unreadable:
    """What a reply proposes. Entries that quote nothing that was said are counted as skipped; others are judged elsewhere."""
    found = json_object(reply, ("proposals", "todos"))
    return found if isinstance(found, Unreadable) else extraction_of(found, request)


def extraction_of(found: Mapping[str, Json], request: ExtractionRequest) -> Extraction:
    """What an object that was read already proposes, under the same rules."""
    proposed, todos = _listed(found.get("proposals")), _listed(found.get("todos"))
    read = [_proposal(one, request) for one in proposed[:PROPOSALS_MAX]]
    promised = [_todo(one, request) for one in todos[:TODOS_MAX]]
    kept = tuple(one for one in read if one is not None)
    kept_todos = tuple(one for one in promised if one is not None)
    return Extraction(kept, kept_todos, skipped=len(proposed) + len(todos) - len(kept) - len(kept_todos))


def _listed(value: Json) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _evidence(one: Mapping[str, Any], request: ExtractionRequest) -> tuple[Evidence, ...]:
    """Where the quoted words stand: in the message of that number, or in the only other one of the user's that has them.

    Small models quote well and count badly.
    """
    number, quote = one.get("n"), one.get("quote")
    if not isinstance(quote, str) or not quote.strip():
        return ()
    said = [message for message in request.messages if message.role == "user" and quote in message.content]
    is_number = isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= len(request.messages)
    numbered = request.messages[number - 1] if is_number and number is not None else None
    if numbered not in said and len(said) != 1:
        return ()
    message: Message = numbered if numbered is not None and numbered in said else said[0]
    start = message.content.find(quote)
    return (Evidence(message.id, start, start + len(quote), message.at),)


def _proposal(one: Mapping[str, Any], request: ExtractionRequest) -> Proposal | None:
    evidence = _evidence(one, request)
    content = one.get("content")
    if not evidence or not isinstance(content, str):
        return None
    named = [EntityName(entity["type"], entity["label"]) for entity in _listed(one.get("entities")) if _is_entity(entity)]
    attribute, value = one.get("attribute"), one.get("value")
    return Proposal(
        type=one.get("type", "PROFILE"),
        fact_type=one.get("fact_type", "fact"),
        content=content,
        entities=tuple(named),
        subject=named[0] if one.get("type") in ("PEOPLE", "PROJECT") and named else None,
        attribute=attribute if isinstance(attribute, str) and attribute else None,
        value=value if isinstance(value, str) and value else None,
        evidence=evidence,
        confidence=one.get("confidence", 0.7),
        ended=one.get("ended") is True,
        corrects=one.get("corrects") is True,
    )


def _is_entity(entity: Mapping[str, Any]) -> bool:
    return entity.get("type") in ENTITY_TYPES and isinstance(entity.get("label"), str) and bool(entity["label"].strip())


def _todo(one: Mapping[str, Any], request: ExtractionRequest) -> TodoProposal | None:
    evidence = _evidence(one, request)
    content = one.get("content")
    if not evidence or not isinstance(content, str):
        return None
    return TodoProposal(one.get("kind", "thread"), content, done=one.get("done") is True, evidence=evidence)
