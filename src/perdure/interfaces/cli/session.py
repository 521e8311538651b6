"""`perdure session …`: conversations of a user, their working sets, and the layers over them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.text import Text

from perdure.domain.digests import DIGEST_KINDS, DigestKind
from perdure.domain.errors import InvalidInput, NotFound
from perdure.domain.messages import Message
from perdure.handles.memory import Memory
from perdure.interfaces.cli import rendering as show_as
from perdure.interfaces.cli import session_changes
from perdure.interfaces.cli.finding import SESSION_LAYERS, Which, as_kind, find_session, find_version, newest
from perdure.interfaces.cli.output import Output
from perdure.interfaces.cli.recall import tell_context
from perdure.interfaces.cli.rendering import Talk
from perdure.interfaces.shapes import plain

app = typer.Typer(
    no_args_is_help=True, help="Conversations: their working sets and the layers over them.", rich_markup_mode=None
)
Only = Annotated[str | None, typer.Argument(metavar="SESSION", help="Only this one; by default all of the address.")]
Full = Annotated[bool, typer.Option("--full", help="Cut nothing.")]

FOLLOW_PAGE = 100
POLL_S_MIN, POLL_S_MAX = 0.1, 3_600.0


# -- looking


@app.command("list")
def list_sessions(
    ctx: typer.Context,
    source: Annotated[str | None, typer.Option(help="Those on the channels of a source: discord for discord:42.")] = None,
    everywhere: Annotated[bool, typer.Option("--all", help="Those of this user at all addresses.")] = False,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 20,
) -> None:
    """List sessions: those of the address, the newest first; of all or of a source, the last active first.

    Example: perdure session list --user ana --all
    """
    user = ctx.obj.named_user()
    with ctx.obj.engine() as engine:
        here = engine.memory(user, agent=ctx.obj.agent, channel=ctx.obj.channel, space=ctx.obj.space)
        if everywhere or source is not None:
            found = [line.session for line in here.conversation.list_sessions(source, limit=limit)]
        else:
            found = list(here.sessions(limit))
        layers: list[dict[str, int]] = []
        for one in found:
            there = engine.memory(user, agent=one.address.agent, channel=one.address.channel, space=ctx.obj.space)
            held = (newest(there.conversation, kind, one.id) for kind in SESSION_LAYERS)
            layers.append({digest.kind: digest.version for digest in held if digest is not None})
    told = [{**plain(one), "layers": versions} for one, versions in zip(found, layers, strict=True)]
    lines = (line for one, versions in zip(found, layers, strict=True) for line in show_as.session_entry(one, versions))
    ctx.obj.out.entries(told, lines, empty="no sessions here yet")


@app.command()
def show(
    ctx: typer.Context,
    session: Which = None,
    limit: Annotated[int, typer.Option(help="How many messages of the working set at most.")] = 200,
    full: Full = False,
) -> None:
    """Show a session: its layers, then its working set as a conversation.

    Example: perdure session show --user ana
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        held = find_session(memory, session)
        kinds: tuple[DigestKind, ...] = ("spine", *SESSION_LAYERS)
        found = (newest(memory.conversation, kind, held.id) for kind in kinds)
        layers = [digest for digest in found if digest is not None]
        count = min(limit, max(held.working, 1))
        messages = [one for one in memory.messages(count, session=held.id) if one.seq > held.boundary_seq]

    def lines() -> Iterator[Text]:
        yield from show_as.session_head(held)
        for digest in layers:
            yield Text()
            yield from show_as.layer(digest, out.width, full=full)
        yield Text()
        yield from show_as.working_head(held, messages)
        yield from Talk(out.width, full=full).lines(messages)

    older = show_as.older(held, messages)
    out.value({"session": held, "layers": layers, "messages": messages, "older": older}, lines())


@app.command()
def tail(
    ctx: typer.Context,
    session: Only = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.")] = 10,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new ones until Ctrl-C.")] = False,
    poll: Annotated[float, typer.Option(help="With --follow: look every so many seconds.")] = 1.0,
    full: Full = False,
) -> None:
    """Print the last messages; with --json, one object on each line.

    Example: perdure session tail --user ana -n 5 --follow
    """
    if not POLL_S_MIN <= poll <= POLL_S_MAX:
        raise InvalidInput(f"`--poll` = {poll:g} must be from {POLL_S_MIN:g} to {POLL_S_MAX:g} seconds")
    out: Output = ctx.obj.out
    stop = _stopped_by_signals() if follow else None
    talk = Talk(out.width, full=full, mark_sessions=session is None)
    with ctx.obj.memory() as memory:
        found = memory.messages(limit, session=session)
        _say(out, talk, found)
        if stop is None:
            if not found:
                out.note("no messages here yet")
            return
        out.note("following; stop with Ctrl-C")
        for page in _new_messages(memory, session, found[-1] if found else None, stop, poll):
            _say(out, talk, page)


