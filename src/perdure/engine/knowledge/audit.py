"""What is wrong with a set of remembered texts: doubles, junk, what is stale, what clashes. Looks, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any, Literal

from perdure.domain.errors import InvalidInput
from perdure.domain.text.rules import utf8_size
from perdure.domain.values import dataclass
from perdure.engine.knowledge.curator import DENIAL, are_rivals, denied_pairs, value_in_words
from perdure.engine.knowledge.sameness import meaning, says_the_same
from perdure.engine.text.hygiene import refusal

# What tells one entry of an export from a whole one: a text, or the ends of a relation.
_ENTRY = frozenset(("observations", "memory", "text", "content", "relationType"))
Fault = Literal["duplicate", "junk", "stale", "contradictory", "orphaned", "over_budget"]
STALE_AFTER = timedelta(days=365)
CONTENT_CHARS_MAX = 2_000
STATEMENTS_MAX = 50
CLASHING_MAX = 1_000
"""Texts about one thing that are compared with one another."""


@dataclass(frozen=True, slots=True)
class AuditItem:
    """One remembered text, wherever it is kept."""

    id: str
    text: str
    about: str = ""
    """What it is about; texts about different things are not compared."""
    at: datetime | None = None
    """When it was last said or changed."""
    sources: int = 1
    """How many sources of it are there; 0: none any more."""
    keep: bool = False
    """Important or pinned: never stale."""


@dataclass(frozen=True, slots=True)
class AuditFinding:
    fault: Fault
    items: tuple[str, ...]
    why: str


def audit(items: Sequence[AuditItem], now: datetime) -> list[AuditFinding]:
    """Everything that is wrong, by kind of fault."""
    groups: dict[str, list[AuditItem]] = {}
    for item in items:
        groups.setdefault(item.about, []).append(item)
    found = list(_alone(items, now))
    for group in groups.values():
        found += _doubles(group)
        found += _clashes(group)
        if len(group) > STATEMENTS_MAX and group[0].about:
            ids = tuple(item.id for item in group)
            found.append(
                AuditFinding("over_budget", ids[:20], f"{len(group)} texts about one thing, more than {STATEMENTS_MAX}")
            )
    return sorted(found, key=lambda one: (one.fault, one.items))


def _alone(items: Iterable[AuditItem], now: datetime) -> Iterator[AuditFinding]:
    for item in items:
        if len(item.text) > CONTENT_CHARS_MAX:
            yield AuditFinding("over_budget", (item.id,), f"{len(item.text)} characters, more than {CONTENT_CHARS_MAX}")
        elif (reason := refusal(item.text[:500])) is not None:
            yield AuditFinding("junk", (item.id,), reason)
        if item.at is not None and now - item.at > STALE_AFTER and not item.keep:
            yield AuditFinding("stale", (item.id,), f"not said since {item.at.date().isoformat()}")
        if item.sources == 0:
            yield AuditFinding("orphaned", (item.id,), "nothing is left that it came from")


def _doubles(group: Sequence[AuditItem]) -> Iterator[AuditFinding]:
    same: dict[frozenset[tuple[str, int]], list[AuditItem]] = {}
    for item in group:
        same.setdefault(meaning(item.text), []).append(item)
    for alike in same.values():
        if len(alike) > 1 and says_the_same(alike[0].text, alike[1].text):
            yield AuditFinding("duplicate", tuple(item.id for item in alike), f"{len(alike)} texts say the same")


def _clashes(group: Sequence[AuditItem]) -> Iterator[AuditFinding]:
    looked_at = group[:CLASHING_MAX]
    values: dict[tuple[str, str], dict[str, AuditItem]] = {}
    for item in looked_at:
        if (known := value_in_words(item.text)) is not None:
            values.setdefault((known.who, known.attribute), {}).setdefault(known.value, item)
    for (_, attribute), items in values.items():
        for (value, one), (other_value, other) in combinations(items.items(), 2):
            if are_rivals(attribute, value, other_value):
                yield AuditFinding("contradictory", (one.id, other.id), f"two values of {attribute}")
    for said, denial in denied_pairs([item.text for item in looked_at]):
        yield AuditFinding("contradictory", (looked_at[said].id, looked_at[denial].id), DENIAL)


def read_export(text: str) -> list[AuditItem]:
    """Texts from another engine's export: mem0 (JSON), or the reference memory server of MCP (JSON lines)."""
    return [item for number, one in enumerate(export_entries(text)) for item in _from_object(one, number)]


def export_entries(text: str) -> list[Mapping[str, Any]]:
    """The memories, entities and relations of such an export, as they stand there."""
    utf8_size(text, "an export")
    try:
        whole = _parsed(text)
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
        return [_an_object(_from_line(line, number), number) for number, line in enumerate(lines)]
    if isinstance(whole, Mapping) and _ENTRY & whole.keys():
        return [whole]  # JSON lines, of which there is one
    listed = whole.get("results", whole.get("memories", whole.get("entities"))) if isinstance(whole, Mapping) else whole
    if not isinstance(listed, list):
        raise InvalidInput("the export has no list of memories; give mem0's JSON or the memory server's JSON lines")
    relations = whole.get("relations") if isinstance(whole, Mapping) else None
    return [
        _an_object(one, number) for number, one in enumerate([*listed, *(relations if isinstance(relations, list) else ())])
    ]


def _from_line(line: str, number: int) -> Any:
    try:
        return _parsed(line)
    except ValueError:
        raise InvalidInput(f"line {number + 1} of the export is not JSON; use the unchanged export") from None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise InvalidInput("the export is nested too deeply; use the unchanged export") from None


def _an_object(one: Any, number: int) -> Mapping[str, Any]:
    if not isinstance(one, Mapping):
        raise InvalidInput(f"entry {number} of the export is a `{type(one).__name__}`, not an object; use the unchanged export")
    return one


def _from_object(one: Mapping[str, Any], number: int) -> list[AuditItem]:
    if isinstance(one.get("observations"), list):
        name = str(one.get("name", number))
        return [AuditItem(f"{name}#{place}", str(text), name) for place, text in enumerate(one["observations"])]
    text = one.get("memory", one.get("text", one.get("content")))
    if text is None:
        return []  # a relation: it names no text of its own
    at = one.get("updated_at") or one.get("created_at")
    return [AuditItem(str(one.get("id", number)), str(text), str(one.get("user_id", "")), instant_of(at))]


def instant_of(text: object) -> datetime | None:
    """The moment that an ISO text means, in UTC where it names no zone; None if it means none."""
    try:
        read = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)
