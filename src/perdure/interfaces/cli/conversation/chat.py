"""`perdure chat`: a small chat in the terminal that shows what the model was given of the memory, and why."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from perdure.domain.errors import InvalidInput, PerdureError, Unavailable
from perdure.domain.values import dataclass, field
from perdure.interfaces.cli.input import ask
from perdure.interfaces.cli.lines import knowledge as knowledge_lines
from perdure.interfaces.cli.lines import oversight as oversight_lines
from perdure.interfaces.cli.lines.conversation import heading, one_line, wrapped
from perdure.interfaces.cli.output import Output, plural, safe, visible
from perdure.interfaces.errors import EXIT_CODES, as_json

if TYPE_CHECKING:
    from perdure.handles.chat import Chat, Exchange

PROMPT = "you> "
SHOWN_MAX = 20


def chat(
    ctx: typer.Context,
    deadline: Annotated[float, typer.Option(help="So many seconds a model may take for one answer.")] = 120.0,
    why: Annotated[bool, typer.Option("--why", help="Show what of the memory was given, and why, at every turn.")] = False,
    commands: Annotated[
        bool | None,
        typer.Option("--commands/--no-commands", help="Whether /help, /why … are commands; by default on a terminal."),
    ] = None,
    jobs: Annotated[
        bool, typer.Option("--jobs/--no-jobs", help="Learn from what is said meanwhile, or leave that to a worker.")
    ] = True,
) -> None:
    """Talk with a model that remembers, and see what it is given.

    The setting `model` names it; without one, an echo answers.

    What is said is kept in the log. From a pipe, each line is a message; with --json, each turn is one JSON object.

    Example: perdure chat --user ana
    """
    if not 0 < deadline <= 3_600:
        raise InvalidInput(f"`--deadline` = {deadline:g} must be more than 0 and at most 3600 seconds")
    from perdure.app import chat_with  # as with every store, when one is opened

    out: Output = ctx.obj.out
    live = sys.stdin.isatty() and not out.as_json
    ctx.obj.named_user()  # before a store is made for nobody
    with ctx.obj.engine(background=jobs) as engine:
        talk = ChatRun(chat_with(engine, ctx.obj.bound(engine)), out, deadline, shows_why=why)
        talk.greet(live)
        with suppress(KeyboardInterrupt):  # the way out; whatever was said is in the log
            for line in _lines(live):
                if not talk.take(line, commands=live if commands is None else commands):
                    break
        if live:
            out.note("what was said is kept; `perdure chat` continues from there")
    if talk.unanswered and not live:
        raise typer.Exit(EXIT_CODES[Unavailable.code])


@dataclass(slots=True)
class ChatRun:
    """One run of the chat."""

    chat: Chat
    out: Output
    deadline_s: float
    shows_why: bool = False
    unanswered: int = 0
    last: Exchange | None = field(default=None)

    def greet(self, live: bool) -> None:
        who = (
            f"{safe(self.chat.model)} answers"
            if self.chat.model
            else ("no model is set, so an echo answers; `PERDURE_MODEL=openai:URL#MODEL` or `ollama:URL#MODEL` names one")
        )
        if not self.out.as_json:
            self.out.note(who)
        if live:
            self.out.note("/why shows which memories it was given; /help lists the commands; /quit or Ctrl-C ends the chat")

    def take(self, line: str, *, commands: bool) -> bool:
        """One line: a message, or a command. False if it ends the chat. An error is told, and the chat goes on."""
        text = line.strip()
        if not text:
            return True
        try:
            if commands and text.startswith("/") and not text.startswith("//"):
                return self._command(text)
            self._say(text[1:] if commands and text.startswith("//") else text)
        except PerdureError as error:
            if self.out.as_json:
                self.out.value(as_json(error))
            else:
                self.out.error(as_json(error), str(error))
            self.unanswered += 1
        except typer.Abort:
            pass  # a question was answered with no
        return True

    def _say(self, text: str) -> None:
        with self.out.progress("waiting for the model"):
            self.last = found = self.chat.say(text, deadline_s=self.deadline_s)
        if found.reply is None:
            self.unanswered += 1
        self.out.value(
            {
                "said": found.said,
                "reply": found.reply,
                "outcome": found.outcome,
                "detail": found.detail,
                "memory": found.given,
                "earlier": found.earlier,
                "things": found.things,
                "tokens": found.tokens,
                "lessons": found.heard,
                "model": self.chat.model,
                "took_ms": found.took_ms,
            },
            self._exchange_lines(found),
        )

    def _exchange_lines(self, found: Exchange) -> Iterator[str | Text]:
        self.out.note(f"[dim]memory: {plural(found.things, 'item')}, {plural(found.tokens, 'token')}[/dim]")
        if self.shows_why:
            yield from _why(found, self.out.width)
        if found.reply is None:
            detail = f" ({found.detail})" if found.detail else ""
            self.out.note(
                safe(one_line(f"no answer: {found.outcome}{detail}; what you said is kept, say it again to try again"))
            )
        else:
            name = self.chat.model or found.outcome
            yield Text.assemble((f"{one_line(name)}> ", "bold green"), visible(found.reply.content))
        if found.heard is not None:
            kept = [f"learned, for {one.scope}: {one.text}" for one in found.heard.appended]
            kept += [f"not learned, it {one.why}: {one.text}" for one in found.heard.refused]
            for line in kept:
                self.out.note(f"[dim]{safe(one_line(line))}[/dim]")

    # -- commands

    def _command(self, text: str) -> bool:
        name, _, rest = text[1:].partition(" ")
        if name in ("quit", "exit"):
            return False
        known: Mapping[str, Callable[[str], None]] = {
            "why": self._tell_why,
            "memories": self._memories,
            "forget": self._forget,
            "todos": self._todos,
            "help": self._help,
        }
        if name not in known:
            raise InvalidInput(f"/{name:.40} is no command; /help lists them, and //{name:.40} says it")
        known[name](rest.strip())
        return True

    def _tell_why(self, _: str) -> None:
        if self.last is None:
            raise InvalidInput("nothing was said yet; say something, then ask /why")
        self.out.value({"memory": self.last.given, "earlier": self.last.earlier}, _why(self.last, self.out.width))

    def _memories(self, words: str) -> None:
        memories = (
            self.chat.memory.memories.list(limit=SHOWN_MAX)
            if not words
            else [hit for hit in self.chat.memory.memories.list(limit=1_000) if words.casefold() in hit.content.casefold()][
                :SHOWN_MAX
            ]
        )
        self.out.each(memories, knowledge_lines.memory_entry, empty="nothing is known here yet")

    def _todos(self, _: str) -> None:
        todos = self.chat.memory.todos.list(limit=SHOWN_MAX)
        self.out.each(todos, knowledge_lines.todo_entry, empty="nothing to do")

    def _forget(self, what: str) -> None:
        sure, _, rest = what.partition(" ")
        name = rest.strip() if sure == "--yes" else what
        if "|" not in name and ":" not in name:
            raise InvalidInput("/forget takes the key of a memory, as /memories shows it, or an entity such as person:maria")
        if sure != "--yes":
            ask(self.out, f"this forgets {one_line(name)} for good, with all that was derived from it")
        memory = self.chat.memory
        done = memory.forget(memory=name) if "|" in name else memory.forget(entity=name)
        self.out.value(done, knowledge_lines.forgotten_lines(done, self.out.width))

    def _help(self, _: str) -> None:
        self.out.value(HELP, (f"{name:20}{meaning}" for name, meaning in HELP.items()))


HELP = {
    "/why": "what the model was given of the memory at the last turn, and why",
    "/memories WORDS": "what is known; with words, what has them",
    "/forget KEY": "forget a memory, or an entity such as person:maria, for good",
    "/todos": "what there is to do",
    "//TEXT": "say a text that begins with a slash",
    "/quit": "end the chat; Ctrl-C does so, too",
}


def _why(found: Exchange, width: int) -> Iterator[Text]:
    yield from oversight_lines.explained(found.given, width)
    for block in found.earlier:
        yield heading(block.title, f"{block.tokens:,} tokens; of this conversation and those before; from {block.source}")
        yield from wrapped(block.text, width)
    yield from (Text(f"note: {one_line(note)}") for note in found.given.notes)


def _lines(live: bool) -> Iterator[str]:
    if not live:
        yield from sys.stdin
        return
    with suppress(ImportError):
        import readline  # noqa: F401 - gives the lines below a history and editing
    while True:
        try:
            yield input(PROMPT)
        except EOFError:
            return
