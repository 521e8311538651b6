"""The commands under `perdure session` that change something: a boundary, a session, the layers of an address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from perdure.domain.conversation.digests import Digest
from perdure.domain.conversation.messages import Session
from perdure.handles.conversation import Conversation
from perdure.interfaces.cli.conversation import document, transcript
from perdure.interfaces.cli.conversation.session import SESSION_LAYERS, find_session
from perdure.interfaces.cli.conversation.session import app as app
from perdure.interfaces.cli.derived import STDIN, Form, line, single
from perdure.interfaces.cli.input import ask
from perdure.interfaces.cli.lines.conversation import agent_state_lines, covered, local
from perdure.interfaces.cli.output import Output, safe

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
    line(lambda fold, _: f"fold {fold.version} is undone; in the working set again: {covered(fold, chain=False)}"),
)


@app.derived((Conversation, "clear"))
def clear(out: Output, digest: Digest | None) -> None:
    left = "" if digest is None else f"; only in the log: {covered(digest, chain=False)}"
    out.value({"cleared": digest is not None, "fold": digest}, [f"the working set is empty{left}"])


app.offer(
    (Conversation, "replace"),
    line(lambda digest, _: f"the text stands for {covered(digest)}"),
    example='"They planned a trip to Lisbon."',
    form=Form(options=("session",), read={"text": STDIN}),
)
app.offer(
    (Conversation, "close"),
    line(lambda held, _: f"session {safe(held.id)} ended {local(held.last_at if held.ended_at is None else held.ended_at)}"),
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
            [f"{len(gone)} messages are taken back; `perdure undo` brings them back"] if gone else ["nothing was said"]
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
        held = find_session(memory, session)
        tops = (memory.conversation.digests(kind, session=session, limit=1) for kind in SESSION_LAYERS)
        layers = {top.kind: top.version for [top] in filter(None, tops)}
        versions = ", ".join(f"{count} of {kind}" for kind, count in layers.items()) or "none"
        goes = f"{held.messages} messages; versions of layers: {versions}"
        if not dry_run:
            if not yes:
                ask(out, f"this deletes {goes}")
            held_messages = memory.conversation.delete(session)
    if dry_run:
        out.value({"session": session, "deleted": False, "messages": held.messages, "layers": layers}, [f"would go: {goes}"])
        return
    told = {"session": session, "deleted": True, "messages": held_messages, "layers": layers}
    out.value(told, [f"{held_messages} messages deleted; a spine that told of them is made again"])


app.offer(
    (Conversation, "configure"),
    single(lambda found, _: list(agent_state_lines(found))[:1]),
    example="--profile channel_bot --casual",
    needs_one=True,
)
app.add(("transcript", transcript.app), ("document", document.app))


def _tell_folds(out: Output, done: Folded, reason: str) -> None:
    made, held = done
    lines = [f"fold {one.version} by {safe(one.summariser)} stands for {covered(one)}" for one in made]
    lines.append(f"{held.working} messages are in the working set")
    out.value(made, lines if made else [f"nothing to fold: {reason}"])
