"""The store as a whole from the command line: its worker, its health, its backups."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

import perdure
from perdure import settings
from perdure.app import restored
from perdure.domain.access import COMMAND_LINE
from perdure.domain.errors import Corrupt, InvalidInput
from perdure.domain.jobs import QueueReport
from perdure.domain.reports import (
    ClockReport,
    DistributionReport,
    DoctorReport,
    Health,
    IndexCacheReport,
    ProcessReport,
    PurgeReport,
)
from perdure.interfaces.cli.admin.user import usage_lines
from perdure.interfaces.cli.derived import derived, whole_store
from perdure.interfaces.cli.lines.conversation import one_line
from perdure.interfaces.cli.output import Columns, Output, plural, safe
from perdure.interfaces.errors import DEGRADED, exit_code


def worker(
    ctx: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Run what is due, then stop.")] = False,
    seconds: Annotated[float, typer.Option(help="With --once: at most this long.")] = 60.0,
) -> None:
    """Run background jobs until stopped. SIGTERM and Ctrl-C finish the job in hand first.

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
    return f"{plural(done.ran, 'job')} ran, {done.failed} will be tried again, {done.parked} failed{lost}"


def verify(ctx: typer.Context) -> None:
    """Check every row of the store. Exit code 0: sound; 8: something is wrong.

    Example: perdure admin verify
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
    """Write the whole store to one file, while writers go on.

    Example: perdure admin backup all.perdure
    """
    out: Output = ctx.obj.out
    with ctx.obj.engine() as engine, out.progress("backing up") as progress:
        report = engine.backup(file, replace=replace, progress=progress)
    rows = sum(report.rows.values())
    out.value(report, [f"{rows:,} rows, {report.bytes:,} bytes in {safe(report.path)}"])


def restore(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="A file made by `perdure admin backup`, on whichever kind of store.")],
    replace: Annotated[bool, typer.Option("--replace", help="Throw away what the store holds now.")] = False,
) -> None:
    """Fill the store from a backup: all of it or nothing.

    Example: perdure admin restore all.perdure --url sqlite:///copy.db
    """
    out: Output = ctx.obj.out
    with out.progress("restoring") as progress:
        counts = restored(file, settings.load(url=ctx.obj.url), replace=replace, progress=progress, asker=COMMAND_LINE)
    out.value({"rows": counts}, [f"{sum(counts.values()):,} rows restored from {safe(file)}"])


def doctor(ctx: typer.Context) -> None:
    """Check the store and the configuration. Exit code 0: healthy; 9: degraded.

    Example: perdure doctor
    """
    with ctx.obj.engine() as engine:
        report = engine.doctor()
    lines = [
        f"store: {report.store.backend} at {safe(report.store.location)}, {report.store.bytes:,} bytes",
        f"schema: version {report.store.schema_version}",
        f"durability: {report.store.durability}",
        f"encryption: {report.store.encryption}",
        f"round trip: a message, its job and its counts in {report.round_trip_ms:.1f} ms",
        _queue(report.queue),
        "versions: " + ", ".join(f"{name} {number}" for name, number in report.versions.items()),
        *_indexes(report.indexes),
        f"model: {safe(report.model) or 'none; the rules do its work'}",
        *(f"model calls for {line}" for line in usage_lines(report.models)),
        *_degraded(report),
        *(f"dead job: {safe(job.owner.user)} {safe(job.kind)}: {safe(job.last_error)}" for job in report.dead_jobs),
    ]
    _say_health(ctx, report, lines)


def health(ctx: typer.Context) -> None:
    """Say what is degraded, without writing anything. Exit code 0: healthy; 9: degraded. `doctor` checks more.

    Example: perdure admin health
    """
    with ctx.obj.engine() as engine:
        report = engine.health()
    store = f"store: {report.store.backend} at {safe(report.store.location)}, {report.users} users"
    _say_health(ctx, report, [store, _queue(report.queue), *_degraded(report)])


def _indexes(held: IndexCacheReport | None) -> list[str]:
    if held is None:
        return []
    room = f"{held.bytes:,} of {held.bytes_max:,} bytes, {held.users} users"
    return [f"search indexes in memory: {room}; {held.hit_rate:.0%} of questions found theirs, {held.evicted} dropped"]


def _queue(queue: QueueReport) -> str:
    return f"jobs: {queue.ready} ready, {queue.running} running, {queue.done} done, {queue.dead} dead"


def _degraded(report: DoctorReport | Health) -> list[str]:
    return [f"[yellow]degraded:[/yellow] {safe(one)}" for one in report.degraded]


def _say_health(ctx: typer.Context, report: DoctorReport | Health, lines: list[str]) -> None:
    ctx.obj.out.value(report, [*lines, *(["healthy"] if report.healthy else [])])
    if not report.healthy:
        raise typer.Exit(DEGRADED)


def purge(ctx: typer.Context) -> None:
    """Return freed space to the disk, and overwrite what is deleted.

    A SQLite file of an older perdure is written anew once, which takes twice its size on the disk meanwhile.

    Example: perdure admin purge
    """
    out: Output = ctx.obj.out
    with ctx.obj.engine() as engine, out.progress("erasing") as progress:
        report: PurgeReport = engine.purge(progress)
    sizes = f"{report.bytes_before:,} bytes before, {report.bytes_after:,} after"
    remain = [f"[yellow]bytes of what was deleted remain:[/yellow] {safe(report.bytes_remain)}"] if report.bytes_remain else []
    out.value(report, [f"{sizes}; {report.jobs_removed} done jobs forgotten", *remain])


@derived((perdure.Engine, "repair_clock"), example="perdure admin repair-clock", at=whole_store)
def repair_clock(out: Output, report: ClockReport) -> None:
    """Correct rows written by a clock that ran ahead.

    Set the clock of the machine right first. `perdure doctor` says whether there are such rows.
    """
    out.value(report, [f"rows corrected: {report.rows:,}, of users: {report.users:,}"])


@derived(
    (perdure.Engine, "distribute"), example="perdure admin distribute --url postgresql://coordinator/agents", at=whole_store
)
def distribute(out: Output, report: DistributionReport) -> None:
    """Spread the tables over the nodes of a Citus cluster. Stop the servers before.

    Run it again if it was interrupted.
    """
    lines = [
        f"{len(report.tables)} tables distributed, {report.already} were already",
        f"nodes: {', '.join(map(safe, report.nodes))}",
    ]
    out.value(report, lines)


def reindex(
    ctx: typer.Context,
    everybody: Annotated[bool, typer.Option("--all", help="Every user of the store.")] = False,
) -> None:
    """Rebuild the search index, while the old one answers.

    Needed after another embedder was chosen, or if the index is damaged.

    Example: perdure admin reindex --user ana
    """
    out: Output = ctx.obj.out
    for name, value in (("--user", ctx.obj.user), ("--space", ctx.obj.space)):
        if everybody and value is not None:
            raise InvalidInput(f"`--all` and `{name}` = {value!r:.80} are both given; leave one of them out")
    user = None if everybody else ctx.obj.named_user()
    with ctx.obj.engine() as engine, out.progress("indexing") as progress:
        if user is None:
            done = dict(engine.reindex(progress))
        else:
            memory = engine.memory(user, space=ctx.obj.space)
            done = {memory.scope.owner: memory.admin.reindex(progress)}
    total = sum(done.values())
    users = [{"space": owner.space, "user": owner.user, "entries": count} for owner, count in done.items()]
    lines = (
        Text(one_line(f"{owner.space}/{owner.user}: {plural(count, 'entry', 'entries')}")) for owner, count in done.items()
    )
    out.value({"users": users, "entries": total}, lines)
    if everybody and not out.as_json:
        out.note(f"{plural(total, 'entry', 'entries')} of {plural(len(done), 'user')}")


@derived((perdure.Engine, "users"), example="perdure admin users", at=whole_store)
def users(out: Output, found: Sequence[str]) -> None:
    """List the users of the space, by name."""
    out.entries(found, [safe(one) for one in found], empty="nobody is known here yet")


def files(ctx: typer.Context) -> None:
    """List the files that hold the data, with their sizes. A store on a server has none here.

    Example: perdure admin files
    """
    with ctx.obj.engine() as engine:
        found = engine.files()
    columns: Columns = {"file": "path", "bytes": lambda one: f"{one.bytes:,}"}
    ctx.obj.out.table(found, columns, empty="the store keeps no file here")


def demo(ctx: typer.Context) -> None:
    """Walk through a day with a memory, on a temporary store.

    Example: perdure demo
    """
    from perdure.interfaces.cli.admin.demo import run_demo

    run_demo(ctx.obj.out)
