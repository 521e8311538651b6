"""Todos of the user and tasks of the agent. Both belong to one agent: another one neither sees nor changes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from perdure.domain.errors import InvalidInput, LimitExceeded, NotFound
from perdure.domain.knowledge.entities import TASK_STATES, AgentTask, TaskState, Todo, from_body
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.keys import term_value
from perdure.domain.knowledge.memories import Writer, actor_of
from perdure.domain.knowledge.proposals import TODO_KINDS, Evidence, TodoKind, TodoProposal
from perdure.domain.knowledge.records import RecordQuery
from perdure.domain.limits import Limits
from perdure.domain.scope import ID_BYTES_MAX, Scope
from perdure.domain.text.rules import brief, check_choice, check_id, utf8_size
from perdure.domain.text.secrets import without_secrets
from perdure.domain.times.instants import check_instant
from perdure.domain.values import dataclass, replace
from perdure.engine.conversation.jobs import is_repeat, next_slot
from perdure.engine.knowledge.sameness import completed, matching, told_again
from perdure.engine.text.hygiene import CONTENT_CHARS_MAX, refusal
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.knowledge.ledger import Ledger

OPEN_MAX = 1_000
DESCRIPTION_BYTES_MAX = 4_000


@dataclass(frozen=True, slots=True)
class Todos:
    store: Store
    clock: Clock
    limits: Limits
    writer: Writer = "user"

    def add(self, scope: Scope, proposal: TodoProposal) -> Todo:
        """Keep a todo for this agent; one that says the same is told again, not doubled."""
        check_todo(proposal)
        now, key = self.clock.now(), self.clock.new_id()
        by = Attribution(actor_of(self.writer, scope.address.agent), now, "todo")

        def work(tx: Tx) -> Todo:
            return commit_todo(Ledger(tx, by), tx, scope.address.agent, proposal, (key, now, self.writer))

        return self.store.write(scope.owner, work)

    def list_(
        self, scope: Scope, *, kind: TodoKind | None, closed: bool, due_before: datetime | None, limit: int
    ) -> list[Todo]:
        """This agent's todos: what is due first, then what has no date; closed ones only if asked for."""
        rows = self.limits.page(limit)
        if kind is not None:
            check_choice(kind, "kind", TODO_KINDS)
        if due_before is not None:
            check_instant(due_before, "due_before")
        found = self.store.read(scope.owner, lambda view: _todos(view, "agent" if closed else "open", scope.address.agent))
        return _in_order([todo for todo in found if kind in (None, todo.kind_of)], due_before, rows)

    def complete(self, scope: Scope, todo: str) -> Todo:
        """Done; a habit comes back at its next time."""
        now = self.clock.now()
        return self._change(scope, todo, "complete", lambda held: completed(held, now))

    def skip(self, scope: Scope, todo: str) -> Todo:
        """Not wanted any more."""
        now = self.clock.now()
        return self._change(scope, todo, "skip", lambda held: replace(held, state="skipped", ended_at=now))

    def reopen(self, scope: Scope, todo: str) -> Todo:
        """Open again."""
        return self._change(scope, todo, "reopen", lambda held: replace(held, state="pending", ended_at=None))

    def _change(self, scope: Scope, key: str, action: str, change: Callable[[Todo], Todo]) -> Todo:
        check_id(key, "todo", bytes_max=ID_BYTES_MAX)
        by = Attribution(actor_of(self.writer, scope.address.agent), self.clock.now(), action)

        def work(tx: Tx) -> Todo:
            ledger = Ledger(tx, by)
            held = tx.records.find("todo", key)
            if held is None or from_body(Todo, held.body).agent != scope.address.agent:
                raise NotFound(f"this agent has no todo {brief(key, 80)}; list them with `todos.list()`")
            changed = change(from_body(Todo, held.body))
            ledger.put(changed, action)
            return changed

        return self.store.write(scope.owner, work)

    # -- tasks of the agent itself

    def start_task(self, scope: Scope, description: str) -> AgentTask:
        if utf8_size(description, "`description`") > DESCRIPTION_BYTES_MAX:
            raise LimitExceeded(f"`description` has more than {DESCRIPTION_BYTES_MAX} bytes; say it in fewer words")
        if not description.strip():
            raise InvalidInput("`description` is empty; say what the agent is doing")
        now = self.clock.now()
        task = AgentTask(self.clock.new_id(), scope.address.agent, without_secrets(description), now, now)
        by = Attribution(f"agent:{scope.address.agent}", now, "start")
        self.store.write(scope.owner, lambda tx: Ledger(tx, by).put(task, "add"))
        return task

    def update_task(self, scope: Scope, key: str, *, state: TaskState | None, progress: float | None) -> AgentTask:
        check_id(key, "task", bytes_max=ID_BYTES_MAX)
        if state is not None:
            check_choice(state, "state", TASK_STATES)
        if progress is not None and (
            isinstance(progress, bool) or not isinstance(progress, int | float) or not 0 <= progress <= 1
        ):
            raise InvalidInput(f"`progress` = {brief(progress)} must be a number from 0 to 1")
        now = self.clock.now()
        by = Attribution(f"agent:{scope.address.agent}", now, "update")

        def work(tx: Tx) -> AgentTask:
            ledger = Ledger(tx, by)
            held = tx.records.find("task", key)
            if held is None or from_body(AgentTask, held.body).agent != scope.address.agent:
                raise NotFound(f"this agent has no task {brief(key, 80)}; list them with `tasks.list()`")
            task = from_body(AgentTask, held.body)
            changed = replace(
                task,
                state=task.state if state is None else state,
                progress=task.progress if progress is None else float(progress),
                updated_at=now,
            )
            ledger.put(changed, "update")
            return changed

        return self.store.write(scope.owner, work)

    def list_tasks(self, scope: Scope, *, closed: bool, limit: int) -> list[AgentTask]:
        """This agent's tasks, the newest first."""
        rows = self.limits.page(limit)
        term = ("agent" if closed else "open", term_value(scope.address.agent))
        found = self.store.read(scope.owner, lambda view: view.records.list_(RecordQuery("task", rows, term)))
        return [from_body(AgentTask, record.body) for record in found]


