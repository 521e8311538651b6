"""What becomes of a todo that a text seems to tell of: it is new, it was told before, or it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from perdure.domain.knowledge import TodoProposal
from perdure.domain.things import Todo
from perdure.engine.sameness import meaning, says_the_same
from perdure.engine.scheduling import next_slot

ALIKE = 0.6
"""So much of the words of the shorter one must be shared for a completion to mean an open todo."""
OPEN_FOR = timedelta(days=90)


def matching(proposal: TodoProposal, held: Sequence[Todo]) -> Todo | None:
    """The open todo that the proposal means; the best match, the newest among equals."""
    if not proposal.done:
        return next((todo for todo in held if says_the_same(todo.content, proposal.content)), None)
    scored = [(likeness(todo.content, proposal.content), todo.created_at, todo) for todo in held]
    best = max(scored, key=lambda one: (one[0], one[1]), default=None)
    return best[2] if best is not None and best[0] >= ALIKE else None


def likeness(one: str, other: str) -> float:
    """The share of the shorter text's meaningful words that the other has, too."""
    first, second = {word for word, _ in meaning(one)}, {word for word, _ in meaning(other)}
    shorter = min(len(first), len(second))
    return len(first & second) / shorter if shorter else 0.0


def completed(todo: Todo, at: datetime) -> Todo:
    """The todo, done. A habit waits for its next time; what is over stays as it ended."""
    if todo.state != "pending":
        return todo
    if todo.recurrence is not None:
        return replace(todo, completions=todo.completions + 1, due_at=next_slot(todo.recurrence, at))
    return replace(todo, state="completed", ended_at=at, completions=todo.completions + 1)


def told_again(todo: Todo, proposal: TodoProposal) -> Todo:
    """The todo, told once more: what it says of when counts, and a hedge may become a promise."""
    firmer = todo.kind_of == "thread" and proposal.kind == "commitment"
    return replace(
        todo,
        kind_of=proposal.kind if firmer else todo.kind_of,
        due_at=proposal.due_at or todo.due_at,
        time_words=proposal.time_words or todo.time_words,
        recurrence=proposal.recurrence or todo.recurrence,
        evidence=tuple(dict.fromkeys((*todo.evidence, *proposal.evidence)))[-100:],
        confidence=max(todo.confidence, proposal.confidence),
    )
