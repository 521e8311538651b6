"""`perdure instruction …`: lasting orders of the user to the agent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import typer
from rich.text import Text

from perdure.domain.instructions import Instruction
from perdure.interfaces.cli.output import Output
from perdure.interfaces.cli.rendering import local, one_line, wrapped

app = typer.Typer(no_args_is_help=True, help="What the user has told this agent to do from now on.", rich_markup_mode=None)


@app.command("list")
def list_instructions(
    ctx: typer.Context,
    withdrawn: Annotated[bool, typer.Option("--withdrawn", help="Also those that stand no longer.")] = False,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 100,
) -> None:
    """List standing instructions, the newest last.

    Example: perdure instruction list --withdrawn --user ana --agent coach
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        found = memory.instructions.list(withdrawn=withdrawn, limit=limit)
    out.entries(found, _lines(found, out.width), empty="no standing instructions")


@app.command()
def add(ctx: typer.Context, text: Annotated[str, typer.Argument(help="What the agent is to do from now on.")]) -> None:
    """Keep an instruction; the same words again change nothing.

    Example: perdure instruction add "Always answer in French" --user ana --agent coach
    """
    with ctx.obj.memory() as memory:
        _told(ctx.obj.out, memory.instructions.add(text))


@app.command()
def withdraw(
    ctx: typer.Context,
    instruction: Annotated[str, typer.Argument(metavar="ID", help="Its id, as `perdure instruction list` shows it.")],
) -> None:
    """An instruction stands no longer.

    Example: perdure instruction withdraw 0198c5f2-0000-7000-8000-000000000000 --user ana --agent coach
    """
    with ctx.obj.memory() as memory:
        _told(ctx.obj.out, memory.instructions.withdraw(instruction))


def _told(out: Output, instruction: Instruction) -> None:
    out.value(instruction, _lines([instruction], out.width))


def _lines(instructions: Iterable[Instruction], width: int) -> Iterable[Text]:
    return (line for one in instructions for line in _entry(one, width))


def _entry(one: Instruction, width: int) -> Iterator[Text]:
    """An instruction in a list. Its id stands first, so that it can be copied."""
    over = "" if one.ended_at is None else f" {local(one.ended_at)}: {one_line(one.reason or '')}"
    state = f"  {one.state}{over}  {one.source} {local(one.created_at)}"
    yield Text.assemble((one_line(one.id), "bold"), (state, "dim"))
    yield from wrapped(one.content, width)
