"""The commands. Each opens the engine, makes one call, renders."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import perdure
from perdure import settings as settings_module
from perdure.domain.errors import Corrupt, InvalidInput, PerdureError
from perdure.domain.reports import ProcessReport
from perdure.interfaces.cli import agent as agent_commands
from perdure.interfaces.cli import entity as entity_commands
from perdure.interfaces.cli import instruction as instruction_commands
from perdure.interfaces.cli import learning, oversight, recall
from perdure.interfaces.cli import lesson as lesson_commands
from perdure.interfaces.cli import memory as memory_commands
from perdure.interfaces.cli import series as series_commands
from perdure.interfaces.cli import session as session_commands
from perdure.interfaces.cli import state as state_commands
from perdure.interfaces.cli import todo as todo_commands
from perdure.interfaces.cli.asking import instant
from perdure.interfaces.cli.forget import forget
from perdure.interfaces.cli.model_lines import usage_lines
from perdure.interfaces.cli.output import Output, safe
from perdure.interfaces.errors import DEGRADED, INTERRUPTED, as_json, exit_code

# Newer versions of typer carry their own copy of click; this is the parent of their usage errors either way.
USAGE_ERROR: type[Any] = typer.BadParameter.__mro__[1]
GLOBAL_FLAGS = ("--json", "--debug")
GLOBAL_OPTIONS = ("--url", "--space", "--user", "--agent", "--channel")


class Anywhere(TyperGroup):
    """Lets the global options stand behind the command too, where people write them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        front: list[str] = []
        rest: list[str] = []
        waiting = iter(args)
        for arg in waiting:
            if arg == "--":
                rest += [arg, *waiting]
            elif arg in GLOBAL_FLAGS or ("=" in arg and arg.split("=", 1)[0] in GLOBAL_OPTIONS):
                front.append(arg)
            elif arg in GLOBAL_OPTIONS:
                front += [arg, *[value for value in [next(waiting, None)] if value is not None]]
            else:
                rest.append(arg)
        return super().parse_args(ctx, front + rest)


app = typer.Typer(
    cls=Anywhere, no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Durable memory for AI agents.",
)  # fmt: skip
jobs_app = typer.Typer(
    no_args_is_help=True, help="Look at a user's jobs, and give dead ones another try.", rich_markup_mode=None
)
app.add_typer(jobs_app, name="jobs")
app.add_typer(state_commands.app, name="state")
app.add_typer(series_commands.app, name="series")
app.add_typer(session_commands.app, name="session")
app.add_typer(memory_commands.app, name="memory")
app.add_typer(entity_commands.app, name="entity")
app.add_typer(todo_commands.app, name="todo")
app.add_typer(todo_commands.tasks_app, name="task")
app.add_typer(instruction_commands.app, name="instruction")
app.add_typer(lesson_commands.app, name="lesson")
app.add_typer(agent_commands.app, name="agent")
for command in (*recall.COMMANDS, *oversight.COMMANDS, agent_commands.prompt, *learning.COMMANDS, forget):
    app.command()(command)


@dataclass(slots=True)
class Session:
    """What the global options said."""

    out: Output
    url: str | None = None
    space: str | None = None
    user: str | None = None
    agent: str = "default"
    channel: str = "default"
    debug: bool = False

    @contextmanager
    def engine(self) -> Iterator[perdure.Engine]:
        with perdure.open(self.url) as engine:
            yield engine

    @contextmanager
    def memory(self) -> Iterator[perdure.Memory]:
        user = self.named_user()
        with self.engine() as engine:
            yield engine.memory(user, agent=self.agent, channel=self.channel, space=self.space)

    def named_user(self) -> str:
        user = self.user or settings_module.load().user
        if not user:
            raise InvalidInput("no user is named; add `--user NAME`, or set `PERDURE_USER`")
        return user


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"perdure {version('perdure')}")
        raise typer.Exit


