"""`perdure series …`: time series of a user and what is covered of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from perdure import extract_time_range
from perdure import settings as settings_module
from perdure.domain.errors import InvalidInput
from perdure.domain.series import CoveredWindow, Entry, MergeResult, Series, SeriesAnswer
from perdure.domain.times.instants import check_instant, from_us, read_instant, to_us
from perdure.domain.times.spans import Span
from perdure.handles.registry.shapes import plain
from perdure.handles.series import SeriesHandle, UserSeries
from perdure.interfaces.cli.completion import series_names
from perdure.interfaces.cli.derived import JSON, Form, Group, Reader, line, table
from perdure.interfaces.cli.input import ask
from perdure.interfaces.cli.lines.conversation import one_line
from perdure.interfaces.cli.lines.oversight import range_lines
from perdure.interfaces.cli.output import Columns, Output, plural, safe

app = Group("series", "Time series, and what is fetched of them.", first="runs")
Name = Annotated[str, typer.Argument(help="The series, e.g. kudos_timeseries.", autocompletion=series_names)]
Template = Annotated[str | None, typer.Option(help="Makes ids, e.g. kudos_{activity_id}_{athlete_id}.")]
BAR = 72
NO_BOUND = Reader(lambda given: given or None, "0: no bound.", int)
NO_END = Reader(lambda given: given or None, "0: all.", float)


@contextmanager
def _series(ctx: typer.Context, name: Name) -> Iterator[SeriesHandle]:
    with ctx.obj.memory() as memory:
        yield memory.series(name)


@contextmanager
def _ruled(ctx: typer.Context, name: Name, id_template: Template = None) -> Iterator[SeriesHandle]:
    rules: dict[str, Any] = {} if id_template is None else {"id_template": id_template}
    with ctx.obj.memory() as memory:
        yield memory.series(name, **rules)


app.offer(
    (UserSeries, "list"),
    table(
        {
            "series": "name",
            "entries": "count",
            "fetched": "fetched",
            "duplicates avoided": "duplicates",
            "api calls": "api_calls",
            "updated": "last_updated",
        },
        "no series here yet",
    ),
)


@app.derived(
    (SeriesHandle, "merge"),
    example="@runs.json --window 2026-01-01 2026-01-03",
    form=Form(
        names={"complete": "cut_off", "newest_first": "oldest_first"},
        words={"complete": "The source did not give everything.", "newest_first": "With --cut-off: it began with the oldest."},
        read={"entries": JSON},
    ),
    at=_ruled,
)
def merge(out: Output, done: MergeResult) -> None:
    """Merge fetched entries by id. Say which window was fetched, and it need not be fetched again."""
    told = f"added {done.added}, duplicates {done.duplicates}, updated {done.updated}, total {done.total_count}"
    out.value(done, [told, *(f"rejected entry {one.index}: {safe(one.reason)}" for one in done.rejected)])


@app.derived(
    (SeriesHandle, "query"),
    form=Form(hidden=("coverage", "fresh_for_s", "by_first_seen"), defaults={"limit": 100}),
    at=_series,
)
def query(out: Output, answer: SeriesAnswer) -> None:
    lines = [f"{from_us(one.at_us).isoformat()}  {safe(one.id)}" for one in answer.entries]
    lines.append(f"{plural(answer.count, 'entry', 'entries')}; coverage {answer.coverage}: {safe(answer.reason)}")
    if answer.next_page is not None:
        lines.append(f"more: --page '{safe(answer.next_page)}'")
    out.value(answer, lines)


app.offer(
    (SeriesHandle, "gaps"),
    table(
        {
            "from": lambda gap: gap.start.isoformat(),
            "to": lambda gap: gap.end.isoformat(),
            "length": lambda gap: gap.end - gap.start,
        },
        "nothing to fetch up to now",
    ),
    at=_series,
)
app.offer(
    (SeriesHandle, "windows"),
    table(
        {
            "from": lambda one: one.span.start.isoformat(),
            "to": lambda one: one.span.end.isoformat(),
            "fetched": lambda one: from_us(one.fetched_us),
            "inferred": lambda one: "yes" if one.inferred else "",
        },
        "no fetch covers anything of the range",
    ),
    at=_series,
)
app.offer(
    (SeriesHandle, "history"),
    table(
        {
            "version": "version",
            "at": lambda one: from_us(one.at_us).isoformat(),
            "seen": lambda one: from_us(one.seen_us),
        },
        "it has no earlier version",
    ),
    at=_series,
)
app.offer(
    (SeriesHandle, "count"),
    line(lambda number, _: str(number), count=""),
    form=Form(options=("start", "end")),
    at=_series,
    example="--start 2026-01-01",
)
app.offer(
    (SeriesHandle, "cleanup"),
    line(lambda done, _: f"removed {done.removed}, kept {done.kept}; cutoff {done.cutoff_date.isoformat(timespec='seconds')}"),
    form=Form(options=("keep_days",)),
    at=_series,
    example="--keep-days 365",
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
        for line in series.export(format, start=start, end=end):  # type: ignore[arg-type]  # checked by the service
            print(line)


@app.derived(
    (SeriesHandle, "configure"),
    example="--zone Europe/Berlin --keep-days 365",
    form=Form(read={"max_entries": NO_BOUND, "keep_days": NO_END}),
    at=_series,
    needs_one=True,
)
def configure(out: Output, series: Series, given: Mapping[str, Any]) -> None:
    told = ", ".join(f"{key} {one_line(str(value))}" for key, value in plain(series.spec).items() if key in given)
    out.value(series, [safe(f"{series.name}: {told}")])


@app.command()
def remove(
    ctx: typer.Context,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a series with everything it holds.

    Example: perdure series remove runs --yes --user ana
    """
    with ctx.obj.memory() as memory:
        series = memory.series(name)
        if not yes:
            ask(ctx.obj.out, f"this deletes {plural(series.about().count, 'entry', 'entries')} of {one_line(name)}")
        count = series.remove()
    ctx.obj.out.value({"name": name, "removed": count}, [f"{plural(count, 'entry', 'entries')} removed"])


