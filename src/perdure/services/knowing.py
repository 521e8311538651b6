"""What is known that belongs into a context, apart from the conversation itself: always, or for a goal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from perdure.domain.memories import Statement, to_memory, to_statement
from perdure.domain.recall import Hit, Recall, RecallQuery, SeriesGap
from perdure.domain.records import RecordQuery
from perdure.domain.scope import Scope
from perdure.domain.things import Todo
from perdure.engine.assembling import Known
from perdure.engine.cards import Card, Fact, cards_of
from perdure.engine.indexing import short
from perdure.engine.lesson_rules import weights
from perdure.engine.relevant import Line, Listed
from perdure.ports.clock import Clock
from perdure.ports.store import Store, View
from perdure.services.instructions import Instructions
from perdure.services.knowledge import Knowledge, Recalled
from perdure.services.lessons import Lessons
from perdure.services.recalling import Recalling
from perdure.services.todos import Todos

FOUND_MIN, FOUND_MAX = 20, 300
TOKENS_PER_HIT = 20
"""A line of a context is seldom shorter: more hits than would fit need not be looked at."""
DUE_WITHIN = timedelta(days=1)
TODOS_MAX = 20
INSTRUCTIONS_MAX = 50
FACTS_PER_PAGE, FACT_PAGES_MAX = 200, 25
PINNED_IMPORTANCE = 3
SHARES = {"foundation": 0.3, "instructions": 0.3, "lessons": 0.1, "todos": 0.2, "series": 0.1}
"""What each list may take at most; it takes what it needs. What always holds comes before what was found."""


@dataclass(frozen=True, slots=True)
class Knowing:
    store: Store
    clock: Clock
    knowledge: Knowledge
    todos: Todos
    instructions: Instructions
    recalling: Recalling
    lessons: Lessons

    def known(self, scope: Scope, goal: str | None, budget_tokens: int) -> tuple[Known, Recall | None]:
        """The lists that always belong into a context, and with a goal what was found for it."""
        now = self.clock.now()
        most = min(FOUND_MAX, max(FOUND_MIN, budget_tokens // TOKENS_PER_HIT))
        answer = None if not goal else self.recalling.balanced(scope, RecallQuery(goal, limit=most, collapse=False))
        hits = () if answer is None else _without_told(answer.hits)
        pinned, overflow = self.knowledge.foundation(scope)
        cards = self._cards(scope, hits, now) if hits else ()
        told = {fact.id for card in cards for fact in card.facts}
        foundation = Listed(
            "foundation", "What always holds", "pinned memories", tuple(_pinned(pinned, told)), SHARES["foundation"],
            left_out=overflow,
        )  # fmt: skip
        told |= {source for line in foundation.lines for source in line.sources}
        due = self._todos(scope, now)
        told |= {source for line in due.lines for source in line.sources}
        lists = (foundation, self._instructions(scope), self._lessons(scope, goal), due, _coverage(answer))
        left = tuple(hit for hit in hits if hit.id not in told)
        return Known(
            tuple(one for one in lists if one.lines or one.left_out or one.notes), cards, left, sought=answer is not None
        ), answer

    def standing(self, scope: Scope) -> tuple[Listed, ...]:
        """What always holds, whatever the goal: it changes only when its content does."""
        pinned, overflow = self.knowledge.foundation(scope)
        lines = tuple(_pinned(pinned, set()))
        foundation = Listed(
            "foundation", "What always holds", "pinned memories", lines, SHARES["foundation"], left_out=overflow
        )
        lists = (foundation, self._instructions(scope), self._lessons(scope, None))
        return tuple(one for one in lists if one.lines or one.notes)

    def cards_about(
        self, scope: Scope, hits: Sequence[Hit], earlier: Sequence[str], *, limit: int, told: Collection[str]
    ) -> tuple[Card, ...]:
        """Cards of the entities in `earlier`, then of those that the hits are about: what was there keeps its place.

        Statements in `told` stand elsewhere.
        """
        found = [ref for hit in hits if hit.kind == "memory" for ref in hit.entities]
        entities = list(dict.fromkeys((*earlier, *found)))[-limit:]
        return self._cards_of(scope, entities, self.clock.now(), frozenset(told))

    def _cards(self, scope: Scope, hits: Sequence[Hit], now: datetime) -> tuple[Card, ...]:
        entities = list(dict.fromkeys(ref for hit in hits if hit.kind == "memory" for ref in hit.entities))
        return self._cards_of(scope, entities, now)

    def _cards_of(
        self, scope: Scope, entities: Sequence[str], now: datetime, told: frozenset[str] = frozenset()
    ) -> tuple[Card, ...]:
        if not entities:
            return ()
        agent = scope.address.agent
        facts = self.store.read(scope.owner, lambda view: list(_facts(view, entities, agent, now)))
        return cards_of(entities, facts, shown=told)

    def _instructions(self, scope: Scope) -> Listed:
        # The newest first: should there be no room for all, these are the ones that hold.
        held = self.instructions.list_(scope, limit=INSTRUCTIONS_MAX)[::-1]
        lines = [Line(f"- {one.content} (said {one.created_at:%Y-%m-%d})", (one.id, *_messages(one.evidence))) for one in held]
        title = "Standing wishes of the user"
        return Listed("instructions", title, "said by the user to this agent", tuple(lines), SHARES["instructions"])

    def _lessons(self, scope: Scope, goal: str | None) -> Listed:
        """All of them while they fit; else the pinned ones, and those that fit the goal best (X-35)."""
        held = self.lessons.shown(scope)
        weighed = weights(held.lessons, goal or "")
        lines = [Line(f"- {one.text}", (one.id,), weight) for one, weight in zip(held.lessons, weighed, strict=True)]
        title = "Lessons learned"
        return Listed("lessons", title, "drawn from earlier conversations", tuple(lines), SHARES["lessons"], notes=held.notes)

    def _todos(self, scope: Scope, now: datetime) -> Listed:
        due = self.todos.list_(scope, kind=None, closed=False, due_before=now + DUE_WITHIN, limit=TODOS_MAX)
        lines = tuple(Line(_todo_line(todo, now), (todo.id,)) for todo in due)
        return Listed("todos", "Due now or soon", "todos of the user", lines, SHARES["todos"], volatile=True)


def _without_told(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """Instructions, lessons and series have lists of their own; an open todo that is not due may well be what is sought."""
    return tuple(hit for hit in hits if hit.kind not in ("instruction", "lesson", "series"))


def _messages(evidence: Iterable[object]) -> tuple[str, ...]:
    return tuple(str(getattr(one, "message", "")) for one in evidence)


def _pinned(pinned: Sequence[Recalled], told: set[str]) -> Iterable[Line]:
    """A line for each statement: what was told as pinned outweighs what merely stands in the same memory."""
    for one in pinned:
        for statement in one.statements:
            if statement.id not in told:
                yield Line(f"- {_told_of(statement)}", (statement.id,), float(statement.importance), statement.trust)


def _told_of(statement: Statement) -> str:
    """What it says, with whom it is about where its own words do not tell: alone, it would read as if about the user."""
    about = next(iter(statement.entities), "")
    label = about.partition(":")[2].replace("_", " ")
    return f"[{about}]: {statement.content}" if label and label not in statement.content.casefold() else statement.content


def _facts(view: View, entities: Sequence[str], agent: str, now: datetime) -> Iterable[Fact]:
    """What holds now of the entities, as far as the agent may see it; of each the newest."""
    seen: dict[str, Statement] = {}
    for ref in entities:
        held = 0
        before: str | None = None
        for _ in range(FACT_PAGES_MAX):
            page = view.records.list_(RecordQuery("statement", FACTS_PER_PAGE, ("entity", short(ref)), before))
            found = [to_statement(record.body) for record in page]
            current = [one for one in found if one.holds_at(now) and one.visible_to in (None, agent)]
            seen |= {one.id: one for one in current}
            held += len(current)
            if len(page) < FACTS_PER_PAGE or held >= FACTS_PER_PAGE:
                break
            before = page[-1].key
    memories = {one.key: to_memory(one.body) for one in view.records.find_many("memory", [one.memory for one in seen.values()])}
    # Who pins while telling pins that fact; who pins a memory later pins all of it.
    told_pinned = {one.memory for one in seen.values() if one.importance == PINNED_IMPORTANCE}
    for one in seen.values():
        memory = memories.get(one.memory)
        if memory is not None and memory.status == "ACTIVE":
            pinned = memory.pinned and (one.importance == PINNED_IMPORTANCE or one.memory not in told_pinned)
            yield Fact(one.id, one.content, one.entities, one.importance, pinned, one.recorded_at, one.trust)


def _todo_line(todo: Todo, now: datetime) -> str:
    if todo.due_at is None:
        return f"- {todo.content}"
    return f"- {todo.content} ({'overdue since' if todo.due_at < now else 'due'} {todo.due_at:%Y-%m-%d %H:%M} UTC)"


def _coverage(answer: Recall | None) -> Listed:
    """What the series that fit the goal hold of the time it is about, and what of it is still to be fetched."""
    lines: list[Line] = []
    if answer is not None:
        gaps = {gap.series: gap for gap in answer.uncovered.gaps}
        found = [hit.id for hit in answer.hits if hit.kind == "series"]
        lines = [Line(f"- series `{name}`{_gap_words(gaps.get(name), answer)}", (name,)) for name in found]
    return Listed("series", "Time series at hand", "the coverage ledger", tuple(lines), SHARES["series"], volatile=True)


def _gap_words(gap: SeriesGap | None, answer: Recall) -> str:
    span = answer.understood.time_range
    if span is None:
        return ""
    asked = f"{span.start.isoformat()} to {span.end.isoformat()}"
    if gap is None:
        return f" holds all of {asked}; nothing of it needs fetching"
    missing = ", ".join(f"{one.start.isoformat()} to {one.end.isoformat()}" for one in gap.spans)
    return f", of {asked}, does not hold {missing}; fetch that"
