"""`perdure accesses`: who read and changed what of a user's data, or of what all users of a space share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from perdure import settings as settings_module
from perdure.domain.accesses import Access, Touched
from perdure.interfaces.cli.output import Output

NAMES_SHOWN = 3


def accesses(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 50,
    before: Annotated[str | None, typer.Option(help="Before the entry with this id.")] = None,
    space_wide: Annotated[
        bool, typer.Option("--space-wide", help="What concerned no single user: exports of all, agents, keys, upkeep.")
    ] = False,
) -> None:
    """List who read and changed what, the newest first: ids, never what the records say. Needs the setting `access_log`.

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
    out.table(
        found,
        {
            "at": [one.at.isoformat(timespec="seconds") for one in found],
            "who": [one.actor for one in found],
            "by": [one.face for one in found],
            "call": [one.call for one in found],
            "action": [one.action for one in found],
            "outcome": [one.error or one.outcome for one in found],
            "what": ["; ".join(_told(one)) for one in found],
        },
        empty="nothing is logged; the setting `access_log` is off" if off else "nothing is logged here yet",
    )


def _told(access: Access) -> Iterable[str]:
    yield from map(_thing, access.touched)
    if access.operations:
        yield f"journal {', '.join(map(str, access.operations[:NAMES_SHOWN]))}{' …' * (len(access.operations) > NAMES_SHOWN)}"


def _thing(touched: Touched) -> str:
    named = ", ".join(touched.names[:NAMES_SHOWN])
    more = touched.count - len(touched.names[:NAMES_SHOWN])
    return f"{touched.kind} {named}{f' and {more} more' if named and more else '' if named else touched.count}"
