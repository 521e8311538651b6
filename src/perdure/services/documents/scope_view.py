"""What is known in the scope of a document on a store: its facts are also memories, and its tasks those of the agent.

A document shows its own facts and, behind them, what else is known to its agent. A fact that is new in it is remembered as the
agent's word, so that it is recalled; once that is superseded or forgotten, it is no longer shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast, get_args

from perdure.domain.conversation.documents import ContextData, Task
from perdure.domain.knowledge.entities import AgentTask, TaskState, from_body
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.memories import Statement, to_statement
from perdure.domain.knowledge.proposals import NewStatement
from perdure.domain.scope import Scope
from perdure.domain.times.instants import to_us
from perdure.engine.documents.compaction import normalised_fact
from perdure.engine.documents.view import DocumentRecord
from perdure.engine.text.hygiene import CONTENT_CHARS_MAX
from perdure.ports.store import Store, Tx, View
from perdure.services.knowledge.commit import Submission, commit_in
from perdure.services.knowledge.ledger import Ledger
from perdure.services.knowledge.memories import Knowledge, MemoryQuery
from perdure.services.knowledge.todos import Todos

FACTS_SHOWN, TASKS_SHOWN, TAUGHT_AT_ONCE = 1_000, 100, 200


@dataclass(frozen=True, slots=True)
class ScopeView:
    """What the agent of a document knows and does."""

    store: Store
    knowledge: Knowledge
    todos: Todos

    def show(self, context: ContextData, scope: Scope, record: DocumentRecord | None) -> ContextData:
        """Add to a loaded document what is known and done, and leave out of its own facts what no longer holds."""
        taught = {} if record is None else record.taught
        over = self._over(scope, taught)
        context.facts[:] = [fact for fact in context.facts if fact not in over]
        mine = {statement for ids in taught.values() for statement in ids}
        held = set(map(normalised_fact, context.facts))
        context.facts += sorted(
            {
                statement.content
                for statement in self._current(scope)
                if statement.id not in mine and normalised_fact(statement.content) not in held
            }
        )
        own = {task.id for task in context.active_tasks}
        context.active_tasks += [_task(one) for one in self._tasks(scope) if one.id not in own]
        return context

    def saving(self, context: ContextData, scope: Scope, *, whole: bool) -> ScopeSaving:
        """What saving a document needs to know, and what it may have to remember, made before the transaction."""
        known = frozenset(normalised_fact(one.content) for one in self._current(scope))
        fresh = [fact for fact in dict.fromkeys(context.facts) if normalised_fact(fact) not in known and _is_sayable(fact)]
        said = [NewStatement(content=fact) for fact in fresh[:TAUGHT_AT_ONCE]]
        return ScopeSaving(scope, known, dict(zip(fresh, self.knowledge.submissions(scope, said), strict=False)), whole)

    def end_told(self, tx: Tx, scope: Scope, record: DocumentRecord | None, now: datetime) -> None:
        """With its document, what the agent knew from that alone is known no longer; undoing it brings it back."""
        ledger = Ledger(tx, Attribution(f"agent:{scope.address.agent}", now, "delete"))
        for one in () if record is None else [one for ids in record.taught.values() for one in ids]:
            held = tx.records.find("statement", one)
            found = None if held is None else to_statement(held.body)
            if found is not None and found.is_live() and found.trust == "agent" and found.mentions == 1 and not found.evidence:
                ledger.put_statement(found.closed(valid_to=now, at=now, by=None, reason="its document was deleted"))

    def _current(self, scope: Scope) -> list[Statement]:
        rows = min(FACTS_SHOWN, self.knowledge.limits.page_rows_max)
        found = self.knowledge.list_(scope, MemoryQuery(limit=rows))
        return [statement for one in found for statement in one.statements]

    def _tasks(self, scope: Scope) -> list[AgentTask]:
        return self.todos.list_tasks(scope, closed=False, limit=min(TASKS_SHOWN, self.todos.limits.page_rows_max))

    def _over(self, scope: Scope, taught: Mapping[str, Sequence[str]]) -> set[str]:
        """The document's own facts that were remembered, and then superseded, ended or forgotten."""

        def work(view: View) -> set[str]:
            return {fact for fact, ids in taught.items() if not any(_stands(view, one) for one in ids)}

        return self.store.read(scope.owner, work) if taught else set()


@dataclass(frozen=True, slots=True)
class ScopeSaving:
    """One save: which facts of it are known anyway, and how to remember the others."""

    scope: Scope
    known: frozenset[str]
    submissions: Mapping[str, Submission]
    whole: bool
    """All that is in the document is its own."""

    def keep_own(
        self, tx: Tx, context: ContextData, record: DocumentRecord | None, now: datetime
    ) -> dict[str, tuple[str, ...]]:
        """Leave in the document what is its own; remember its new facts, update the agent's tasks. Which fact is where."""
        before = set() if record is None else set(record.fields["facts"])
        if not self.whole:
            context.facts[:] = [fact for fact in context.facts if fact in before or normalised_fact(fact) not in self.known]
        taught = {} if record is None else {fact: ids for fact, ids in record.taught.items() if fact in context.facts}
        for fact in dict.fromkeys(context.facts):
            if fact not in before and fact in self.submissions:
                ids = [done.statement.id for done in commit_in(tx, self.submissions[fact]).outcomes if done.statement]
                taught |= {fact: tuple(ids)} if ids else {}
        own = set() if record is None else {task["id"] for task in record.fields["active_tasks"]}
        ledger = Ledger(tx, Attribution(f"agent:{self.scope.address.agent}", now, "update"))
        context.active_tasks[:] = [
            task for task in context.active_tasks if self.whole or task.id in own or not self._updated(tx, ledger, task, now)
        ]
        return taught

    def _updated(self, tx: Tx, ledger: Ledger, task: Task, now: datetime) -> bool:
        """Whether it is a task of the agent; what the document says of it is noted there."""
        held = tx.records.find("task", task.id) if task.id else None
        if held is None or (known := from_body(AgentTask, held.body)).agent != self.scope.address.agent:
            return False
        state = task.status.strip().casefold()
        stated = cast("TaskState", state) if state in get_args(TaskState) else known.state
        if (stated, float(task.progress)) != (known.state, known.progress):
            ledger.put(replace(known, state=stated, progress=float(task.progress), updated_at=now), "update")
        return True


def _stands(view: View, statement: str) -> bool:
    held = view.records.find("statement", statement)
    if held is None:
        return False
    found = to_statement(held.body)
    return found.is_live() or found.is_pending


def _is_sayable(fact: str) -> bool:
    return len(fact.strip()) > 0 and len(fact) <= CONTENT_CHARS_MAX and "\0" not in fact


def _task(one: AgentTask) -> Task:
    created, updated = (to_us(moment) // 1_000_000 for moment in (one.created_at, one.updated_at))
    return Task(
        id=one.id,
        description=one.description,
        status=one.state.capitalize(),
        progress=one.progress,
        created_at=created,
        updated_at=updated,
    )
