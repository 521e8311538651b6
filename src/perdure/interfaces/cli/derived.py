"""Commands made from declared operations: help, options with their words, types and choices, one call, and what shows it.

    app = Group("todo", "Todos.")
    app.offer((TodoHandle, "list"), each(todo_entry, "nothing to do"), example="--closed")

    @app.derived((TodoHandle, "add"))
    def add(out: Output, todo: Todo) -> None: ...

The function may take what was given as its third argument. What it takes by keyword is an option of the command alone.
"""

from __future__ import annotations

import inspect
import json
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from rich.text import Text

import perdure
from perdure.domain.errors import InvalidInput, PerdureError
from perdure.domain.times.instants import check_instant, read_instant
from perdure.domain.values import dataclass, field
from perdure.handles.operation import UNSET, OperationSpec, Parameter, describe, reached
from perdure.interfaces.cli.input import chosen, read_json, read_text, text_or_stdin
from perdure.interfaces.cli.output import Columns, Output
from perdure.interfaces.errors import EXIT_CODES

Show = Callable[..., None]
Command = Callable[..., None]
Entry = Command | tuple[str, typer.Typer]
"""A command, named as its function is; or the name of a group and its commands."""
Place = Callable[..., AbstractContextManager[Any]]
"""From the context, and from arguments of its own: the handle that is called."""
MOMENT = "ISO 8601 with a zone."
COMMANDS: dict[str, str] = {"conversation.sessions": "session list", "agents.list": "agent list"}
"""Operations by name, and the words of the command that calls each; those of the commands below are added to it."""
FLAG = re.compile(r"`(\w+)=True`")
CALL = re.compile(r"`([a-z_.]+)\(\)`")
PYTHON = re.compile(r"`(\w+)(?:=True)?`")
GIVEN_BACK = re.compile(r" ?\b(?:False if|The number|None if)\b[^.]*\.")
"""What a call gives back: a command shows that, and so its help need not say it."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How what stands on the command line becomes what an operation takes."""

    read: Callable[[Any], Any]
    words: str
    kind: type = str


FILE = Reader(read_text, "A file, or - for stdin.")
JSON = Reader(read_json, "JSON, - for stdin, or @FILE.")
STDIN = Reader(text_or_stdin, "- reads it from stdin.")
WORDS = Reader(lambda text: text_or_stdin(text).strip(), "- reads it from stdin.")


