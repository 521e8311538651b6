"""`perdure state …`: key-value state of a user."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from perdure.domain.errors import InvalidInput, NotFound
from perdure.domain.state import KeyInfo, Revision, StateMatches, StateValue
from perdure.handles.registry.shapes import plain
from perdure.handles.state import State
from perdure.interfaces.cli.completion import state_keys
from perdure.interfaces.cli.derived import JSON, Form, Group, line
from perdure.interfaces.cli.output import Columns, Output, safe

app = Group("state", "Values under keys, with all their revisions.")
KEYED = Form(complete={"key": state_keys})


@app.derived((State, "list"), example="'kudos*' --preview")
def list_(
    out: Output,
    found: Sequence[KeyInfo],
    *,
    preview: Annotated[bool, typer.Option("--preview", help="Show the first 100 characters of each value.")] = False,
) -> None:
    columns: Columns = {"key": "key", "revision": "revision", "updated": "updated_at", "bytes": "size_bytes"}
    out.table(found, {**columns, "preview": "preview"} if preview else columns, empty="no values yet")


@app.derived((State, "find"), form=KEYED)
def get(out: Output, found: StateValue, given: Mapping[str, Any]) -> None:
    """Print a value as JSON. Exit code 3 if there is none."""
    if not found.found:
        raise NotFound(f"there is no value under {given['key']!r:.80}; list the keys with `perdure state list`")
    out.value(found, [safe(json.dumps(plain(found.value), ensure_ascii=False, indent=2))])


app.offer(
    (State, "save"),
    line(lambda number, given: f"{safe(given['key'])} is at revision {number}", key="key", revision=""),
    name="set",
    form=Form(names={"expires_in_s": "expires_in"}, read={"value": JSON}, complete=KEYED.complete),
)
app.offer(
    (State, "append"),
    line(lambda number, given: f"{safe(given['key'])} is at revision {number}", key="key", revision=""),
    form=Form(read={"items": JSON}, complete=KEYED.complete),
)
app.offer(
    (State, "delete"),
    line(lambda gone, _: "deleted" if gone else "there was nothing to delete", key="key", deleted=""),
    form=KEYED,
)


@app.derived((State, "search"))
def search(out: Output, found: StateMatches) -> None:
    more = ["there are more; raise --limit"] if found.truncated else []
    lines = [f"[bold]{safe(key)}[/bold] {safe(json.dumps(value, ensure_ascii=False))}" for key, value in found.results.items()]
    out.value(found, [*lines, *more])


@app.derived((State, "history"), form=KEYED)
def history(out: Output, found: Sequence[Revision], given: Mapping[str, Any]) -> None:
    columns: Columns = {
        "revision": "number",
        "saved": "saved_at",
        "value": lambda one: "(deleted)" if one.body is None else one.body[:100],
    }
    out.table(found, columns, empty=f"there was never a value under {safe(given['key'])}")


app.offer(
    (State, "restore"),
    line(
        lambda number, given: f"{safe(given['key'])} is at revision {number}, as it was at {given['revision']}",
        key="key",
        revision="",
    ),
    form=KEYED,
)


@app.command()
def clear(
    ctx: typer.Context, yes: Annotated[bool, typer.Option("--yes", help="Really delete every key of this user.")] = False
) -> None:
    """Delete every key of a user. Each can be restored from its history.

    Example: perdure state clear --yes --user ana
    """
    with ctx.obj.memory() as memory:
        if not yes:
            raise InvalidInput(f"this would delete {len(memory.state.keys())} keys; add `--yes` to do it")
        count = memory.state.clear()
    ctx.obj.out.value({"deleted": count}, [f"{count} keys deleted"])
