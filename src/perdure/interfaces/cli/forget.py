"""`perdure forget`: remove data for good. Before it does, it says what would go, as far as that can be told."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from perdure.domain.errors import InvalidInput, NotFound
from perdure.handles.memory import Memory
from perdure.interfaces.cli import knowledge_lines as show_as
from perdure.interfaces.cli.asking import ask
from perdure.interfaces.cli.output import Output, visible
from perdure.services.forgetting import Forgotten

PAGE = 1_000


def forget(
    ctx: typer.Context,
    entity: Annotated[str | None, typer.Option(help="A person, place, organisation or project: person:john_doe.")] = None,
    memory: Annotated[str | None, typer.Option(help="The memory with this key.")] = None,
    messages: Annotated[
        tuple[str, str] | None, typer.Option(help="A run of messages: the ids of the FIRST and the LAST.")
    ] = None,
    everything: Annotated[bool, typer.Option("--everything", help="All that is held of the user.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
) -> None:
    """Remove data for good, with all that was derived from it, and overwrite what it occupied. It cannot be undone.

    Name one thing. On a terminal it asks first; elsewhere and with --json it does nothing without --yes.

    Example: perdure forget --entity person:john_doe --dry-run --user ana
    """
    out: Output = ctx.obj.out
    named = [
        name for name, given in (("--entity", entity), ("--memory", memory), ("--messages", messages)) if given is not None
    ]
    named += ["--everything"] if everything else []
    if len(named) != 1:
        raise InvalidInput(f"`forget` was given {', '.join(named) or 'nothing'}; name exactly one thing")
    with ctx.obj.memory() as held:
        goes = _foretold(held, entity, memory, messages)
        if dry_run:
            out.value({"forgotten": False, **goes}, [Text(f"would go: {_told(goes)}")])
            return
        if not yes:
            ask(out, f"this forgets, for good: {_told(goes)}")
        done: Forgotten = held.forget(entity=entity, memory=memory, messages=messages, user=everything)
    out.value(done, show_as.forgotten_lines(done, out.width))


def _foretold(held: Memory, entity: str | None, memory: str | None, messages: tuple[str, str] | None) -> dict[str, object]:
    """What can be told beforehand of what would go. Where a name stands is only found while it is struck out."""
    if entity is not None:
        return _of_entity(held, entity)
    if memory is not None:
        return _of_memory(held, memory)
    if messages is not None:
        count = _count(held, *messages)
        return {"messages": count, "and": "what was learned from them alone, and the digests of their sessions"}
    limit = PAGE
    return {
        "sessions": len(held.conversation.list_sessions(limit=limit)),
        "memories": len(held.memories.list(archived=True, limit=limit)),
        "entities": len(held.entities.list(limit=limit)),
        "state_keys": len(held.state.keys()),
        "series": len(held.list_series(limit)),
        "and": f"all else that is held of the user, at every address and in files (counted up to {limit:,})",
    }


def _of_entity(held: Memory, ref: str) -> dict[str, object]:
    try:
        found = held.entities.get(ref)
    except NotFound:
        return {"entity": ref, "known": False}
    known = held.memories.list(entity=found.ref, archived=True, limit=PAGE)
    return {
        "entity": found.ref,
        "names": [found.label, *found.aliases],
        "memories": [one.memory.record_key for one in known],
        "and": "its names wherever they stand: in messages, digests, todos, the journal and files",
    }


def _of_memory(held: Memory, key: str) -> dict[str, object]:
    try:
        said = [one for one in held.memories.history(key) if one.memory == key]
    except NotFound:
        return {"memory": key, "known": False}
    sources = {one.message for statement in said for one in statement.evidence}
    rest = "the words of these messages that it came from, and the digests of their sessions"
    return {"memory": key, "statements": len(said), "messages": len(sources), "and": rest}


def _count(held: Memory, first: str, last: str) -> int:
    """How many messages there are from one to the other, ends included."""
    low, high = held.message(first), held.message(last)
    end = (high.session_number, high.seq)
    count, after = 1, low
    if (low.session_number, low.seq) > end:
        raise InvalidInput("the first message comes after the last; swap them")
    while page := held.messages(PAGE, after=after.id):
        inside = [one for one in page if (one.session_number, one.seq) <= end]
        count += len(inside)
        if len(inside) < len(page):
            break
        after = page[-1]
    return count


def _told(goes: dict[str, object]) -> str:
    parts = ["nothing is known of it"] if goes.get("known") is False else []
    for name, value in goes.items():
        if name == "known":
            continue
        if name == "and":
            parts.append(str(value))
        elif isinstance(value, list):
            parts.append(f"{name} {', '.join(map(str, value)) or 'none'}")
        else:
            parts.append(f"{value} {name.replace('_', ' ')}" if isinstance(value, int) else f"{name} {value}")
    return visible("; ".join(parts)).replace("\n", " ")
