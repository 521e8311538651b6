"""The store as a whole from the command line: its worker, its health, its backups."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from perdure import settings
from perdure.app import restored
from perdure.domain.accesses import COMMAND_LINE
from perdure.domain.errors import Corrupt
from perdure.domain.reports import ProcessReport
from perdure.interfaces.cli.model_lines import usage_lines
from perdure.interfaces.cli.output import Output, safe
from perdure.interfaces.errors import DEGRADED, exit_code


def worker(
    ctx: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Run what is due, then stop.")] = False,
    seconds: Annotated[float, typer.Option(help="With --once: at most this long.")] = 60.0,
) -> None:
    """Run jobs until stopped. SIGTERM and Ctrl-C finish the job in hand first.

    Example: perdure worker --once
    """
    out: Output = ctx.obj.out
    with ctx.obj.engine() as engine:
        if once:
            with out.progress("running jobs") as progress:
                done = engine.worker().process(seconds, progress=progress)
            out.value(done, [_turn(done)])
            return
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        out.note(f"worker {os.getpid()} is running; stop it with Ctrl-C or SIGTERM")
        engine.worker().run(stop, report=lambda turn: out.value(turn, [_turn(turn)]))
        out.note("worker stopped")


def _turn(done: ProcessReport) -> str:
    lost = f", {done.lost} lost their lease" if done.lost else ""
    return f"{done.ran} jobs ran, {done.failed} will be tried again, {done.parked} gave up{lost}"


def verify(ctx: typer.Context) -> None:
    """Check every invariant. Exit code 0: sound; 8: something is wrong.

    Example: perdure verify
    """
    out: Output = ctx.obj.out
    with ctx.obj.engine() as engine, out.progress("verifying") as progress:
        report = engine.verify(progress)
    rows = sum(report.checked.values())
    lines = [f"[red]broken:[/red] {safe(one.law)}\n  at {safe(one.where)}: {safe(one.seen)}" for one in report.findings]
    more = "; there are more" if report.truncated else ""
    lines.append(f"sound: {rows:,} rows checked" if report.clean else f"{len(report.findings)} findings in {rows:,} rows{more}")
    out.value(report, lines)
    if not report.clean:
        raise typer.Exit(exit_code(Corrupt()))


def backup(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Where to write it.")],
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite an existing file.")] = False,
) -> None:
    """Write everything to one file, while writers go on.

    Example: perdure backup all.perdure
    """
    out: Output = ctx.obj.out
    with ctx.obj.engine() as engine, out.progress("backing up") as progress:
        report = engine.backup(file, replace=replace, progress=progress)
    rows = sum(report.rows.values())
    out.value(report, [f"{rows:,} rows, {report.bytes:,} bytes in {safe(report.path)}"])


def restore(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="A file made by `perdure backup`, on whichever kind of store.")],
    replace: Annotated[bool, typer.Option("--replace", help="Throw away what the store holds now.")] = False,
) -> None:
    """Fill the store from a backup: all of it or nothing.

    Example: perdure restore all.perdure --url sqlite:///copy.db
    """
    out: Output = ctx.obj.out
    with out.progress("restoring") as progress:
        counts = restored(file, settings.load(url=ctx.obj.url), replace=replace, progress=progress, asker=COMMAND_LINE)
    out.value({"rows": counts}, [f"{sum(counts.values()):,} rows restored from {safe(file)}"])


def doctor(ctx: typer.Context) -> None:
    """Prove a round trip through the store and say what is degraded. Exit code 0: healthy; 9: degraded.

    Example: perdure doctor
    """
    with ctx.obj.engine() as engine:
        report = engine.doctor()
    queue = report.queue
    lines = [
        f"store: {report.store.backend} at {safe(report.store.location)}, {report.store.bytes:,} bytes",
        f"schema: version {report.store.schema_version}",
        f"durability: {report.store.durability}",
        f"encryption: {report.store.encryption}",
        f"round trip: a message, its job and its counts in {report.round_trip_ms:.1f} ms",
        f"jobs: {queue.ready} ready, {queue.running} running, {queue.done} done, {queue.dead} dead",
        "versions: " + ", ".join(f"{name} {number}" for name, number in report.versions.items()),
        f"model: {safe(report.model) or 'none; the rules do its work'}",
        *(f"model calls for {line}" for line in usage_lines(report.models)),
        *(f"[yellow]degraded:[/yellow] {safe(one)}" for one in report.degraded),
        *(f"dead job: {safe(job.owner.user)} {safe(job.kind)}: {safe(job.last_error)}" for job in report.dead_jobs),
        *(["healthy"] if report.healthy else []),
    ]
    ctx.obj.out.value(report, lines)
    if not report.healthy:
        raise typer.Exit(DEGRADED)


def health(ctx: typer.Context) -> None:
    """Say what is degraded, without writing anything. Exit code 0: healthy; 9: degraded. `doctor` proves more.

    Example: perdure health
    """
    with ctx.obj.engine() as engine:
        report = engine.health()
    queue = report.queue
    lines = [
        f"store: {report.store.backend} at {safe(report.store.location)}, {report.users} users",
        f"jobs: {queue.ready} ready, {queue.running} running, {queue.done} done, {queue.dead} dead",
        *(f"[yellow]degraded:[/yellow] {safe(one)}" for one in report.degraded),
        *(["healthy"] if report.healthy else []),
    ]
    ctx.obj.out.value(report, lines)
    if not report.healthy:
        raise typer.Exit(DEGRADED)


def purge(ctx: typer.Context) -> None:
    """Give freed space back, so that what was deleted leaves the disk too. Writers wait meanwhile.

    Example: perdure purge
    """
    with ctx.obj.engine() as engine:
        report = engine.purge()
    ctx.obj.out.value(
        report,
        [f"{report.bytes_before:,} bytes before, {report.bytes_after:,} after; {report.jobs_removed} done jobs forgotten"],
    )


def users(ctx: typer.Context, limit: Annotated[int, typer.Option(help="How many at most.")] = 1_000) -> None:
    """List the users of the space, by name.

    Example: perdure users
    """
    with ctx.obj.engine() as engine:
        found = engine.users(limit=limit)
    ctx.obj.out.entries(found, [safe(one) for one in found], empty="nobody is known here yet")


def files(ctx: typer.Context) -> None:
    """List the files that hold the data, with their sizes. A store on a server has none here.

    Example: perdure files
    """
    with ctx.obj.engine() as engine:
        found = engine.files()
    ctx.obj.out.table(
        found,
        {"file": [one.path for one in found], "bytes": [f"{one.bytes:,}" for one in found]},
        empty="the store keeps no file here",
    )


def demo(ctx: typer.Context) -> None:
    """Walk through what works, on a store that is thrown away afterwards.

    Example: perdure demo
    """
    from perdure.interfaces.cli.demo import run_demo

    run_demo(ctx.obj.out)
