"""`perdure recall|context|reindex`: finding again what is remembered, and giving it to an agent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from perdure.domain.context import Context
from perdure.domain.errors import InvalidInput
from perdure.domain.recall import ENTRY_KINDS
from perdure.domain.times import check_instant
from perdure.handles.recall import RecallFields
from perdure.interfaces.cli import recall_lines as show_as
from perdure.interfaces.cli.asking import chosen, instant, taking
from perdure.interfaces.cli.output import Output, safe, visible
from perdure.interfaces.cli.rendering import one_line


@dataclass(frozen=True, slots=True)
class Wanted:
    """What `recall` may be told besides the question."""

    kind: Annotated[list[str] | None, typer.Option(help=f"Only {', '.join(ENTRY_KINDS)}. Repeatable.")] = None
    since: Annotated[str | None, typer.Option(help="Only what was said, or speaks of a time, from then on.")] = None
    until: Annotated[str | None, typer.Option(help="The same before then; by default before now.")] = None
    entity: Annotated[list[str] | None, typer.Option(help="Only what names it: person:John Doe. Repeatable.")] = None
    session: Annotated[list[str] | None, typer.Option(help="Only what was said in this session. Repeatable.")] = None
    as_of: Annotated[str | None, typer.Option(help="What was so then, ISO 8601 with a zone.")] = None
    known_at: Annotated[str | None, typer.Option(help="As far as was known then, ISO 8601 with a zone.")] = None
    limit: Annotated[int, typer.Option(help="How many at most.")] = 10
    budget: Annotated[int | None, typer.Option(help="At most so many tokens in all.")] = None
    neighbours: Annotated[int, typer.Option(help="Also so many messages on either side of a found one.")] = 0
    explain: Annotated[bool, typer.Option("--explain", help="How the question was read, and why each hit is there.")] = False
    full: Annotated[bool, typer.Option("--full", help="Cut nothing.")] = False


@taking(Wanted)
def recall(ctx: typer.Context, question: Annotated[str, typer.Argument(help="What is sought.")], wanted: Wanted) -> None:
    """Find what is remembered that answers a question, best first, and say what the answer does not cover.

    Example: perdure recall "Where does Maria live?" --kind message --kind memory --explain --user ana
    """
    out: Output = ctx.obj.out
    fields = _fields(wanted)
    with ctx.obj.memory() as memory:
        found = memory.recall(question, **fields)
    show = show_as.explained if wanted.explain else show_as.table
    out.value(found, show(found, out.width, full=wanted.full))
    if out.as_json:
        return
    if not found.hits:
        out.note("nothing that is remembered answers this")
    missing = found.uncovered
    for line in missing.lines():
        out.note(safe(one_line(f"not covered: {line}")))
    if missing.unindexed or missing.waiting:
        out.note("the index lags behind; `perdure worker --once` brings it up to date")


def context(
    ctx: typer.Context,
    goal: Annotated[str | None, typer.Argument(help="A question, or what is to be done; what fits it is looked up.")] = None,
    budget: Annotated[int | None, typer.Option(help="At most so many tokens; by default `history_tokens_max`.")] = None,
    messages: Annotated[bool, typer.Option("--messages", help="As messages for a chat model, in JSON.")] = False,
) -> None:
    """Print what the agent should be given now: what is remembered, for a goal if there is one, and the conversation.

    Like a request of the agent, this ends a session that was silent for too long, and folds what is due.

    Example: perdure context "Plan a weekend with Maria" --budget 2000 --user ana
    """
    with ctx.obj.memory() as memory:
        found = memory.context(goal, budget_tokens=budget)
    tell_context(ctx.obj.out, found, as_chat=messages)


def reindex(
    ctx: typer.Context,
    everybody: Annotated[bool, typer.Option("--all", help="Every user of the store.")] = False,
) -> None:
    """Make the search index anew, while the old one answers: after another embedder was chosen, or if it is damaged.

    Example: perdure reindex --user ana
    """
    out: Output = ctx.obj.out
    for name, value in (("--user", ctx.obj.user), ("--space", ctx.obj.space)):
        if everybody and value is not None:
            raise InvalidInput(f"`--all` and `{name}` = {value!r:.80} are both given; leave one of them out")
    user = None if everybody else ctx.obj.named_user()
    with ctx.obj.engine() as engine, out.progress("indexing") as progress:
        if user is None:
            done = dict(engine.reindex(progress))
        else:
            memory = engine.memory(user, space=ctx.obj.space)
            done = {memory.scope.owner: memory.reindex(progress)}
    total = sum(done.values())
    users = [{"space": owner.space, "user": owner.user, "entries": count} for owner, count in done.items()]
    lines = (Text(one_line(f"{owner.space}/{owner.user}: {count:,} entries")) for owner, count in done.items())
    out.value({"users": users, "entries": total}, lines)
    if everybody and not out.as_json:
        out.note(f"{total:,} entries of {len(done):,} users")


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


# -- what is asked


def _fields(wanted: Wanted) -> RecallFields:
    fields: RecallFields = {"limit": wanted.limit, "neighbours": wanted.neighbours, "explain": wanted.explain}
    if wanted.kind:
        fields["kinds"] = [chosen(kind, ENTRY_KINDS, "--kind") for kind in wanted.kind]
    if wanted.since is not None or wanted.until is not None:
        fields["time_range"] = _time_range(wanted.since, wanted.until)
    if wanted.as_of is not None:
        fields["as_of"] = _moment(wanted.as_of, "--as-of")
    if wanted.known_at is not None:
        fields["known_at"] = _moment(wanted.known_at, "--known-at")
    if wanted.budget is not None:
        fields["budget_tokens"] = wanted.budget
    return {**fields, "entities": wanted.entity or (), "sessions": wanted.session or ()}


def _moment(text: str, name: str) -> datetime:
    return check_instant(instant(text, name), name)


def _time_range(since: str | None, until: str | None) -> tuple[datetime, datetime]:
    """From one moment to the other: by default from the first there is, and until now."""
    start = datetime.min.replace(tzinfo=UTC) if since is None else _moment(since, "--since")
    end = datetime.now(UTC) if until is None else _moment(until, "--until")
    if start >= end:
        raise InvalidInput(f"`--until` = {end.isoformat()} is not after `--since` = {start.isoformat()}; give a later one")
    return start, end
