"""The command line as a whole: its table of commands, its global options, and what becomes of an error.

Each command opens the engine, makes one call, renders. At most 24 stand at the top; a new one belongs under its noun.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.completion import install_callback, show_callback
from typer.core import TyperGroup

import perdure
from perdure import settings as settings_module
from perdure.app import asked_by
from perdure.domain.access import COMMAND_LINE
from perdure.domain.errors import InvalidInput, PerdureError
from perdure.domain.values import dataclass
from perdure.interfaces.cli import series, state
from perdure.interfaces.cli.admin import config, journal, key, portability, store, user
from perdure.interfaces.cli.admin.serve import mcp, serve, token
from perdure.interfaces.cli.agents import agent
from perdure.interfaces.cli.completion import SHELLS, user_names
from perdure.interfaces.cli.conversation import chat, log, session
from perdure.interfaces.cli.derived import Entry, Group, add, in_commands, name_of
from perdure.interfaces.cli.knowledge import entity, lesson, memory, recall, todo
from perdure.interfaces.cli.knowledge.forget import forget
from perdure.interfaces.cli.output import Output
from perdure.interfaces.errors import INTERRUPTED, exit_code

# Newer versions of typer carry their own copy of click; this is the parent of their usage errors either way.
USAGE_ERROR: type[Any] = typer.BadParameter.__mro__[1]
COMPLETION: dict[str, Callable[..., Any]] = {"--show-completion": show_callback, "--install-completion": install_callback}
"""Options of typer's own, which find out the shell; here it may also be named behind them."""
PATHS_SHOWN = 3
GLOBAL_FLAGS = ("--json", "--debug")
GLOBAL_OPTIONS = ("--url", "--space", "--user", "--agent", "--persona", "--channel")
OWN_FLAGS: Mapping[tuple[str, ...], tuple[str, ...]] = {("admin", "key", "create"): ("--agent",)}
"""Flags of a command that are named as a global option is: a key belongs to no agent, it is one's."""

ADMIN = Group("admin", "Users, API keys, settings, backups, exports, jobs.")
ADMIN.add(
    store.users,
    user.overview,
    user.usage,
    token,
    ("key", key.app),
    ("config", config.app),
    ("jobs", user.jobs_app),
    store.health,
    store.verify,
    store.backup,
    store.restore,
    portability.export,
    portability.import_,
    store.reindex,
    store.purge,
    store.repair_clock,
    store.distribute,
    store.files,
)
SECTIONS: dict[str, tuple[Entry, ...]] = {
    "Begin": (serve, chat.chat, store.demo, mcp, store.worker, store.doctor),
    "Conversations and data": (
        log.append,
        log.messages,
        ("session", session.app),
        ("state", state.app),
        ("series", series.app),
    ),
    "Knowledge": (
        memory.remember,
        recall.recall,
        recall.context,
        ("memory", memory.app),
        ("entity", entity.app),
        ("todo", todo.app),
        ("instruction", todo.instructions_app),
        ("lesson", lesson.app),
    ),
    "Agents and administration": (
        ("agent", agent.app),
        ("journal", journal.app),
        journal.undo,
        forget,
        ("admin", ADMIN),
    ),
}
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
            elif arg in OWN_FLAGS.get(tuple(rest[:3]), ()):
                rest.append(arg)
            elif arg in GLOBAL_OPTIONS:
                front += [arg, *[value for value in [next(waiting, None)] if value is not None]]
            else:
                rest.append(arg)
        return super().parse_args(ctx, front + rest)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As every group does it; a command that stands under a noun is found by its own name, and told, not run."""
        there = [] if args[0] in self.commands else [path for path in _paths(self) if path.split()[-1] == args[0]]
        if there and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}; there is {', '.join(f'`perdure {path}`' for path in there[:PATHS_SHOWN])}.")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The options without those that few need, then the commands: so the help fits one screen."""
        shown = [one.get_help_record(ctx) for one in self.get_params(ctx) if "--show-completion" not in one.opts]
        with formatter.section("Options"):
            formatter.write_dl([one for one in shown if one is not None])
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - click's own signature
        """The commands under the headings of the table, in its order."""
        wide = max(len(name) for name in self.commands)
        for heading, entries in SECTIONS.items():
            named = [(name_of(one), self.commands[name_of(one)]) for one in entries]
            with formatter.section(heading):
                formatter.write_dl([(f"{name:{wide}}", one.get_short_help_str(100)) for name, one in named])


def _paths(group: Any, words: str = "") -> Iterator[str]:
    """The words of every command and group below this one."""
    for name, command in group.commands.items():
        yield f"{words}{name}"
        if hasattr(command, "commands"):
            yield from _paths(command, f"{words}{name} ")


app = typer.Typer(
    cls=Anywhere,
    invoke_without_command=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 100},
    help="Durable memory for AI agents.",
)
add(app, *(entry for entries in SECTIONS.values() for entry in entries))


@dataclass(slots=True)
class GlobalOptions:
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
    url: Annotated[str | None, typer.Option(help="The store: agent.db, postgresql://…, memory:")] = None,
    space: Annotated[str | None, typer.Option(help="The application or customer.")] = None,
    user: Annotated[str | None, typer.Option(help="The user.", autocompletion=user_names)] = None,
    agent: Annotated[str, typer.Option("--agent", "--persona", help="The agent.")] = "default",
    channel: Annotated[str, typer.Option(help="The channel.")] = "default",
    json: Annotated[bool, typer.Option("--json", help="Answer in JSON on stdout.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.", hidden=True)] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,  # noqa: ARG001 - answered by its callback
) -> None:
    ctx.obj = GlobalOptions(
        out=Output(as_json=json), url=url, space=space, user=user, agent=agent, channel=channel, debug=debug
    )
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
        words = in_commands(str(error))
        out.error({"error": {"code": error.code, "message": words, "retriable": error.retriable}}, words)
        code = exit_code(error)
    except USAGE_ERROR as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            sys.exit(0)
        where = error.ctx.command_path if error.ctx is not None else "perdure"
        told = error.format_message().rstrip(".")
        words = f"{told}{'' if told.endswith('?') else '.'} See `{where} --help`."
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
