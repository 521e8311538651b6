"""What another engine has remembered, as proposals of ours: mem0's memories, and the graph of MCP's reference memory server.

Their texts become statements as they are. Where the words tell an attribute that has a name here (`Lives in Rome`), the
statement has it, too; entities of kinds that we do not keep are named in the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, get_args

from perdure.domain.knowledge.proposals import EntityName, EntityType, FactType, MemoryType, Proposal
from perdure.domain.text.secrets import without_secrets
from perdure.engine.extraction.predicates import attributes, attributes_that_are
from perdure.engine.knowledge.audit import export_entries, instant_of
from perdure.engine.knowledge.curator import value_in_words

ForeignFormat = Literal["mem0", "mcp"]
FOREIGN_FORMATS: tuple[ForeignFormat, ...] = get_args(ForeignFormat)
CONFIDENCE = 0.8
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_KINDS: dict[EntityType, str] = {
    "person": "person people human contact friend colleague coworker family employee customer character individual",
    "place": "place location city country region address town venue",
    "org": "org organization organisation company team business school university employer institution institute",
    "project": "project product repository repo codebase app application software",
}
_TYPES: dict[str, EntityType] = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_MEMORY_TYPES: dict[EntityType | None, MemoryType] = {"person": "PEOPLE", "project": "PROJECT"}
_USER = frozenset(("default user", "user", "me", "i", "myself", "the user"))


@dataclass(frozen=True, slots=True)
class ForeignItem:
    """One text or relation of another engine, as we would say it."""

    place: str
    kind: Literal["memory", "relation"]
    user: str
    """Whose it was there; empty: the export does not say."""
    proposal: Proposal


def foreign_format(entries: Sequence[Mapping[str, Any]]) -> ForeignFormat:
    graph = any("observations" in one or "relationType" in one or "entityType" in one for one in entries)
    return "mcp" if graph else "mem0"


def foreign_items(text: str, now: datetime) -> tuple[ForeignFormat, list[ForeignItem]]:
    """Everything that an export tells, in its order, texts before relations."""
    entries = export_entries(text)
    form = foreign_format(entries)
    names = {str(one["name"]): _name(str(one["name"]), str(one.get("entityType", ""))) for one in entries if "name" in one}
    # A graph of mem0 calls the user by the user's id.
    users = {str(one["user_id"]) for one in entries if one.get("user_id")}
    names |= {user: _Name(user, None, is_user=True) for user in users}
    texts: list[ForeignItem] = []
    relations: list[ForeignItem] = []
    for number, one in enumerate(entries):
        if isinstance(one.get("observations"), list):
            name = str(one.get("name", number))
            texts += _observations(name, names.get(name, _Name(name, None)), one["observations"])
        elif (content := one.get("memory", one.get("text", one.get("content")))) is not None:
            texts.append(_memory(one, number, str(content), now))
        else:
            relations += _relation(one, names)
    return form, texts + relations


@dataclass(frozen=True, slots=True)
class _Name:
    """Somebody or something that is named there."""

    label: str
    type: EntityType | None
    is_user: bool = False

    @property
    def entity(self) -> EntityName | None:
        return None if self.type is None or self.is_user else EntityName(self.type, self.label)


def _name(name: str, kind: str) -> _Name:
    # Before its parts are taken for words: then it has its form no longer. It names nothing that could be known by it.
    if (shown := without_secrets(name)) != name:
        return _Name(shown, None)
    label = " ".join(name.replace("_", " ").split())
    words = _WORD.findall(_CAMEL.sub(" ", kind).casefold())
    type_ = next((_TYPES[word] for word in reversed(words) if word in _TYPES), None)
    return _Name(label, type_, label.casefold() in _USER or words == ["user"])


def _observations(name: str, who: _Name, observations: Sequence[object]) -> Iterator[ForeignItem]:
    for place, said in enumerate(observations):
        text = " ".join(str(said).split())
        yield ForeignItem(without_secrets(f"{name}#{place}"), "memory", "", _of_text(text, who))


def _of_text(text: str, who: _Name) -> Proposal:
    known = value_in_words(text)
    entity = who.entity
    if who.is_user:
        return _proposal(text, (), None, (known.attribute, known.value) if known is not None and not known.who else None)
    first, said = who.label.casefold().split()[:1], text.casefold()
    named = who.label.casefold() in said or (len(first) == 1 and said.split()[:1] == first)
    if (
        known is not None
        and entity is not None
        and known.attribute in attributes_that_are("personal")
        and known.who in ("", who.label.casefold())
    ):
        content = text if named else f"{who.label} {text[0].lower()}{text[1:]}"
        return _proposal(content, (entity,), entity, (known.attribute, known.value))
    content = text if named else f"{who.label}: {text}"
    return _proposal(content, () if entity is None else (entity,), entity, None)


def _memory(one: Mapping[str, Any], number: int, text: str, now: datetime) -> ForeignItem:
    content = " ".join(text.split())
    known = value_in_words(content)
    made = _proposal(content, (), None, (known.attribute, known.value) if known is not None and not known.who else None)
    since = instant_of(one.get("created_at") or one.get("updated_at"))
    if since is not None and since <= now:
        made = replace(made, valid_from=since)
    return ForeignItem(str(one.get("id", number)), "memory", str(one.get("user_id") or ""), made)


def _relation(one: Mapping[str, Any], names: Mapping[str, _Name]) -> Iterator[ForeignItem]:
    ends = [one.get("from", one.get("source")), one.get("to", one.get("target", one.get("destination")))]
    kind = one.get("relationType", one.get("relationship", one.get("relation")))
    if not all(isinstance(part, str) and part.strip() for part in (*ends, kind)):
        return
    first, second = (names.get(str(end), _name(str(end), "")) for end in ends)
    words = " ".join(_CAMEL.sub(" ", without_secrets(str(kind))).replace("_", " ").replace("-", " ").split()).lower()
    attribute = words.replace(" ", "_")
    content = f"{words[0].upper()}{words[1:]} {second.label}" if first.is_user else f"{first.label} {words} {second.label}"
    entities = tuple(end.entity for end in (first, second) if end.entity is not None)
    has_slot = attribute in (attributes() if first.is_user else attributes_that_are("personal")) and (
        first.is_user or first.entity is not None
    )
    both = [end for end in (first, second) if end.type == "person" or end.is_user]
    fact: FactType = "relationship" if len(both) == 2 else "fact"
    made = _proposal(content, entities, first.entity, (attribute, second.label) if has_slot else None, fact)
    yield ForeignItem(without_secrets(f"{ends[0]} → {ends[1]}"), "relation", str(one.get("user_id") or ""), made)


def _proposal(
    content: str,
    entities: tuple[EntityName, ...],
    subject: EntityName | None,
    told_of: tuple[str, str] | None,
    fact: FactType = "fact",
) -> Proposal:
    attribute, value = told_of if told_of is not None else (None, None)
    spec = attributes().get(attribute or "")
    if spec is not None and spec.entity is not None and value is not None and not entities:
        entities = (EntityName(spec.entity, value),)
    primary = entities[0].type if entities else None
    return Proposal(
        type=_MEMORY_TYPES.get(primary, "PROFILE"),
        fact_type=fact if spec is None else spec.fact_type,
        content=content,
        entities=entities,
        subject=subject if attribute is not None else None,
        attribute=attribute,
        value=value,
        confidence=CONFIDENCE,
        importance=1 if spec is None else min(spec.importance, 2),
    )
