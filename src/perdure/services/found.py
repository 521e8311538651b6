"""Reads what index entries stand for: the text and where it comes from. What is no more is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from perdure.domain.digests import SPINE_SESSION, trust_of
from perdure.domain.instructions import Instruction
from perdure.domain.lessons import to_lesson
from perdure.domain.memories import TRUST_OF_ROLE, Statement, to_statement
from perdure.domain.messages import Message
from perdure.domain.recall import Hit, Trace
from perdure.domain.records import Record, RecordKind
from perdure.domain.scope import MessageId
from perdure.domain.state import Revision
from perdure.domain.things import Todo, from_body
from perdure.engine.entries import digest_parts, series_text, speaker_in, state_text
from perdure.ports.store import View

Name = tuple[str, str]
"""Kind and id of something that was found."""
NO_TRACE = Trace({}, 0.0, 0.0)


def read_found(view: View, names: Sequence[Name], *, now: datetime) -> dict[Name, Hit]:
    """Hits without a score for those of `names` that are still there."""
    found: dict[Name, Hit] = {}
    for kind in dict.fromkeys(name[0] for name in names if name[0] in _READERS):
        for one in _READERS[kind](view, [ref for other, ref in names if other == kind], now):
            found[(one.kind, one.id)] = one
    return found


def _messages(view: View, refs: Sequence[str], _now: datetime) -> list[Hit]:
    held = view.find_messages([MessageId(ref) for ref in refs])
    return [message_hit(one) for one in held.values()]


def message_hit(message: Message) -> Hit:
    return Hit(
        "message",
        message.id,
        message.content,
        message.at,
        0.0,
        NO_TRACE,
        speaker=speaker_in(message.metadata) or message.role,
        address=message.address,
        session=message.session,
        seq=message.seq,
        sources=(message.id,),
        trust=TRUST_OF_ROLE[message.role],
        tokens=message.tokens,
    )


def _statements(view: View, refs: Sequence[str], _now: datetime) -> list[Hit]:
    return [statement_hit(to_statement(record.body)) for record in view.records.find_many("statement", refs)]


def statement_hit(statement: Statement) -> Hit:
    return Hit(
        "memory",
        statement.id,
        statement.content,
        statement.last_mentioned,
        0.0,
        NO_TRACE,
        speaker=statement.source,
        sources=tuple(dict.fromkeys(one.message for one in statement.evidence)),
        valid_from=statement.valid_from,
        valid_to=statement.valid_to,
        trust=statement.trust,
        entities=statement.entities,
        memory=statement.memory,
    )


def _records(kind: RecordKind, read: Callable[[Record], Hit]) -> Callable[[View, Sequence[str], datetime], list[Hit]]:
    return lambda view, refs, _now: [read(record) for record in view.records.find_many(kind, refs)]


def _todo(record: Record) -> Hit:
    todo = from_body(Todo, record.body)
    sources = tuple(dict.fromkeys(one.message for one in todo.evidence))
    return Hit(
        "todo", todo.id, todo.content, todo.created_at, 0.0, NO_TRACE, speaker="user", sources=sources,
        valid_from=todo.created_at, valid_to=todo.ended_at, trust="user",
    )  # fmt: skip


def _instruction(record: Record) -> Hit:
    held = from_body(Instruction, record.body)
    sources = tuple(dict.fromkeys(one.message for one in held.evidence))
    return Hit(
        "instruction", held.id, held.content, held.created_at, 0.0, NO_TRACE, speaker="user", sources=sources,
        valid_from=held.created_at, valid_to=held.ended_at, trust="user",
    )  # fmt: skip


def _digests(view: View, refs: Sequence[str], _now: datetime) -> list[Hit]:
    hits = []
    for ref in refs:
        address, number, kind = digest_parts(ref)
        digest = view.conversation.latest_digest(address, number, kind)
        if digest is not None:
            session = None if number == SPINE_SESSION else view.find_session(address, number)
            told = Hit(
                "digest", ref, digest.text, digest.made_at, 0.0, NO_TRACE, speaker=digest.summariser,
                address=None if session is None else address, session=None if session is None else session.id,
                trust=trust_of(digest),
            )  # fmt: skip
            hits.append(told)
    return hits


def _lesson(record: Record) -> Hit:
    held = to_lesson(record.body)
    sources = tuple(dict.fromkeys(one.message for one in held.origins if one.message is not None))
    return Hit(
        "lesson", held.id, held.text, held.created_at, 0.0, NO_TRACE, speaker=held.source, sources=sources,
        valid_from=held.created_at, valid_to=held.ended_at, trust="user" if held.source in ("user", "file") else "agent",
    )  # fmt: skip


def _state(view: View, refs: Sequence[str], now: datetime) -> list[Hit]:
    found = [view.state.find(ref) for ref in refs]
    return [_state_hit(one) for one in found if one is not None and one.alive(now)]


def _state_hit(held: Revision) -> Hit:
    return Hit(
        "state", held.key, state_text(held.key, held.body), held.saved_at, 0.0, NO_TRACE, speaker="state",
        valid_to=held.expires_at, trust="tool",
    )  # fmt: skip


def _series(view: View, refs: Sequence[str], _now: datetime) -> list[Hit]:
    found = [view.series.find(ref) for ref in refs]
    return [
        Hit("series", one.name, series_text(one), one.last_updated, 0.0, NO_TRACE, speaker="series", trust="tool")
        for one in found
        if one is not None
    ]


_READERS: Mapping[str, Callable[[View, Sequence[str], datetime], list[Hit]]] = {
    "message": _messages,
    "memory": _statements,
    "instruction": _records("instruction", _instruction),
    "todo": _records("todo", _todo),
    "digest": _digests,
    "lesson": _records("lesson", _lesson),
    "state": _state,
    "series": _series,
}
