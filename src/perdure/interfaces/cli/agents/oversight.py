"""`perdure agent before|after`: what an agent is given for a goal, and what is kept of a tool's result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from perdure.domain.errors import InvalidInput
from perdure.domain.oversight import Injection, KeptResult
from perdure.domain.text.rules import Json
from perdure.handles.memory import Memory
from perdure.interfaces.cli.derived import Form, Reader, derived
from perdure.interfaces.cli.input import read_text
from perdure.interfaces.cli.lines import oversight as show_as
from perdure.interfaces.cli.lines.conversation import one_line
from perdure.interfaces.cli.output import Output, safe


@derived(
    (Memory, "before"),
    example='perdure agent before "Who from my kudos list was active recently?" --explain --user ana',
    form=Form(names={"budget_tokens": "budget", "deadline_s": "deadline"}),
)
def before(
    out: Output,
    found: Injection,
    *,
    explain: Annotated[bool, typer.Option("--explain", help="What was looked at, what of it is given, and why.")] = False,
) -> None:
    """Print what an agent should know before it works on a goal."""
    out.value(found, show_as.explained(found, out.width) if explain else show_as.text_of(found))
    if not out.as_json:
        for line in show_as.summed_up(found):
            out.note(safe(one_line(line)))


def _result(file: str) -> Json:
    where = "stdin" if file == "-" else file
    try:
        return json.loads(read_text(file))
    except ValueError as error:
        raise InvalidInput(f"{where} is not JSON ({error}); write text as '\"text\"'") from None


def _kept(memory: Memory, fields: Mapping[str, Any], *, accept: bool) -> KeptResult:
    """What becomes of a result; with `accept`, what is suggested is saved."""
    if not accept:
        return memory.after(**fields)
    if fields.get("mode") not in (None, "suggest"):
        raise InvalidInput("`--accept` saves what is suggested; leave `--mode` out")
    kept = memory.after(**{**fields, "mode": "suggest"})
    return memory.tools.accept(kept, fields["result"]) if kept.action == "suggested" else kept


@derived(
    (Memory, "after"),
    example='perdure agent after get_profile profile.json --goal "Plan my week" --mode suggest --user ana',
    form=Form(
        names={"result": "file"},
        options=("goal",),
        hidden=("deadline_s",),
        read={"result": Reader(_result, "JSON: a file, or - for stdin.")},
        defaults={"result": "-"},
    ),
    call=_kept,
)
def after(
    out: Output,
    kept: KeptResult,
    *,
    accept: Annotated[bool, typer.Option("--accept", help="Save what is suggested; exit code 2 if nothing is.")] = False,
) -> None:
    """Decide what to keep of a tool's result, and say why.

    It is kept as state, as entries of a series, or not at all.
    """
    out.value(kept, show_as.kept_lines(kept, out.width))
    if kept.action == "suggested" and not out.as_json:
        out.note("nothing is saved yet; the same with --accept saves it")
    if accept and not kept.saved and kept.action != "unchanged":
        raise typer.Exit(2)
