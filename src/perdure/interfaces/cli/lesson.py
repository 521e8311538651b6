"""`perdure lesson …`: how to behave, as learned before or written down; and the books that people edit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.text import Text

from perdure.domain.errors import NotFound
from perdure.domain.lessons import LESSON_SCOPES, Lesson, LessonScope, Refused
from perdure.interfaces.cli.asking import chosen, read_text
from perdure.interfaces.cli.output import Output, safe, visible
from perdure.interfaces.cli.rendering import local, one_line, wrapped

app = typer.Typer(no_args_is_help=True, help="How agents are to behave, as learned before.", rich_markup_mode=None)
Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, as `perdure lesson list` shows it.")]
Where = Annotated[
    str | None,
    typer.Option("--scope", help=f"{', '.join(LESSON_SCOPES)}; by default the one that lessons from here go to."),
]
SOURCES = {"compaction": "from a fold", "model": "from an agent", "user": "added", "file": "from the file"}


@app.command("list")
def list_lessons(
    ctx: typer.Context,
    scope: Annotated[str | None, typer.Option(help=f"Only {', '.join(LESSON_SCOPES)}.")] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Also those that are kept but not shown.")] = False,
    ended: Annotated[bool, typer.Option("--ended", help="Also those that were taken back.")] = False,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 100,
) -> None:
    """List the lessons that hold for this user, agent and channel, the widest scope first.

    Example: perdure lesson list --scope agent --user ana --agent coach
    """
    out: Output = ctx.obj.out
    with ctx.obj.memory() as memory:
        found = memory.lessons.list(_scope(scope), archived=archived, ended=ended, limit=limit)
    out.entries(found, _lines(found, out.width), empty="no lessons hold here")


@app.command()
def add(ctx: typer.Context, text: Annotated[str, typer.Argument(help="One line to go by.")], scope: Where = None) -> None:
    """Keep a lesson; the same words again change nothing. A lesson of scope `agent` is that of `--agent`.

    Example: perdure lesson add "Ask before booking anything" --scope agent --user ana --agent coach
    """
    with ctx.obj.memory() as memory:
        _told(ctx.obj.out, memory.lessons.add(text, _scope(scope)))


@app.command()
def archive(ctx: typer.Context, lesson: Id) -> None:
    """Keep a lesson, but show it no longer.

    Example: perdure lesson archive 5e884898da28047151d0e56f8dc62927 --user ana
    """
    with ctx.obj.memory() as memory, _here():
        _told(ctx.obj.out, memory.lessons.archive(lesson))


@app.command()
def restore(ctx: typer.Context, lesson: Id) -> None:
    """Show a lesson again that was archived or taken back.

    Example: perdure lesson restore 5e884898da28047151d0e56f8dc62927 --user ana
    """
    with ctx.obj.memory() as memory, _here():
        _told(ctx.obj.out, memory.lessons.restore(lesson))


@app.command()
def remove(ctx: typer.Context, lesson: Id) -> None:
    """A lesson holds no longer, and is not drawn again. `restore` brings it back.

    Example: perdure lesson remove 5e884898da28047151d0e56f8dc62927 --user ana
    """
    with ctx.obj.memory() as memory, _here():
        _told(ctx.obj.out, memory.lessons.remove(lesson))


@app.command()
def pin(ctx: typer.Context, lesson: Id) -> None:
    """Show a lesson before others, and never archive it to make room.

    Example: perdure lesson pin 5e884898da28047151d0e56f8dc62927 --user ana
    """
    with ctx.obj.memory() as memory, _here():
        _told(ctx.obj.out, memory.lessons.pin(lesson))


@app.command()
def unpin(ctx: typer.Context, lesson: Id) -> None:
    """Treat a lesson as the others.

    Example: perdure lesson unpin 5e884898da28047151d0e56f8dc62927 --user ana
    """
    with ctx.obj.memory() as memory, _here():
        _told(ctx.obj.out, memory.lessons.unpin(lesson))


@app.command()
def text(ctx: typer.Context, scope: Where = None) -> None:
    """Print the book of a scope, as text that can be edited: the file if there is one, else a list.

    Example: perdure lesson text --scope global --user ana > lessons.md
    """
    with ctx.obj.memory() as memory:
        found = memory.lessons.text(_scope(scope))
    ctx.obj.out.value({"text": found}, [Text(visible(found.rstrip("\n")))] if found else [])


@app.command()
def edit(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(help="The text to put in the place of the book, or - for stdin.")],
    scope: Where = None,
    was: Annotated[
        str | None, typer.Option(help="A file with the text that was edited: lines that came in since stay.")
    ] = None,
) -> None:
    """Put another text in the place of a book: lines that are gone end their lessons, new ones become lessons.

    Example: perdure lesson edit lessons.md --was lessons.old.md --scope global --user ana
    """
    out: Output = ctx.obj.out
    new, old = read_text(file), None if was is None else read_text(was)
    with ctx.obj.memory() as memory:
        refused = memory.lessons.edit(new, _scope(scope), was=old)
    out.value({"refused": refused}, [*_refusals(refused, out.width), Text("the book is as the text says")])


@app.command()
def take(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(help="The reply of a model, or - for stdin.")],
    message: Annotated[str | None, typer.Option(help="The id of the message as which the reply is logged.")] = None,
) -> None:
    """Keep what a model's reply asks to remember (`MEMORY_APPEND: …`), and print the reply without it.

    Example: perdure lesson take reply.txt --user ana --agent coach
    """
    out: Output = ctx.obj.out
    reply = read_text(file)
    with ctx.obj.memory() as memory:
        heard = memory.lessons.take_from(reply, message=message)
    out.value(heard, [Text(visible(heard.text.rstrip("\n")))] if heard.text.strip() else [])
    if not out.as_json:
        told = [f"kept for {one.scope}: {one.text}" for one in heard.appended]
        told += [f"refused, it {one.why}: {one.text}" for one in heard.refused]
        for line in [*told, *(f"note: {note}" for note in heard.notes)]:
            out.note(safe(one_line(line)))


def _scope(text: str | None) -> LessonScope | None:
    return None if text is None else chosen(text, LESSON_SCOPES, "--scope")


@contextmanager
def _here() -> Iterator[None]:
    """What is not found is told in the words of the command line."""
    try:
        yield
    except NotFound as error:
        words = str(error).partition(";")[0]
        raise NotFound(f"{words}; `perdure lesson list --archived --ended` shows them") from None


def _told(out: Output, lesson: Lesson) -> None:
    out.value(lesson, _lines([lesson], out.width))


def _lines(lessons: Iterable[Lesson], width: int) -> Iterable[Text]:
    return (line for one in lessons for line in _entry(one, width))


def _entry(one: Lesson, width: int) -> Iterator[Text]:
    """A lesson in a list. Its id stands first, so that it can be copied."""
    whose = "".join(f"  {name} {one_line(of)}" for name, of in (("of", one.agent), ("on", one.channel)) if of is not None)
    state = "".join(
        f"  {word}{'' if at is True else f' {local(at)}'}"
        for word, at in (("pinned", one.pinned), ("archived", one.archived_at), ("taken back", one.ended_at))
        if at
    )
    said = "" if one.mentions == 1 else f"  {one.mentions} times"
    yield Text.assemble((one_line(one.id), "bold"), f"  {one.scope}{whose}", (f"  {SOURCES[one.source]}{said}{state}", "dim"))
    yield from wrapped(one.text, width)


def _refusals(refused: Iterable[Refused], width: int) -> Iterator[Text]:
    for one in refused:
        yield Text.assemble(("no lesson", "yellow"), f": it {one_line(one.why)}")
        yield from wrapped(one.text, width)
