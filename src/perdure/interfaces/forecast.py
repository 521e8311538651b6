"""What forgetting would take, as far as that can be told before it is done: for every face that asks first."""

from __future__ import annotations

from perdure.domain.errors import InvalidInput, NotFound
from perdure.handles.memory import Memory

PAGE = 1_000


def forecast(held: Memory, entity: str | None, memory: str | None, messages: tuple[str, str] | None) -> dict[str, object]:
    """What can be told beforehand of what would go. Where a name stands is only found while it is struck out."""
    if entity is not None:
        return _of_entity(held, entity)
    if memory is not None:
        return _of_memory(held, memory)
    if messages is not None:
        count = _count(held, *messages)
        return {"messages": count, "and": "what was learned from them alone, and the summaries of their sessions"}
    limit = PAGE
    return {
        "sessions": len(held.conversation.list_sessions(limit=limit)),
        "memories": len(held.memories.list(archived=True, limit=limit)),
        "entities": len(held.entities.list(limit=limit)),
        "state_keys": len(held.state.keys()),
        "series": len(held.series.list(limit)),
        "and": f"everything else stored for the user, of all agents and channels and in files (counted up to {limit:,})",
    }


def _of_entity(held: Memory, ref: str) -> dict[str, object]:
    try:
        found = held.entities.get(ref)
    except NotFound:
        return {"entity": ref, "known": False}
    known = held.memories.list(entity=found.ref, archived=True, limit=PAGE)
    return {
        "entity": found.ref,
        "names": [found.label, *found.aliases],
        "memories": [one.memory.record_key for one in known],
        "and": "its names in messages, summaries, todos, the journal and files",
    }


def _of_memory(held: Memory, key: str) -> dict[str, object]:
    try:
        said = [one for one in held.memories.history(key) if one.memory == key]
    except NotFound:
        return {"memory": key, "known": False}
    sources = {one.message for statement in said for one in statement.evidence}
    rest = "the words in these messages that it came from, and the summaries of their sessions"
    return {"memory": key, "statements": len(said), "messages": len(sources), "and": rest}


def _count(held: Memory, first: str, last: str) -> int:
    """How many messages there are from one to the other, ends included."""
    low, high = held.conversation.message(first), held.conversation.message(last)
    end = (high.session_number, high.seq)
    count, after = 1, low
    if (low.session_number, low.seq) > end:
        raise InvalidInput("the first message comes after the last; swap them")
    while page := held.messages(PAGE, after=after.id):
        inside = [one for one in page if (one.session_number, one.seq) <= end]
        count += len(inside)
        if len(inside) < len(page):
            break
        after = page[-1]
    return count
