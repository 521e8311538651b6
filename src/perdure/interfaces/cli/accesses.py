"""`perdure accesses`: who read and changed what of a user's data, or of what all users of a space share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from perdure import settings as settings_module
from perdure.domain.accesses import Access, Touched
from perdure.interfaces.cli.output import Output, safe

NAMES_SHOWN = 3


def accesses(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 50,
    before: Annotated[str | None, typer.Option(help="Before the entry with this id.")] = None,
    space_wide: Annotated[
        bool, typer.Option("--space-wide", help="What concerned no single user: exports of all, agents, keys, upkeep.")
    ] = False,
) -> None:
    """List who read and changed what, the newest first: ids, never what the records say.

    Has what was logged while the setting `access_log` was on.

    Example: perdure accesses --user ana --limit 10
    """
    out: Output = ctx.obj.out
    if space_wide:
        with ctx.obj.engine() as engine:
            found = engine.accesses(limit, before=before)
    else:
        with ctx.obj.memory() as memory:
            found = memory.accesses(limit, before=before)
    off = settings_module.load().access_log == "off"
    out.entries(
        found,
        (line for one in found for line in _lines(one)),
        empty="nothing is logged; the setting `access_log` is off" if off else "nothing is logged here yet",
    )


def _lines(access: Access) -> Iterable[str]:
    """Lines and no table: times and ids have to be whole to be copied, however narrow the terminal is."""
    yield f"{access.at.isoformat(timespec='seconds')}  [bold]{safe(access.id)}[/bold]"
    ended = f"{access.outcome}: {access.error}" if access.error else access.outcome
    yield f"  {safe(access.actor)} by {access.face}: {safe(access.call)} ({access.action}), {safe(ended)}"
    if told := "; ".join(_told(access)):
        yield f"  {safe(told)}"


def _told(access: Access) -> Iterable[str]:
    yield from map(_thing, access.touched)
    if access.operations:
        yield f"journal {', '.join(map(str, access.operations[:NAMES_SHOWN]))}{' …' * (len(access.operations) > NAMES_SHOWN)}"


def _thing(touched: Touched) -> str:
    named = ", ".join(touched.names[:NAMES_SHOWN])
    more = touched.count - len(touched.names[:NAMES_SHOWN])
    return f"{touched.kind} {named}{f' and {more} more' if named and more else '' if named else touched.count}"
