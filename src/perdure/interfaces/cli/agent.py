"""`perdure agent …` and `perdure prompt`: what agents are told of themselves, and on which channels they answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.text import Text

from perdure.domain.agents import Agent, ChannelAgent
from perdure.domain.errors import InvalidInput, NotFound
from perdure.handles.agents import AgentHandle
from perdure.interfaces.cli.asking import read_text
from perdure.interfaces.cli.output import Output, safe, visible
from perdure.interfaces.cli.rendering import heading, local, one_line, wrapped

app = typer.Typer(
    no_args_is_help=True, help="The agents of a space: who they are, and where they answer.", rich_markup_mode=None
)
Id = Annotated[str, typer.Argument(metavar="ID", help="The agent.")]
Channel = Annotated[str, typer.Argument(metavar="CHANNEL", help="Such as discord:42.")]
TEXT = "as text, @FILE, or - for stdin; an empty text takes it away."


@contextmanager
def _agents(ctx: typer.Context) -> Iterator[AgentHandle]:
    with ctx.obj.engine() as engine:
        yield engine.agents if ctx.obj.space is None else engine.agents.of(ctx.obj.space)


@app.command("list")
def list_agents(ctx: typer.Context, limit: Annotated[int, typer.Option(help="How many at most.")] = 100) -> None:
    """List the agents that have texts, with the channels they answer on.

    Example: perdure agent list
    """
    out: Output = ctx.obj.out
    with _agents(ctx) as agents:
        found, mapped = agents.list(limit=limit), agents.channels(limit=limit)
    told = [{"agent": one, "channels": _channels(one.id, mapped)} for one in found]
    lines = (line for one in found for line in _entry(one, _channels(one.id, mapped)))
    out.entries(told, lines, empty="no agent has texts here")


@app.command()
def show(ctx: typer.Context, agent: Id) -> None:
    """Print what an agent is told of itself. Its lessons: `perdure lesson list`.

    Example: perdure agent show coach
    """
    out: Output = ctx.obj.out
    with _agents(ctx) as agents:
        try:
            found = agents.get(agent)
        except NotFound:
            raise NotFound(f"there is no agent {agent!r:.80}; `perdure agent list` shows them") from None
        channels = _channels(agent, agents.channels())
    out.value({"agent": found, "channels": channels}, _whole(found, channels, out.width))


@app.command()
def save(
    ctx: typer.Context,
    agent: Id,
    soul: Annotated[str | None, typer.Option(help=f"Who it is, {TEXT}")] = None,
    mood: Annotated[str | None, typer.Option(help=f"How it sounds, {TEXT}")] = None,
    skill: Annotated[str | None, typer.Option(help=f"What it can do, {TEXT}")] = None,
) -> None:
    """Set what an agent is told of itself; what is not given stays as it is.

    Example: perdure agent save coach --soul "You are a running coach." --skill @skill.md
    """
    out: Output = ctx.obj.out
    given = {"--soul": soul, "--mood": mood, "--skill": skill}
    if all(text is None for text in given.values()):
        raise InvalidInput("nothing to change; give `--soul`, `--mood` or `--skill`")
    if sum(text == "-" for text in given.values()) > 1:
        raise InvalidInput("stdin is read once; give `-` for one text only")
    texts = {name[2:]: None if text is None else _text(text) for name, text in given.items()}
    with _agents(ctx) as agents:
        found = agents.save(agent, soul=texts["soul"], mood=texts["mood"], skill=texts["skill"])
    out.value(found, [f"{safe(one_line(found.id))} is saved"])


@app.command()
def remove(ctx: typer.Context, agent: Id) -> None:
    """Remove the texts of an agent; its lessons and its memory stay.

    Example: perdure agent remove coach
    """
    with _agents(ctx) as agents:
        gone = agents.remove(agent)
    ctx.obj.out.value({"agent": agent, "removed": gone}, ["removed" if gone else "there was nothing to remove"])


@app.command("map")
def map_channel(ctx: typer.Context, channel: Channel, agent: Id) -> None:
    """Let an agent answer on a channel, for calls that name no agent; its lessons are drawn and shown there.

    Example: perdure agent map discord:42 coach
    """
    with _agents(ctx) as agents:
        found = agents.map_channel(channel, agent)
    ctx.obj.out.value(found, [safe(one_line(f"{found.agent} answers on {found.channel}"))])


@app.command("unmap")
def unmap_channel(ctx: typer.Context, channel: Channel) -> None:
    """No agent answers on the channel by itself any more.

    Example: perdure agent unmap discord:42
    """
    with _agents(ctx) as agents:
        gone = agents.unmap_channel(channel)
    ctx.obj.out.value({"channel": channel, "unmapped": gone}, ["unmapped" if gone else "the channel was not mapped"])


@app.command()
def channels(ctx: typer.Context, limit: Annotated[int, typer.Option(help="How many at most.")] = 100) -> None:
    """List the channels that are mapped to an agent, by name.

    Example: perdure agent channels
    """
    with _agents(ctx) as agents:
        found = agents.channels(limit=limit)
    ctx.obj.out.table(
        found,
        {
            "channel": [one.channel for one in found],
            "agent": [one.agent for one in found],
            "mapped": [local(one.mapped_at) for one in found],
        },
        empty="no channel is mapped",
    )


def prompt(
    ctx: typer.Context,
    request: Annotated[str, typer.Argument(help="What the user wants: if not all lessons fit, those that fit it stay.")] = "",
    budget: Annotated[int, typer.Option(help="At most so many tokens.")] = 4_000,
) -> None:
    """Print what the agent is told of itself: soul, mood, the lessons that hold here, skill, and the time of day.

    Example: perdure prompt "Plan my week" --budget 2000 --user ana --agent coach
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        found = memory.prompt(request, budget_tokens=budget)
    told = {name: getattr(found, name) for name in (*found.__dataclass_fields__, "text")}
    out.value(told, [Text(visible(found.text))] if found.text else [])
    if not out.as_json:
        parts = ", ".join(f"{part.kind} {part.tokens:,}" for part in found.parts)
        told_lines = [f"agent {found.agent}: {found.tokens:,} of {found.budget_tokens:,} tokens: {parts}"]
        told_lines += [*(f"over budget: {one}" for one in found.dropped), *(f"note: {one}" for one in found.notes)]
        for line in told_lines:
            out.note(safe(one_line(line)))


def _text(given: str) -> str:
    return read_text(given.removeprefix("@")) if given == "-" or given.startswith("@") else given


def _channels(agent: str, mapped: Sequence[ChannelAgent]) -> list[str]:
    return [one.channel for one in mapped if one.agent == agent]


def _entry(agent: Agent, channels: list[str]) -> Iterator[Text]:
    """An agent in a list. Its id stands first, so that it can be copied."""
    texts = ", ".join(name for name in ("soul", "mood", "skill") if getattr(agent, name)) or "no texts"
    where = f"  on {one_line(', '.join(channels))}" if channels else ""
    yield Text.assemble((one_line(agent.id), "bold"), (f"  {texts}{where}", "dim"))


def _whole(agent: Agent, channels: list[str], width: int) -> Iterator[Text]:
    saved = "a folder" if agent.updated_at is None else f"saved {local(agent.updated_at)}"
    where = f"; answers on {', '.join(channels)}" if channels else ""
    yield heading("agent", f"{agent.id}; {saved}{where}")
    for name in ("soul", "mood", "skill"):
        if text := getattr(agent, name):
            yield heading(name, f"{len(text):,} characters")
            yield from wrapped(text, width)
