"""The stored form of every value: one tuple per row, the same columns in the same order in every store and every backup.

A row that cannot be read back is `Corrupt`, never skipped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, cast

from perdure.domain.errors import Conflict, Corrupt, PerdureError
from perdure.domain.jobs import JOB_STATES, Claim, Job, JobState, QueueReport, stranded_after
from perdure.domain.journal import Operation
from perdure.domain.messages import ROLES, CallState, Message, Role, Session, ToolCall
from perdure.domain.scope import Address, MessageId, Owner, SessionId, ToolCallId
from perdure.domain.series import CoveredWindow, Entry, PastEntry, Series, SeriesSpec
from perdure.domain.spans import Span
from perdure.domain.state import KeyInfo, Revision
from perdure.domain.text import compact_json
from perdure.domain.times import from_us, to_us
from perdure.ports.series import FetchLease
from perdure.ports.state import PREVIEW_KEPT

T = TypeVar("T")
# Rows come from a driver, which cannot say more of their types than this; the readers below check what they rely on.
AnyRow = tuple[Any, ...]


class Table(NamedTuple):
    """A stored table: its columns in order; the first `key` of them are the primary key."""

    columns: tuple[str, ...]
    key: int
    rebuilt: bool = False
    """Made anew from the others by a job; backups leave it out, and it holds no text of a user's."""
    stays: bool = False
    """It tells what was done in this store: exports leave it out, and imports leave it alone."""


_OWNER = ("space", "user_id")
_PLACE = (*_OWNER, "agent", "channel", "session_number")

# In an order in which rows can be loaded: what is referred to comes first.
TABLES: dict[str, Table] = {
    "sessions": Table(
        (
            *_PLACE,
            "session",
            "opened_at_us",
            "last_at_us",
            "ended_at_us",
            "messages",
            "tokens",
            "turns",
            "boundary_seq",
            "spine_seq",
            "deleted_at_us",
            "learned_seq",
        ),
        5,
    ),
    "messages": Table(
        (*_PLACE, "seq", "id", "role", "content", "at_us", "tokens", "metadata", "tool_calls", "tool_call_id", "failed"), 6
    ),
    "tool_calls": Table(
        (*_OWNER, "agent", "channel", "call_id", "session_number", "name", "call_seq", "result_seq", "failed"), 6
    ),
    "jobs": Table(
        (
            *_OWNER,
            "kind",
            "key",
            "state",
            "payload",
            "due_at_us",
            "attempts",
            "attempts_max",
            "fence",
            "again",
            "worker",
            "repeat",
            "last_error",
            "runs",
            "failures",
            "created_at_us",
            "updated_at_us",
        ),
        4,
    ),
    "owners": Table((*_OWNER, "operations"), 2),
    "operations": Table((*_OWNER, "seq", "at_us", "actor", "action", "kind", "key", "before", "after", "why", "batch"), 3),
    "tallies": Table((*_PLACE, "up_to_seq", "body", "operation"), 5),
    "state_keys": Table((*_OWNER, "key", "revision", "saved_at_us", "expires_at_us", "size_bytes", "preview"), 3),
    "state_revisions": Table((*_OWNER, "key", "revision", "body", "saved_at_us", "expires_at_us", "request"), 4),
    "series": Table(
        (
            *_OWNER,
            "series",
            "spec",
            "accumulated_since_us",
            "last_updated_us",
            "entries",
            "api_calls",
            "fetched",
            "duplicates",
            "removed",
            "trims",
            "floor_us",
            "incarnation",
            "last_request",
            "last_result",
        ),
        3,
    ),
    "series_entries": Table((*_OWNER, "series", "id", "at_us", "body", "first_seen_us", "last_seen_us"), 4),
    "series_past": Table((*_OWNER, "series", "id", "version", "at_us", "body", "seen_us"), 5),
    "series_windows": Table((*_OWNER, "series", "start_us", "end_us", "fetched_us"), 4),
    "series_leases": Table((*_OWNER, "series", "holder", "start_us", "end_us", "until_us"), 5),
    "agent_states": Table(
        (
            *_OWNER,
            "agent",
            "channel",
            "turns",
            "last_at_us",
            "last_text",
            "profile",
            "casual",
            "private",
            "rolling_tried_us",
            "rolling_done_us",
            "rolling_error",
            "curated_us",
            "curated_memories",
            "turn_holder",
            "turn_until_us",
            "shared",
        ),
        4,
    ),
    "digests": Table((*_PLACE, "kind", "version", "made_at_us", "undone", "body", "operation"), 7),
    "records": Table((*_OWNER, "kind", "key", "body", "operation"), 4),
    "record_terms": Table((*_OWNER, "kind", "field", "value", "key"), 6),
    "echoes": Table((*_OWNER, "hash", "at_us"), 3),
    "decisions": Table((*_OWNER, "id", "number", "at_us", "agent", "channel", "kind", "body"), 3),
    "usage": Table((*_OWNER, "purpose", "outcome", "calls", "tokens_in", "tokens_out", "took_us", "last_at_us"), 4),
    "accesses": Table(
        (
            *_OWNER,
            "id",
            "number",
            "at_us",
            "agent",
            "channel",
            "actor",
            "face",
            "call",
            "action",
            "outcome",
            "error",
            "touched",
            "operations",
        ),
        3,
        stays=True,
    ),
    "index_heads": Table(
        (*_OWNER, "incarnation", "last", "lexicon", "embedder", "vectored", "coming", "coming_upto"), 2, rebuilt=True
    ),
    "index_entries": Table((*_OWNER, "number", "kind", "ref", "replaces", "body"), 3, rebuilt=True),
    "index_vectors": Table((*_OWNER, "embedder", "number", "body"), 4, rebuilt=True),
    "index_packs": Table((*_OWNER, "first", "last", "embedder", "body"), 3, rebuilt=True),
}
STAYING = tuple(name for name, spec in TABLES.items() if spec.stays)
LEAVING = tuple(name for name, spec in TABLES.items() if not spec.stays)
"""What makes up a user's data: it can be taken elsewhere, and be replaced by what comes from there."""

