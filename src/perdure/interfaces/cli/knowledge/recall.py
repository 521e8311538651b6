"""`perdure recall|context`: finding again what is remembered, and giving it to an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.text import Text

from perdure.domain.context.context import Context
from perdure.domain.context.recall import Recall
from perdure.handles.memory import Memory
from perdure.interfaces.cli.derived import Form, derived
from perdure.interfaces.cli.lines import recall as show_as
from perdure.interfaces.cli.lines.conversation import one_line
from perdure.interfaces.cli.output import Output, safe, visible


@derived(
    (Memory, "recall"),
    example='perdure recall "Where does Maria live?" --kind message --kind memory --explain --user ana',
    form=Form(
        names={
            "query": "question",
            "kinds": "kind",
            "entities": "entity",
            "sessions": "session",
            "budget_tokens": "budget",
        }
    ),
)
def recall(
    out: Output,
    found: Recall,
    given: Mapping[str, Any],
    *,
    full: Annotated[bool, typer.Option("--full", help="Cut nothing.")] = False,
) -> None:
    """Search the memory, best first, and say what was not covered."""
    show = show_as.explained if given["explain"] else show_as.table
    out.value(found, show(found, out.width, full=full))
    if out.as_json:
        return
    if not found.hits:
        out.note("no results")
    missing = found.uncovered
    for line in missing.lines():
        out.note(safe(one_line(f"not covered: {line}")))
    if missing.unindexed or missing.waiting:
        out.note("the index lags behind; `perdure worker --once` brings it up to date")


@derived(
    (Memory, "context"),
    example='perdure context "Plan a weekend with Maria" --budget 2000 --user ana',
    form=Form(names={"budget_tokens": "budget"}),
)
def context(
    out: Output,
    found: Context,
    *,
    messages: Annotated[bool, typer.Option("--messages", help="As messages for a chat model, in JSON.")] = False,
) -> None:
    """Print the context for an agent: memories and conversation.

    Like a request of the agent, this ends a session that was silent for too long, and folds what is due.
    """
    tell_context(out, found, as_chat=messages)


def tell_context(out: Output, found: Context, *, as_chat: bool = False) -> None:
    """A context: as the text that the agent sees, as the messages of a chat, or with all that belongs to it as JSON."""
    if as_chat:
        Output(as_json=True).value(found.as_messages())
    else:
        out.value(found, [Text(visible(found.text))] if found.text else [])
    if not out.as_json:
        out.note(f"{found.tokens:,} of {found.budget_tokens:,} tokens")
        for title, words in (("over budget", found.dropped), ("note", found.notes)):
            for one in words:
                out.note(f"{title}: {safe(one)}")