@app.command()
def search(
    ctx: typer.Context,
    query: Annotated[str, typer.Argument(help="Words that a message must all contain, in any case.")],
    session: Annotated[str | None, typer.Option(help="Only in this session.")] = None,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 20,
) -> None:
    """Find messages of the address, the newest first.

    Example: perdure session search --user ana "knee pain"
    """
    with ctx.obj.memory() as memory:
        found = memory.conversation.search(query, session=session, limit=limit)
    words = show_as.folded_words(query)
    lines = (line for message in found for line in show_as.hit(message, words, ctx.obj.out.width))
    ctx.obj.out.entries(found, lines, empty="no message has all these words")


@app.command()
def digests(
    ctx: typer.Context,
    session: Only = None,
    kind: Annotated[str | None, typer.Option(help=f"Only {', '.join(DIGEST_KINDS)}; the spine is the user's.")] = None,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 20,
) -> None:
    """List versions of the layers, undone ones too.

    Example: perdure session digests --user ana --kind fold
    """
    with ctx.obj.memory() as memory:
        found = memory.conversation.digests(None if kind is None else as_kind(kind), session=session, limit=limit)
    lines = (line for digest in found for line in show_as.digest_entry(digest, ctx.obj.out.width))
    ctx.obj.out.entries(found, lines, empty="no digests here yet")


@app.command()
def expand(
    ctx: typer.Context,
    session: Which = None,
    kind: Annotated[str, typer.Option(help="Which layer: " + ", ".join(DIGEST_KINDS) + ".")] = "fold",
    version: Annotated[int | None, typer.Option(help="Which version; by default the newest that stands.")] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Also what the versions that it continues stand for.")] = False,
    full: Full = False,
) -> None:
    """Print the messages that a digest stands for.

    Example: perdure session expand monday --user ana --kind fold --whole
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        digest = find_version(memory, session, as_kind(kind), version)
        messages = memory.conversation.expand(digest, whole=whole)
        if out.as_json:
            out.value({"digest": digest, "messages": list(messages)})
            return
        out.value(None, [*show_as.digest_entry(digest, out.width), Text()])
        out.value(None, Talk(out.width, full=full, mark_sessions=True).lines(messages))


@app.command()
def context(
    ctx: typer.Context,
    budget_tokens: Annotated[int | None, typer.Option(help="At most so many; by default `history_tokens_max`.")] = None,
) -> None:
    """Print what the agent would be given now; with --json, as messages for a chat model.

    Like a request of the agent, this ends a session that was silent for too long, and folds what is due.

    Example: perdure session context --user ana --budget-tokens 4000
    """
    with ctx.obj.memory() as memory:
        found = memory.context(budget_tokens=budget_tokens)
    tell_context(ctx.obj.out, found)


@app.command()
def state(ctx: typer.Context) -> None:
    """Show counters and diagnostics of the address: turns, last words, layers, rolling digest, curator.

    Example: perdure session state --user ana --agent coach
    """
    with ctx.obj.memory() as memory:
        found = memory.conversation.agent_state()
        [rolling] = memory.conversation.digests("rolling", limit=1) or [None]
    told = plain(found)
    told["rolling"] = None if rolling is None else rolling.text
    lines = list(show_as.agent_state_lines(found))
    if rolling is not None:
        lines += [Text("rolling digest:"), *show_as.body(rolling.text, ctx.obj.out.width, full=False)]
    ctx.obj.out.value(told, lines)


for command in session_changes.COMMANDS:
    app.command()(command)


def _say(out: Output, talk: Talk, messages: Sequence[Message]) -> None:
    for message in messages:
        out.value(message, talk.lines([message]))


def _stopped_by_signals() -> threading.Event:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


def _new_messages(
    memory: Memory, session: str | None, last: Message | None, stop: threading.Event, poll_s: float
) -> Iterator[Sequence[Message]]:
    """Pages of messages behind `last`, as they come."""
    while not stop.is_set():
        page = _behind(memory, session, last)
        if page:
            last = page[-1]
            yield page
        if len(page) < FOLLOW_PAGE:
            stop.wait(poll_s)


def _behind(memory: Memory, session: str | None, last: Message | None) -> Sequence[Message]:
    try:
        return memory.messages(FOLLOW_PAGE, session=session, after=None if last is None else last.id)
    except NotFound:
        # Its session was deleted. At the address, others go on.
        if session is not None or last is None:
            raise
        place = (last.session_number, last.seq)
        return [one for one in memory.messages(FOLLOW_PAGE) if (one.session_number, one.seq) > place]