dump = compact_json


def insertion(table: str, mark: str) -> str:
    """The statement that inserts a row of a table, with a driver's mark for a value."""
    columns = TABLES[table].columns
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join([mark] * len(columns))})"


def owned(owner: Owner, row: AnyRow) -> AnyRow:
    """The row as one of this owner's."""
    return (owner.space, owner.user, *row[2:])


def holds_rows(owner: Owner) -> Conflict:
    return Conflict(f"user {owner.user!r:.80} holds data already; choose another name, or say that it is to be replaced")


@lru_cache(maxsize=1024)
def address_of(agent: str, channel: str) -> Address:
    return Address(agent, channel)


def readable(table: str, reader: Callable[[AnyRow], T], row: AnyRow) -> T:
    """`reader(row)`, with whatever goes wrong turned into `Corrupt` that names the row by its key."""
    try:
        return reader(row)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError, PerdureError) as error:
        key = row[: TABLES[table].key]
        raise Corrupt(
            f"row {key!r:.200} of table `{table}` cannot be read ({type(error).__name__}); run `perdure verify`"
        ) from error


# -- sessions ----------------------------------------------------------------------------------------------------------


def session_row(owner: Owner, session: Session) -> AnyRow:
    ended = None if session.ended_at is None else to_us(session.ended_at)
    deleted = None if session.deleted_at is None else to_us(session.deleted_at)
    return (
        owner.space, owner.user, session.address.agent, session.address.channel, session.number, session.id,
        to_us(session.opened_at), to_us(session.last_at), ended, session.messages, session.tokens, session.turns,
        session.boundary_seq, session.spine_seq, deleted, session.learned_seq,
    )  # fmt: skip


def to_session(row: AnyRow) -> Session:
    return readable("sessions", _read_session, row)


def _read_session(row: AnyRow) -> Session:
    _, _, agent, channel, number, session, opened, last, ended, messages, tokens, turns, boundary, spine, deleted, learned = row
    return Session(
        address_of(agent, channel), number, SessionId(session), from_us(opened), from_us(last),
        None if ended is None else from_us(ended), messages, tokens, turns, boundary, spine,
        None if deleted is None else from_us(deleted), learned,
    )  # fmt: skip


# -- messages ----------------------------------------------------------------------------------------------------------