def commit_todo(ledger: Ledger, view: View, agent: str, proposal: TodoProposal, made: tuple[str, datetime, str]) -> Todo:
    """Store what a proposal says: a new todo, one told again, or one that is done. `made` is id, time and source."""
    key, now, source = made
    if (seen := _earlier_todo(view, agent, proposal)) is not None:
        return seen
    held = matching(proposal, _todos(view, "open", agent))
    if held is not None:
        again = told_again(held, proposal)
        changed = completed(again, _said_at(proposal, now)) if proposal.done else again
        ledger.put(changed, "complete" if proposal.done else "mention")
        return changed
    todo = Todo(
        id=key,
        agent=agent,
        kind_of=proposal.kind,
        content=proposal.content.strip()[:CONTENT_CHARS_MAX],
        created_at=now,
        state="completed" if proposal.done else "pending",
        due_at=proposal.due_at or (None if proposal.recurrence is None else next_slot(proposal.recurrence, now)),
        time_words=proposal.time_words,
        recurrence=proposal.recurrence,
        ended_at=_said_at(proposal, now) if proposal.done else None,
        evidence=proposal.evidence,
        confidence=proposal.confidence,
        source=source,
    )
    if not proposal.done:  # something done that nobody had promised is no todo
        ledger.put(todo, "add")
    return todo


def _earlier_todo(view: View, agent: str, proposal: TodoProposal) -> Todo | None:
    """The todo that the same words of the same message have led to before, open or not."""
    if not proposal.evidence:
        return None
    cited = view.records.list_(RecordQuery("todo", OPEN_MAX, ("message", term_value(proposal.evidence[-1].message))))
    todos = [from_body(Todo, record.body) for record in cited]
    return next((one for one in todos if one.agent == agent and set(proposal.evidence) <= set(one.evidence)), None)


def check_todo(proposal: TodoProposal) -> None:
    check_choice(proposal.kind, "kind", TODO_KINDS)
    utf8_size(proposal.content, "`content`")
    evidence: object = proposal.evidence
    if not isinstance(evidence, tuple | list) or not all(isinstance(one, Evidence) for one in evidence):
        raise InvalidInput("`evidence` of a todo must be a list of `Evidence` values")
    reason = refusal(proposal.content)
    if reason is not None:
        raise InvalidInput(f"the todo's content {reason}; say it differently")
    if proposal.due_at is not None:
        check_instant(proposal.due_at, "due_at")
    recurrence: object = proposal.recurrence
    if recurrence is not None and not (isinstance(recurrence, str) and is_repeat(recurrence)):
        raise InvalidInput(f"`recurrence` = {brief(proposal.recurrence, 60)} is no cron line such as `0 7 * * 1`")


def _said_at(proposal: TodoProposal, now: datetime) -> datetime:
    return max((one.at for one in proposal.evidence), default=now)


def due_todos(view: View, agent: str, before: datetime, rows: int) -> list[Todo]:
    """The agent's open todos that are due before then, the first one first."""
    return _in_order(_todos(view, "open", agent), before, rows)


def _in_order(todos: Sequence[Todo], due_before: datetime | None, rows: int) -> list[Todo]:
    wanted = [one for one in todos if due_before is None or (one.due_at is not None and one.due_at < due_before)]
    return sorted(wanted, key=_by_due)[:rows]


def _todos(view: View, field: str, agent: str) -> Sequence[Todo]:
    found = view.records.list_(RecordQuery("todo", OPEN_MAX, (field, term_value(agent))))
    return [from_body(Todo, record.body) for record in found]


def _by_due(todo: Todo) -> tuple[bool, float, float]:
    due = 0.0 if todo.due_at is None else todo.due_at.timestamp()
    return todo.due_at is None, due, -todo.created_at.timestamp()
