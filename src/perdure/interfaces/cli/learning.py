"""The commands by which something is learned, tidied, looked through and taken back."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from perdure.interfaces.cli import knowledge_lines as show_as
from perdure.interfaces.cli.asking import instant, read_text
from perdure.interfaces.cli.finding import Which
from perdure.interfaces.cli.output import Output
from perdure.interfaces.shapes import plain
from perdure.services.extracting import Learned

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


def extract(ctx: typer.Context, session: Which = None, dry_run: DryRun = False) -> None:
    """Look through what is new in a session for something to learn, now; a job does so anyway.

    Example: perdure extract --dry-run --user ana
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        found = memory.extract(session, dry_run=dry_run)
    rest = f"{found.todos} todos, {found.skipped} sentences left out, {found.echoes} echoes, {found.refused} refused"
    would = "; nothing was stored" if dry_run else ""
    summary = f"{found.messages} messages: {show_as.counted(found)}; {rest}{would}"
    out.value({"dry_run": dry_run, **plain(found)}, [*show_as.learned_lines(found, out.width), Text(summary)])


def seed(ctx: typer.Context, file: Annotated[str, typer.Argument(help="A text about the user, or - for stdin.")]) -> None:
    """Learn from a text that somebody wrote about the user, such as a profile.

    Example: perdure seed profile.txt --user ana
    """
    out: Output = ctx.obj.out
    text = read_text(file)
    with ctx.obj.memory() as memory:
        outcomes = memory.seed(text)
    found = Learned(tuple(outcomes))
    out.value(list(outcomes), [*show_as.learned_lines(found, out.width), Text(show_as.counted(found))])


def curate(ctx: typer.Context, dry_run: DryRun = False) -> None:
    """Fold scattered memories of one entity and flag what clashes, now; a job does so once a day.

    Example: perdure curate --dry-run --user ana
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        done = memory.curate(dry_run=dry_run)
    end = "" if done.action is None else f"; perdure undo {done.action} takes it back"
    would = "; nothing was changed" if dry_run else end
    summary = f"{done.memories} memories: {len(done.folds)} folds, {len(done.clashes)} clashes{would}"
    out.value({"dry_run": dry_run, **plain(done)}, [*show_as.curation_lines(done, out.width), Text(summary)])


def undo(
    ctx: typer.Context,
    operation: Annotated[int, typer.Argument(help="Its number in the journal.")],
    cascade: Annotated[bool, typer.Option("--cascade", help="Also take back what builds on it.")] = False,
) -> None:
    """Take back the action that an operation of the journal belongs to. Exit code 4 if later actions build on it.

    Example: perdure undo 12 --user ana
    """
    with ctx.obj.memory() as memory:
        number = memory.undo(operation, cascade=cascade)
    ctx.obj.out.value(
        {"undone": operation, "action": number}, [Text(f"operation {operation} is undone, by operation {number}")]
    )


def diff(
    ctx: typer.Context,
    start: Annotated[str, typer.Argument(help="After this moment, ISO 8601 with a zone.")],
    end: Annotated[str, typer.Argument(help="Up to this one.")],
) -> None:
    """Show what changed in derived data between two moments: one entry per row, as it was before and after.

    Example: perdure diff 2026-01-01T00:00:00+00:00 2026-02-01T00:00:00+00:00 --user ana
    """
    out: Output = ctx.obj.out
    first, last = instant(start, "START"), instant(end, "END")
    with ctx.obj.memory() as memory:
        found = memory.diff(first, last)
    out.entries(found, (line for one in found for line in show_as.change(one, out.width)), empty="nothing changed")


def audit(
    ctx: typer.Context,
    export: Annotated[str | None, typer.Option(help="Look through another engine's export: a FILE, or - for stdin.")] = None,
) -> None:
    """Say what is wrong with what is remembered: doubles, junk, stale, contradictory, orphaned, too much. Changes nothing.

    Example: perdure audit --export mem0.json --user ana
    """
    out: Output = ctx.obj.out
    text = None if export is None else read_text(export)
    with ctx.obj.memory() as memory:
        report = memory.audit(text)
    out.value(report, show_as.audit_lines(report, out.width))