def message_row(owner: Owner, message: Message) -> AnyRow:
    calls = None
    if message.tool_calls:
        calls = dump([{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls])
    address = message.address
    return (
        owner.space, owner.user, address.agent, address.channel, message.session_number, message.seq, message.id,
        message.role, message.content, to_us(message.at), message.tokens,
        dump(message.metadata) if message.metadata else None, calls, message.tool_call_id, int(message.failed),
    )  # fmt: skip


def to_message(row: AnyRow) -> Message:
    """From the columns of `messages` followed by the session's id."""
    return readable("messages", _read_message, row)


def _read_message(row: AnyRow) -> Message:
    (_, _, agent, channel, number, seq, message_id, role, content, at, tokens, metadata, calls, call_id, failed, session) = row
    if role not in ROLES:
        raise ValueError("unknown role")
    return Message(
        id=MessageId(message_id), session=SessionId(session), session_number=number, seq=seq, role=cast(Role, role),
        content=content, at=from_us(at), tokens=tokens, metadata={} if metadata is None else json.loads(metadata),
        tool_calls=() if calls is None else _read_calls(calls),
        tool_call_id=None if call_id is None else ToolCallId(call_id), failed=bool(failed),
        address=address_of(agent, channel),
    )  # fmt: skip


def _read_calls(text: str) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(ToolCallId(call["id"]), call["name"], call["arguments"]) for call in json.loads(text))


# -- tool calls --------------------------------------------------------------------------------------------------------


def call_row(owner: Owner, address: Address, call: CallState) -> AnyRow:
    return (
        owner.space, owner.user, address.agent, address.channel, call.id, call.session_number, call.name, call.call_seq,
        call.result_seq, int(call.failed),
    )  # fmt: skip


def to_call(row: AnyRow) -> CallState:
    return readable("tool_calls", _read_call, row)


def _read_call(row: AnyRow) -> CallState:
    _, _, _, _, call_id, number, name, call_seq, result_seq, failed = row
    return CallState(number, ToolCallId(call_id), name, call_seq, result_seq, bool(failed))


# -- jobs --------------------------------------------------------------------------------------------------------------


def job_row(job: Job) -> AnyRow:
    return (
        job.owner.space, job.owner.user, job.kind, job.key, job.state, dump(dict(job.payload)),
        None if job.due_at is None else to_us(job.due_at), job.attempts, job.attempts_max, job.fence, int(job.again),
        job.worker, job.repeat, job.last_error, job.runs, job.failures, to_us(job.created_at), to_us(job.updated_at),
    )  # fmt: skip


def to_job(row: AnyRow) -> Job:
    return readable("jobs", _read_job, row)


def _read_job(row: AnyRow) -> Job:
    (space, user, kind, key, state, payload, due, attempts, attempts_max, fence, again, worker, repeat, error, runs,
     failures, created, updated) = row  # fmt: skip
    if state not in JOB_STATES:
        raise ValueError("unknown state")
    return Job(
        owner=Owner(space, user), kind=kind, key=key, state=cast(JobState, state), payload=json.loads(payload),
        due_at=None if due is None else from_us(due), attempts=attempts, attempts_max=attempts_max, fence=fence,
        again=bool(again), worker=worker, repeat=repeat, last_error=error, runs=runs, failures=failures,
        created_at=from_us(created), updated_at=from_us(updated),
    )  # fmt: skip


def claim_values(claim: Claim, kinds: object) -> AnyRow:
    """The parameters of the query `due_jobs`, with the kinds as the backend passes a list."""
    space, user = (None, None) if claim.owner is None else (claim.owner.space, claim.owner.user)
    return (to_us(claim.now), kinds, space, space, user, claim.limit)


def stranded_values(claim: Claim, kinds: object) -> AnyRow:
    """Those of `stranded_jobs`: the same, with how far ahead a job is stranded before the limit."""
    *values, limit = claim_values(claim, kinds)
    return (*values, to_us(stranded_after(claim.now)), limit)


def to_queue_report(counts: Iterable[AnyRow], now: datetime) -> QueueReport:
    """From rows of (state, count, earliest due, how many were tried)."""
    by_state = {state: (count, due, tried) for state, count, due, tried in counts}
    _, due, tried = by_state.get("ready", (0, None, 0))
    late_s = 0.0 if due is None else max(0.0, (now - from_us(due)).total_seconds())
    ready, running, done, dead = (by_state.get(state, (0, None, 0))[0] for state in JOB_STATES)
    return QueueReport(ready, running, done, dead, late_s, int(tried))


# -- the journal and what it records -----------------------------------------------------------------------------------


