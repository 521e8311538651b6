"""Reads what index entries stand for: the text and where it comes from. What is no more is left out.

Beside what states an old value, the one that holds now: a message stays what was said, but it does not answer alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from perdure.domain.context.recall import CurrentValue, Hit, RecallQuery, Trace
from perdure.domain.conversation.digests import SPINE_SESSION, trust_of
from perdure.domain.conversation.messages import Message
from perdure.domain.knowledge.entities import Instruction, Todo, from_body
from perdure.domain.knowledge.keys import term_value
from perdure.domain.knowledge.memories import Statement, to_statement, trust_of_message
from perdure.domain.knowledge.records import Record, RecordKind, RecordQuery
from perdure.domain.lessons import to_lesson
from perdure.domain.scope import MessageId, Scope
from perdure.domain.series import Series
from perdure.domain.state import Revision, is_found
from perdure.engine.search.entries import digest_parts, series_text, speaker_in, state_text
from perdure.ports.store import View

Name = tuple[str, str]
"""Kind and id of something that was found."""
Place = tuple[float, Trace]
"""Where something stands among what was found: its score, and how it came about."""
Places = Mapping[Name, Place]
NOWHERE: Place = (0.0, Trace({}, 0.0, 0.0))
Reader = Callable[[View, Sequence[str], datetime, Places], list[Hit]]
HITS_MAX = 50
"""So many of the best hits are looked at for old values."""
CITING_MAX = 100
HOPS_MAX = 20
NEWER = "it holds now, and a hit states an older value"


def read_found(
    view: View, names: Sequence[Name], *, now: datetime, places: Mapping[Name, Place] | None = None
) -> dict[Name, Hit]:
    """Hits for those of `names` that are still there, each with its score and trace; without `places`, with none."""
    refs: dict[str, list[str]] = {}
    for kind, ref in names:
        if kind in _READERS:
            refs.setdefault(kind, []).append(ref)
    read = view.together(*(partial(_READERS[kind], view, some, now, places or {}) for kind, some in refs.items()))
    return {(one.kind, one.id): one for hits in read for one in hits}


def _messages(view: View, refs: Sequence[str], _now: datetime, places: Places) -> list[Hit]:
    held = view.find_messages([MessageId(ref) for ref in refs])
    return [message_hit(one, places.get(("message", one.id), NOWHERE)) for one in held.values()]


def message_hit(message: Message, place: Place) -> Hit:
    score, trace = place
    return Hit(
        kind="message",
        id=message.id,
        text=message.content,
        at=message.at,
        score=score,
        trace=trace,
        speaker=speaker_in(message.metadata) or message.role,
        address=message.address,
        session=message.session,
        seq=message.seq,
        sources=(message.id,),
        trust=trust_of_message(message.role, message.metadata),
        tokens=message.tokens,
    )


def _statements(view: View, refs: Sequence[str], _now: datetime, places: Places) -> list[Hit]:
    read = [to_statement(record.body) for record in view.records.find_many("statement", refs)]
    return [statement_hit(one, places.get(("memory", one.id), NOWHERE)) for one in read]


def statement_hit(statement: Statement, place: Place) -> Hit:
    score, trace = place
    return Hit(
        kind="memory",
        id=statement.id,
        text=statement.content,
        at=statement.last_mentioned,
        score=score,
        trace=trace,
        speaker=statement.source,
        sources=tuple(dict.fromkeys(one.message for one in statement.evidence)),
        valid_from=statement.valid_from,
        valid_to=statement.valid_to,
        trust=statement.trust,
        entities=statement.entities,
        memory=statement.memory,
        proposes=statement.proposes,
        against=statement.against,
    )


def _records(kind: RecordKind, read: Callable[[Record, Places], Hit]) -> Reader:
    return lambda view, refs, _now, places: [read(record, places) for record in view.records.find_many(kind, refs)]


def _todo(record: Record, places: Places) -> Hit:
    todo = from_body(Todo, record.body)
    score, trace = places.get(("todo", todo.id), NOWHERE)
    sources = tuple(dict.fromkeys(one.message for one in todo.evidence))
    return Hit(
        kind="todo",
        id=todo.id,
        text=todo.content,
        at=todo.created_at,
        score=score,
        trace=trace,
        speaker="user",
        sources=sources,
        valid_from=todo.created_at,
        valid_to=todo.ended_at,
        trust=todo.trust,
    )


def _instruction(record: Record, places: Places) -> Hit:
    held = from_body(Instruction, record.body)
    score, trace = places.get(("instruction", held.id), NOWHERE)
    sources = tuple(dict.fromkeys(one.message for one in held.evidence))
    return Hit(
        kind="instruction",
        id=held.id,
        text=held.content,
        at=held.created_at,
        score=score,
        trace=trace,
        speaker="user",
        sources=sources,
        valid_from=held.created_at,
        valid_to=held.ended_at,
        trust="user",
    )


def _digests(view: View, refs: Sequence[str], _now: datetime, places: Places) -> list[Hit]:
    hits = []
    for ref in refs:
        score, trace = places.get(("digest", ref), NOWHERE)
        address, number, kind = digest_parts(ref)
        digest = view.conversation.latest_digest(address, number, kind)
        if digest is not None:
            session = None if number == SPINE_SESSION else view.find_session(address, number)
            told = Hit(
                kind="digest",
                id=ref,
                text=digest.text,
                at=digest.made_at,
                score=score,
                trace=trace,
                speaker=digest.summariser,
                address=None if session is None else address,
                session=None if session is None else session.id,
                trust=trust_of(digest),
            )
            hits.append(told)
    return hits


def _lesson(record: Record, places: Places) -> Hit:
    held = to_lesson(record.body)
    score, trace = places.get(("lesson", held.id), NOWHERE)
    sources = tuple(dict.fromkeys(one.message for one in held.origins if one.message is not None))
    return Hit(
        kind="lesson",
        id=held.id,
        text=held.text,
        at=held.created_at,
        score=score,
        trace=trace,
        speaker=held.source,
        sources=sources,
        valid_from=held.created_at,
        valid_to=held.ended_at,
        trust=held.trust,
    )


def _state(view: View, refs: Sequence[str], now: datetime, places: Places) -> list[Hit]:
    found = [view.state.find(ref) for ref in refs]
    alive = [one for one in found if one is not None and one.alive(now) and is_found(one.body)]
    return [_state_hit(one, places.get(("state", one.key), NOWHERE)) for one in alive]


def _state_hit(held: Revision, place: Place) -> Hit:
    score, trace = place
    return Hit(
        kind="state",
        id=held.key,
        text=state_text(held.key, held.body),
        at=held.saved_at,
        score=score,
        trace=trace,
        speaker="state",
        valid_to=held.expires_at,
        trust="tool",
    )


def _series(view: View, refs: Sequence[str], _now: datetime, places: Places) -> list[Hit]:
    found = [view.series.find(ref) for ref in refs]
    return [_series_hit(one, places.get(("series", one.name), NOWHERE)) for one in found if one is not None]


def _series_hit(held: Series, place: Place) -> Hit:
    score, trace = place
    return Hit(
        kind="series",
        id=held.name,
        text=series_text(held),
        at=held.last_updated,
        score=score,
        trace=trace,
        speaker="series",
        trust="tool",
    )


_READERS: Mapping[str, Reader] = {
    "message": _messages,
    "memory": _statements,
    "instruction": _records("instruction", _instruction),
    "todo": _records("todo", _todo),
    "digest": _digests,
    "lesson": _records("lesson", _lesson),
    "state": _state,
    "series": _series,
}


# -- what holds now, beside what states an old value


def may_be_old(view: View, query: RecallQuery, hits: Sequence[Hit]) -> bool:
    """Whether any of the hits can state an old value: a proposal, or a message where something was replaced."""
    if query.as_of is not None or query.known_at is not None:
        return False
    if any(hit.proposes for hit in hits):
        return True
    return any(hit.kind == "message" for hit in hits) and view.records.count("statement", ("state", "past")) > 0


def with_current(view: View, scope: Scope, query: RecallQuery, hits: Sequence[Hit]) -> list[Hit]:
    """The hits, those that state an old value with the newer one, and none of these before the newer one itself."""
    from perdure.engine.search.ranking import current_first

    told: list[Hit] = []
    added: set[str] = set()
    looked = hits[:HITS_MAX]
    said = {hit.id: term_value(hit.id) for hit in looked if hit.kind == "message"}
    cited = view.records.find_by("statement", "message", list(said.values()))
    stating = {hit.id for hit in looked if hit.kind != "message" or said[hit.id] in cited}
    for place, hit in enumerate(hits):
        found = _holding(view, scope, hit) if place < HITS_MAX and hit.id in stating else []
        if found:
            told += [_newer(one, hit) for one in _not_among(found, hits, added) if _is_free(query)]
        told.append(replace(hit, current=tuple(map(_as_current, found))) if found else hit)
    return current_first(told)


def _as_current(one: Statement) -> CurrentValue:
    return CurrentValue(one.id, one.content, one.valid_from, tuple(sorted(_cited_by(one))))


def _holding(view: View, scope: Scope, hit: Hit) -> list[Statement]:
    """What holds now in place of what a hit says."""
    if hit.kind == "message":
        rows = view.records.list_(RecordQuery("statement", CITING_MAX, ("message", term_value(hit.id))))
        said = [to_statement(record.body) for record in rows]
        over = [one for one in said if one.proposes is None and not one.is_live() and one.closed_by is not None]
        # What the message says that still holds is not old, whatever else it says.
        follows = [_follow(view, one) for one in over]
    elif hit.proposes is not None:
        follows = [_statement(view, one) for one in hit.against]
    else:
        return []
    live = {one.id: one for one in follows if one is not None and one.is_live()}
    return [one for one in live.values() if one.visible_to in (None, scope.address.agent) and hit.id not in _cited_by(one)]


def _follow(view: View, over: Statement) -> Statement | None:
    """The statement that holds in the end, through all that took each other's place."""
    one: Statement | None = over
    for _ in range(HOPS_MAX):
        if one is None or one.is_live() or one.closed_by is None:
            return one
        one = _statement(view, one.closed_by)
    return None


def _statement(view: View, key: str) -> Statement | None:
    held = view.records.find("statement", key)
    return None if held is None else to_statement(held.body)


def _cited_by(one: Statement) -> set[str]:
    return {evidence.message for evidence in one.evidence}


def _not_among(found: Sequence[Statement], hits: Sequence[Hit], added: set[str]) -> list[Statement]:
    """Those that are among the hits neither themselves nor by a message that says so; each once."""
    new = []
    for one in found:
        sources = _cited_by(one)
        here = any(hit.id == one.id or (hit.kind == "message" and hit.id in sources) for hit in hits)
        if not here and one.id not in added:
            added.add(one.id)
            new.append(one)
    return new


def _is_free(query: RecallQuery) -> bool:
    """Whether nothing was asked for that a statement might not be."""
    return "memory" in query.kinds and not (query.sessions or query.entities or query.time_range)


def _newer(one: Statement, than: Hit) -> Hit:
    return statement_hit(one, (than.score, replace(than.trace, why=(NEWER,))))
