"""Which texts of a stored row are words that forgetting may strike out, and which are names that the row is found by."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

from perdure.domain.knowledge.memories import WRITER_KEY
from perdure.domain.knowledge.records import record_kind
from perdure.domain.state import is_plain, without_telling
from perdure.domain.text.rules import Json, compact_json
from perdure.ports.tables.rows import TABLES
from perdure.ports.tables.table import AnyRow

Change = Callable[[str], str]

# Texts by which rows are found or told apart: they are names, and stay.
_NAMES = {
    "messages": {"id", "role", "tool_call_id"},
    "sessions": {"session"},
    "tool_calls": {"name"},
    "jobs": {"state", "worker", "repeat"},
    "operations": {"actor", "action", "kind", "key"},
    "tallies": {"body"},
    "state_revisions": {"request"},
    "series": {"incarnation", "last_request", "last_result"},
    "agent_states": {"profile", "turn_holder"},
    "decisions": {"agent", "channel", "kind"},
    # It holds names alone; those that are forgotten are left out of it, see `AccessTx.strike_names`.
    "accesses": {*TABLES["accesses"].columns},
    # The journal knows a digest by its fingerprint: it is removed and made anew, not rewritten.
    "digests": {"body"},
}
# Of our own JSON: what is one of a closed set, or identifies something.
_CLOSED = frozenset(
    (
        "type",
        "entity_type",
        "fact_type",
        "status",
        "source",
        "trust",
        "attribute",
        "kind_of",
        "state",
        "what",
        "recurrence",
        "mention_days",
        "agent",
        "channel",
        "by",
        "visible_to",
        "id",
        "message",
        "closed_by",
        "proposes",
        "against",
        "told",
        "kept_by",
    )
)
_REFERENCES = frozenset(
    (
        "memory",
        "key",
        "folds",
        "folded_into",
        "ref",
        "subject",
        "subjects",
        "entities",
        "aliases",
        "merged_into",
        "seen_with",
    )
)


def rewritten(table: str, row: AnyRow, change: Change) -> AnyRow:
    """`row` with every text that is not a name put through `change`."""
    spec = TABLES[table]
    held = dict(zip(spec.columns, row, strict=True))
    names = {*spec.columns[: spec.key], *_NAMES.get(table, ())}
    if table == "operations" and record_kind(held["kind"]) is None:
        names |= {"before", "after"}  # counts and fingerprints
    return tuple(
        _change_column(table, column, value, change) if isinstance(value, str) and column not in names else value
        for column, value in held.items()
    )


def reworded(body: Json, change: Change) -> Json:
    """A body of ours with its words put through `change`: not the names of fields, nor what is one of a closed set."""
    if isinstance(body, dict):
        rename = partial(renamed, change=change)
        return {
            name: value if name in _CLOSED else reworded(value, rename if name in _REFERENCES else change)
            for name, value in body.items()
        }
    if isinstance(body, list):
        return [reworded(value, change) for value in body]
    return change(body) if isinstance(body, str) else body


def renamed(name: str, change: Change) -> str:
    """A reference such as `person:john_doe`, or a memory's key, with its slug put through `change`."""
    parts = name.split("|")
    if len(parts) > 3:
        return "|".join((*parts[:2], change(parts[2]), *parts[3:]))
    kind, mark, slug = name.partition(":")
    return f"{kind}:{change(slug)}" if mark else name


def _change_column(table: str, column: str, text: str, change: Change) -> str:
    if (table, column) not in _JSON:
        return change(text)
    held = json.loads(text)
    if table == "state_revisions" and not is_plain(text):
        new = without_telling(held, change)
        return text if new == held else compact_json(new)
    new = _JSON[(table, column)](held, change)
    return text if new == held else compact_json(new)


def _change_texts(value: Json, change: Change) -> Json:
    """JSON of a caller's making: every text in it, the names of fields, too."""
    if isinstance(value, dict):
        return {change(name): _change_texts(held, change) for name, held in value.items()}
    if isinstance(value, list):
        return [_change_texts(held, change) for held in value]
    return change(value) if isinstance(value, str) else value


def _change_values(value: Json, change: Change) -> Json:
    """JSON of our own in which any text may be somebody's words; the names of fields stay, because we read by them."""
    if isinstance(value, dict):
        return {name: _change_values(held, change) for name, held in value.items()}
    if isinstance(value, list):
        return [_change_values(held, change) for held in value]
    return change(value) if isinstance(value, str) else value


def _change_metadata(value: Json, change: Change) -> Json:
    # Tallies count what is reported under the one name; the other says whose word it is.
    kept = {name: value[name] for name in ("usage", WRITER_KEY) if isinstance(value, dict) and name in value}
    return {**_change_texts({name: held for name, held in value.items() if name not in kept}, change), **kept}


def _change_arguments(value: Json, change: Change) -> Json:
    # Ids pair calls with results, and names say which tool it was.
    if not isinstance(value, list):
        return value
    return [{**call, "arguments": _change_texts(call.get("arguments"), change)} for call in value if isinstance(call, dict)]


def _change_description(value: Json, change: Change) -> Json:
    # The other rules of a series say how its entries are read.
    if not isinstance(value, dict) or not isinstance(value.get("description"), str):
        return value
    return {**value, "description": change(value["description"])}


_JSON: dict[tuple[str, str], Callable[[Json, Change], Json]] = {
    ("messages", "metadata"): _change_metadata,
    ("messages", "tool_calls"): _change_arguments,
    ("jobs", "payload"): reworded,
    ("operations", "before"): reworded,
    ("operations", "after"): reworded,
    ("records", "body"): reworded,
    ("agent_states", "rolling_error"): reworded,
    ("state_revisions", "body"): _change_texts,
    ("decisions", "body"): _change_values,
    ("series", "spec"): _change_description,
    ("series_entries", "body"): _change_texts,
    ("series_past", "body"): _change_texts,
}