@app.callback()
def options(
    ctx: typer.Context,
    url: Annotated[str | None, typer.Option(help="The store: sqlite:///FILE, postgresql://…, memory:")] = None,
    space: Annotated[str | None, typer.Option(help="The application or customer.")] = None,
    user: Annotated[str | None, typer.Option(help="Whose memory.")] = None,
    agent: Annotated[str, typer.Option(help="Which agent's.")] = "default",
    channel: Annotated[str, typer.Option(help="On which channel.")] = "default",
    json: Annotated[bool, typer.Option("--json", help="Answer in JSON on stdout.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,  # noqa: ARG001 - answered by its callback
) -> None:
    ctx.obj = Session(Output(as_json=json), url, space, user, agent, channel, debug)


# -- one user's data


@app.command()
def append(
    ctx: typer.Context,
    role: Annotated[str, typer.Argument(help="user, assistant, tool or system")],
    content: Annotated[str, typer.Argument(help="The text, or - to read it from stdin.")],
    id: Annotated[str | None, typer.Option(help="An id of yours; repeating it stores nothing twice.")] = None,
    at: Annotated[str | None, typer.Option(help="When it was said, ISO 8601 with a zone.")] = None,
    session: Annotated[str | None, typer.Option(help="A session of yours.")] = None,
) -> None:
    """Log one message.

    Example: perdure append --user ana user "I moved to Seattle"
    """
    out = ctx.obj.out
    text = sys.stdin.read() if content == "-" else content
    with ctx.obj.memory() as memory:
        message = memory.append(role, text, id=id, at=None if at is None else instant(at, "--at"), session=session)
    again = " (already held)" if message.repeated else ""
    out.value(message, [f"{safe(message.id)}  session {safe(message.session)}  seq {message.seq}{again}"])


@app.command()
def messages(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 20,
    session: Annotated[str | None, typer.Option(help="Only this session.")] = None,
    before: Annotated[str | None, typer.Option(help="Before the message with this id.")] = None,
    after: Annotated[str | None, typer.Option(help="After the message with this id.")] = None,
) -> None:
    """List the latest messages, oldest first."""
    with ctx.obj.memory() as memory:
        found = memory.messages(limit, session=session, before=before, after=after)
    ctx.obj.out.table(
        found,
        {
            "session": [f"{one.session_number}.{one.seq}" for one in found],
            "at": [one.at.isoformat(timespec="seconds") for one in found],
            "role": [one.role for one in found],
            "content": [one.content for one in found],
        },
        empty="no messages here yet",
    )


@app.command()
def sessions(ctx: typer.Context, limit: Annotated[int, typer.Option(help="How many at most.")] = 20) -> None:
    """List sessions, newest first."""
    with ctx.obj.memory() as memory:
        found = memory.sessions(limit)
    ctx.obj.out.table(
        found,
        {
            "number": [one.number for one in found],
            "id": [one.id for one in found],
            "opened": [one.opened_at.isoformat(timespec="seconds") for one in found],
            "last": [one.last_at.isoformat(timespec="seconds") for one in found],
            "state": ["open" if one.ended_at is None else "ended" for one in found],
            "messages": [one.messages for one in found],
            "tokens": [one.tokens for one in found],
        },
        empty="no sessions here yet",
    )


@app.command()
def tally(ctx: typer.Context, session: Annotated[str | None, typer.Option(help="Default: the newest.")] = None) -> None:
    """Show the counts of a session."""
    with ctx.obj.memory() as memory:
        found = memory.tally(session)
    roles = ", ".join(f"{role} {count}" for role, count in found.by_role.items()) or "nothing counted yet"
    tools = ", ".join(f"{safe(tool)} {count}" for tool, count in found.by_tool.items()) or "none"
    ctx.obj.out.value(found, [f"messages: {roles}", f"tools: {tools}; failures: {found.failures}"])


@app.command()
def journal(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 50,
    before: Annotated[int | None, typer.Option(help="Before the operation with this number.")] = None,
) -> None:
    """Show what was changed in derived data, by whom and why, newest first."""
    with ctx.obj.memory() as memory:
        found = memory.journal(limit, before=before)
    ctx.obj.out.table(
        found,
        {
            "seq": [one.seq for one in found],
            "at": [one.at.isoformat(timespec="seconds") for one in found],
            "by": [one.actor for one in found],
            "what": [f"{one.action} {one.kind}" for one in found],
            "row": [one.key for one in found],
            "why": [one.why for one in found],
        },
        empty="nothing was changed yet",
    )


@jobs_app.command("list")
def list_jobs(
    ctx: typer.Context,
    state: Annotated[str | None, typer.Option(help="ready, running, done or dead")] = None,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 100,
) -> None:
    """List a user's jobs with their last errors."""
    with ctx.obj.memory() as memory:
        found = memory.jobs(state, limit=limit)
    ctx.obj.out.table(
        found,
        {
            "kind": [one.kind for one in found],
            "key": [one.key for one in found],
            "state": [one.state for one in found],
            "due": ["" if one.due_at is None else one.due_at.isoformat(timespec="seconds") for one in found],
            "tries": [f"{one.attempts}/{one.attempts_max}" for one in found],
            "error": [one.last_error or "" for one in found],
        },
        empty="no such jobs",
    )


@jobs_app.command("retry")
def retry_jobs(ctx: typer.Context) -> None:
    """Give a user's dead jobs fresh tries."""
    with ctx.obj.memory() as memory:
        count = memory.retry_jobs()
    ctx.obj.out.value({"retried": count}, [f"{count} dead jobs are ready again"])


# -- the store as a whole


@app.command()
def worker(
    ctx: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Run what is due, then stop.")] = False,
    seconds: Annotated[float, typer.Option(help="With --once: at most this long.")] = 60.0,
) -> None:
    """Run jobs until stopped. SIGTERM and Ctrl-C finish the job in hand first."""
    out: Output = ctx.obj.out
    with ctx.obj.engine() as engine:
        if once:
            done = engine.process(seconds)
            out.value(done, [_turn(done)])
            return
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        out.note(f"worker {os.getpid()} is running; stop it with Ctrl-C or SIGTERM")
        engine.worker().run(stop, report=lambda turn: out.value(turn, [_turn(turn)]))
        out.note("worker stopped")


def _turn(done: ProcessReport) -> str:
    lost = f", {done.lost} lost their lease" if done.lost else ""
    return f"{done.ran} jobs ran, {done.failed} will be tried again, {done.parked} gave up{lost}"


@app.command()
def verify(ctx: typer.Context) -> None:
    """Check every invariant. Exit code 0: sound; 8: something is wrong."""
    out: Output = ctx.obj.out
    with ctx.obj.engine() as engine, out.progress("verifying") as progress:
        report = engine.verify(progress)
    rows = sum(report.checked.values())
    lines = [f"[red]broken:[/red] {safe(one.law)}\n  at {safe(one.where)}: {safe(one.seen)}" for one in report.findings]
    more = "; there are more" if report.truncated else ""
    lines.append(f"sound: {rows:,} rows checked" if report.clean else f"{len(report.findings)} findings in {rows:,} rows{more}")
    out.value(report, lines)
    if not report.clean:
        raise typer.Exit(exit_code(Corrupt()))


@app.command()
def backup(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Where to write it.")],
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite an existing file.")] = False,
) -> None:
    """Write everything to one file, while writers go on."""
    out: Output = ctx.obj.out
    with ctx.obj.engine() as engine, out.progress("backing up") as progress:
        report = engine.backup(file, replace=replace, progress=progress)
    rows = sum(report.rows.values())
    out.value(report, [f"{rows:,} rows, {report.bytes:,} bytes in {safe(report.path)}"])


@app.command()
def restore(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="A file made by `perdure backup`, on whichever kind of store.")],
    replace: Annotated[bool, typer.Option("--replace", help="Throw away what the store holds now.")] = False,
) -> None:
    """Fill the store from a backup: all of it or nothing."""
    out: Output = ctx.obj.out
    with out.progress("restoring") as progress:
        counts = perdure.restore(file, ctx.obj.url, replace=replace, progress=progress)
    out.value({"rows": counts}, [f"{sum(counts.values()):,} rows restored from {safe(file)}"])


