"""What is known that belongs into a context, apart from the conversation itself: always, or for a goal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from perdure.domain.context.recall import Hit, Recall, RecallQuery, SeriesGap, series_asked_about
from perdure.domain.knowledge.entities import Todo
from perdure.domain.knowledge.keys import term_value
from perdure.domain.knowledge.memories import MemoryWithStatements, Statement, to_memory, to_statement
from perdure.domain.knowledge.records import RecordQuery
from perdure.domain.scope import Scope
from perdure.domain.values import dataclass
from perdure.engine.context.assemble import ContextKnowledge
from perdure.engine.context.blocks import CardFact, ContextList, EntityCard, ListLine, cards_of
from perdure.engine.lessons import weights
from perdure.engine.text.cues import is_small_talk
from perdure.ports.clock import Clock
from perdure.ports.store import Store, View
from perdure.services.context.recall import RecallService
from perdure.services.knowledge.instructions import standing_orders
from perdure.services.knowledge.memories import Knowledge
from perdure.services.knowledge.todos import due_todos
from perdure.services.lessons.lessons import Lessons
from perdure.services.lessons.rows import AddressLessons, own_lessons

Picker = Callable[[Sequence[Statement]], Sequence[Statement]]
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
class GoalKnowledge:
    """What has to be found out before one moment of the user's data is read: it asks others, or is about others."""

    goal: str | None
    answer: Recall | None
    """What was found for the goal; None without one."""
    lessons: AddressLessons
    """Those that reach all users."""
    now: datetime

    @property
    def hits(self) -> tuple[Hit, ...]:
        return () if self.answer is None else _without_listed(self.answer.hits)


