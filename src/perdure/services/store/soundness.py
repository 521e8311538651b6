"""Whether a stored row holds what perdure itself writes there: the right kinds of values, in range, of closed sets.

Constraints of a database see columns; here a row is read as the stores read it, and everything in it is looked at. That is
asked of every row that comes from elsewhere, and by verification.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from perdure.domain.access import NAMES_MAX, Access
from perdure.domain.conversation.agent_state import AgentState, to_agent, to_channel_agent
from perdure.domain.conversation.digests import POLICIES, check_profile
from perdure.domain.conversation.messages import to_withdrawal
from perdure.domain.errors import Corrupt, InvalidInput, PerdureError
from perdure.domain.jobs import Job
from perdure.domain.knowledge.entities import AgentTask, Entity, Instruction, Rejection, Suggestion, Todo, from_body
from perdure.domain.knowledge.memories import MemoryRecord, to_memory, to_statement
from perdure.domain.knowledge.proposals import ENTITY_TYPES, FACT_TYPES, MEMORY_TYPES
from perdure.domain.knowledge.records import TERM_BYTES_MAX, record_kind
from perdure.domain.lessons import to_lesson
from perdure.domain.oversight import Decision
from perdure.domain.scope import ID_BYTES_MAX, Address
from perdure.domain.series import Series
from perdure.domain.state import check_stored, is_plain
from perdure.domain.text.rules import brief, check_held_id, check_json, utf8_size
from perdure.domain.times.instants import from_us
from perdure.domain.values import dataclass, fields, is_dataclass
from perdure.engine.conversation.jobs import CURATE, EXTRACT, SWEEP, TALLY, TRANSCRIPT, is_repeat
from perdure.engine.series import checked
from perdure.ports.tables.access import to_access
from perdure.ports.tables.conversation import to_agent_state, to_digest, to_tally
from perdure.ports.tables.jobs import to_job
from perdure.ports.tables.knowledge import OWNERS, to_operation, to_record
from perdure.ports.tables.log import TOOL_CALLS, to_call, to_message, to_session
from perdure.ports.tables.oversight import to_decision, to_usage
from perdure.ports.tables.rows import TABLES
from perdure.ports.tables.series import to_entry, to_lease, to_past_entry, to_revision, to_series, to_window
from perdure.ports.tables.table import AnyRow

Check = Callable[[Any], bool]
COUNT_MAX = 2**53
"""Nothing is counted further; sums of such counts still fit into any store."""
RANGES: Mapping[str, tuple[float, float]] = {
    "confidence": (0, 1),
    "progress": (0, 1),
    "importance": (0, 3),
    "floor_us": (-(2**62), 2**62),
}
"""Of numbers that are neither counts nor instants."""


def misfit(value: Any) -> str | None:
    """The first field of a dataclass that holds what it may not, at whatever depth; None if there is none."""
    for name, fits in _checks(value.__class__):
        held = getattr(value, name)
        if not fits(held):
            return f"`{name}` is {brief(held)}"
    return None


@cache
def _checks(kind: type) -> tuple[tuple[str, Check], ...]:
    """For each field of a class, whether a value fits it: worked out once, since it is asked of every row."""
    hints = get_type_hints(kind)
    return tuple((one.name, _check(one.name, hints[one.name])) for one in fields(kind))


def _check(name: str, hint: Any) -> Check:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        parts = [_check(name, one) for one in inner]
        return lambda value: any(fits(value) for fits in parts)
    if origin is Literal:
        return lambda value: isinstance(value, str) and value in inner
    if origin is tuple:
        each = _check(name, inner[0])
        return lambda value: isinstance(value, tuple) and all(map(each, value))
    if origin is not None:  # a mapping, of whatever is JSON or of counts
        keys, values = _check("", inner[0]), _check(name, inner[1])
        return lambda value: isinstance(value, Mapping) and all(map(keys, value)) and all(map(values, value.values()))
    if isinstance(hint, NewType):
        return _check(name, hint.__supertype__)
    if is_dataclass(hint):
        return lambda value: isinstance(value, hint) and misfit(value) is None  # type: ignore[arg-type]
    return _plain(name, hint)


def _plain(name: str, hint: Any) -> Check:
    if hint is Any:
        return lambda value: _passes(check_json, value)
    if hint is str:
        return lambda value: isinstance(value, str) and _passes(utf8_size, value)
    if hint in (bool, datetime, NoneType):
        return lambda value: isinstance(value, hint)
    kinds = int if hint is int else (int, float)
    within = _is_instant if name.endswith("_us") and name not in RANGES else _between(*RANGES.get(name, (0, COUNT_MAX)))
    return lambda value: isinstance(value, kinds) and not isinstance(value, bool) and within(value)


def _between(least: float, most: float) -> Callable[[float], bool]:
    return lambda number: least <= number <= most  # which nothing that is no number is


def _is_instant(number: float) -> bool:
    try:
        from_us(int(number))
    except OverflowError:
        return False
    return True


def _passes(check: Callable[[Any, str], object], value: object) -> bool:
    try:
        check(value, "it")
    except InvalidInput:
        return False
    return True


ODD = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError, PerdureError)
"""What reading a row raises if it is not what it should be."""
KEY_BYTES_MAX = 1_700
"""Of names that are made of ids: they must fit into an index row beside their owner."""
NAMES: Mapping[str, tuple[str, ...]] = {
    "sessions": ("session",),
    "messages": ("id",),
    "tool_calls": ("call_id", "name"),
    "jobs": ("kind",),
    "operations": ("action", "kind"),
    "state_keys": ("key",),
    "state_revisions": ("key",),
    "series": ("series",),
    "series_entries": ("series", "id"),
    "series_past": ("series", "id"),
    "series_windows": ("series",),
    "series_leases": ("series", "holder"),
    "records": ("kind",),
    "record_terms": ("kind", "field"),
    "echoes": ("hash",),
    "decisions": ("id",),
    "usage": ("purpose", "outcome"),
    "accesses": ("id", "call"),
}
"""Ids: of one character at least, and bounded."""
LONG_NAMES = {"jobs": "key", "operations": "key", "records": "key", "record_terms": "key", "accesses": "actor"}
AT_ADDRESS = frozenset((SWEEP, CURATE))
IN_SESSION = frozenset((TALLY, EXTRACT, TRANSCRIPT, *POLICIES))
"""Jobs of ours, by what their payloads name."""
READERS: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    "memory": to_memory,
    "statement": to_statement,
    "entity": lambda body: from_body(Entity, body),
    "todo": lambda body: from_body(Todo, body),
    "task": lambda body: from_body(AgentTask, body),
    "suggestion": lambda body: from_body(Suggestion, body),
    "rejection": lambda body: from_body(Rejection, body),
    "instruction": lambda body: from_body(Instruction, body),
    "lesson": to_lesson,
    "agent": to_agent,
    "channel": to_channel_agent,
    "withdrawal": to_withdrawal,
}


def flaw(table: str, row: AnyRow) -> str | None:
    """What is wrong with a row; None if perdure could have written it."""
    try:
        return next(_wrongs(table, row), None)
    except Corrupt as error:
        return _in_short(error.__cause__ or error)
    except ODD as error:
        return _in_short(error)


def _in_short(error: BaseException) -> str:
    return f"{error}"[:200] if isinstance(error, PerdureError) else f"{type(error).__name__}: {error}"[:200]


def _wrongs(table: str, row: AnyRow) -> Iterator[str]:
    named = dict(zip(TABLES[table].columns, row, strict=True))
    for name in NAMES.get(table, ()):
        check_held_id(named[name], name, bytes_max=ID_BYTES_MAX)
    if table in LONG_NAMES:
        check_held_id(named[LONG_NAMES[table]], LONG_NAMES[table], bytes_max=KEY_BYTES_MAX)
    for name in named:
        # 0 and 1 stand for no and yes; whatever else would be read as yes.
        if name in ("failed", "again", "undone", "casual", "private", "shared") and named[name] not in (0, 1):
            yield f"`{name}` is {brief(named[name])}"
    for value in _READ[table](row):
        if (found := misfit(value)) is not None:
            yield found
        if (more := _MORE.get(type(value))) is not None:
            yield from more(value)


# -- what a row is read as


@dataclass(frozen=True, slots=True)
class _Key:
    """A row of `state_keys`."""

    key: str
    revision: int
    saved_at: datetime
    expires_at: datetime | None
    size_bytes: int | None
    preview: str | None


@dataclass(frozen=True, slots=True)
class _Count:
    count: int


@dataclass(frozen=True, slots=True)
class _Echo:
    hash: str
    at_us: int


@dataclass(frozen=True, slots=True)
class _Term:
    kind: str
    field: str
    value: str
    key: str


def _a_key(row: AnyRow) -> Iterator[object]:
    _, _, key, revision, saved, expires, size, preview = row
    yield _Key(key, revision, from_us(saved), None if expires is None else from_us(expires), size, preview)
    if (size is None) != (preview is None):
        raise ValueError("a size without a preview, or a preview without a size")


def _a_message(row: AnyRow) -> Iterator[object]:
    yield to_message((*row, "?"))


def _a_call(row: AnyRow) -> Iterator[object]:
    named = TOOL_CALLS.named(row)
    yield from (Address(named.agent, named.channel), to_call(row))


def _an_operation(row: AnyRow) -> Iterator[object]:
    held = to_operation(row)
    yield held
    # What is undone becomes a record again.
    if record_kind(held.kind) is not None:
        yield from (READERS[held.kind](body) for body in (held.before, held.after) if body is not None)


def _a_revision(row: AnyRow) -> Iterator[object]:
    held = to_revision(row)
    yield held
    if not is_plain(held.body):
        check_stored(held.body or "")
    elif held.body is not None:
        yield Decision("", held.saved_at, Address(), "after", {"value": json.loads(held.body)})


def _a_record(row: AnyRow) -> Iterator[object]:
    held = to_record(row)
    yield held
    yield READERS[held.kind](held.body)


def _one_value(read: Callable[[AnyRow], object]) -> Callable[[AnyRow], Iterator[object]]:
    return lambda row: iter((read(row),))


_READ: Mapping[str, Callable[[AnyRow], Iterator[object]]] = {
    "sessions": _one_value(to_session),
    "messages": _a_message,
    "tool_calls": _a_call,
    "jobs": _one_value(to_job),
    "owners": _one_value(lambda row: _Count(OWNERS.named(row).operations)),
    "operations": _an_operation,
    "tallies": _one_value(to_tally),
    "state_keys": _a_key,
    "state_revisions": _a_revision,
    "series": _one_value(to_series),
    "series_entries": _one_value(to_entry),
    "series_past": _one_value(to_past_entry),
    "series_windows": _one_value(to_window),
    "series_leases": _one_value(to_lease),
    "agent_states": _one_value(to_agent_state),
    "digests": _one_value(to_digest),
    "records": _a_record,
    "record_terms": _one_value(lambda row: _Term(*row[2:])),
    "echoes": _one_value(lambda row: _Echo(*row[2:])),
    "decisions": _one_value(to_decision),
    "usage": _one_value(to_usage),
    "accesses": _one_value(to_access),
}
CHECKED = frozenset(_READ)
"""The tables whose rows are looked at: all but the index, which has laws of its own."""


# -- what no annotation says


def _memory(held: MemoryRecord) -> Iterator[str]:
    if held.type not in MEMORY_TYPES or held.fact_type not in FACT_TYPES:
        yield f"it is a {brief(held.type)} of a {brief(held.fact_type)}"
    if held.entity_type is not None and held.entity_type not in ENTITY_TYPES:
        yield f"`entity_type` is {brief(held.entity_type)}"


def _job(held: Job) -> Iterator[str]:
    if held.repeat is not None and not is_repeat(held.repeat):
        yield f"`repeat` is {brief(held.repeat)}"
    if held.kind in AT_ADDRESS or held.kind in IN_SESSION:
        Address(held.payload["agent"], held.payload["channel"])
    number = held.payload["session_number"] if held.kind in IN_SESSION else 0
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= COUNT_MAX:
        yield f"`payload` is about session {brief(number)}"


def _series(held: Series) -> Iterator[str]:
    if checked(held.spec) != held.spec:
        yield "its rules are none"
    if held.last_result and not 7 <= len(json.loads(held.last_result)) <= 9:
        yield f"`last_result` is {brief(held.last_result)}"


def _agent_state(held: AgentState) -> Iterator[str]:
    if held.profile is not None:
        check_profile(held.profile)
    yield from ()


def _decision(held: Decision) -> Iterator[str]:
    for name in ("included", "left_out"):
        listed = held.body.get(name, [])
        if not isinstance(listed, list) or not all(isinstance(one, list) and len(one) >= 2 for one in listed):
            yield f"`{name}` is {brief(listed)}"


def _access(held: Access) -> Iterator[str]:
    if (held.outcome == "refused") != bool(held.error):
        yield f"it is {held.outcome} with the error {held.error!r:.40}"
    if any(len(one.names) > one.count for one in held.touched) or sum(len(one.names) for one in held.touched) > NAMES_MAX:
        yield "it names more than it counts, or more than an entry may"


def _term(held: _Term) -> Iterator[str]:
    if len(held.value.encode()) > TERM_BYTES_MAX:
        yield f"`value` is longer than {TERM_BYTES_MAX} bytes"


_MORE: Mapping[type, Callable[[Any], Iterator[str]]] = {
    MemoryRecord: _memory,
    Job: _job,
    Series: _series,
    AgentState: _agent_state,
    Decision: _decision,
    _Term: _term,
    Access: _access,
}