@app.command()
def doctor(ctx: typer.Context) -> None:
    """Prove a round trip through the store and say what is degraded. Exit code 0: healthy; 9: degraded."""
    with ctx.obj.engine() as engine:
        report = engine.doctor()
    queue = report.queue
    lines = [
        f"store: {report.store.backend} at {safe(report.store.location)}, {report.store.bytes:,} bytes",
        f"schema: version {report.store.schema_version}",
        f"durability: {report.store.durability}",
        f"round trip: a message, its job and its counts in {report.round_trip_ms:.1f} ms",
        f"jobs: {queue.ready} ready, {queue.running} running, {queue.done} done, {queue.dead} dead",
        "versions: " + ", ".join(f"{name} {number}" for name, number in report.versions.items()),
        f"model: {safe(report.model) or 'none; the rules do its work'}",
        *(f"model calls for {line}" for line in usage_lines(report.models)),
        *(f"[yellow]degraded:[/yellow] {safe(one)}" for one in report.degraded),
        *(f"dead job: {safe(job.owner.user)} {safe(job.kind)}: {safe(job.last_error)}" for job in report.dead_jobs),
        *(["healthy"] if report.healthy else []),
    ]
    ctx.obj.out.value(report, lines)
    if not report.healthy:
        raise typer.Exit(DEGRADED)


