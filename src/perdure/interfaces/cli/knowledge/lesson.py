"""`perdure lesson …`: how to behave, as learned before or written down; and the books that people edit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from perdure.domain.lessons import Lesson, RefusedLesson, ReplyReport
from perdure.handles.lessons import LessonHandle
from perdure.interfaces.cli.derived import FILE, Form, Group, each, single
from perdure.interfaces.cli.lines.conversation import local, one_line, wrapped
from perdure.interfaces.cli.output import Output, safe, visible

app = Group("lesson", "Rules for agents' behaviour, learned or written.")
ID = "5e884898da28047151d0e56f8dc62927"
SOURCES = {"compaction": "from a fold", "model": "from an agent", "user": "added", "file": "from the file"}
HERE = Form(hidden=("agent",))
"""A lesson of scope `agent` is that of `--agent`."""


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


app.offer((LessonHandle, "list"), each(_entry, "no lessons yet"), example="--scope agent")
app.offer((LessonHandle, "add"), single(_entry), form=HERE, example='"Ask before booking anything" --scope agent')
for verb in ("archive", "restore", "remove", "pin", "unpin"):
    app.offer((LessonHandle, verb), single(_entry))


@app.derived((LessonHandle, "text"), example="--scope global", form=HERE)
def text(out: Output, found: str) -> None:
    out.value({"text": found}, [Text(visible(found.rstrip("\n")))] if found else [])


@app.derived(
    (LessonHandle, "edit"),
    example="lessons.md --was lessons.old.md --scope global",
    form=Form(names={"text": "file"}, read={"text": FILE, "was": FILE}, hidden=("agent",)),
)
def edit(out: Output, refused: Sequence[RefusedLesson]) -> None:
    out.value({"refused": refused}, [*_refusals(refused, out.width), Text("the book is as the text says")])


@app.derived(
    (LessonHandle, "take_from"),
    example="reply.txt",
    form=Form(names={"reply": "file"}, read={"reply": FILE}),
)
def take(out: Output, heard: ReplyReport) -> None:
    out.value(heard, [Text(visible(heard.text.rstrip("\n")))] if heard.text.strip() else [])
    if not out.as_json:
        told = [f"kept for {one.scope}: {one.text}" for one in heard.appended]
        told += [f"refused, it {one.why}: {one.text}" for one in heard.refused]
        for line in [*told, *(f"note: {note}" for note in heard.notes)]:
            out.note(safe(one_line(line)))


def _refusals(refused: Iterable[RefusedLesson], width: int) -> Iterator[Text]:
    for one in refused:
        yield Text.assemble(("no lesson", "yellow"), f": it {one_line(one.why)}")
        yield from wrapped(one.text, width)
