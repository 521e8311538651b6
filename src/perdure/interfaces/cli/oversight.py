"""`perdure before|after|decisions|when`: what an agent is given for a goal, what is kept of a tool's result, and why."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, get_args

import typer

import perdure
from perdure import settings as settings_module
from perdure.domain.errors import InvalidInput
from perdure.domain.oversight import SAVE_MODES, TARGETS, DecisionKind
from perdure.domain.text import Json
from perdure.domain.times import check_instant
from perdure.handles.oversight import AfterFields, BeforeFields
from perdure.interfaces.cli import oversight_lines as show_as
from perdure.interfaces.cli.asking import chosen, instant, read_text, taking
from perdure.interfaces.cli.output import Output, safe
from perdure.interfaces.cli.rendering import one_line

DECISION_KINDS: tuple[DecisionKind, ...] = get_args(DecisionKind)


def before(
    ctx: typer.Context,
    goal: Annotated[str, typer.Argument(help="What the agent is to do.")],
    budget: Annotated[int | None, typer.Option(help="At most so many tokens; by default 2000.")] = None,
    target: Annotated[str, typer.Option(help=f"Where it goes: {', '.join(TARGETS)}.")] = "first_step",
    deadline: Annotated[float, typer.Option(help="So many seconds; then the goal runs with what is ready.")] = 2.0,
    explain: Annotated[bool, typer.Option("--explain", help="What was looked at, what of it is given, and why.")] = False,
) -> None:
    """Print what to give to an agent before it works on a goal: what is saved and remembered that bears on it, or nothing.

    Example: perdure before "Who from my kudos list was active recently?" --explain --user ana
    """
    out: Output = ctx.obj.out
    fields: BeforeFields = {"target": chosen(target, TARGETS, "--target"), "deadline_s": deadline}
    if budget is not None:
        fields["budget_tokens"] = budget
    with ctx.obj.memory() as memory:
        found = memory.before(goal, **fields)
    out.value(found, show_as.explained(found, out.width) if explain else show_as.text_of(found))
    if not out.as_json:
        for line in show_as.summed_up(found):
            out.note(safe(one_line(line)))


@dataclass(frozen=True, slots=True)
class Treated:
    """What `after` may be told besides the tool and its result."""

    goal: Annotated[str, typer.Option(help="What the agent was doing.")] = ""
    mode: Annotated[str | None, typer.Option(help=f"{', '.join(SAVE_MODES)}; by default the setting `save_results`.")] = None
    allow: Annotated[list[str] | None, typer.Option(help="Only results of this tool may be kept. Repeatable.")] = None
    deny: Annotated[list[str] | None, typer.Option(help="Never a result of this tool. Repeatable.")] = None
    window: Annotated[
        tuple[str, str] | None, typer.Option(help="The time that the tool was asked for and has answered in full: start, end.")
    ] = None
    accept: Annotated[bool, typer.Option("--accept", help="Save what is suggested; exit code 2 if nothing is.")] = False


AS_SET = Treated()


@taking(Treated)
def after(
    ctx: typer.Context,
    tool: Annotated[str, typer.Argument(help="Its name.")],
    file: Annotated[str, typer.Argument(help="The result as JSON: a file, or - for stdin.")] = "-",
    treated: Treated = AS_SET,
) -> None:
    """Decide what of a tool's result is kept: as state, as entries of a series, or nothing; and say why.

    Example: perdure after get_profile profile.json --goal "Plan my week" --mode suggest --user ana
    """
    out: Output = ctx.obj.out
    value, fields = _result(file), _fields(treated)
    with ctx.obj.memory() as memory:
        kept = memory.after(tool, value, treated.goal, **fields)
        if treated.accept and kept.action == "suggested":
            kept = memory.accept(kept, value)
    out.value(kept, show_as.kept_lines(kept, out.width))
    if kept.action == "suggested" and not out.as_json:
        out.note("nothing is saved yet; the same with --accept saves it")
    if treated.accept and not kept.saved and kept.action != "unchanged":
        raise typer.Exit(2)


def decisions(
    ctx: typer.Context,
    kind: Annotated[str | None, typer.Option(help=f"Only {' or '.join(DECISION_KINDS)}.")] = None,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 20,
    before: Annotated[str | None, typer.Option(help="Before the decision with this id.")] = None,
) -> None:
    """List what was given to the agent and what was kept of its tools' results, the newest first, and why.

    Example: perdure decisions --kind before --limit 5 --user ana
    """
    out: Output = ctx.obj.out
    wanted = None if kind is None else chosen(kind, DECISION_KINDS, "--kind")
    with ctx.obj.memory() as memory:
        found = memory.decisions(wanted, limit=limit, before=before)
    lines = (line for one in found for line in show_as.decision_entry(one, out.width))
    out.entries(found, lines, empty="nothing was decided here yet")


def when(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(help="A goal or a question.")],
    now: Annotated[str | None, typer.Option(help="As if it were then, ISO 8601 with a zone.")] = None,
    zone: Annotated[str | None, typer.Option(help="Where the asker is; by default the setting `zone`.")] = None,
) -> None:
    """Say which time a text is about, and how its words were read. The store is not asked.

    Example: perdure when "kudos of the last 24 hours" --zone Europe/Berlin
    """
    out: Output = ctx.obj.out
    settings = settings_module.load()
    moment = datetime.now(UTC) if now is None else check_instant(instant(now, "--now"), "--now")
    found = perdure.extract_time_range(text, moment, settings.zone if zone is None else zone, week_start=settings.week_start)
    out.value(found, () if found is None else show_as.range_lines(found, out.width))
    if found is None and not out.as_json:
        out.note("no time is named")


# -- what is asked


def _result(file: str) -> Json:
    where = "stdin" if file == "-" else file
    try:
        return json.loads(read_text(file))
    except ValueError as error:
        raise InvalidInput(f"{where} is not JSON ({error}); write text as '\"text\"'") from None


def _fields(treated: Treated) -> AfterFields:
    fields: AfterFields = {}
    if treated.mode is not None:
        fields["mode"] = chosen(treated.mode, SAVE_MODES, "--mode")
    if treated.accept:
        if treated.mode not in (None, "suggest"):
            raise InvalidInput("`--accept` saves what is suggested; leave `--mode` out")
        fields["mode"] = "suggest"
    if treated.allow:
        fields["allow"] = treated.allow
    if treated.deny:
        fields["deny"] = treated.deny
    if treated.window is not None:
        start, end = (check_instant(instant(moment, "--window"), "--window") for moment in treated.window)
        fields["window"] = (start, end)
    return fields
