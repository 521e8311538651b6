"""`perdure remember` and `perdure memory …`: what is known of a user's world, and its upkeep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer
from rich.text import Text

from perdure.handles.knowledge import Memories
from perdure.handles.memory import Memory
from perdure.handles.registry.shapes import plain
from perdure.interfaces.cli.derived import FILE, WORDS, Form, Group, Show, derived, each, line, single
from perdure.interfaces.cli.lines import knowledge as show_as
from perdure.interfaces.cli.lines.conversation import one_line
from perdure.interfaces.cli.output import Output, plural
from perdure.types import Curation, ExtractionReport, MemoryWithStatements, Outcome, PendingProposal

app = Group("memory", "Memories: list, show, correct, pin, audit, curate.")
KEY = "profile|place|austin|fact"


@derived(
    (Memory, "remember"),
    example='perdure remember "Lives in Austin" --attribute lives_in --value Austin --entity place:Austin --user ana',
    form=Form(names={"entities": "entity", "pinned": "pin"}, read={"content": WORDS}),
)
def remember(out: Output, outcome: Outcome) -> None:
    """Remember a statement about the user's world.

    The same again counts a mention; a new value of a single-valued attribute closes the old one.
    """
    out.value(outcome, show_as.learned_lines(ExtractionReport((outcome,)), out.width))
    if not out.as_json and outcome.statement is not None:
        out.note(f"in memory {one_line(outcome.statement.memory)}")
    if outcome.verdict == "refused":
        raise typer.Exit(2)  # as for any other input that is not taken


app.offer(
    (Memories, "list"),
    each(show_as.memory_entry, "nothing is known here yet"),
    form=Form(hidden=("behind",)),
    example="--entity person:john_doe",
)
app.offer((Memories, "groups"), each(show_as.memory_group, "nothing is known here yet"))
app.offer((Memories, "get"), single(show_as.memory_whole), name="show")
app.offer((Memories, "history"), each(show_as.statement_entry, "it states nothing"))
app.offer((Memories, "changes"), each(show_as.change, "nothing was done to it"))


@app.derived((Memories, "foundation"))
def foundation(out: Output, answer: tuple[Sequence[MemoryWithStatements], int]) -> None:
    found, more = answer
    if out.as_json:
        out.value({"memories": list(found), "more": more})
        return
    out.each(found, show_as.memory_entry, empty="nothing is pinned")
    if more:
        out.note(f"{more} more are pinned, and too many to be in every prompt")


def _changed(said: str) -> Show:
    """Shows the memory that was changed: its key, and what it is now."""
    return line(lambda found, _: Text(f"{one_line(found.memory.record_key)} {said.format(found.memory)}"))


for verb, said in {
    "pin": "is pinned",
    "unpin": "is not pinned any more",
    "archive": "is archived",
    "restore": "is active",
}.items():
    app.offer((Memories, verb), _changed(said))
app.offer((Memories, "edit"), _changed("has importance {.importance}"), needs_one=True, example=f'"{KEY}" --importance 2')
app.offer((Memories, "reject"), line(lambda found, _: Text(f"{one_line(found.id)} is rejected")))
app.offer((Memories, "rejections"), each(show_as.rejection_entry, "nothing was refused"))
app.offer(
    (Memories, "audit"),
    single(show_as.audit_lines),
    form=Form(options=("export",), read={"export": FILE}),
    example="--export mem0.json",
)


@app.derived((Memories, "correct"), example=f'"{KEY}" "Lives in Seattle" --value Seattle')
def correct(out: Output, outcome: Outcome) -> None:
    where = [] if outcome.statement is None else [Text(f"memory {outcome.statement.memory}", "dim")]
    out.value(outcome, [*show_as.learned_lines(ExtractionReport((outcome,)), out.width), *where])


@app.derived((Memories, "proposals"), name="review")
def review(out: Output, found: Sequence[PendingProposal]) -> None:
    out.each(found, show_as.proposal_entry, empty="nothing waits for a decision")
    if found and not out.as_json:
        out.note("perdure memory accept ID makes it the user's word; perdure memory reject ID refuses it")


@app.derived((Memories, "accept"))
def accept(out: Output, outcome: Outcome) -> None:
    out.value(outcome, show_as.learned_lines(ExtractionReport((outcome,)), out.width))


@app.derived((Memories, "extract"), example="--dry-run")
def extract(out: Output, found: ExtractionReport, given: Mapping[str, Any]) -> None:
    rest = f"{found.todos} todos, {found.skipped} sentences left out, {found.echoes} echoes, {found.refused} refused"
    would = "; nothing was stored" if given["dry_run"] else ""
    summary = f"{found.messages} messages: {show_as.counted(found)}; {rest}{would}"
    out.value({"dry_run": given["dry_run"], **plain(found)}, [*show_as.learned_lines(found, out.width), Text(summary)])


@app.derived(
    (Memories, "seed"),
    example="profile.txt",
    form=Form(names={"text": "file"}, read={"text": FILE}),
)
def seed(out: Output, outcomes: Sequence[Outcome]) -> None:
    found = ExtractionReport(tuple(outcomes))
    out.value(list(outcomes), [*show_as.learned_lines(found, out.width), Text(show_as.counted(found))])


@app.derived((Memories, "curate"), example="--dry-run")
def curate(out: Output, done: Curation, given: Mapping[str, Any]) -> None:
    end = "" if done.action is None else f"; perdure undo {done.action} takes it back"
    would = "; nothing was changed" if given["dry_run"] else end
    made = f"{plural(len(done.folds), 'fold')}, {plural(len(done.clashes), 'clash', 'clashes')}"
    summary = f"{plural(done.memories, 'memory', 'memories')}: {made}{would}"
    out.value({"dry_run": given["dry_run"], **plain(done)}, [*show_as.curation_lines(done, out.width), Text(summary)])