def operation_row(owner: Owner, op: Operation) -> AnyRow:
    before = None if op.before is None else dump(op.before)
    after = None if op.after is None else dump(op.after)
    batch = op.batch or op.seq
    return (owner.space, owner.user, op.seq, to_us(op.at), op.actor, op.action, op.kind, op.key, before, after, op.why, batch)


def to_operation(row: AnyRow) -> Operation:
    return readable("operations", _read_operation, row)


def _read_operation(row: AnyRow) -> Operation:
    _, _, seq, at, actor, action, kind, key, before, after, why, batch = row
    return Operation(
        seq, from_us(at), actor, action, kind, key,
        None if before is None else json.loads(before), None if after is None else json.loads(after), why, batch,
    )  # fmt: skip


# -- state -------------------------------------------------------------------------------------------------------------


def revision_row(owner: Owner, revision: Revision) -> AnyRow:
    expires = None if revision.expires_at is None else to_us(revision.expires_at)
    saved = to_us(revision.saved_at)
    return (owner.space, owner.user, revision.key, revision.number, revision.body, saved, expires, revision.request)


def to_revision(row: AnyRow) -> Revision:
    return readable("state_revisions", _read_revision, row)


def _read_revision(row: AnyRow) -> Revision:
    _, _, key, number, body, saved, expires, request = row
    return Revision(key, number, body, from_us(saved), None if expires is None else from_us(expires), request)


def key_row(owner: Owner, revision: Revision) -> AnyRow:
    """The row that finds a key without reading its value. A deletion has no size and no preview."""
    expires = None if revision.expires_at is None else to_us(revision.expires_at)
    size = None if revision.body is None else len(revision.body.encode())
    preview = None if revision.body is None else revision.body[:PREVIEW_KEPT]
    return (owner.space, owner.user, revision.key, revision.number, to_us(revision.saved_at), expires, size, preview)


def to_key_info(row: AnyRow) -> KeyInfo:
    return readable("state_keys", _read_key, row)


def _read_key(row: AnyRow) -> KeyInfo:
    _, _, key, revision, saved, _, size, preview = row
    return KeyInfo(key, from_us(saved), size, revision, preview)


# -- series ------------------------------------------------------------------------------------------------------------


def series_row(owner: Owner, series: Series) -> AnyRow:
    return (
        owner.space, owner.user, series.name, dump(asdict(series.spec)), to_us(series.accumulated_since),
        to_us(series.last_updated), series.count, series.api_calls, series.fetched, series.duplicates, series.removed,
        series.trims, series.floor_us, series.incarnation, series.last_request, series.last_result,
    )  # fmt: skip


def to_series(row: AnyRow) -> Series:
    return readable("series", _read_series, row)


def _read_series(row: AnyRow) -> Series:
    _, _, name, spec, since, updated, *counts = row
    return Series(name, SeriesSpec(**json.loads(spec)), from_us(since), from_us(updated), *counts)


def entry_row(owner: Owner, series: str, entry: Entry) -> AnyRow:
    return (
        owner.space, owner.user, series, entry.id, entry.at_us, dump(entry.body), entry.first_seen_us, entry.last_seen_us,
    )  # fmt: skip


def to_entry(row: AnyRow) -> Entry:
    return readable("series_entries", _read_entry, row)


def _read_entry(row: AnyRow) -> Entry:
    _, _, _, entry_id, at_us, body, first_seen, last_seen = row
    return Entry(entry_id, at_us, json.loads(body), first_seen, last_seen)


def to_past_entry(row: AnyRow) -> PastEntry:
    return readable("series_past", _read_past, row)


def _read_past(row: AnyRow) -> PastEntry:
    _, _, _, entry_id, version, at_us, body, seen = row
    return PastEntry(entry_id, version, at_us, json.loads(body), seen)


def window_row(owner: Owner, series: str, window: CoveredWindow) -> AnyRow:
    return (owner.space, owner.user, series, window.span.start_us, window.span.end_us, window.fetched_us)


def to_window(row: AnyRow) -> CoveredWindow:
    return readable("series_windows", lambda row: CoveredWindow(Span(row[3], row[4]), row[5]), row)


def lease_row(owner: Owner, series: str, lease: FetchLease) -> AnyRow:
    return (owner.space, owner.user, series, lease.holder, lease.span.start_us, lease.span.end_us, lease.until_us)


def to_lease(row: AnyRow) -> FetchLease:
    return readable("series_leases", lambda row: FetchLease(Span(row[4], row[5]), row[3], row[6]), row)
