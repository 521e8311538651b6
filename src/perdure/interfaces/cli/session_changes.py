"""The commands under `perdure session` that change something: a boundary, a session, the layers of an address."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from perdure.domain.digests import Digest
from perdure.domain.errors import InvalidInput
from perdure.domain.messages import Session
from perdure.interfaces.cli.asking import ask
from perdure.interfaces.cli.finding import SESSION_LAYERS, Which, find_session
from perdure.interfaces.cli.output import Output, safe
from perdure.interfaces.cli.rendering import agent_state_lines, covered, local


def compact(
    ctx: typer.Context,
    session: Which = None,
    force: Annotated[bool, typer.Option("--force", help="Also if the working set is within its bounds.")] = False,
) -> None:
    """Fold the oldest part of a working set that is over its bounds. Nothing leaves the log.

    Example: perdure session compact --user ana --force
    """
    with ctx.obj.memory() as memory, ctx.obj.out.progress("folding"):
        made = memory.conversation.compact(session, force=force)
        held = find_session(memory, session)
    reason = "its last turn is all there is" if force else "the working set is within its bounds; --force folds it anyway"
    ctx.obj.out.value(made, _folded_lines(made, held, reason))


def fold(ctx: typer.Context, session: Which = None) -> None:
    """Fold all turns that are over, if there are `fold_messages_min` messages: as is done before a request.

    Example: perdure session fold --user ana
    """
    with ctx.obj.memory() as memory, ctx.obj.out.progress("folding"):
        made = memory.conversation.fold(session)
        held = find_session(memory, session)
    ctx.obj.out.value(made, _folded_lines(made, held, "there are fewer messages than `fold_messages_min`, or one turn only"))


def undo(ctx: typer.Context, session: Which = None) -> None:
    """Take back the newest fold: what it had moved out of the working set is in it again.

    Example: perdure session undo --user ana
    """
    with ctx.obj.memory() as memory:
        digest = memory.conversation.undo(session)
    ctx.obj.out.value(digest, [f"fold {digest.version} is undone; in the working set again: {covered(digest, chain=False)}"])


def clear(ctx: typer.Context, session: Which = None) -> None:
    """Empty the working set without a summary. The messages stay in the log, and `undo` brings them back.

    Example: perdure session clear --user ana
    """
    with ctx.obj.memory() as memory:
        digest = memory.conversation.clear(session)
    left = "" if digest is None else f"; only in the log: {covered(digest, chain=False)}"
    ctx.obj.out.value({"cleared": digest is not None, "fold": digest}, [f"the working set is empty{left}"])


def replace(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(help="What the agent should see instead, or - to read it from stdin.")],
    session: Annotated[str | None, typer.Option(help="Its id; by default the newest of the address.")] = None,
) -> None:
    """Empty the working set, and show the agent a text in its place. The messages stay in the log; `undo` brings them back.

    Example: perdure session replace "They planned a trip to Lisbon." --user ana
    """
    words = sys.stdin.read() if text == "-" else text
    with ctx.obj.memory() as memory:
        digest = memory.conversation.replace(words, session)
    ctx.obj.out.value(digest, [f"the text stands for {covered(digest)}"])


def close(ctx: typer.Context, session: Which = None) -> None:
    """End a session at its last activity; a job writes its digest.

    Example: perdure session close --user ana
    """
    with ctx.obj.memory() as memory:
        held = memory.conversation.close(session)
    ctx.obj.out.value(held, [f"session {safe(held.id)} ended {local(held.ended_at)}"])


def resume(ctx: typer.Context, session: Which = None) -> None:
    """Go on with a session that ended no longer ago than `session_resume_s`.

    Example: perdure session resume monday --user ana
    """
    with ctx.obj.memory() as memory:
        held = memory.conversation.resume(session)
    ctx.obj.out.value(held, [f"session {safe(held.id)} is open; what is said next belongs to it"])


def delete(
    ctx: typer.Context,
    session: Annotated[str, typer.Argument(help="Its id.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
) -> None:
    """Delete the messages of a session and what was derived from them, for good.

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
    out.value(told, [f"{held_messages} messages deleted; a spine that told of them is made anew"])


def configure(
    ctx: typer.Context,
    profile: Annotated[str | None, typer.Option(help="task_agent, channel_bot, companion or complete")] = None,
    casual: Annotated[bool | None, typer.Option("--casual/--no-casual", help="Small talk: no model, no lessons.")] = None,
    private: Annotated[
        bool | None, typer.Option("--private/--no-private", help="What is learned here is for this agent alone.")
    ] = None,
    shared: Annotated[
        bool | None, typer.Option("--shared/--no-shared", help="Others talk here, too: what is learned here stays here.")
    ] = None,
) -> None:
    """Choose which layers the address keeps, and who may know what is learned there.

    Example: perdure session configure --user ana --channel discord:42 --profile channel_bot --casual
    """
    if profile is None and casual is None and private is None and shared is None:
        raise InvalidInput("nothing to change; give `--profile`, `--casual`, `--private` or `--shared`")
    with ctx.obj.memory() as memory:
        found = memory.conversation.configure(profile=profile, casual=casual, private=private, shared=shared)
    ctx.obj.out.value(found, list(agent_state_lines(found))[:1])


COMMANDS = (compact, fold, undo, clear, replace, close, resume, delete, configure)


def _folded_lines(made: Sequence[Digest], held: Session, reason: str) -> list[str]:
    if not made:
        return [f"nothing to fold: {reason}"]
    lines = [f"fold {one.version} by {safe(one.summariser)} stands for {covered(one)}" for one in made]
    return [*lines, f"{held.working} messages are in the working set"]
