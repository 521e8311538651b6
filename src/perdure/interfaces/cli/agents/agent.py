"""`perdure agent …`: what agents are told of themselves, and on which channels they answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.text import Text

from perdure.domain.context.context import Prompt
from perdure.domain.conversation.agent_state import Agent, ChannelAgent
from perdure.domain.errors import InvalidInput
from perdure.domain.oversight import Injection, KeptResult
from perdure.domain.text.rules import Json
from perdure.handles.admin import AgentHandle
from perdure.handles.memory import Memory
from perdure.handles.tools import SETS
from perdure.interfaces.cli.agents.connect import connect, hook
from perdure.interfaces.cli.derived import JSON, Form, Group, Reader, derived, line, table
from perdure.interfaces.cli.input import chosen, read_json, read_text
from perdure.interfaces.cli.lines import oversight as show_as
from perdure.interfaces.cli.lines.conversation import heading, local, one_line, wrapped
from perdure.interfaces.cli.output import Output, safe, visible

app = Group("agent", "Agents: texts, channels, prompt, goal context, tools.", last="")
Id = Annotated[str, typer.Argument(metavar="ID", help="The agent.")]
TEXT = "as text, @FILE, or - for stdin; an empty text takes it away."


@contextmanager
def _agents(ctx: typer.Context) -> Iterator[AgentHandle]:
    with ctx.obj.engine() as engine:
        yield engine.agents if ctx.obj.space is None else engine.agents.of(ctx.obj.space)


@app.command("list")
def list_(ctx: typer.Context, limit: Annotated[int, typer.Option(help="How many at most.")] = 100) -> None:
    """List agents with texts, and the channels they answer on.

    Example: perdure agent list
    """
    out: Output = ctx.obj.out
    with _agents(ctx) as agents:
        found, mapped = agents.list(limit=limit), agents.channels(limit=limit)
    told = [{"agent": one, "channels": _channels(one.id, mapped)} for one in found]
    lines = (line for one in found for line in _entry(one, _channels(one.id, mapped)))
    out.entries(told, lines, empty="no agents yet")


@app.command()
def show(ctx: typer.Context, agent: Id) -> None:
    """Print an agent's texts: soul, mood, skill. Its lessons: `perdure lesson list`.

    Example: perdure agent show coach
    """
    out: Output = ctx.obj.out
    with _agents(ctx) as agents:
        found = agents.get(agent)
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
    """Set an agent's texts. What is not given stays as it is.

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


app.offer(
    (AgentHandle, "remove"),
    line(lambda gone, _: "removed" if gone else "there was nothing to remove", agent="id", removed=""),
    at=_agents,
)
app.offer(
    (AgentHandle, "map_channel"),
    line(lambda found, _: safe(one_line(f"{found.agent} answers on {found.channel}"))),
    name="map",
    at=_agents,
)
app.offer(
    (AgentHandle, "unmap_channel"),
    line(lambda gone, _: "unmapped" if gone else "the channel was not mapped", channel="channel", unmapped=""),
    name="unmap",
    at=_agents,
)
app.offer(
    (AgentHandle, "channels"),
    table({"channel": "channel", "agent": "agent", "mapped": lambda one: local(one.mapped_at)}, "no channel is mapped"),
    at=_agents,
)


@app.derived(
    (Memory, "prompt"),
    example='"Plan my week" --budget 2000 --user ana --agent coach',
    form=Form(
        names={"budget_tokens": "budget", "lessons": "no_lessons"},
        words={"lessons": "Without the lessons; a context has them, too."},
    ),
)
def prompt(out: Output, found: Prompt) -> None:
    """Print the agent's system prompt.

    It has soul, mood, the lessons that hold here, skill, and the time of day.
    """
    told = {name: getattr(found, name) for name in (*found.__dataclass_fields__, "text")}
    out.value(told, [Text(visible(found.text))] if found.text else [])
    if not out.as_json:
        parts = ", ".join(f"{part.kind} {part.tokens:,}" for part in found.parts)
        told_lines = [f"agent {found.agent}: {found.tokens:,} of {found.budget_tokens:,} tokens: {parts}"]
        told_lines += [*(f"over budget: {one}" for one in found.dropped), *(f"note: {one}" for one in found.notes)]
        for line in told_lines:
            out.note(safe(one_line(line)))


# -- the tools that a model may be given, as it would call them

