"""`perdure series …`: time series of a user and what is covered of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, get_args

import typer

from perdure.domain.errors import InvalidInput
from perdure.domain.series import CoveredWindow, Infer, Series
from perdure.domain.spans import Span
from perdure.domain.times import from_us, to_us
from perdure.handles.series import MergeExtras, SeriesHandle, SeriesRules
from perdure.interfaces.cli import series_asking
from perdure.interfaces.cli.asking import chosen, taking
from perdure.interfaces.cli.output import safe
from perdure.interfaces.cli.series_asking import End, Name, Start
from perdure.interfaces.cli.state import read_json
from perdure.interfaces.shapes import plain

app = typer.Typer(no_args_is_help=True, help="Time series, and which windows of them are held.", rich_markup_mode=None)
BAR = 72
INFER: tuple[Infer, ...] = get_args(Infer)


@app.command("list")
def list_series(ctx: typer.Context, limit: Annotated[int, typer.Option(help="How many at most.")] = 100) -> None:
    """List series with their books.

    Example: perdure series list --user ana
    """
    with ctx.obj.memory() as memory:
        found = memory.list_series(limit)
    ctx.obj.out.table(
        found,
        {
            "series": [one.name for one in found],
            "entries": [one.count for one in found],
            "fetched": [one.fetched for one in found],
            "duplicates avoided": [one.duplicates for one in found],
            "api calls": [one.api_calls for one in found],
            "updated": [one.last_updated.isoformat(timespec="seconds") for one in found],
        },
        empty="no series here yet",
    )


@dataclass(frozen=True, slots=True)
class Fetched:
    """What `series merge` may be told of where its entries come from."""

    window: Annotated[tuple[str, str] | None, typer.Option(help="What was asked for: START END.")] = None
    cut_off: Annotated[bool, typer.Option("--cut-off", help="The source did not give everything.")] = False
    oldest_first: Annotated[bool, typer.Option("--oldest-first", help="With --cut-off: it began with the oldest.")] = False
    infer: Annotated[str, typer.Option(help=f"Without --window: {' or '.join(INFER)} counts as covered.")] = "none"
    strict: Annotated[bool, typer.Option("--strict", help="If one entry is bad, store none.")] = False
    id_template: Annotated[str | None, typer.Option(help="Makes ids, e.g. kudos_{activity_id}_{athlete_id}.")] = None
    api_calls: Annotated[int, typer.Option(help="How many calls it took, for the books.")] = 1
    request: Annotated[str | None, typer.Option(help="An id of yours; repeating the latest merge changes nothing.")] = None


@app.command()
@taking(Fetched)
def merge(
    ctx: typer.Context,
    name: Name,
    entries: Annotated[str, typer.Argument(help="A JSON list: as it is, - for stdin, or @FILE.")],
    fetched: Fetched,
) -> None:
    """Merge fetched entries by id. Say which window was fetched, and it need not be fetched again.

    Example: perdure series merge runs @runs.json --window 2026-01-01 2026-01-03 --user ana
    """
    batch = read_json(entries)
    rules: SeriesRules = {} if fetched.id_template is None else {"id_template": fetched.id_template}
    more: MergeExtras = {"api_calls": fetched.api_calls}
    if fetched.request is not None:
        more["request"] = fetched.request
    with ctx.obj.memory() as memory:
        series: SeriesHandle = memory.series(name, **rules)
        done = series.merge(
            batch, window=fetched.window, complete=not fetched.cut_off, newest_first=not fetched.oldest_first,
            infer=chosen(fetched.infer, INFER, "--infer"), strict=fetched.strict, **more,
        )  # fmt: skip
    told = f"added {done.added}, duplicates {done.duplicates}, updated {done.updated}, total {done.total_count}"
    lines = [told, *(f"rejected entry {one.index}: {safe(one.reason)}" for one in done.rejected)]
    ctx.obj.out.value(done, lines)


@app.command()
def query(
    ctx: typer.Context,
    name: Name,
    start: Start,
    end: End,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 100,
    page: Annotated[str | None, typer.Option(help="`next_page` of the answer before.")] = None,
) -> None:
    """Entries of a range, newest first, and whether that is all.

    Example: perdure series query runs 2026-01-01 2026-01-03 --user ana
    """
    with ctx.obj.memory() as memory:
        answer = memory.series(name).query(start, end, limit=limit, page=page)
    lines = [f"{from_us(one.at_us).isoformat()}  {safe(one.id)}" for one in answer.entries]
    lines.append(f"{answer.count} entries; coverage {answer.coverage}: {safe(answer.reason)}")
    if answer.next_page is not None:
        lines.append(f"more: --page '{safe(answer.next_page)}'")
    ctx.obj.out.value(answer, lines)


@app.command()
def gaps(ctx: typer.Context, name: Name, start: Start, end: End) -> None:
    """What would have to be fetched to cover a range.

    Example: perdure series gaps runs 2026-01-01 2026-02-01 --user ana
    """
    with ctx.obj.memory() as memory:
        found = memory.series(name).gaps(start, end)
    ctx.obj.out.table(
        found,
        {
            "from": [gap.start.isoformat() for gap in found],
            "to": [gap.end.isoformat() for gap in found],
            "length": [gap.end - gap.start for gap in found],
        },
        empty="nothing: the range is covered",
    )


@app.command()
def show(
    ctx: typer.Context,
    name: Name,
    days: Annotated[float, typer.Option(help="How far to look back.")] = 30,
) -> None:
    """Draw what is covered as a bar over time.

    Example: perdure series show runs --days 14 --user ana
    """
    if not 0 < days <= 100_000:
        raise InvalidInput(f"`--days` = {days} must be more than 0 and at most 100000")
    with ctx.obj.memory() as memory:
        series = memory.series(name)
        held = series.about()
        now = datetime.now(UTC)
        span = Span(to_us(now - timedelta(days=days)), to_us(now))
        windows = series.windows(span.start, span.end)
        answer = series.query(span.start, span.end, limit=1)
    told = {
        **plain(held),
        "windows": windows,
        "provisional": answer.provisional,
        "gaps": answer.gaps,
    }
    ctx.obj.out.value(told, _drawing(held, windows, answer.provisional, span))


@app.command()
def cleanup(
    ctx: typer.Context, name: Name, keep_days: Annotated[float, typer.Option(help="Keep entries of so many days.")] = 90
) -> None:
    """Remove old entries, and the claim to know that time.

    Example: perdure series cleanup runs --keep-days 365 --user ana
    """
    with ctx.obj.memory() as memory:
        done = memory.series(name).cleanup(keep_days)
    lines = [f"removed {done.removed}, kept {done.kept}; cutoff {done.cutoff_date.isoformat(timespec='seconds')}"]
    ctx.obj.out.value(done, lines)


@app.command()
def export(
    ctx: typer.Context,
    name: Name,
    format: Annotated[str, typer.Option(help="jsonl or csv")] = "jsonl",
    start: Annotated[str | None, typer.Option(help="From here on.")] = None,
    end: Annotated[str | None, typer.Option(help="Up to here.")] = None,
) -> None:
    """Write all entries to stdout, oldest first.

    Example: perdure series export runs --format csv --user ana > runs.csv
    """
    with ctx.obj.memory() as memory:
        series: SeriesHandle = memory.series(name)
        series.about()
        for line in series.export(format, start=start, end=end):
            print(line)


for name, command in series_asking.COMMANDS.items():
    app.command(name)(command)


def _drawing(series: Series, windows: list[CoveredWindow], provisional: tuple[Span, ...], span: Span) -> list[str]:
    """The bar: █ covered, ▒ covered but may still grow, · not covered; a cell takes the worst of what lies in it."""
    cells = []
    for number in range(BAR):
        start = span.start_us + span.length_us * number // BAR
        end = span.start_us + span.length_us * (number + 1) // BAR
        covered = sum(max(0, min(one.span.end_us, end) - max(one.span.start_us, start)) for one in windows)
        unsure = any(one.start_us < end and one.end_us > start for one in provisional)
        cells.append("·" if covered < end - start else "▒" if unsure else "█")
    left, right = (edge.isoformat(timespec="minutes") for edge in (span.start, span.end))
    books = f"{series.count} entries, {series.fetched} fetched in {series.api_calls} calls"
    return [
        f"[bold]{safe(series.name)}[/bold]: {books}, {series.duplicates} duplicates avoided, {series.removed} removed",
        "".join(cells),
        left + " " * max(1, BAR - len(left) - len(right)) + right,
        "█ covered   ▒ provisional   · gap",
    ]
