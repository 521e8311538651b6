"""`perdure agent connect|hook`: a plugin that gives Claude Code a memory, and what its hooks call."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

import typer

from perdure import settings as settings_module
from perdure.domain.errors import InvalidInput, PerdureError
from perdure.domain.scope import ID_BYTES_MAX
from perdure.integrations import claude_code
from perdure.interfaces.cli.input import chosen
from perdure.interfaces.cli.output import Output, safe
from perdure.interfaces.connect import program_path, store_words

PROGRAMS = ("claude-code",)
UNNAMED = "default"
EVENT_BYTES_MAX = 10_000_000
INSTALL_S = 120.0
Deadline = Annotated[float, typer.Option(help="Seconds that a turn waits for it at most.", min=0.1, max=600)]


def connect(
    ctx: typer.Context,
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help=f"What to connect: {', '.join(PROGRAMS)}.")],
    folder: Annotated[Path | None, typer.Option(help="Where to write the plugin; beside the store, if left out.")] = None,
    deadline: Deadline = claude_code.WAIT_S,
    no_install: Annotated[bool, typer.Option("--no-install", help="Write the plugin, and install it yourself.")] = False,
) -> None:
    """Install the Claude Code plugin, which recalls and learns.

    Before each prompt it adds what is remembered and matters to it; after each turn it learns from what was said. Run it
    again to change the user or the store.

    Example: perdure agent connect claude-code --user ana
    """
    out: Output = ctx.obj.out
    chosen(program, PROGRAMS, "PROGRAM")
    place = (folder or settings_module.default_store_path().parent / PROGRAMS[0]).resolve()
    store = store_words(settings_module.load(url=ctx.obj.url).url)
    command = shlex.join([program_path(), *_hook_words(ctx, deadline), *store])
    worker = shlex.join([program_path(), "worker", "--once", *store])
    for name, content in claude_code.plugin_files(command, worker, wait_s=deadline).items():
        _write(place / name, json.dumps(content, indent=2) + "\n")
    steps = [["plugin", "marketplace", "add", str(place)], ["plugin", "install", f"{claude_code.NAME}@{claude_code.NAME}"]]
    failed = "it was not asked to" if no_install else _install(steps)
    by_hand = [shlex.join(["claude", *step]) for step in steps] if failed else []
    told = {"folder": str(place), "command": command, "installed": not failed, "next": by_hand}
    lines = [f"the plugin is in {place}"]
    lines += (
        ["Claude Code uses it from its next session on"] if not failed else [f"to install it, run:  {one}" for one in by_hand]
    )
    out.value(told, [safe(one) for one in lines])
    if failed and not no_install:
        out.note(safe(f"Claude Code was not asked to install it: {failed}"))


def hook(ctx: typer.Context, deadline: Deadline = claude_code.WAIT_S) -> None:
    """Answer a hook of Claude Code: recall or learn.

    It reads the event on stdin and prints the answer. Whatever goes wrong is said on stderr, and the exit code is 0: no turn
    fails or waits because of it.

    Example: perdure agent hook --user ana < event.json
    """
    answers: list[str] = []

    def work() -> None:
        try:
            answers.append(_answer(ctx, _event()))
        except PerdureError as error:
            _say(str(error))
        except Exception as error:  # the interface edge: a hook never fails the turn that it belongs to
            if ctx.obj.debug:
                raise
            _say(f"{type(error).__name__}: this is a bug in perdure; please report it")

    # A thread of its own, which is left behind when the time is up: reading stdin, a store that is busy and a model may hang.
    worker = Thread(target=work, daemon=True)
    worker.start()
    worker.join(deadline)
    if worker.is_alive():
        _say(f"no answer within {deadline:g} s; the turn continues without it")
        os._exit(0)
    if answers and answers[0]:
        print(answers[0], flush=True)


def _answer(ctx: typer.Context, event: dict[str, Any]) -> str:
    options = ctx.obj
    options.agent = PROGRAMS[0] if options.agent == UNNAMED else options.agent
    if options.channel == UNNAMED and isinstance(event.get("cwd"), str) and event["cwd"]:
        # Each project is a channel: two windows on two projects do not end each other's sessions.
        options.channel = event["cwd"].encode("utf-8", "replace")[-ID_BYTES_MAX:].decode("utf-8", "ignore")
    user = options.named_user()
    with options.engine() as engine:
        memory = engine.memory(user, agent=options.agent, channel=options.channel, space=options.space)
        told = claude_code.answer(memory, event)
    return json.dumps(told) if told else ""


def _event() -> dict[str, Any]:
    text = sys.stdin.buffer.read(EVENT_BYTES_MAX + 1)
    if len(text) > EVENT_BYTES_MAX:
        raise InvalidInput(f"the event is longer than {EVENT_BYTES_MAX} bytes; a shorter prompt is recalled for")
    try:
        event = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"stdin is not the JSON of a hook ({type(error).__name__}); `perdure agent connect` has Claude Code write it"
        ) from None
    if not isinstance(event, dict):
        raise InvalidInput(f"stdin is a JSON `{type(event).__name__}`; send the object that Claude Code writes")
    return event


def _hook_words(ctx: typer.Context, deadline: float) -> list[str]:
    """The command of a hook, for this user."""
    options = ctx.obj
    words = ["agent", "hook", "--user", options.named_user()]
    given = {"--space": options.space, "--agent": options.agent, "--channel": options.channel}
    words += [word for name, value in given.items() if value not in (None, UNNAMED) for word in (name, value)]
    return words if deadline == claude_code.WAIT_S else [*words, "--deadline", f"{deadline:g}"]


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written ({type(error).__name__}); name another place with `--folder`") from None


def _install(steps: Sequence[Sequence[str]]) -> str:
    """Have Claude Code install it; what went wrong, if anything did."""
    claude = shutil.which("claude")
    if claude is None:
        return "there is no `claude` in your PATH"
    for step in steps:
        try:
            done = subprocess.run(  # noqa: S603 - the program that the user asks to connect
                [claude, *step], capture_output=True, text=True, timeout=INSTALL_S, check=False, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"`claude {step[0]} {step[1]}` ended with {type(error).__name__}"
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["nothing"]
            return f"`claude {step[0]} {step[1]}` said: {said[0]:.200}"
    return ""


def _say(text: str) -> None:
    print(f"perdure: {safe(text)}", file=sys.stderr, flush=True)