@dataclass(frozen=True, slots=True)
class Form:
    """How an operation looks on the command line, where that is not told by its declaration."""

    names: Mapping[str, str] = field(default_factory=dict)
    """Other names of options: a list is given one by one, so `entities` is `--entity`."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Other words, where the option says the opposite of the parameter."""
    options: Collection[str] = ()
    """Parameters that are given by name, although the call takes them without one."""
    arguments: Collection[str] = ()
    """Parameters that are given without a name, although the call takes them by one."""
    hidden: Collection[str] = ()
    """Parameters that the command does not offer."""
    read: Mapping[str, Reader] = field(default_factory=dict)
    """Parameters that are read from more than their own words: a file, stdin, JSON."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """What the command takes where nothing is given."""
    complete: Mapping[str, Callable[..., list[str]]] = field(default_factory=dict)
    """What a shell completes."""

    def name(self, one: Parameter) -> str:
        return self.names.get(one.name, one.name)

    def flag(self, one: Parameter) -> str:
        """As an error names it."""
        return self.name(one).upper() if self.stands_alone(one) else f"--{self.name(one).replace('_', '-')}"

    def offers(self, one: Parameter) -> bool:
        """Whether it can be given: callbacks and streams cannot."""
        kinds = (str, bool, int, float, datetime, object)
        as_text = bool(one.choices) or one.type in kinds or one.item in kinds or get_origin(one.type) is tuple
        return one.name not in self.hidden and (as_text or one.name in self.read)

    def stands_alone(self, one: Parameter) -> bool:
        """Whether it is given without a name. A limit is not, nor is a choice that has a default."""
        if one.keyword or one.name in self.options or one.name == "limit" or (one.choices and not one.required):
            return one.name in self.arguments
        return one.item is None or one.name in self.read

    def default(self, one: Parameter) -> Any:
        """What stands on the command line if nothing is given; None for what the operation says itself."""
        if one.name in self.defaults:
            return self.defaults[one.name]
        if one.required:
            return inspect.Parameter.empty
        return None if one.default is UNSET or one.default == () else one.default


def derived(
    method: tuple[type, str],
    *,
    example: str | Example,
    form: Form | None = None,
    at: Place | None = None,
    call: Callable[..., Any] | None = None,
    needs_one: bool = False,
    words: str = "",
) -> Callable[[Show], Command]:
    """A command that calls `method` (its handle's class, its name) and hands the answer to the function below.

    `at` opens another handle than a memory's. `call(handle, fields)` stands for a call that has another one behind it. With
    `needs_one`, a command to which none of its options is given changes nothing, and says so. `words` are its help, by default
    those of the function, or else of the declaration.
    """
    declared, look = describe(*method), form or Form()
    place = at or _memory_at(declared)
    offered = [one for one in declared.parameters if look.offers(one)]
    placed = list(_annotated(place))[1:]

    def wrap(show: Show) -> Command:
        shown = list(_annotated(show))
        own = [one for one in shown if one.kind is one.KEYWORD_ONLY]
        with_given = len(shown) - len(own) > 2

        def run(ctx: typer.Context, **given: Any) -> None:
            extras = {one.name: given.pop(one.name) for one in own}
            where = {one.name: given.pop(one.name) for one in placed}
            fields = {one.name: value for one in offered if (value := _value(one, given[look.name(one)], look)) is not UNSET}
            if needs_one:
                _check_one(offered, fields, look)
            with place(ctx, **where) as handle:
                answer = getattr(handle, method[1])(**fields) if call is None else call(handle, fields, **extras)
            show(ctx.obj.out, answer, *([where | fields] if with_given else []), **extras)

        context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        taken = [context, *placed, *(_option(one, look) for one in offered), *own]
        run.__signature__ = inspect.Signature([one.replace(kind=one.KEYWORD_ONLY) for one in taken])  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in taken}
        run.__name__ = show.__name__
        shown_as = example if isinstance(example, str) else example.line(offered, look, placed=bool(placed))
        run.__doc__ = f"{words or inspect.getdoc(show) or _help(declared.doc, offered, look)}\n\nExample: {shown_as}"
        return run

    return wrap


def _help(doc: str, offered: Sequence[Parameter], look: Form) -> str:
    """The words of a declaration on the command line: parameters are options, and errors are exit codes."""
    known = {one.name: f"`{look.flag(one)}`" for one in offered}
    known |= {one.__name__: f"Exit code {EXIT_CODES[one.code]}" for one in PerdureError.__subclasses__()}
    return PYTHON.sub(lambda found: known.get(found[1], found[0]), GIVEN_BACK.sub("", doc))


def in_commands(message: str) -> str:
    """An error whose remedy is a call or a parameter, with the command or the option that stands for it."""

    def command(found: re.Match[str]) -> str:
        words = COMMANDS.get(found[1]) or COMMANDS.get(f"conversation.{found[1]}")
        return found[0] if words is None else f"`perdure {words}`"

    return FLAG.sub(lambda found: f"`--{found[1].replace('_', '-')}`", CALL.sub(command, message))


# -- how answers are shown

Lines = Iterable[str | Text]


def each(entry: Callable[[Any, int], Lines], empty: str) -> Show:
    """Several answers, each as the lines that `entry` makes of it for the width of the terminal."""
    return lambda out, found: out.each(found, entry, empty=empty)


def table(columns: Columns, empty: str) -> Show:
    """Several answers as a table."""
    return lambda out, found: out.table(found, columns, empty=empty)


def single(entry: Callable[[Any, int], Lines]) -> Show:
    """One answer as lines."""
    return lambda out, value: out.value(value, entry(value, out.width))


def line(words: Callable[[Any, Mapping[str, Any]], str | Text], **told: str) -> Show:
    """One line, made of the answer and of what was given. JSON has the answer, or an object with the fields that `told` names:
    each something that was given, or the answer itself for an empty name."""

    def show(out: Output, value: Any, given: Mapping[str, Any]) -> None:
        fields = {name: given[of] if of else value for name, of in told.items()}
        out.value(fields or value, [words(value, given)])

    return show


class Group(typer.Typer):
    """Commands under one noun. In examples, `first` stands before what else is given, and `last` behind it."""

    def __init__(self, path: str, words: str, *, first: str = "", last: str = "--user ana") -> None:
        super().__init__(no_args_is_help=True, help=words, rich_markup_mode=None)
        self.path, self.first, self.last = path, first, last

    def add(self, *entries: Entry) -> None:
        """Take commands and groups that stand elsewhere."""
        add(self, *entries)

    def derived(
        self, method: tuple[type, str], *, name: str | None = None, example: str | None = None, **more: Any
    ) -> Callable[[Show], Command]:
        """As `derived`: a command of this group, named as the function is or otherwise. `example` is a whole
        line, or what its example has in place of what the declaration tells."""

        def wrap(show: Show) -> Command:
            called = name or show.__name__
            words = Example(f"perdure {self.path} {name_of(called)}", self.first, example, self.last)
            whole = example if example is not None and example.startswith("perdure ") else words
            command = derived(method, example=whole, **more)(show)
            command.__name__ = called
            COMMANDS.setdefault(describe(*method).name, f"{self.path} {name_of(called)}")
            self.add(command)
            return command

        return wrap

    def offer(self, method: tuple[type, str], show: Show, *, name: str | None = None, **more: Any) -> None:
        """A command of this group that is named as the method is, unless told otherwise, and that `show` shows."""
        self.derived(method, name=name or method[1], **more)(show)


@dataclass(frozen=True, slots=True)
class Example:
    """A command line as an example: given in full, or made of the examples that the declaration has."""

    command: str
    first: str
    given: str | None
    last: str

    def line(self, offered: Sequence[Parameter], look: Form, *, placed: bool) -> str:
        """With what has to be given, and where the handle is another than the memory's, with what names it."""
        first = self.first if placed else ""
        return " ".join(filter(None, (self.command, first, self.given or " ".join(_needed(offered, look)), self.last)))


def _needed(offered: Sequence[Parameter], look: Form) -> Iterator[str]:
    for one in offered:
        if one.required and one.name not in look.defaults:
            if one.arg.example is None:
                raise TypeError(f"`{one.name}` has no example in its declaration; give it one, or the command")
            yield from () if look.stands_alone(one) else (look.flag(one),)
            as_json = look.read.get(one.name) is JSON
            yield shlex.quote(json.dumps(one.arg.example) if as_json else str(one.arg.example))


def add(app: typer.Typer, *entries: Entry) -> None:
    """Give commands and groups to an application, in this order."""
    for entry in entries:
        if isinstance(entry, tuple):
            app.add_typer(entry[1], name=entry[0])
        else:
            app.command(name_of(entry))(entry)


def name_of(entry: Entry | str) -> str:
    """The name of a command or a group: `import_` is `import`."""
    if isinstance(entry, tuple):
        return entry[0]
    return (entry if isinstance(entry, str) else entry.__name__).strip("_").replace("_", "-")


@contextmanager
def whole_store(ctx: typer.Context) -> Iterator[perdure.Engine]:
    """For commands about the store as a whole."""
    with ctx.obj.engine() as engine:
        yield engine


def _memory_at(declared: OperationSpec) -> Place:
    @contextmanager
    def place(ctx: typer.Context) -> Iterator[Any]:
        with ctx.obj.memory() as memory:
            yield reached(memory, declared)

    return place


def _annotated(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(function, include_extras=True)
    return (one.replace(annotation=hints.get(one.name, Any)) for one in inspect.signature(function).parameters.values())


def _check_one(offered: Sequence[Parameter], fields: Mapping[str, Any], look: Form) -> None:
    changes = [one for one in offered if not look.stands_alone(one)]
    if not any(one.name in fields for one in changes):
        *flags, last = (f"`{look.flag(one)}`" for one in changes)
        raise InvalidInput(f"nothing to change; give {' or '.join(filter(None, (', '.join(flags), last)))}")


def _option(one: Parameter, look: Form) -> inspect.Parameter:
    words, name = look.words.get(one.name, one.arg.text), look.name(one)
    reader, default = look.read.get(one.name), look.default(one)
    kind: Any = one.type if one.type in (bool, int, float) else str
    if one.choices:
        words = f"{words} {', '.join(one.choices)}."
    if reader is not None:
        kind, words = reader.kind, f"{words} {reader.words}"
    elif get_origin(one.type) is tuple:
        kind = tuple[str, str]
    elif datetime in (one.type, one.item):
        words = f"{words} {MOMENT}"
    if look.stands_alone(one):
        asked: Any = typer.Argument(help=words, autocompletion=look.complete.get(one.name))
    elif one.item is not None and reader is None:
        kind, asked, default = list[str], typer.Option(help=f"{words} Repeatable."), None
    elif one.type is bool:
        flag = f"--{name.replace('_', '-')}"
        asked = typer.Option(f"{flag}/--not-{flag[2:]}" if one.optional else flag, help=words)
        default = False if default is True else default
    else:
        asked = typer.Option(help=words)
    annotation: Any = Annotated[kind | None if default is None else kind, asked]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _value(one: Parameter, given: Any, look: Form) -> Any:
    """What was given, as the operation takes it; `UNSET` if it was left out."""
    if given is None:
        return UNSET
    if one.name in look.read:
        return look.read[one.name].read(given)
    if one.type is bool:
        # What holds unless told otherwise is offered as its opposite, under the name of that.
        return not given if one.default is True else given
    if one.item is not None:
        return [_read(one.item, one.choices, text, look.flag(one)) for text in given]
    if get_origin(one.type) is tuple:
        return tuple(_read(kind, (), text, look.flag(one)) for kind, text in zip(get_args(one.type), given, strict=True))
    return _read(one.type, one.choices, given, look.flag(one))


def _read(kind: Any, choices: Sequence[str], given: Any, name: str) -> Any:
    if choices:
        return chosen(given, tuple(choices), name)
    return check_instant(read_instant(given, name), name) if kind is datetime else given
