"""`perdure entity …`: the people, places, organisations and projects that memories are about."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from perdure.domain.knowledge import ENTITY_TYPES
from perdure.interfaces.cli import knowledge_lines as show_as
from perdure.interfaces.cli.asking import chosen
from perdure.interfaces.cli.output import Output
from perdure.interfaces.cli.rendering import one_line
from perdure.interfaces.shapes import plain

app = typer.Typer(no_args_is_help=True, help="People, places, organisations, projects, and their names.", rich_markup_mode=None)
Ref = Annotated[str, typer.Argument(help="A reference or another of its names: person:john_doe, person:John Doe.")]
Limit = Annotated[int, typer.Option(help="How many at most.")]


@app.command("list")
def list_entities(
    ctx: typer.Context,
    type: Annotated[str | None, typer.Option(help=f"Only {', '.join(ENTITY_TYPES)}.")] = None,
    limit: Limit = 100,
) -> None:
    """List entities by reference.

    Example: perdure entity list --type person --user ana
    """
    kind = None if type is None else chosen(type, ENTITY_TYPES, "--type")
    with ctx.obj.memory() as memory:
        found = memory.entities.list(kind, limit=limit)
    lines = (line for one in found for line in show_as.entity_entry(one))
    ctx.obj.out.entries(found, lines, empty="nobody and nothing is known here yet")


@app.command()
def show(ctx: typer.Context, ref: Ref, limit: Limit = 20) -> None:
    """Show an entity: its names, whom it was seen beside, and what is known of it.

    Example: perdure entity show person:john_doe --user ana
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        entity = memory.entities.get(ref)
        known = memory.memories.list(entity=entity.ref, limit=limit)
    out.value({**plain(entity), "memories": known}, show_as.entity_whole(entity, known, out.width))


@app.command()
def alias(ctx: typer.Context, ref: Ref, name: Annotated[str, typer.Argument(help="What else it is called.")]) -> None:
    """Let another name mean this entity.

    Example: perdure entity alias person:john_doe Johnny --user ana
    """
    with ctx.obj.memory() as memory:
        entity = memory.entities.alias(ref, name)
    ctx.obj.out.value(entity, show_as.entity_entry(entity))


@app.command()
def merge(ctx: typer.Context, ref: Ref, into: Annotated[str, typer.Argument(help="The one that stays.")]) -> None:
    """Make two entities one: everything about the first becomes about the second.

    Two that were named side by side stay two. `perdure undo` takes a merge back.

    Example: perdure entity merge person:jon_doe person:john_doe --user ana
    """
    with ctx.obj.memory() as memory:
        action = memory.entities.merge(ref, into)
        entity = memory.entities.get(into)
    told = Text(f"{one_line(ref)} is {one_line(entity.ref)} from now on; perdure undo {action} takes it back")
    ctx.obj.out.value({"merged": ref, "into": entity.ref, "action": action}, [told])


@app.command()
def links(ctx: typer.Context, limit: Limit = 50) -> None:
    """List which entities are named together in what is known, the strongest link first.

    Example: perdure entity links --user ana
    """
    with ctx.obj.memory() as memory:
        found = memory.entities.links(limit)
    columns = {
        "one": [one.one for one in found],
        "other": [one.other for one in found],
        "statements": [one.statements for one in found],
    }
    ctx.obj.out.table(found, columns, empty="nothing is named together yet")


@app.command()
def suggestions(ctx: typer.Context, limit: Limit = 20) -> None:
    """List what a person should decide: names that may mean one, statements that may clash.

    Example: perdure entity suggestions --user ana
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        found = memory.entities.suggestions(limit)
    lines = (line for one in found for line in show_as.suggestion_entry(one, out.width))
    out.entries(found, lines, empty="nothing to decide")


@app.command()
def dismiss(
    ctx: typer.Context, suggestion: Annotated[str, typer.Argument(help="Its id, as `perdure entity suggestions` shows it.")]
) -> None:
    """Do not make this suggestion again.

    Example: perdure entity dismiss "merge|person:jon_doe|person:john_doe" --user ana
    """
    with ctx.obj.memory() as memory:
        found = memory.entities.dismiss(suggestion)
    ctx.obj.out.value(found, [Text(f"{one_line(found.id)} is not suggested again")])
