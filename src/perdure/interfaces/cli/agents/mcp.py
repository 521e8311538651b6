"""`perdure mcp`: the memory of one user as tools for an agent that speaks the Model Context Protocol."""

from __future__ import annotations

from typing import Annotated

import typer

import perdure
from perdure.app import asked_by
from perdure.domain.access import Asker
from perdure.interfaces import stdio


def mcp(
    ctx: typer.Context,
    tools: Annotated[
        str,
        typer.Option(
            help="Sets of tools, separated by commas: state, series, knowledge, todos, lessons, host, conversation, documents, "
            "overseer, upkeep; or default, or all."
        ),
    ] = "default",
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer no tool that writes.")] = False,
) -> None:
    """Serve MCP on stdin and stdout, for an agent that starts it. Jobs run meanwhile.

    Example: perdure mcp --user ana --tools knowledge,todos
    """
    stdio.check_installed()
    user = ctx.obj.named_user()
    with perdure.open(ctx.obj.url, background=True) as engine:
        engine = asked_by(engine, Asker("local", "mcp"))  # noqa: PLW2901 - the same engine
        memory = engine.memory(user, agent=ctx.obj.agent, channel=ctx.obj.channel, space=ctx.obj.space)
        stdio.serve(engine, memory, tools=tools, read_only=read_only)
