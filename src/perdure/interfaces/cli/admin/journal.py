"""`perdure journal …` and `perdure undo`: what was done to one user's data, by whom and why; and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer
from rich.text import Text

from perdure import settings as settings_module
from perdure.domain.access import Access, TouchedRecords
from perdure.handles.admin import JournalHandle
from perdure.handles.memory import Memory
from perdure.interfaces.cli.derived import Group, derived, each
from perdure.interfaces.cli.lines import knowledge as show_as
from perdure.interfaces.cli.lines.oversight import decision_entry
from perdure.interfaces.cli.output import Output, safe

app = Group("journal", "What was changed, read and decided, and why.")
NAMES_SHOWN = 3


app.offer((JournalHandle, "list"), each(show_as.operation_entry, "no changes yet"))
app.offer((JournalHandle, "diff"), each(show_as.change, "nothing changed"))
app.offer((JournalHandle, "decisions"), each(decision_entry, "no decisions here yet"))


@app.command()
def accesses(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 50,
    before: Annotated[str | None, typer.Option(help="Before the entry with this id.")] = None,
    space_wide: Annotated[
        bool, typer.Option("--space-wide", help="What concerned no single user: exports of all, agents, keys, upkeep.")
    ] = False,
) -> None:
    """List who read and changed what, newest first.

    It has ids, never what the records say.

    Has what was logged while the setting `access_log` was on.

    Example: perdure journal accesses --user ana --limit 10
    """
    out: Output = ctx.obj.out
    if space_wide:
        with ctx.obj.engine() as engine:
            found = engine.accesses(limit, before=before)
    else:
        with ctx.obj.memory() as memory:
            found = memory.journal.accesses(limit, before=before)
    off = settings_module.load().access_log == "off"
    out.entries(
        found,
        (line for one in found for line in _lines(one)),
        empty="nothing is logged; the setting `access_log` is off" if off else "nothing is logged here yet",
    )


@derived((Memory, "undo"), example="perdure undo 12 --user ana")
def undo(out: Output, number: int, given: Mapping[str, Any]) -> None:
    operation = given["operation"]
    out.value({"undone": operation, "action": number}, [Text(f"operation {operation} is undone, by operation {number}")])


def _lines(access: Access) -> Iterable[str]:
    """Lines and no table: times and ids have to be whole to be copied, however narrow the terminal is."""
    yield f"{access.at.isoformat(timespec='seconds')}  [bold]{safe(access.id)}[/bold]"
    ended = f"{access.outcome}: {access.error}" if access.error else access.outcome
    yield f"  {safe(access.actor)} by {access.face}: {safe(access.call)} ({access.action}), {safe(ended)}"
    if told := "; ".join(_access_parts(access)):
        yield f"  {safe(told)}"


def _access_parts(access: Access) -> Iterable[str]:
    yield from map(_thing, access.touched)
    if access.operations:
        yield f"journal {', '.join(map(str, access.operations[:NAMES_SHOWN]))}{' …' * (len(access.operations) > NAMES_SHOWN)}"


def _thing(touched: TouchedRecords) -> str:
    named = ", ".join(touched.names[:NAMES_SHOWN])
    more = touched.count - len(touched.names[:NAMES_SHOWN])
    return f"{touched.kind} {named}{f' and {more} more' if named and more else '' if named else touched.count}"
