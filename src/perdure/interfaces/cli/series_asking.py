"""The commands under `perdure series` that ask what is held of one series, and those that set its rules or end it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any, get_args

import typer

from perdure.domain.errors import InvalidInput
from perdure.domain.series import Entry
from perdure.domain.times import from_us
from perdure.handles.series import SeriesRules
from perdure.interfaces.cli.asking import ask, chosen, taking
from perdure.interfaces.cli.completing import series_names
from perdure.interfaces.cli.output import Output, safe
from perdure.interfaces.cli.rendering import one_line
from perdure.interfaces.shapes import plain
from perdure.services.aggregates import Period

Name = Annotated[str, typer.Argument(help="The series, e.g. kudos_timeseries.", autocompletion=series_names)]
Start = Annotated[str, typer.Argument(help="Start, ISO 8601.")]
End = Annotated[str, typer.Argument(help="End, ISO 8601.")]
From = Annotated[str | None, typer.Option("--start", help="From here on, ISO 8601.")]
Until = Annotated[str | None, typer.Option("--end", help="Up to here, ISO 8601.")]
Field = Annotated[str, typer.Argument(help="A field of the entries.")]
PERIODS: tuple[Period, ...] = get_args(Period)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a series."""

    id_field: Annotated[str | None, typer.Option(help="The field with the id.")] = None
    timestamp_field: Annotated[str | None, typer.Option(help="The field with the time.")] = None
    id_template: Annotated[str | None, typer.Option(help="Makes ids, e.g. kudos_{activity_id}_{athlete_id}.")] = None
    zone: Annotated[str | None, typer.Option(help="What a time without a zone means.")] = None
    settles_after_s: Annotated[float | None, typer.Option(help="Entries may arrive so many seconds late.")] = None
    fresh_for_s: Annotated[float | None, typer.Option(help="How old the newest end may be, in seconds.")] = None
    max_entries: Annotated[int | None, typer.Option(help="Keep so many; the oldest are evicted. 0: no bound.")] = None
    keep_days: Annotated[float | None, typer.Option(help="The recurring cleanup keeps so many days. 0: all.")] = None
    description: Annotated[str | None, typer.Option(help="What it is about, in words: it is found by them.")] = None


@taking(Rules)
def configure(ctx: typer.Context, name: Name, rules: Rules) -> None:
    """Make a series with these rules, or change them. Entries that are held keep their ids and instants.

    Example: perdure series configure runs --zone Europe/Berlin --keep-days 365 --user ana
    """
    given: dict[str, Any] = {key: value for key, value in asdict(rules).items() if value is not None}
    if not given:
        raise InvalidInput("nothing to change; give a rule, such as `--zone`")
    for boundless in ("max_entries", "keep_days"):
        if given.get(boundless) == 0:
            given[boundless] = None
    changed: SeriesRules = given  # type: ignore[assignment]  # its names are those of the rules
    with ctx.obj.memory() as memory:
        series = memory.series(name).configure(**changed)
    told = ", ".join(f"{key} {one_line(str(value))}" for key, value in plain(series.spec).items() if key in given)
    ctx.obj.out.value(series, [safe(f"{series.name}: {told}")])


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
            ask(ctx.obj.out, f"this deletes {series.about().count} entries of {one_line(name)}")
        count = series.remove()
    ctx.obj.out.value({"name": name, "removed": count}, [f"{count} entries removed"])


def windows(ctx: typer.Context, name: Name, start: Start, end: End) -> None:
    """List what was fetched of a range, and when.

    Example: perdure series windows runs 2026-01-01 2026-02-01 --user ana
    """
    with ctx.obj.memory() as memory:
        found = memory.series(name).windows(start, end)
    columns = {
        "from": [one.span.start.isoformat() for one in found],
        "to": [one.span.end.isoformat() for one in found],
        "fetched": [from_us(one.fetched_us).isoformat(timespec="seconds") for one in found],
    }
    ctx.obj.out.table(found, columns, empty="nothing of the range was fetched")


def history(
    ctx: typer.Context,
    name: Name,
    id: Annotated[str, typer.Argument(help="The id of the entry.")],
    limit: Annotated[int, typer.Option(help="How many at most.")] = 100,
) -> None:
    """List earlier versions of an entry, the newest first.

    Example: perdure series history runs 7 --user ana
    """
    with ctx.obj.memory() as memory:
        found = memory.series(name).history(id, limit=limit)
    columns = {
        "version": [one.version for one in found],
        "at": [from_us(one.at_us).isoformat() for one in found],
        "seen": [from_us(one.seen_us).isoformat(timespec="seconds") for one in found],
    }
    ctx.obj.out.table(found, columns, empty="it has no earlier version")


def count(ctx: typer.Context, name: Name, start: From = None, end: Until = None) -> None:
    """Count the entries, of a range if one is given.

    Example: perdure series count runs --start 2026-01-01 --user ana
    """
    with ctx.obj.memory() as memory:
        number = memory.series(name).count(start, end)
    ctx.obj.out.value({"count": number}, [str(number)])


def first(ctx: typer.Context, name: Name) -> None:
    """Print the oldest entry.

    Example: perdure series first runs --user ana
    """
    with ctx.obj.memory() as memory:
        _entry(ctx.obj.out, memory.series(name).first())


def last(ctx: typer.Context, name: Name) -> None:
    """Print the newest entry.

    Example: perdure series last runs --user ana
    """
    with ctx.obj.memory() as memory:
        _entry(ctx.obj.out, memory.series(name).last())


def per(
    ctx: typer.Context,
    name: Name,
    period: Annotated[str, typer.Argument(help=f"{', '.join(PERIODS)}.")],
    zone: Annotated[str | None, typer.Option(help="Whose days; by default the series' own.")] = None,
    start: From = None,
    end: Until = None,
) -> None:
    """Count the entries of each hour, day or week.

    Example: perdure series per runs day --zone Europe/Berlin --user ana
    """
    with ctx.obj.memory() as memory:
        found = memory.series(name).per(chosen(period, PERIODS, "PERIOD"), zone=zone, start=start, end=end)
    _counts(ctx.obj.out, {moment.isoformat(): number for moment, number in found.items()}, period)


def group(ctx: typer.Context, name: Name, field: Field, start: From = None, end: Until = None) -> None:
    """Count the entries by the value of a field.

    Example: perdure series group runs sport --user ana
    """
    with ctx.obj.memory() as memory:
        found = memory.series(name).group(field, start=start, end=end)
    _counts(ctx.obj.out, found, field)


def distinct(ctx: typer.Context, name: Name, field: Field, start: From = None, end: Until = None) -> None:
    """List the values that a field has.

    Example: perdure series distinct runs sport --user ana
    """
    with ctx.obj.memory() as memory:
        found: Sequence[str] = memory.series(name).distinct(field, start=start, end=end)
    ctx.obj.out.entries(found, [safe(one) for one in found], empty="no entry has it")


COMMANDS: Mapping[str, Callable[..., None]] = {
    one.__name__: one for one in (configure, remove, windows, history, count, first, last, per, group, distinct)
}


def _entry(out: Output, entry: Entry | None) -> None:
    out.value(entry, [] if entry is None else [f"{from_us(entry.at_us).isoformat()}  {safe(entry.id)}"])
    if entry is None and not out.as_json:
        out.note("the series holds no entry")


def _counts(out: Output, found: Mapping[str, int] | Mapping[datetime, int], what: str) -> None:
    if out.as_json:
        out.value(found)
        return
    out.table(list(found), {safe(what): list(found), "entries": list(found.values())}, empty="there is no entry")
