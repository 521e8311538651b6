"""`perdure forget`: remove data for good. Before it does, it says what would go, as far as that can be told."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from perdure.domain.errors import InvalidInput
from perdure.interfaces.cli.input import ask
from perdure.interfaces.cli.lines import knowledge as show_as
from perdure.interfaces.cli.output import Output, counted, visible
from perdure.interfaces.forecast import forecast
from perdure.services.forget.forget import ForgetReport


def forget(
    ctx: typer.Context,
    entity: Annotated[str | None, typer.Option(help="A person, place, organisation or project: person:john_doe.")] = None,
    memory: Annotated[str | None, typer.Option(help="The memory with this key.")] = None,
    messages: Annotated[
        tuple[str, str] | None, typer.Option(help="A run of messages: the ids of the FIRST and the LAST.")
    ] = None,
    everything: Annotated[bool, typer.Option("--everything", help="All that is held of the user.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
) -> None:
    """Delete data for good, with all that was derived from it. It cannot be undone.

    Name one thing. On a terminal it asks first; elsewhere and with --json it does nothing without --yes.

    Example: perdure forget --entity person:john_doe --dry-run --user ana
    """
    out: Output = ctx.obj.out
    named = [
        name for name, given in (("--entity", entity), ("--memory", memory), ("--messages", messages)) if given is not None
    ]
    named += ["--everything"] if everything else []
    if len(named) != 1:
        raise InvalidInput(f"`forget` was given {', '.join(named) or 'nothing'}; name exactly one thing")
    with ctx.obj.memory() as held:
        goes = forecast(held, entity, memory, messages)
        if memory is not None and goes.get("known") is False and not yes:
            out.value({"forgotten": False, **goes}, [Text("nothing to forget")])
            return
        if dry_run:
            out.value({"forgotten": False, **goes}, [Text(f"would remove: {_summary_line(goes)}")])
            return
        if not yes:
            ask(out, f"this forgets, for good: {_summary_line(goes)}")
        done: ForgetReport = held.forget(entity=entity, memory=memory, messages=messages, user=everything)
    out.value(done, show_as.forgotten_lines(done, out.width))


def _summary_line(goes: dict[str, object]) -> str:
    parts = ["nothing found"] if goes.get("known") is False else []
    for name, value in goes.items():
        if name == "known":
            continue
        if name == "and":
            parts.append(str(value))
        elif isinstance(value, list):
            parts.append(f"{name} {', '.join(map(str, value)) or 'none'}")
        else:
            parts.append(counted(name, value) if isinstance(value, int) else f"{name} {value}")
    return visible("; ".join(parts)).replace("\n", " ")
