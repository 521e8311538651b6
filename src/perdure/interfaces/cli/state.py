"""`perdure state …`: key-value state of a user."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from perdure.domain.errors import InvalidInput, NotFound
from perdure.domain.text import Json
from perdure.interfaces.cli.completing import state_keys
from perdure.interfaces.cli.output import safe

app = typer.Typer(no_args_is_help=True, help="Key-value state: any JSON, every revision kept.", rich_markup_mode=None)
Key = Annotated[str, typer.Argument(help="The key.", autocompletion=state_keys)]


@app.command("list")
def list_keys(
    ctx: typer.Context,
    pattern: Annotated[str, typer.Argument(help="A case-exact glob such as kudos*.")] = "*",
    preview: Annotated[bool, typer.Option("--preview", help="Show the first 100 characters of each value.")] = False,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 1_000,
) -> None:
    """List keys with time and size; no value is loaded.

    Example: perdure state list 'kudos*' --preview --user ana
    """
    with ctx.obj.memory() as memory:
        found = memory.state.list(pattern, limit=limit)
    columns: dict[str, list[object]] = {
        "key": [one.key for one in found],
        "revision": [one.revision for one in found],
        "updated": [one.updated_at.isoformat(timespec="seconds") for one in found],
        "bytes": [one.size_bytes for one in found],
    }
    if preview:
        columns["preview"] = [one.preview for one in found]
    ctx.obj.out.table(found, columns, empty="nothing is kept here yet")


@app.command()
def get(ctx: typer.Context, key: Key, revision: Annotated[int | None, typer.Option(help="Of this revision.")] = None) -> None:
    """Print a value as JSON. Exit code 3 if there is none.

    Example: perdure state get units --user ana
    """
    with ctx.obj.memory() as memory:
        found = memory.state.find(key, revision=revision)
    if not found.found:
        raise NotFound(f"nothing is kept under {key!r:.80}; `perdure state list` shows what is")
    ctx.obj.out.value(found, [safe(json.dumps(found.value, ensure_ascii=False, indent=2))])


@app.command("set")
def set_value(
    ctx: typer.Context,
    key: Key,
    value: Annotated[str, typer.Argument(help="JSON, or - to read it from stdin, or @FILE.")],
    expected: Annotated[int | None, typer.Option(help="Only if the key stands at this revision; 0: if it is new.")] = None,
    expires_in: Annotated[float | None, typer.Option(help="Forget it after so many seconds.")] = None,
    request: Annotated[str | None, typer.Option(help="An id of yours; repeating it saves nothing twice.")] = None,
) -> None:
    """Keep a value.

    Example: perdure state set --user ana units '"metric"'
    """
    with ctx.obj.memory() as memory:
        number = memory.state.save(key, read_json(value), expected=expected, expires_in_s=expires_in, request=request)
    ctx.obj.out.value({"key": key, "revision": number}, [f"{safe(key)} is at revision {number}"])


@app.command()
def delete(
    ctx: typer.Context,
    key: Key,
    expected: Annotated[int | None, typer.Option(help="Only if the key stands at this revision.")] = None,
) -> None:
    """Take a value away; its history stays.

    Example: perdure state delete units --user ana
    """
    with ctx.obj.memory() as memory:
        deleted = memory.state.delete(key, expected=expected)
    ctx.obj.out.value({"key": key, "deleted": deleted}, ["deleted" if deleted else "there was nothing to delete"])


@app.command()
def search(
    ctx: typer.Context,
    pattern: Annotated[str, typer.Argument(help="A case-exact glob such as *_givers.")],
    limit: Annotated[int, typer.Option(help="How many at most.")] = 100,
) -> None:
    """Print keys and values that match.

    Example: perdure state search '*_givers' --user ana
    """
    with ctx.obj.memory() as memory:
        found = memory.state.search(pattern, limit=limit)
    more = ["there are more; raise --limit"] if found.truncated else []
    lines = [f"[bold]{safe(key)}[/bold] {safe(json.dumps(value, ensure_ascii=False))}" for key, value in found.results.items()]
    ctx.obj.out.value(found, [*lines, *more])


@app.command()
def history(
    ctx: typer.Context,
    key: Key,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 20,
    before: Annotated[int | None, typer.Option(help="Before this revision.")] = None,
) -> None:
    """Show the revisions of a key, newest first.

    Example: perdure state history units --user ana
    """
    with ctx.obj.memory() as memory:
        found = memory.state.history(key, limit=limit, before=before)
    ctx.obj.out.table(
        found,
        {
            "revision": [one.number for one in found],
            "saved": [one.saved_at.isoformat(timespec="seconds") for one in found],
            "value": ["(deleted)" if one.body is None else one.body[:100] for one in found],
        },
        empty=f"nothing was ever kept under {safe(key)}",
    )


@app.command()
def restore(ctx: typer.Context, key: Key, revision: Annotated[int, typer.Argument(help="Which one.")]) -> None:
    """Make a past value the current one.

    Example: perdure state restore units 1 --user ana
    """
    with ctx.obj.memory() as memory:
        number = memory.state.restore(key, revision)
    ctx.obj.out.value({"key": key, "revision": number}, [f"{safe(key)} is at revision {number}, as it was at {revision}"])


@app.command()
def clear(
    ctx: typer.Context, yes: Annotated[bool, typer.Option("--yes", help="Really delete every key of this user.")] = False
) -> None:
    """Delete every key of a user; each can be restored from its history.

    Example: perdure state clear --yes --user ana
    """
    with ctx.obj.memory() as memory:
        if not yes:
            raise InvalidInput(f"this would delete {len(memory.state.keys())} keys; add `--yes` to do it")
        count = memory.state.clear()
    ctx.obj.out.value({"deleted": count}, [f"{count} keys deleted"])


def read_json(text: str) -> Json:
    """JSON given as an argument, on stdin (`-`) or in a file (`@FILE`)."""
    source = "the value"
    if text == "-":
        text, source = sys.stdin.read(), "stdin"
    elif text.startswith("@"):
        path = Path(text[1:])
        if not path.is_file():
            raise NotFound(f"{path} does not exist; check the name")
        text, source = path.read_text(encoding="utf-8"), str(path)
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"{source} is not JSON ({error}); quote text as '\"text\"'") from None