@app.command()
def purge(ctx: typer.Context) -> None:
    """Give freed space back, so that what was deleted leaves the disk too. Writers wait meanwhile."""
    with ctx.obj.engine() as engine:
        report = engine.purge()
    ctx.obj.out.value(
        report,
        [f"{report.bytes_before:,} bytes before, {report.bytes_after:,} after; {report.jobs_removed} done jobs forgotten"],
    )


@app.command()
def config(ctx: typer.Context) -> None:
    """List every setting with its value and where that came from."""
    found = settings_module.listing(url=ctx.obj.url, space=ctx.obj.space, user=ctx.obj.user)
    shown = [_without_password(one) for one in found]
    ctx.obj.out.table(
        shown,
        {
            "setting": [one.name for one in shown],
            "value": [one.value for one in shown],
            "from": [one.source for one in shown],
        },
        empty="no settings",
    )


@app.command()
def demo(ctx: typer.Context) -> None:
    """Walk through what works, on a store that is thrown away afterwards."""
    from perdure.interfaces.cli.demo import run_demo

    run_demo(ctx.obj.out)


# -- helpers


def _without_password(setting: settings_module.Setting) -> settings_module.Setting:
    if setting.name not in ("url", "model", "embedder"):
        return settings_module.Setting(setting.name, setting.shown, setting.source)
    shown = re.sub(r"(://[^/@:]*:).*@", r"\1***@", str(setting.value))
    shown = re.sub(r"(password=)[^&\s]*", r"\1***", shown)
    return settings_module.Setting(setting.name, shown, setting.source)


def run() -> None:
    """The script: errors become one line on stderr and a stable exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that cannot show a character gets its code, not a crash.
            stream.reconfigure(errors="backslashreplace")
    debug = "--debug" in sys.argv
    out = Output(as_json="--json" in sys.argv)
    try:
        code = app(standalone_mode=False)
    except PerdureError as error:
        if debug:
            raise
        out.error(as_json(error), str(error))
        code = exit_code(error)
    except USAGE_ERROR as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            sys.exit(0)
        words = f"{error.format_message()} See `perdure --help`."
        out.error({"error": {"code": "invalid_input", "message": words, "retriable": False}}, words)
        code = exit_code(InvalidInput())
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away, as `head` does. Point stdout elsewhere so that exit does not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:  # the interface edge: no stack trace for a user who did not ask for one
        if debug:
            raise
        words = f"{type(error).__name__}: this is a bug in perdure; run again with --debug and report what it prints"
        out.error({"error": {"code": "error", "message": words, "retriable": False}}, words)
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