@dataclass(frozen=True, slots=True)
class StandingKnowledge:
    """What holds whatever the goal, and statements that were picked for it."""

    lists: tuple[ContextList, ...]
    picked: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class KnowledgeReader:
    store: Store
    clock: Clock
    knowledge: Knowledge
    recall: RecallService
    lessons: Lessons

    def sought(self, scope: Scope, goal: str | None, budget_tokens: int) -> GoalKnowledge:
        """What is found for the goal, and what all users have taught the agent."""
        most = min(FOUND_MAX, max(FOUND_MIN, budget_tokens // TOKENS_PER_HIT))
        answer = None if not goal else self.recall.balanced(scope, RecallQuery(goal, limit=most, collapse=False))
        return GoalKnowledge(goal, answer, self.lessons.shared_at(scope), self.clock.now())

    def known_in(self, view: View, scope: Scope, given: GoalKnowledge) -> ContextKnowledge:
        """The lists that always belong into a context, and with a goal what was found for it."""
        hits, now = given.hits, given.now
        entities = list(dict.fromkeys(ref for hit in hits if hit.kind == "memory" for ref in hit.entities))
        (pinned, overflow), cards, due, orders, taught = view.together(
            lambda: self.knowledge.foundation_in(view, scope),
            lambda: self._cards_in(view, scope, entities, now),
            lambda: _todos(view, scope, now),
            lambda: _instructions(view, scope),
            lambda: _lessons(given.lessons.with_own(own_lessons(view, scope)), given.goal),
        )
        elsewhere = {fact.id for card in cards for fact in card.facts}
        foundation = _foundation(pinned, overflow)
        elsewhere |= {source for one in (foundation, due) for line in one.lines for source in line.sources}
        lists = (foundation, orders, taught, due, _coverage(given.answer))
        left = tuple(hit for hit in hits if hit.id not in elsewhere)
        return ContextKnowledge(
            tuple(one for one in lists if one.lines or one.left_out or one.notes), cards, left, sought=given.answer is not None
        )

    def standing(self, scope: Scope, picked: Picker | None) -> StandingKnowledge:
        """What always holds, whatever the goal, which changes only when its content does; and of what was told last, what
        `picked` takes (None: nothing, which is then not read)."""
        shared, now = self.lessons.shared_at(scope), self.clock.now()

        def read(view: View) -> StandingKnowledge:
            (pinned, overflow), orders, taught, newest = view.together(
                lambda: self.knowledge.foundation_in(view, scope),
                lambda: _instructions(view, scope),
                lambda: _lessons(shared.with_own(own_lessons(view, scope)), None),
                lambda: [] if picked is None else view.records.list_(RecordQuery("statement", FACTS_PER_PAGE)),
            )
            lists = (_foundation(pinned, overflow), orders, taught)
            told = [to_statement(record.body) for record in newest]
            told = [one for one in told if one.is_current(now) and one.visible_to in (None, scope.address.agent)]
            given = [] if picked is None else picked(told)
            held = {one.key: to_memory(one.body) for one in view.records.find_many("memory", [one.memory for one in given])}
            active = [one for one in given if one.memory in held and held[one.memory].status == "ACTIVE"]
            return StandingKnowledge(tuple(one for one in lists if one.lines or one.notes), tuple(active))

        return self.store.read(scope.owner, read)

    def cards_about(
        self, scope: Scope, hits: Sequence[Hit], earlier: Sequence[str], *, limit: int, elsewhere: Collection[str]
    ) -> tuple[EntityCard, ...]:
        """Cards of the entities in `earlier`, then of those that the hits are about: what was there keeps its place.

        Statements in `elsewhere` have their place already.
        """
        found = [ref for hit in hits if hit.kind == "memory" for ref in hit.entities]
        entities = list(dict.fromkeys((*earlier, *found)))[-limit:]
        if not entities:
            return ()
        now, shown = self.clock.now(), frozenset(elsewhere)
        return self.store.read(scope.owner, lambda view: self._cards_in(view, scope, entities, now, shown))

    def _cards_in(
        self, view: View, scope: Scope, entities: Sequence[str], now: datetime, elsewhere: frozenset[str] = frozenset()
    ) -> tuple[EntityCard, ...]:
        facts = list(_facts(view, entities, scope.address.agent, now)) if entities else []
        return cards_of(entities, facts, shown=elsewhere) if entities else ()


def _foundation(pinned: Sequence[MemoryWithStatements], overflow: int) -> ContextList:
    lines = tuple(_pinned(pinned))
    share = SHARES["foundation"]
    return ContextList("foundation", "Core facts", "pinned memories", lines, share, left_out=overflow)


def _instructions(view: View, scope: Scope) -> ContextList:
    # The newest first: should there be no room for all, these are the ones that hold.
    held = standing_orders(view, scope.address.agent, INSTRUCTIONS_MAX)[::-1]
    lines = [ListLine(f"- {one.content} (said {one.created_at:%Y-%m-%d})", (one.id, *_messages(one.evidence))) for one in held]
    title = "Standing wishes of the user"
    return ContextList("instructions", title, "said by the user to this agent", tuple(lines), SHARES["instructions"])


def _lessons(held: AddressLessons, goal: str | None) -> ContextList:
    """All of them while they fit; else the pinned ones, and those that fit the goal best (X-35)."""
    weighed = weights(held.lessons, goal or "")
    lines = [ListLine(f"- {one.text}", (one.id,), weight, one.trust) for one, weight in zip(held.lessons, weighed, strict=True)]
    title = "Lessons learned"
    return ContextList("lessons", title, "drawn from earlier conversations", tuple(lines), SHARES["lessons"], notes=held.notes)


def _todos(view: View, scope: Scope, now: datetime) -> ContextList:
    due = due_todos(view, scope.address.agent, now + DUE_WITHIN, TODOS_MAX)
    lines = tuple(ListLine(_todo_line(todo, now), (todo.id,), trust=todo.trust) for todo in due)
    return ContextList("todos", "Due now or soon", "todos of the user", lines, SHARES["todos"], volatile=True)


def _without_listed(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """Instructions, lessons and series have lists of their own, and small talk tells nothing; an open todo that is not due
    may well be what is sought.
    """
    return tuple(
        hit
        for hit in hits
        if hit.kind not in ("instruction", "lesson", "series") and not (hit.kind == "message" and is_small_talk(hit.text))
    )


def _messages(evidence: Iterable[object]) -> tuple[str, ...]:
    return tuple(str(getattr(one, "message", "")) for one in evidence)


def _pinned(pinned: Sequence[MemoryWithStatements]) -> Iterable[ListLine]:
    """A line for each statement: what was told as pinned outweighs what merely stands in the same memory."""
    for one in pinned:
        for statement in one.statements:
            yield line_of(statement)


def line_of(statement: Statement) -> ListLine:
    """A statement as a line of a list."""
    return ListLine(f"- {_with_subject(statement)}", (statement.id,), float(statement.importance), statement.trust)


def _with_subject(statement: Statement) -> str:
    """What it says, with whom it is about where its own words do not tell: alone, it would read as if about the user."""
    about = next(iter(statement.entities), "")
    label = about.partition(":")[2].replace("_", " ")
    return f"[{about}]: {statement.content}" if label and label not in statement.content.casefold() else statement.content


def _facts(view: View, entities: Sequence[str], agent: str, now: datetime) -> Iterable[CardFact]:
    """What holds now of the entities, as far as the agent may see it; of each the newest."""
    told = view.together(*(partial(_told_of, view, ref, agent, now) for ref in entities))
    seen = {one.id: one for of_one in told for one in of_one}
    memories = {one.key: to_memory(one.body) for one in view.records.find_many("memory", [one.memory for one in seen.values()])}
    # Who pins while telling pins that fact; who pins a memory later pins all of it.
    told_pinned = {one.memory for one in seen.values() if one.importance == PINNED_IMPORTANCE}
    for one in seen.values():
        memory = memories.get(one.memory)
        if memory is not None and memory.status == "ACTIVE":
            pinned = memory.pinned and (one.importance == PINNED_IMPORTANCE or one.memory not in told_pinned)
            yield CardFact(
                id=one.id,
                text=one.content,
                entities=one.entities,
                importance=one.importance,
                pinned=pinned,
                created_at=one.recorded_at,
                trust=one.trust,
            )


def _told_of(view: View, entity: str, agent: str, now: datetime) -> list[Statement]:
    """What holds now of one entity, the newest first, as far as the agent may see it."""
    told: list[Statement] = []
    before: str | None = None
    for _ in range(FACT_PAGES_MAX):
        page = view.records.list_(RecordQuery("statement", FACTS_PER_PAGE, ("entity", term_value(entity)), before))
        found = [to_statement(record.body) for record in page]
        told += [one for one in found if one.is_current(now) and one.visible_to in (None, agent)]
        if len(page) < FACTS_PER_PAGE or len(told) >= FACTS_PER_PAGE:
            break
        before = page[-1].key
    return told


def _todo_line(todo: Todo, now: datetime) -> str:
    if todo.due_at is None:
        return f"- {todo.content}"
    return f"- {todo.content} ({'overdue since' if todo.due_at < now else 'due'} {todo.due_at:%Y-%m-%d %H:%M} UTC)"


def _coverage(answer: Recall | None) -> ContextList:
    """What the series that fit the goal hold of the time it is about, and what of it is still to be fetched."""
    lines: list[ListLine] = []
    if answer is not None:
        gaps = {gap.series: gap for gap in answer.uncovered.gaps}
        found = [hit.id for hit in series_asked_about(answer.hits)]
        lines = [ListLine(f"- series `{name}`{_gap_words(gaps.get(name), answer)}", (name,)) for name in found]
    return ContextList("series", "Time series", "the coverage ledger", tuple(lines), SHARES["series"], volatile=True)


def _gap_words(gap: SeriesGap | None, answer: Recall) -> str:
    span = answer.understood.time_range
    if span is None:
        return ""
    asked = f"{span.start.isoformat()} to {span.end.isoformat()}"
    if gap is None:
        return f" holds all of {asked}; nothing of it needs fetching"
    missing = ", ".join(f"{one.start.isoformat()} to {one.end.isoformat()}" for one in gap.spans)
    told = [f"does not hold all of {missing}; fetch that"] if missing else []
    if gap.future is not None:
        told.append(f"covers nothing from {gap.future.start.isoformat()} on, which is still to come; ask the source about that")
    return f", of {asked}, {', and '.join(told)}"