def _entry(out: Output, entry: Entry | None) -> None:
    out.value(entry, [] if entry is None else [f"{from_us(entry.at_us).isoformat()}  {safe(entry.id)}"])
    if entry is None and not out.as_json:
        out.note("the series holds no entry")


for name in ("first", "last"):
    app.offer((SeriesHandle, name), _entry, at=_series)


@app.derived((SeriesHandle, "per"), example="day --zone Europe/Berlin", at=_series)
def per(out: Output, found: Mapping[datetime, int], given: Mapping[str, Any]) -> None:
    _counts(out, {moment.isoformat(): number for moment, number in found.items()}, given["period"])


@app.derived((SeriesHandle, "group"), at=_series)
def group(out: Output, found: Mapping[str, int], given: Mapping[str, Any]) -> None:
    _counts(out, found, given["field"])


@app.derived((SeriesHandle, "distinct"), at=_series)
def distinct(out: Output, found: Sequence[str]) -> None:
    out.entries(found, [safe(one) for one in found], empty="no entry has it")


@app.command()
def when(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(help="A goal or a question.")],
    now: Annotated[str | None, typer.Option(help="As if it were then, ISO 8601 with a zone.")] = None,
    zone: Annotated[str | None, typer.Option(help="Where the asker is; by default the setting `zone`.")] = None,
) -> None:
    """Say which time a text is about, and how its words were read. The store is not asked.

    Example: perdure series when "kudos of the last 24 hours" --zone Europe/Berlin
    """
    out: Output = ctx.obj.out
    settings = settings_module.load()
    moment = datetime.now(UTC) if now is None else check_instant(read_instant(now, "--now"), "--now")
    found = extract_time_range(text, moment, settings.zone if zone is None else zone, week_start=settings.week_start)
    out.value(found, () if found is None else range_lines(found, out.width))
    if found is None and not out.as_json:
        out.note("no time is named")


def _counts(out: Output, found: Mapping[str, int], what: str) -> None:
    if out.as_json:
        out.value(found)
        return
    columns: Columns = {safe(what): lambda one: one[0], "entries": lambda one: one[1]}
    out.table(list(found.items()), columns, empty="there is no entry")


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
    books = f"{plural(series.count, 'entry', 'entries')}, {series.fetched} fetched in {plural(series.api_calls, 'call')}"
    return [
        f"[bold]{safe(series.name)}[/bold]: {books}, {series.duplicates} duplicates avoided, {series.removed} removed",
        "".join(cells),
        left + " " * max(1, BAR - len(left) - len(right)) + right,
        "█ covered   ▒ provisional   · gap",
    ]
