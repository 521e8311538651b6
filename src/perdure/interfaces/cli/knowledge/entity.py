"""`perdure entity …`: the people, places, organisations and projects that memories are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.text import Text

from perdure.handles.knowledge import EntityHandle
from perdure.handles.registry.shapes import plain
from perdure.interfaces.cli.derived import Form, Group, each, line, single, table
from perdure.interfaces.cli.lines import knowledge as show_as
from perdure.interfaces.cli.lines.conversation import one_line
from perdure.interfaces.cli.output import Output

app = Group("entity", "People, places, organisations, projects, and their names.")
Ref = Annotated[str, typer.Argument(help="A reference or another of its names: person:john_doe, person:John Doe.")]
app.offer((EntityHandle, "list"), each(show_as.entity_entry, "nobody and nothing is known here yet"), example="--type person")


@app.command()
def show(ctx: typer.Context, ref: Ref, limit: Annotated[int, typer.Option(help="How many memories at most.")] = 20) -> None:
    """Show an entity: its names, its links and its memories.

    Example: perdure entity show person:john_doe --user ana
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        entity = memory.entities.get(ref)
        known = memory.memories.list(entity=entity.ref, limit=limit)
    out.value({**plain(entity), "memories": known}, show_as.entity_whole(entity, known, out.width))


app.offer((EntityHandle, "alias"), single(show_as.entity_entry), form=Form(names={"label": "name"}))


@app.derived((EntityHandle, "merge"))
def merge(out: Output, action: int, given: Mapping[str, Any]) -> None:
    ref, into = given["ref"], given["into"]
    told = Text(f"{one_line(ref)} is {one_line(into)} from now on; perdure undo {action} takes it back")
    out.value({"merged": ref, "into": into, "action": action}, [told])


app.offer(
    (EntityHandle, "links"),
    table({"one": "one", "other": "other", "statements": "statements"}, "nothing is named together yet"),
)
app.offer((EntityHandle, "suggestions"), each(show_as.suggestion_entry, "nothing to decide"))
app.offer((EntityHandle, "dismiss"), line(lambda found, _: Text(f"{one_line(found.id)} is not suggested again")))
