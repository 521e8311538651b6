"""What the overseer decided, as lines for a terminal. What was stored is data: it is shown, never obeyed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from perdure import TimeRange
from perdure.domain.oversight import Choice, Decision, Injection, KeptResult
from perdure.domain.text.rules import Json
from perdure.interfaces.cli.lines.conversation import INDENT, heading, local, one_line, wrapped
from perdure.interfaces.cli.output import visible

NAMES_SHOWN = 5


def text_of(found: Injection) -> Iterator[Text]:
    """What the agent is given, as it stands."""
    if found.text:
        yield Text(visible(found.text))


def summed_up(found: Injection) -> Iterator[str]:
    """What it costs, by block, and what is degraded, late or left out."""
    if found.nothing:
        yield "nothing relevant found; the goal is passed on unchanged"
    else:
        blocks = ", ".join(f"{block.kind} {block.tokens:,}" for block in found.blocks)
        yield f"{found.tokens:,} of {found.budget_tokens:,} tokens: {blocks}"
    yield from (f"note: {note}" for note in found.notes)


def explained(found: Injection, width: int) -> Iterator[Text]:
    """The blocks, then everything that was looked at: what is given, what is not, and why."""
    for block in found.blocks:
        keeps = "for this goal" if block.volatile else "changes only with its content"
        yield heading(block.title, f"{block.tokens:,} tokens; {keeps}; from {block.source}")
        yield from wrapped(block.text, width)
    if found.time_range is not None:
        span = found.time_range
        yield heading("time", f"{span.start.isoformat()} to {span.end.isoformat()}")
    for title, wanted in (("given", True), ("left out", False)):
        yield from _choices(title, [one for one in found.choices if one.included is wanted], width)
    asked = f"{found.model_calls} calls of a model: {found.outcome}" if found.model_calls else "by rules"
    yield heading("decided", f"{asked}; {found.took_ms:.0f} ms; decision {found.id}")


def _choices(title: str, choices: Sequence[Choice], width: int) -> Iterator[Text]:
    yield heading(title, f"{len(choices)} things" if choices else "nothing")
    for one in choices:
        cost = f"  {one.tokens:,} tokens" if one.tokens else ""
        yield Text.assemble(f"{INDENT}{one.kind}  ", (one_line(one.id), "bold"), (cost, "dim"))
        yield from wrapped(one.reason, width, "dim", indent=INDENT * 2)


def kept_lines(kept: KeptResult, width: int) -> Iterator[Text]:
    """What became of a result, and why."""
    kind = "series" if kept.series is not None else "state"
    where = "" if kept.key is None else f"  {kind} {one_line(kept.key)}"
    at = "" if kept.revision is None else f"  revision {kept.revision}"
    yield Text.assemble((kept.action, "bold"), where, (at, "dim"))
    yield from wrapped(kept.reason, width)
    offer = kept.series
    if offer is not None:
        ids = offer.id_field if offer.id_template is None else offer.id_template
        window = f"{offer.window.start.isoformat()} to {offer.window.end.isoformat()}"
        yield from wrapped(f"id {ids}, time {offer.time_field}, {offer.entries:,} entries from {window}", width, "dim")
    if kept.model_calls:
        yield Text(f"{INDENT}{kept.model_calls} calls of a model: {kept.outcome}", "dim")


def decision_entry(decision: Decision, width: int) -> Iterator[Text]:
    """A decision in a list. Its id stands first, so that it can be copied."""
    body = decision.body
    yield Text.assemble((one_line(decision.id), "bold"), f"  {decision.kind}", (f"  {local(decision.at)}", "dim"))
    if body.get("goal"):
        yield from wrapped(str(body["goal"]), width)
    if decision.kind == "before":
        yield from wrapped(f"gave {_names(body.get('included'))}", width, "dim")
        yield from wrapped(f"{body.get('tokens')} of {body.get('budget_tokens')} tokens, {_how(body)}", width, "dim")
    else:
        where = "" if body.get("key") is None else f" {body['key']}"
        yield from wrapped(f"{body.get('tool')}: {body.get('action')}{where}, {_how(body)}", width, "dim")
        yield from wrapped(str(body.get("reason", "")), width, "dim")


def _names(included: Json) -> str:
    names = [f"{one[0]} {one[1]}" for one in included] if isinstance(included, list) else []
    more = len(names) - NAMES_SHOWN
    return ", ".join([*names[:NAMES_SHOWN], *([f"and {more} more"] if more > 0 else [])]) or "nothing"


def _how(body: Mapping[str, Json]) -> str:
    calls = body.get("model_calls")
    return f"{calls} calls of a model: {body.get('outcome')}" if calls else "by rules"


def range_lines(found: TimeRange, width: int) -> Iterator[Text]:
    """From when to when, and how that was read."""
    first, last = ("open" if end is None else end.isoformat() for end in (found.start, found.end))
    yield Text.assemble((first, "bold"), " to ", (last, "bold"))
    yield from wrapped(found.explanation, width)
