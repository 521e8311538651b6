"""`perdure todo …` and `perdure task …`: what the user means to do, and what the agent itself is doing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.text import Text

from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge import TODO_KINDS
from perdure.domain.things import TASK_STATES, Todo
from perdure.interfaces.cli import knowledge_lines as show_as
from perdure.interfaces.cli.asking import chosen, instant
from perdure.interfaces.cli.output import Output

app = typer.Typer(no_args_is_help=True, help="What the user means to do, as told to this agent.", rich_markup_mode=None)
tasks_app = typer.Typer(no_args_is_help=True, help="What this agent itself is doing.", rich_markup_mode=None)
TodoId = Annotated[str, typer.Argument(metavar="ID", help="Its id, as `perdure todo list` shows it.")]
Limit = Annotated[int, typer.Option(help="How many at most.")]


@app.command()
def add(
    ctx: typer.Context,
    content: Annotated[str, typer.Argument(help="What is to be done.")],
    kind: Annotated[str, typer.Option(help=f"{', '.join(TODO_KINDS)}.")] = "commitment",
    due: Annotated[str | None, typer.Option(help="By when, ISO 8601 with a zone.")] = None,
    recurrence: Annotated[str | None, typer.Option(help="How often, as a cron line: '0 7 * * 1' is Mondays at 7.")] = None,
) -> None:
    """Keep a todo; the same words again change nothing.

    Example: perdure todo add "Call the dentist" --due 2026-02-02T12:00:00+01:00 --user ana
    """
    due_at = None if due is None else instant(due, "--due")
    with ctx.obj.memory() as memory:
        todo = memory.todos.add(content, chosen(kind, TODO_KINDS, "--kind"), due_at=due_at, recurrence=recurrence)
    _told(ctx.obj.out, todo)


@app.command("list")
def list_todos(
    ctx: typer.Context,
    kind: Annotated[str | None, typer.Option(help=f"Only {', '.join(TODO_KINDS)}.")] = None,
    closed: Annotated[bool, typer.Option("--closed", help="Also those that are over.")] = False,
    due_before: Annotated[str | None, typer.Option(help="Only what is due before, ISO 8601 with a zone.")] = None,
    limit: Limit = 100,
) -> None:
    """List todos: what is due first, then what has no date.

    Example: perdure todo list --due-before 2026-02-01T00:00:00+00:00 --user ana
    """
    out: Output = ctx.obj.out
    which = None if kind is None else chosen(kind, TODO_KINDS, "--kind")
    before = None if due_before is None else instant(due_before, "--due-before")
    with ctx.obj.memory() as memory:
        found = memory.todos.list(which, closed=closed, due_before=before, limit=limit)
    out.entries(found, _lines(found, out.width), empty="nothing to do")


@app.command()
def done(ctx: typer.Context, todo: TodoId) -> None:
    """A todo is done; a habit waits for its next time.

    Example: perdure todo done 0198c5f2-0000-7000-8000-000000000000 --user ana
    """
    with ctx.obj.memory() as memory:
        _told(ctx.obj.out, memory.todos.complete(todo))


@app.command()
def skip(ctx: typer.Context, todo: TodoId) -> None:
    """A todo will not be done.

    Example: perdure todo skip 0198c5f2-0000-7000-8000-000000000000 --user ana
    """
    with ctx.obj.memory() as memory:
        _told(ctx.obj.out, memory.todos.skip(todo))


@app.command()
def reopen(ctx: typer.Context, todo: TodoId) -> None:
    """A todo is open again.

    Example: perdure todo reopen 0198c5f2-0000-7000-8000-000000000000 --user ana
    """
    with ctx.obj.memory() as memory:
        _told(ctx.obj.out, memory.todos.reopen(todo))


@tasks_app.command()
def start(ctx: typer.Context, description: Annotated[str, typer.Argument(help="What the agent is doing.")]) -> None:
    """Begin a task of the agent.

    Example: perdure task start "Plan the trip to Lisbon" --user ana --agent planner
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        task = memory.tasks.start(description)
    out.value(task, show_as.task_entry(task, out.width))


@tasks_app.command()
def update(
    ctx: typer.Context,
    task: Annotated[str, typer.Argument(help="Its id, as `perdure task list` shows it.")],
    state: Annotated[str | None, typer.Option(help=f"{', '.join(TASK_STATES)}.")] = None,
    progress: Annotated[float | None, typer.Option(help="How much is done, 0 to 1.")] = None,
) -> None:
    """Note how far a task is, or how it ended.

    Example: perdure task update 0198c5f2-0000-7000-8000-000000000000 --state completed --user ana --agent planner
    """
    if state is None and progress is None:
        raise InvalidInput("nothing to change; give `--state` or `--progress`")
    out: Output = ctx.obj.out
    now = None if state is None else chosen(state, TASK_STATES, "--state")
    with ctx.obj.memory() as memory:
        changed = memory.tasks.update(task, state=now, progress=progress)
    out.value(changed, show_as.task_entry(changed, out.width))


@tasks_app.command("list")
def list_tasks(
    ctx: typer.Context,
    closed: Annotated[bool, typer.Option("--closed", help="Also those that are over.")] = False,
    limit: Limit = 100,
) -> None:
    """List the tasks of the agent, the newest first.

    Example: perdure task list --closed --user ana --agent planner
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        found = memory.tasks.list(closed=closed, limit=limit)
    lines = (line for one in found for line in show_as.task_entry(one, out.width))
    out.entries(found, lines, empty="no tasks here")


def _told(out: Output, todo: Todo) -> None:
    out.value(todo, _lines([todo], out.width))


def _lines(todos: Iterable[Todo], width: int) -> Iterable[Text]:
    return (line for todo in todos for line in show_as.todo_entry(todo, width))
