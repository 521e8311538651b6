"""`perdure tool …`: the tools that a model may be given, as it would call them."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from perdure.interfaces.cli.asking import chosen
from perdure.interfaces.cli.output import Output, safe
from perdure.interfaces.cli.state import read_json

app = typer.Typer(no_args_is_help=True, help="The tools over state and series that a model may call.", rich_markup_mode=None)
STYLES = ("openai", "anthropic", "mcp")
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Without those that write.")]


@app.command("list")
def list_tools(
    ctx: typer.Context,
    style: Annotated[str, typer.Option(help=f"With --json, as an API takes them: {', '.join(STYLES)}.")] = "openai",
    read_only: ReadOnly = False,
) -> None:
    """List the tools; with --json, as definitions for the API of a model.

    Example: perdure tool list --style anthropic --json --user ana
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        tools = memory.tools.read_only() if read_only else memory.tools
        schemas, permissions = tools.schemas(chosen(style, STYLES, "--style")), tools.permissions()
    out.value(schemas, [f"{safe(name)}  {permission}" for name, permission in permissions.items()])


@app.command()
def call(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Which one, as `perdure tool list` shows it.")],
    params: Annotated[str, typer.Argument(help="A JSON object, - for stdin, or @FILE.")] = "{}",
    read_only: ReadOnly = False,
) -> None:
    """Call a tool as a model would, and print what it answers. Exit code 2 if that is a failure.

    Example: perdure tool call loadState '{"key": "units"}' --user ana
    """
    out: Output = ctx.obj.out
    given = read_json(params)
    with ctx.obj.memory() as memory:
        tools = memory.tools.read_only() if read_only else memory.tools
        answer = tools.call_tool(name, given)
    out.value(answer, [safe(json.dumps(answer, ensure_ascii=False, indent=2, default=str))])
    if not answer.get("success", True):
        raise typer.Exit(2)
