"""The log of a user's conversations from the command line, its counts, the journal and the jobs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.text import Text

from perdure.domain.errors import InvalidInput
from perdure.domain.messages import Message, MessageFields, NewMessage, ToolCall
from perdure.domain.scope import ToolCallId
from perdure.domain.text import Json
from perdure.interfaces.cli.asking import instant, read_text, taking
from perdure.interfaces.cli.model_lines import usage_lines
from perdure.interfaces.cli.output import safe, visible
from perdure.interfaces.cli.state import read_json

jobs_app = typer.Typer(
    no_args_is_help=True, help="Look at a user's jobs, and give dead ones another try.", rich_markup_mode=None
)


@dataclass(frozen=True, slots=True)
class Said:
    """What `append` may be told besides role and content."""

    id: Annotated[str | None, typer.Option(help="An id of yours; repeating it stores nothing twice.")] = None
    at: Annotated[str | None, typer.Option(help="When it was said, ISO 8601 with a zone.")] = None
    session: Annotated[str | None, typer.Option(help="A session of yours.")] = None
    tokens: Annotated[int | None, typer.Option(help="How many it has; by default that is estimated.")] = None
    metadata: Annotated[str | None, typer.Option(help="A JSON object, - for stdin, or @FILE.")] = None
    tool_calls: Annotated[
        str | None, typer.Option(help="Of an assistant: a JSON list of objects with id, name and arguments; or @FILE.")
    ] = None
    tool_call_id: Annotated[str | None, typer.Option(help="Of a tool: the call that this answers.")] = None
    failed: Annotated[bool, typer.Option("--failed", help="Of a tool: the call failed.")] = False


@taking(Said)
def append(
    ctx: typer.Context,
    role: Annotated[str, typer.Argument(help="user, assistant, tool or system")],
    content: Annotated[str, typer.Argument(help="The text, or - to read it from stdin.")],
    said: Said,
) -> None:
    """Log one message.

    Example: perdure append --user ana user "I moved to Seattle"
    """
    out = ctx.obj.out
    text = sys.stdin.read() if content == "-" else content
    fields: MessageFields = {
        "id": said.id,
        "at": None if said.at is None else instant(said.at, "--at"),
        "session": said.session,
        "tokens": said.tokens,
        "metadata": None if said.metadata is None else read_json(said.metadata),
        "tool_calls": () if said.tool_calls is None else _calls(read_json(said.tool_calls), "--tool-calls"),
        "tool_call_id": said.tool_call_id,
        "failed": said.failed,
    }
    with ctx.obj.memory() as memory:
        message = memory.append(role, text, **fields)
    out.value(message, [_logged(message)])


def append_many(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(help="A JSON object on each line, or - for stdin.")],
) -> None:
    """Log several messages: all of them, in order, or none. Each line has `role` and `content`, and what else `append` takes.

    Example: perdure append-many talk.jsonl --user ana
    """
    new = [_message(line, number) for number, line in enumerate(read_text(file).splitlines(), 1) if line.strip()]
    with ctx.obj.memory() as memory:
        found = memory.append_many(new)
    ctx.obj.out.entries(found, [_logged(one) for one in found], empty="there was nothing to log")


def message(ctx: typer.Context, id: Annotated[str, typer.Argument(help="Its id.")]) -> None:
    """Print one message in full.

    Example: perdure message m1 --user ana
    """
    with ctx.obj.memory() as memory:
        found = memory.message(id)
    head = f"{safe(found.id)}  {found.role}  {found.at.isoformat(timespec='seconds')}  session {safe(found.session)}"
    ctx.obj.out.value(found, [head, Text(visible(found.content))])


def messages(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 20,
    session: Annotated[str | None, typer.Option(help="Only this session.")] = None,
    before: Annotated[str | None, typer.Option(help="Before the message with this id.")] = None,
    after: Annotated[str | None, typer.Option(help="After the message with this id.")] = None,
) -> None:
    """List the latest messages, oldest first.

    Example: perdure messages --user ana --limit 5
    """
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
    """List sessions, newest first.

    Example: perdure sessions --user ana
    """
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
    """Show the counts of a session.

    Example: perdure tally --user ana
    """
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
    """Show what was changed in derived data, by whom and why, newest first.

    Example: perdure journal --user ana --limit 10
    """
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
    """List a user's jobs with their last errors.

    Example: perdure jobs list --state dead --user ana
    """
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
    """Give a user's dead jobs fresh tries.

    Example: perdure jobs retry --user ana
    """
    with ctx.obj.memory() as memory:
        count = memory.retry_jobs()
    ctx.obj.out.value({"retried": count}, [f"{count} dead jobs are ready again"])


def overview(
    ctx: typer.Context, days: Annotated[int, typer.Option(help="So many days of activity, today included.")] = 30
) -> None:
    """Count what is held of a user, and show how much happened on each of the last days.

    Example: perdure overview --days 7 --user ana
    """
    with ctx.obj.memory() as memory:
        found = memory.overview(days=days)
    counts = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in found.counts.items() if count)
    active = [day for day in found.days if day.messages or day.changes]
    busy = (f"{day.day.isoformat()}  {day.messages:,} messages, {day.changes:,} changes" for day in active)
    more = ["there is more than was counted"] if found.partial else []
    ctx.obj.out.value(found, [counts or "nothing is held here yet", *busy, *more])


def usage(ctx: typer.Context) -> None:
    """Say what models were asked on behalf of a user: for what, how often, with which outcome, and what it cost.

    Example: perdure usage --user ana
    """
    with ctx.obj.memory() as memory:
        found = memory.usage()
    ctx.obj.out.entries(found, usage_lines(found), empty="no model was asked")


# -- messages as they are given


def _logged(message: Message) -> str:
    again = " (already held)" if message.repeated else ""
    return f"{safe(message.id)}  session {safe(message.session)}  seq {message.seq}{again}"


def _message(line: str, number: int) -> NewMessage:
    where = f"line {number}"
    try:
        given = json.loads(line)
    except ValueError as error:
        raise InvalidInput(f"{where} is not JSON ({error}); write one object on each line") from None
    if not isinstance(given, dict):
        raise InvalidInput(f"{where} is a `{type(given).__name__}`; write one object on each line")
    fields = dict(given)
    for name in ("role", "content"):
        if name not in fields:
            raise InvalidInput(f"{where} has no `{name}`; each message needs a role and a content")
    if isinstance(fields.get("at"), str):
        fields["at"] = instant(fields["at"], f"at of {where}")
    if "tool_calls" in fields:
        fields["tool_calls"] = _calls(fields["tool_calls"], f"tool_calls of {where}")
    unknown = [name for name in fields if name not in NewMessage.__dataclass_fields__]
    if unknown:
        known = ", ".join(NewMessage.__dataclass_fields__)
        raise InvalidInput(f"{where} has `{unknown[0]!s:.60}`, which no message has; it takes {known}")
    return NewMessage(**fields)


def _calls(given: Json, name: str) -> Sequence[ToolCall]:
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise InvalidInput(f"`{name}` must be a list of objects with `id`, `name` and `arguments`; correct it")
    try:
        return [ToolCall(ToolCallId(one["id"]), one["name"], one.get("arguments")) for one in given]
    except KeyError as error:
        raise InvalidInput(f"a call of `{name}` has no {error}; each needs `id` and `name`") from None
