"""`perdure memory …`: what is known of a user's world."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.text import Text

from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge import FACT_TYPES, MEMORY_TYPES
from perdure.handles.knowledge import ListFields, RememberFields
from perdure.interfaces.cli import knowledge_lines as show_as
from perdure.interfaces.cli.asking import chosen, instant, taking
from perdure.interfaces.cli.output import Output
from perdure.interfaces.cli.rendering import one_line
from perdure.services.extracting import Learned
from perdure.services.knowledge import Recalled

app = typer.Typer(no_args_is_help=True, help="What is known: memories, their statements, their history.", rich_markup_mode=None)
Key = Annotated[str, typer.Argument(help="Its key, as `perdure memory list` shows it.")]
Limit = Annotated[int, typer.Option(help="How many at most.")]


@dataclass(frozen=True, slots=True)
class NewMemory:
    """What `memory add` may be told."""

    type: Annotated[str, typer.Option(help=f"{', '.join(MEMORY_TYPES)}.")] = "PROFILE"
    fact_type: Annotated[str, typer.Option(help=f"{', '.join(FACT_TYPES)}.")] = "fact"
    entity: Annotated[list[str] | None, typer.Option(help="Whom or what it is about: person:John Doe. Repeatable.")] = None
    subject: Annotated[str | None, typer.Option(help="Whose attribute it is; by default the user's.")] = None
    attribute: Annotated[str | None, typer.Option(help="What of the subject it tells: lives_in, works_at, name, …")] = None
    value: Annotated[str | None, typer.Option(help="The value of the attribute.")] = None
    importance: Annotated[int, typer.Option(help="0 to 3.")] = 1
    confidence: Annotated[float, typer.Option(help="0 to 1.")] = 1.0
    valid_from: Annotated[str | None, typer.Option(help="Since when it is so, ISO 8601 with a zone.")] = None
    ended: Annotated[bool, typer.Option("--ended", help="It is so no longer.")] = False
    corrects: Annotated[bool, typer.Option("--corrects", help="What was known was wrong, and never so.")] = False
    pin: Annotated[bool, typer.Option("--pin", help="Keep it in every prompt.")] = False
    visible_to: Annotated[str | None, typer.Option(help="Only this agent may see it.")] = None
    source: Annotated[str, typer.Option(help="Where it comes from.")] = "user"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which memories `memory list` shows."""

    type: Annotated[str | None, typer.Option(help=f"Only {', '.join(MEMORY_TYPES)}.")] = None
    entity: Annotated[str | None, typer.Option(help="Only about this entity: person:john_doe.")] = None
    pinned: Annotated[bool | None, typer.Option("--pinned/--not-pinned", help="Only those that are, or are not.")] = None
    archived: Annotated[bool, typer.Option("--archived", help="Also those that are put away.")] = False
    as_of: Annotated[str | None, typer.Option(help="As it was in the world then, ISO 8601 with a zone.")] = None
    known_at: Annotated[str | None, typer.Option(help="As far as was known then, ISO 8601 with a zone.")] = None
    limit: Limit = 100


@app.command()
@taking(NewMemory)
def add(
    ctx: typer.Context,
    content: Annotated[str, typer.Argument(help="What is so, in few words, or - to read it from stdin.")],
    given: NewMemory,
) -> None:
    """Remember a statement. The same again counts a mention; a new value of a single-valued attribute closes the old one.

    Example: perdure memory add "Lives in Austin" --attribute lives_in --value Austin --entity place:Austin --user ana
    """
    out: Output = ctx.obj.out
    text = sys.stdin.read().strip() if content == "-" else content
    fields: RememberFields = {
        "fact_type": chosen(given.fact_type, FACT_TYPES, "--fact-type"),
        "entities": given.entity or (),
        "subject": given.subject,
        "attribute": given.attribute,
        "value": given.value,
        "importance": given.importance,
        "confidence": given.confidence,
        "valid_from": None if given.valid_from is None else instant(given.valid_from, "--valid-from"),
        "ended": given.ended,
        "corrects": given.corrects,
        "pinned": given.pin,
        "visible_to": given.visible_to,
        "source": given.source,
    }
    with ctx.obj.memory() as memory:
        outcome = memory.remember(text, chosen(given.type, MEMORY_TYPES, "--type"), **fields)
    out.value(outcome, show_as.learned_lines(Learned((outcome,)), out.width))
    if not out.as_json and outcome.statement is not None:
        out.note(f"in memory {one_line(outcome.statement.memory)}")
    if outcome.verdict == "refused":
        raise typer.Exit(2)  # as for any other input that is not taken