tools_app = Group("agent tool", "Tools that a model may call.")
STYLES = ("openai", "anthropic", "mcp")
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Without those that write.")]


@tools_app.command("list")
def list_tools(
    ctx: typer.Context,
    style: Annotated[str, typer.Option(help=f"With --json, as an API takes them: {', '.join(STYLES)}.")] = "openai",
    only: Annotated[list[str] | None, typer.Option("--set", help=f"Of this set: {', '.join(SETS)}. Repeatable.")] = None,
    read_only: ReadOnly = False,
) -> None:
    """List the tools; with --json, as definitions for a model.

    Example: perdure agent tool list --style anthropic --json --user ana
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        tools = memory.tools.read_only() if read_only else memory.tools
        tools = tools.only([chosen(one, SETS, "--set") for one in only]) if only else tools
        schemas, permissions = tools.schemas(chosen(style, STYLES, "--style")), tools.permissions()
        listed = [(name, of) for of, names in tools.sets().items() for name in names]
    out.value(schemas, [f"{safe(name)}  {permissions[name]}  {of}" for name, of in listed])


@tools_app.command()
def call(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Which one, as `perdure agent tool list` shows it.")],
    params: Annotated[str, typer.Argument(help="A JSON object, - for stdin, or @FILE.")] = "{}",
    read_only: ReadOnly = False,
) -> None:
    """Call a tool as a model would, and print what it answers. Exit code 2 if that is a failure.

    Example: perdure agent tool call loadState '{"key": "units"}' --user ana
    """
    out: Output = ctx.obj.out
    given = read_json(params)
    with ctx.obj.memory() as memory:
        tools = memory.tools.read_only() if read_only else memory.tools
        answer = tools.call_tool(name, given)
    out.value(answer, [safe(json.dumps(answer, ensure_ascii=False, indent=2, default=str))])
    if not answer.get("success", True):
        raise typer.Exit(2)


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


@derived(
    (Memory, "before"),
    example='perdure agent before "Who from my kudos list was active recently?" --explain --user ana',
    form=Form(names={"budget_tokens": "budget", "deadline_s": "deadline"}),
)
def before(
    out: Output,
    found: Injection,
    *,
    explain: Annotated[bool, typer.Option("--explain", help="What was looked at, what of it is given, and why.")] = False,
) -> None:
    """Print what an agent should know before it works on a goal."""
    out.value(found, show_as.explained(found, out.width) if explain else show_as.text_of(found))
    if not out.as_json:
        for line in show_as.summed_up(found):
            out.note(safe(one_line(line)))


def _result(file: str) -> Json:
    where = "stdin" if file == "-" else file
    try:
        return json.loads(read_text(file))
    except ValueError as error:
        raise InvalidInput(f"{where} is not JSON ({error}); write text as '\"text\"'") from None


def _kept(memory: Memory, fields: Mapping[str, Any], *, accept: bool) -> KeptResult:
    """What becomes of a result; with `accept`, what is suggested is saved."""
    if not accept:
        return memory.after(**fields)
    if fields.get("mode") not in (None, "suggest"):
        raise InvalidInput("`--accept` saves what is suggested; leave `--mode` out")
    kept = memory.after(**{**fields, "mode": "suggest"})
    return memory.tools.accept(kept, fields["result"]) if kept.action == "suggested" else kept


@derived(
    (Memory, "after"),
    example='perdure agent after get_profile profile.json --goal "Plan my week" --mode suggest --user ana',
    form=Form(
        names={"result": "file"},
        options=("goal",),
        hidden=("deadline_s",),
        read={"result": Reader(_result, "JSON: a file, or - for stdin."), "arguments": JSON},
        defaults={"result": "-"},
    ),
    call=_kept,
)
def after(
    out: Output,
    kept: KeptResult,
    *,
    accept: Annotated[bool, typer.Option("--accept", help="Save what is suggested; exit code 2 if nothing is.")] = False,
) -> None:
    """Decide what to keep of a tool's result, and say why.

    It is kept as state, as entries of a series, or not at all.
    """
    out.value(kept, show_as.kept_lines(kept, out.width))
    if kept.action == "suggested" and not out.as_json:
        out.note("nothing is saved yet; the same with --accept saves it")
    if accept and not kept.saved and kept.action != "unchanged":
        raise typer.Exit(2)


app.add(before, after, connect, hook, ("tool", tools_app))
