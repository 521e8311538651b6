"""`/v1/users/{user}/todos` and `/tasks`: what the user means to do, and what the agent itself is doing."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from perdure.domain.knowledge import TodoKind
from perdure.domain.things import AgentTask, TaskState, Todo
from perdure.interfaces.http.answering import answer, page_of
from perdure.interfaces.http.asking import WORDS, Body, Instant, Paged, Reads, Writes, examples, in_path
from perdure.interfaces.http.description import described, leads_to, many
from perdure.interfaces.http.once import OnceRoute

router = APIRouter(prefix="/v1/users/{user:id}", tags=["todos"], route_class=OnceRoute)
TodoId = Annotated[str, in_path("The todo's id.", "t-1")]
TaskId = Annotated[str, in_path("The task's id.", "k-1")]
Closed = Annotated[bool, Query(description="Also those that are over.")]


class NewTodo(Body):
    model_config = examples(
        {"content": "Call the dentist", "due_at": "2030-01-31T09:30:00Z"},
        {"content": "Water the plants", "kind": "habit", "recurrence": "0 7 * * 1"},
    )

    content: str = Field(min_length=1, max_length=500, pattern=WORDS, description="What is to be done.")
    kind: TodoKind = Field("commitment", description="What kind of intention it is.")
    due_at: Instant | None = Field(None, description="By when.")
    recurrence: str | None = Field(None, min_length=1, max_length=200, description="A cron line, for habits: `0 7 * * 1`.")


class NewTask(Body):
    model_config = examples({"description": "Compare three flights to Lisbon"})

    description: str = Field(min_length=1, max_length=1_000, pattern=WORDS, description="What the agent is doing.")


class Progress(Body):
    model_config = examples({"progress": 0.5}, {"state": "completed"})

    state: TaskState | None = Field(None, description="How it stands.")
    progress: float | None = Field(None, ge=0, le=1, description="From 0 to 1.")


@router.get("/todos", summary="List todos", **described("listTodos", many(Todo)))
def list_todos(
    memory: Reads,
    page: Paged,
    kind: Annotated[TodoKind | None, Query(description="Of this kind only.")] = None,
    closed: Closed = False,
    due_before: Annotated[Instant | None, Query(description="Only what is due before that.")] = None,
) -> Response:
    """What is due first."""
    return page_of(memory.todos.list(kind, closed=closed, due_before=due_before, limit=page.rows), page, lambda one: one.id)


@router.post(
    "/todos",
    summary="Add a todo",
    **described("addTodo", Todo, status=201, links=(
        leads_to("completeTodo", todo="/id"), leads_to("skipTodo", todo="/id"), leads_to("reopenTodo", todo="/id"))),
)  # fmt: skip
def add(memory: Writes, body: NewTodo) -> Response:
    """The same words again change nothing."""
    return answer(memory.todos.add(body.content, body.kind, due_at=body.due_at, recurrence=body.recurrence), 201)


@router.post("/todos/{todo:id}/complete", summary="Complete a todo", **described("completeTodo", Todo, errors=(404,)))
def complete(memory: Writes, todo: TodoId) -> Response:
    """It is done; a habit waits for its next time."""
    return answer(memory.todos.complete(todo))


@router.post("/todos/{todo:id}/skip", summary="Skip a todo", **described("skipTodo", Todo, errors=(404,)))
def skip(memory: Writes, todo: TodoId) -> Response:
    """It will not be done."""
    return answer(memory.todos.skip(todo))


@router.post("/todos/{todo:id}/reopen", summary="Reopen a todo", **described("reopenTodo", Todo, errors=(404,)))
def reopen(memory: Writes, todo: TodoId) -> Response:
    """It is open again."""
    return answer(memory.todos.reopen(todo))


@router.get("/tasks", summary="List tasks", **described("listTasks", many(AgentTask)))
def list_tasks(memory: Reads, page: Paged, closed: Closed = False) -> Response:
    """What this agent is doing, the newest first."""
    return page_of(memory.tasks.list(closed=closed, limit=page.rows), page, lambda one: one.id)


@router.post(
    "/tasks",
    summary="Start a task",
    **described("startTask", AgentTask, status=201, links=(leads_to("updateTask", task="/id"),)),
)
def start(memory: Writes, body: NewTask) -> Response:
    """Note that this agent has begun something."""
    return answer(memory.tasks.start(body.description), 201)


@router.patch("/tasks/{task:id}", summary="Update a task", **described("updateTask", AgentTask, errors=(404,)))
def update(memory: Writes, task: TaskId, body: Progress) -> Response:
    """Note how far it is, or how it ended."""
    return answer(memory.tasks.update(task, state=body.state, progress=body.progress))