@app.command("list")
@taking(Wanted)
def list_memories(ctx: typer.Context, wanted: Wanted) -> None:
    """List what is current, the newest change first; --as-of and --known-at look back.

    Example: perdure memory list --entity person:john_doe --user ana
    """
    which: ListFields = {
        "entity": wanted.entity,
        "pinned": wanted.pinned,
        "archived": wanted.archived,
        "as_of": None if wanted.as_of is None else instant(wanted.as_of, "--as-of"),
        "known_at": None if wanted.known_at is None else instant(wanted.known_at, "--known-at"),
        "limit": wanted.limit,
    }
    kind = None if wanted.type is None else chosen(wanted.type, MEMORY_TYPES, "--type")
    with ctx.obj.memory() as memory:
        found = memory.memories.list(kind, **which)
    _entries(ctx.obj.out, found, empty="nothing is known here yet")


@app.command()
def show(ctx: typer.Context, key: Key) -> None:
    """Show a memory: what it states now, how that is known, and where it was said.

    Example: perdure memory show "people|person|john_doe|relationship" --user ana
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        found = memory.memories.get(key)
    out.value(found, show_as.memory_whole(found, out.width))


@app.command()
def history(ctx: typer.Context, key: Key) -> None:
    """Show every statement of a memory, past ones too, and what took their place, oldest first.

    Example: perdure memory history "profile|place|austin|fact" --user ana
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        found = memory.memories.history(key)
    out.value(list(found), (line for one in found for line in show_as.statement_entry(one, out.width)))


@app.command()
def changes(ctx: typer.Context, key: Key, limit: Limit = 50) -> None:
    """Show what was done to a memory and its statements, by whom and why, the newest first.

    Example: perdure memory changes "profile|place|austin|fact" --user ana
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        found = memory.memories.changes(key, limit)
    out.entries(found, (line for one in found for line in show_as.change(one, out.width)), empty="nothing was done to it")


@app.command()
def foundation(ctx: typer.Context) -> None:
    """Show the pinned memories that belong into every prompt, the oldest first.

    Example: perdure memory foundation --user ana
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        found, more = memory.memories.foundation()
    if out.as_json:
        out.value({"memories": list(found), "more": more})
        return
    _entries(out, found, empty="nothing is pinned")
    if more:
        out.note(f"{more} more are pinned, and too many to be in every prompt")


@app.command()
def pin(ctx: typer.Context, key: Key) -> None:
    """Keep a memory in every prompt; its importance becomes 3, and no curator touches it.

    Example: perdure memory pin "profile|place|austin|fact" --user ana
    """
    with ctx.obj.memory() as memory:
        _changed(ctx.obj.out, memory.memories.pin(key), "is pinned")


@app.command()
def unpin(ctx: typer.Context, key: Key) -> None:
    """No longer keep a memory in every prompt; its importance stays.

    Example: perdure memory unpin "profile|place|austin|fact" --user ana
    """
    with ctx.obj.memory() as memory:
        _changed(ctx.obj.out, memory.memories.unpin(key), "is not pinned any more")


@app.command()
def archive(ctx: typer.Context, key: Key) -> None:
    """Put a memory away: it is not listed any more, and nothing is lost.

    Example: perdure memory archive "profile|place|austin|fact" --user ana
    """
    with ctx.obj.memory() as memory:
        _changed(ctx.obj.out, memory.memories.archive(key), "is archived")


@app.command()
def restore(ctx: typer.Context, key: Key) -> None:
    """Show an archived memory again.

    Example: perdure memory restore "profile|place|austin|fact" --user ana
    """
    with ctx.obj.memory() as memory:
        _changed(ctx.obj.out, memory.memories.restore(key), "is active")


@app.command()
def edit(
    ctx: typer.Context,
    key: Key,
    importance: Annotated[int | None, typer.Option(help="0 to 3; that of a pinned one stays 3.")] = None,
    label: Annotated[str | None, typer.Option(help="The name of what it is about.")] = None,
) -> None:
    """Change what is said about a memory as a whole. What it states is corrected by `memory add --corrects`.

    Example: perdure memory edit "profile|place|austin|fact" --importance 2 --user ana
    """
    if importance is None and label is None:
        raise InvalidInput("nothing to change; give `--importance` or `--label`")
    with ctx.obj.memory() as memory:
        found = memory.memories.edit(key, importance=importance, label=label)
    _changed(ctx.obj.out, found, f"has importance {found.memory.importance}")


@app.command()
def rejections(ctx: typer.Context, limit: Limit = 20) -> None:
    """List proposals that were refused, each with its reason, the newest first.

    Example: perdure memory rejections --user ana
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        found = memory.memories.rejections(limit)
    lines = (line for one in found for line in show_as.rejection_entry(one, out.width))
    out.entries(found, lines, empty="nothing was refused")


def _entries(out: Output, found: list[Recalled] | tuple[Recalled, ...], *, empty: str) -> None:
    lines = (line for one in found for line in show_as.memory_entry(one, out.width))
    out.entries(list(found), lines, empty=empty)


def _changed(out: Output, found: Recalled, what: str) -> None:
    out.value(found, [Text(f"{one_line(found.memory.record_key)} {what}")])
