"""The command line as a whole: its table of commands, its global options, and what becomes of an error.

Each command opens the engine, makes one call, renders. A new one is one entry of `SECTIONS`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.completion import install_callback, show_callback
from typer.core import TyperGroup

import perdure
from perdure import settings as settings_module
from perdure.app import asked_by
from perdure.domain.accesses import COMMAND_LINE
from perdure.domain.errors import InvalidInput, PerdureError
from perdure.interfaces.cli import (
    agent,
    chat,
    config,
    entity,
    instruction,
    key,
    learning,
    lesson,
    log,
    memory,
    oversight,
    portability,
    recall,
    series,
    session,
    state,
    store,
    todo,
    tool,
    transcript,
)
from perdure.interfaces.cli.accesses import accesses
from perdure.interfaces.cli.completing import SHELLS, user_names
from perdure.interfaces.cli.forget import forget
from perdure.interfaces.cli.mcp import mcp
from perdure.interfaces.cli.output import Output
from perdure.interfaces.cli.serve import serve
from perdure.interfaces.errors import INTERRUPTED, as_json, exit_code

# Newer versions of typer carry their own copy of click; this is the parent of their usage errors either way.
USAGE_ERROR: type[Any] = typer.BadParameter.__mro__[1]
COMPLETION: dict[str, Callable[..., Any]] = {"--show-completion": show_callback, "--install-completion": install_callback}
"""Options of typer's own, which find out the shell; here it may also be named behind them."""
GLOBAL_FLAGS = ("--json", "--debug")
GLOBAL_OPTIONS = ("--url", "--space", "--user", "--agent", "--channel")

Entry = Callable[..., None] | tuple[str, typer.Typer]
"""A command, named as its function is; or the name of a group and its commands."""
SECTIONS: dict[str, tuple[Entry, ...]] = {
    "Begin": (serve, store.demo, chat.chat, log.overview, store.users, store.doctor),
    "Conversations": (
        log.append, log.append_many, log.messages, log.message, log.sessions, ("session", session.app), log.tally,
        ("transcript", transcript.app),
    ),
    "What is known": (
        recall.recall, recall.context, ("memory", memory.app), ("entity", entity.app),
        learning.extract, learning.seed, learning.curate,
    ),
    "State and series": (("state", state.app), ("series", series.app), oversight.when),
    "Work with an agent": (
        oversight.before, oversight.after, oversight.decisions, agent.prompt, ("todo", todo.app), ("task", todo.tasks_app),
        ("instruction", instruction.app), ("lesson", lesson.app), ("agent", agent.app), mcp,
        ("tool", tool.app), log.usage,
    ),
    "What happened, and back": (log.journal, accesses, learning.audit, learning.diff, learning.undo, forget),
    "The store": (
        store.worker, ("jobs", log.jobs_app), recall.reindex, store.health, store.verify, store.backup, store.restore,
        portability.export, portability.import_,
        store.purge, store.files,
    ),
    "Set-up": (("config", config.app), ("key", key.app)),
}  # fmt: skip
"""Every command under its heading in `perdure --help`, in the order of the help."""


FIRST_STEPS = {
    "perdure demo": "a day with a memory, on a store that is thrown away",
    'perdure append user "I moved to Seattle" --user ana': "log what was said",
    "perdure worker --once": "learn from it",
    'perdure recall "Where does Ana live?" --user ana': "find it again",
    "perdure chat --user ana": "talk, and see what is remembered and why",
    "perdure serve": "the web page, the HTTP API and MCP, on this machine",
    "perdure --help": "every command",
}


class Anywhere(TyperGroup):
    """Lets the global options stand behind the command too, where people write them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        front: list[str] = []
        rest: list[str] = []
        waiting = iter(args)
        for arg in waiting:
            if arg == "--":
                rest += [arg, *waiting]
            elif arg in COMPLETION and (shell := next(waiting, None)) is not None:
                if shell in SHELLS:
                    COMPLETION[arg](ctx, None, shell)  # which ends the process
                rest += [arg, shell]
            elif arg in GLOBAL_FLAGS or ("=" in arg and arg.split("=", 1)[0] in GLOBAL_OPTIONS):
                front.append(arg)
            elif arg in GLOBAL_OPTIONS:
                front += [arg, *[value for value in [next(waiting, None)] if value is not None]]
            else:
                rest.append(arg)
        return super().parse_args(ctx, front + rest)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - click's own signature
        """The commands under the headings of the table, in its order."""
        wide = max(len(name) for name in self.commands)
        for heading, entries in SECTIONS.items():
            named = [(name_of(one), self.commands[name_of(one)]) for one in entries]
            with formatter.section(heading):
                formatter.write_dl([(f"{name:{wide}}", one.get_short_help_str(100)) for name, one in named])


def name_of(entry: Entry) -> str:
    return entry[0] if isinstance(entry, tuple) else entry.__name__.replace("_", "-")


app = typer.Typer(
    cls=Anywhere, invoke_without_command=True, add_completion=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Durable memory for AI agents.",
)  # fmt: skip
for entries in SECTIONS.values():
    for entry in entries:
        if isinstance(entry, tuple):
            app.add_typer(entry[1], name=entry[0])
        else:
            app.command(name_of(entry))(entry)


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
    def engine(self, *, background: bool = False) -> Iterator[perdure.Engine]:
        with perdure.open(self.url, background=background) as engine:
            yield asked_by(engine, COMMAND_LINE)

    def bound(self, engine: perdure.Engine) -> perdure.Memory:
        """The handle that the options name."""
        return engine.memory(self.named_user(), agent=self.agent, channel=self.channel, space=self.space)

    @contextmanager
    def memory(self) -> Iterator[perdure.Memory]:
        self.named_user()  # before a store is made for nobody
        with self.engine() as engine:
            yield self.bound(engine)

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
    user: Annotated[str | None, typer.Option(help="Whose memory.", autocompletion=user_names)] = None,
    agent: Annotated[str, typer.Option(help="Which agent's.")] = "default",
    channel: Annotated[str, typer.Option(help="On which channel.")] = "default",
    json: Annotated[bool, typer.Option("--json", help="Answer in JSON on stdout.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,  # noqa: ARG001 - answered by its callback
) -> None:
    ctx.obj = Session(Output(as_json=json), url, space, user, agent, channel, debug)
    if ctx.invoked_subcommand is None:
        begin(ctx.obj.out)


def begin(out: Output) -> None:
    """What `perdure` alone says: the first things to try."""
    steps = [(line, meaning) for line, meaning in FIRST_STEPS.items() if line.split()[1] in {"--help", *named()}]
    wide = max(len(line) for line, _ in steps)
    lines = [f"  {line:{wide}}  {meaning}" for line, meaning in steps]
    out.value({"begin": dict(steps)}, [Text(one) for one in ("Durable memory for AI agents. To begin:", "", *lines)])


def named() -> list[str]:
    """The names of all commands and groups."""
    return [name_of(entry) for entries in SECTIONS.values() for entry in entries]


def run() -> None:
    """The script: errors become one line on stderr and a stable exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that cannot show a character gets its code, not a crash.
            stream.reconfigure(errors="backslashreplace")
    debug = "--debug" in sys.argv
    out = Output(as_json="--json" in sys.argv)
    try:
        code = app(standalone_mode=False, prog_name="perdure")
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
