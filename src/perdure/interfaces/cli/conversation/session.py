"""`perdure session …`: conversations of a user, their working sets, and the layers over them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.text import Text

from perdure.domain.conversation.digests import DIGEST_KINDS, Digest, DigestKind
from perdure.domain.conversation.messages import Message, Session
from perdure.domain.conversation.tally import Tally
from perdure.domain.errors import InvalidInput, NotFound
from perdure.handles.conversation import Conversation
from perdure.handles.memory import Memory
from perdure.handles.registry.shapes import plain
from perdure.interfaces.cli.conversation.document import documents, transcripts
from perdure.interfaces.cli.derived import STDIN, Form, Group, each, line, single
from perdure.interfaces.cli.input import ask, chosen
from perdure.interfaces.cli.lines import conversation as show_as
from perdure.interfaces.cli.lines.conversation import MessageLines
from perdure.interfaces.cli.output import Output, plural, safe, visible

app = Group("session", "Conversations: messages, summaries, transcripts.")
Which = Annotated[str | None, typer.Argument(metavar="SESSION", help="Its id; by default the newest of the address.")]
Only = Annotated[str | None, typer.Argument(metavar="SESSION", help="Only this one; by default all of the address.")]
Full = Annotated[bool, typer.Option("--full", help="Cut nothing.")]

SESSION_LAYERS: tuple[DigestKind, ...] = ("session", "rolling", "fold")
VERSIONS_SOUGHT = 100
FOLLOW_PAGE = 100
POLL_S_MIN, POLL_S_MAX = 0.1, 3_600.0


# -- looking


@app.command("list")
def list_(
    ctx: typer.Context,
    source: Annotated[str | None, typer.Option(help="Those on the channels of a source: discord for discord:42.")] = None,
    everywhere: Annotated[bool, typer.Option("--all", help="Those of this user at all addresses.")] = False,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 20,
) -> None:
    """List sessions, newest first; of all addresses with --all.

    With --all or --source, the last active stand first.

    Example: perdure session list --user ana --all
    """
    user = ctx.obj.named_user()
    with ctx.obj.engine() as engine:
        here = engine.memory(user, agent=ctx.obj.agent, channel=ctx.obj.channel, space=ctx.obj.space)
        if everywhere or source is not None:
            found = [line.session for line in here.conversation.list_sessions(source, limit=limit)]
        else:
            found = list(here.conversation.sessions(limit))
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
    """Show a session: its summaries, then its messages.

    Example: perdure session show --user ana
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        held = memory.conversation.session(session)
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
        yield from MessageLines(out.width, full=full).lines(messages)

    older = show_as.older(held, messages)
    out.value({"session": held, "layers": layers, "messages": messages, "older": older}, lines())


@app.command()
def tail(
    ctx: typer.Context,
    session: Only = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.")] = 10,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow new ones until Ctrl-C.")] = False,
    poll: Annotated[float, typer.Option(help="With --follow: look every so many seconds.")] = 1.0,
    full: Full = False,
) -> None:
    """Print the last messages, and new ones with --follow.

    With --json, one object on each line.

    Example: perdure session tail --user ana -n 5 --follow
    """
    if not POLL_S_MIN <= poll <= POLL_S_MAX:
        raise InvalidInput(f"`--poll` = {poll:g} must be from {POLL_S_MIN:g} to {POLL_S_MAX:g} seconds")
    out: Output = ctx.obj.out
    stop = _stopped_by_signals() if follow else None
    talk = MessageLines(out.width, full=full, mark_sessions=session is None)
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


@app.derived((Conversation, "search"))
def search(out: Output, found: Sequence[Message], given: Mapping[str, Any]) -> None:
    words = show_as.folded_words(given["query"])
    lines = (line for message in found for line in show_as.hit(message, words, out.width))
    out.entries(found, lines, empty="no message has all these words")


app.offer(
    (Conversation, "digests"),
    each(show_as.digest_entry, "no digests here yet"),
    form=Form(arguments=("session",)),
    example="--kind fold",
)


@app.command()
def expand(
    ctx: typer.Context,
    session: Which = None,
    kind: Annotated[str, typer.Option(help="Which layer: " + ", ".join(DIGEST_KINDS) + ".")] = "fold",
    version: Annotated[int | None, typer.Option(help="Which version; by default the newest that stands.")] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Also what the versions that it continues stand for.")] = False,
    full: Full = False,
) -> None:
    """Print the messages that a summary stands for.

    Example: perdure session expand monday --user ana --kind fold --whole
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        digest = find_version(memory, session, chosen(kind, DIGEST_KINDS, "--kind"), version)
        messages = memory.conversation.expand(digest, whole=whole)
        if out.as_json:
            out.value({"digest": digest, "messages": list(messages)})
            return
        out.value(None, [*show_as.digest_entry(digest, out.width), Text()])
        out.value(None, MessageLines(out.width, full=full, mark_sessions=True).lines(messages))


@app.command()
def state(ctx: typer.Context) -> None:
    """Show counters and diagnostics of the address.

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


@app.derived((Conversation, "message"))
def message(out: Output, found: Message) -> None:
    head = f"{safe(found.id)}  {found.role}  {found.at.isoformat(timespec='seconds')}  session {safe(found.session)}"
    out.value(found, [head, Text(visible(found.content))])


