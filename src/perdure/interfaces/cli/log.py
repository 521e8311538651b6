"""The log of a user's conversations from the command line, its counts, the journal and the jobs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from perdure.interfaces.cli.asking import instant
from perdure.interfaces.cli.output import safe

jobs_app = typer.Typer(
    no_args_is_help=True, help="Look at a user's jobs, and give dead ones another try.", rich_markup_mode=None
)


def append(
    ctx: typer.Context,
    role: Annotated[str, typer.Argument(help="user, assistant, tool or system")],
    content: Annotated[str, typer.Argument(help="The text, or - to read it from stdin.")],
    id: Annotated[str | None, typer.Option(help="An id of yours; repeating it stores nothing twice.")] = None,
    at: Annotated[str | None, typer.Option(help="When it was said, ISO 8601 with a zone.")] = None,
    session: Annotated[str | None, typer.Option(help="A session of yours.")] = None,
) -> None:
    """Log one message.

    Example: perdure append --user ana user "I moved to Seattle"
    """
    out = ctx.obj.out
    text = sys.stdin.read() if content == "-" else content
    with ctx.obj.memory() as memory:
        message = memory.append(role, text, id=id, at=None if at is None else instant(at, "--at"), session=session)
    again = " (already held)" if message.repeated else ""
    out.value(message, [f"{safe(message.id)}  session {safe(message.session)}  seq {message.seq}{again}"])


def messages(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 20,
    session: Annotated[str | None, typer.Option(help="Only this session.")] = None,
    before: Annotated[str | None, typer.Option(help="Before the message with this id.")] = None,
    after: Annotated[str | None, typer.Option(help="After the message with this id.")] = None,
) -> None:
    """List the latest messages, oldest first."""
    with ctx.obj.memory() as memory:
        found = memory.messages(limit, session=session, before=before, after=after)
    ctx.obj.out.table(
        found,
        {
            "session": [f"{one.session_number}.{one.seq}" for one in found],
            "at": [one.at.isoformat(timespec="seconds") for one in found],
            "role": [one.role for one in found],
            "content": [one.content for one in found],
        },
        empty="no messages here yet",
    )


def sessions(ctx: typer.Context, limit: Annotated[int, typer.Option(help="How many at most.")] = 20) -> None:
    """List sessions, newest first."""
    with ctx.obj.memory() as memory:
        found = memory.sessions(limit)
    ctx.obj.out.table(
        found,
        {
            "number": [one.number for one in found],
            "id": [one.id for one in found],
            "opened": [one.opened_at.isoformat(timespec="seconds") for one in found],
            "last": [one.last_at.isoformat(timespec="seconds") for one in found],
            "state": ["open" if one.ended_at is None else "ended" for one in found],
            "messages": [one.messages for one in found],
            "tokens": [one.tokens for one in found],
        },
        empty="no sessions here yet",
    )


def tally(ctx: typer.Context, session: Annotated[str | None, typer.Option(help="Default: the newest.")] = None) -> None:
    """Show the counts of a session."""
    with ctx.obj.memory() as memory:
        found = memory.tally(session)
    roles = ", ".join(f"{role} {count}" for role, count in found.by_role.items()) or "nothing counted yet"
    tools = ", ".join(f"{safe(tool)} {count}" for tool, count in found.by_tool.items()) or "none"
    ctx.obj.out.value(found, [f"messages: {roles}", f"tools: {tools}; failures: {found.failures}"])


def journal(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 50,
    before: Annotated[int | None, typer.Option(help="Before the operation with this number.")] = None,
) -> None:
    """Show what was changed in derived data, by whom and why, newest first."""
    with ctx.obj.memory() as memory:
        found = memory.journal(limit, before=before)
    ctx.obj.out.table(
        found,
        {
            "seq": [one.seq for one in found],
            "at": [one.at.isoformat(timespec="seconds") for one in found],
            "by": [one.actor for one in found],
            "what": [f"{one.action} {one.kind}" for one in found],
            "row": [one.key for one in found],
            "why": [one.why for one in found],
        },
        empty="nothing was changed yet",
    )


@jobs_app.command("list")
def list_jobs(
    ctx: typer.Context,
    state: Annotated[str | None, typer.Option(help="ready, running, done or dead")] = None,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 100,
) -> None:
    """List a user's jobs with their last errors."""
    with ctx.obj.memory() as memory:
        found = memory.jobs(state, limit=limit)
    ctx.obj.out.table(
        found,
        {
            "kind": [one.kind for one in found],
            "key": [one.key for one in found],
            "state": [one.state for one in found],
            "due": ["" if one.due_at is None else one.due_at.isoformat(timespec="seconds") for one in found],
            "tries": [f"{one.attempts}/{one.attempts_max}" for one in found],
            "error": [one.last_error or "" for one in found],
        },
        empty="no such jobs",
    )


@jobs_app.command("retry")
def retry_jobs(ctx: typer.Context) -> None:
    """Give a user's dead jobs fresh tries."""
    with ctx.obj.memory() as memory:
        count = memory.retry_jobs()
    ctx.obj.out.value({"retried": count}, [f"{count} dead jobs are ready again"])
