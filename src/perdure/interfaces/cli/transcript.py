"""`perdure transcript …`: the Markdown files of a user's sessions."""

from __future__ import annotations

from typing import Annotated

import typer

from perdure.domain.errors import InvalidInput
from perdure.interfaces.cli.asking import instant
from perdure.interfaces.cli.output import Output
from perdure.interfaces.cli.rendering import Talk

app = typer.Typer(
    no_args_is_help=True, help="Sessions as Markdown files, where the setting `files_dir` names a place.", rich_markup_mode=None
)
Before = Annotated[str | None, typer.Option(help="What ended before then, ISO 8601 with a zone.")]
Keep = Annotated[int | None, typer.Option(help="All but so many of the newest.")]


@app.command("list")
def list_transcripts(ctx: typer.Context, limit: Annotated[int, typer.Option(help="How many at most.")] = 100) -> None:
    """List the transcripts of a user, the newest first, also those put away.

    Example: perdure transcript list --user ana
    """
    with ctx.obj.memory() as memory:
        found = memory.transcripts.list(limit)
    columns = {
        "session": [one.session for one in found],
        "agent": [one.address.agent for one in found],
        "channel": [one.address.channel for one in found],
        "last": [one.last_at.isoformat(timespec="seconds") for one in found],
        "bytes": [one.size for one in found],
        "state": ["archived" if one.archived else "active" for one in found],
        "file": [one.path for one in found],
    }
    ctx.obj.out.table(found, columns, empty="no transcripts here yet")


@app.command()
def read(ctx: typer.Context, session: Annotated[str, typer.Argument(help="The id of the session.")]) -> None:
    """Print the messages in a transcript of the address.

    Example: perdure transcript read monday --user ana
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        found = memory.transcripts.read(session)
    out.entries(found, Talk(out.width, full=True).lines(found), empty="this session has no transcript")


@app.command()
def archive(ctx: typer.Context, before: Before = None, keep: Keep = None) -> None:
    """Put transcripts away.

    Example: perdure transcript archive --keep 100 --user ana
    """
    _named(before, keep)
    with ctx.obj.memory() as memory:
        count = memory.transcripts.archive(before=None if before is None else instant(before, "--before"), keep=keep)
    ctx.obj.out.value({"archived": count}, [f"{count} transcripts put away"])


@app.command()
def prune(ctx: typer.Context, before: Before = None, keep: Keep = None) -> None:
    """Delete transcripts that were put away. The log stays.

    Example: perdure transcript prune --before 2026-01-01T00:00:00+00:00 --user ana
    """
    _named(before, keep)
    with ctx.obj.memory() as memory:
        count = memory.transcripts.prune(before=None if before is None else instant(before, "--before"), keep=keep)
    ctx.obj.out.value({"deleted": count}, [f"{count} transcripts deleted"])


def _named(before: str | None, keep: int | None) -> None:
    if before is None and keep is None:
        raise InvalidInput("it is not said which; give `--before` or `--keep`")