@app.derived((Conversation, "tally"), form=Form(options=("session",)))
def tally(out: Output, found: Tally) -> None:
    roles = ", ".join(f"{role} {count}" for role, count in found.by_role.items()) or "nothing counted yet"
    tools = ", ".join(f"{safe(tool)} {count}" for tool, count in found.by_tool.items()) or "none"
    out.value(found, [f"messages: {roles}", f"tools: {tools}; failures: {found.failures}"])


def _say(out: Output, talk: MessageLines, messages: Sequence[Message]) -> None:
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


def newest(talk: Conversation, kind: DigestKind, session: str | None) -> Digest | None:
    """The newest version of a layer that was not undone."""
    for limit in (1, VERSIONS_SOUGHT):
        found = talk.digests(kind, session=session, limit=limit)
        for digest in found:
            if not digest.undone:
                return digest
        if len(found) < limit:
            break
    return None


def find_version(memory: Memory, session: str | None, kind: DigestKind, version: int | None) -> Digest:
    """This version of a layer; by default the newest that was not undone."""
    where = None if kind == "spine" else memory.conversation.session(session).id
    if version is not None:
        return memory.conversation.digest(kind, version, session=where)
    if (digest := newest(memory.conversation, kind, where)) is None:
        raise NotFound(f"there is no {kind} here; list the summaries with `perdure session digests`")
    return digest


Folded = tuple[Sequence[Digest], Session]


@contextmanager
def _folding(ctx: typer.Context) -> Iterator[Conversation]:
    with ctx.obj.memory() as memory, ctx.obj.out.progress("folding"):
        yield memory.conversation


def _compacted(talk: Conversation, fields: Mapping[str, Any]) -> Folded:
    return talk.compact(**fields), talk.session(fields.get("session"))


def _folded(talk: Conversation, fields: Mapping[str, Any]) -> Folded:
    return talk.fold(**fields), talk.session(fields.get("session"))


@app.derived((Conversation, "compact"), example="--force", at=_folding, call=_compacted)
def compact(out: Output, done: Folded, given: Mapping[str, Any]) -> None:
    within = "the working set is within its bounds; --force folds it anyway"
    _tell_folds(out, done, "its last turn is all there is" if given["force"] else within)


@app.derived((Conversation, "fold"), at=_folding, call=_folded)
def fold(out: Output, done: Folded) -> None:
    _tell_folds(out, done, "there are fewer messages than `fold_messages_min`, or one turn only")


app.offer(
    (Conversation, "undo"),
    line(lambda fold, _: f"fold {fold.version} is undone; in the working set again: {show_as.covered(fold, chain=False)}"),
)


@app.derived((Conversation, "clear"))
def clear(out: Output, digest: Digest | None) -> None:
    left = "" if digest is None else f"; only in the log: {show_as.covered(digest, chain=False)}"
    out.value({"cleared": digest is not None, "fold": digest}, [f"the working set is empty{left}"])


app.offer(
    (Conversation, "replace"),
    line(lambda digest, _: f"the text stands for {show_as.covered(digest)}"),
    example='"They planned a trip to Lisbon."',
    form=Form(options=("session",), read={"text": STDIN}),
)
app.offer(
    (Conversation, "close"),
    line(
        lambda held, _: (
            f"session {safe(held.id)} ended {show_as.local(held.last_at if held.ended_at is None else held.ended_at)}"
        )
    ),
)
app.offer(
    (Conversation, "resume"),
    line(lambda held, _: f"session {safe(held.id)} is open; what is said next belongs to it"),
    example="monday",
)

app.offer(
    (Conversation, "pop"),
    single(
        lambda gone, _: (
            [f"{plural(len(gone), 'message')} taken back; `perdure undo` restores them"] if gone else ["no messages yet"]
        )
    ),
)


@app.command()
def delete(
    ctx: typer.Context,
    session: Annotated[str, typer.Argument(help="Its id.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
) -> None:
    """Delete a session's messages and what came from them, for good.

    Example: perdure session delete monday --user ana --dry-run
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        held = memory.conversation.session(session)
        tops = (memory.conversation.digests(kind, session=session, limit=1) for kind in SESSION_LAYERS)
        layers = {top.kind: top.version for [top] in filter(None, tops)}
        versions = ", ".join(f"{count} of {kind}" for kind, count in layers.items()) or "none"
        goes = f"{plural(held.messages, 'message')}; summaries: {versions}"
        if not dry_run:
            if not yes:
                ask(out, f"this deletes {goes}")
            held_messages = memory.conversation.delete(session)
    if dry_run:
        out.value(
            {"session": session, "deleted": False, "messages": held.messages, "layers": layers}, [f"would remove: {goes}"]
        )
        return
    told = {"session": session, "deleted": True, "messages": held_messages, "layers": layers}
    out.value(told, [f"{plural(held_messages, 'message')} deleted; the story so far is written again"])


app.offer(
    (Conversation, "configure"),
    single(lambda found, _: list(show_as.agent_state_lines(found))[:1]),
    example="--profile channel_bot --casual",
    needs_one=True,
)
app.add(("transcript", transcripts), ("document", documents))


def _tell_folds(out: Output, done: Folded, reason: str) -> None:
    made, held = done
    lines = [f"fold {one.version} by {safe(one.summariser)} stands for {show_as.covered(one)}" for one in made]
    lines.append(f"{plural(held.working, 'message')} in the working set")
    out.value(made, lines if made else [f"nothing to fold: {reason}"])
