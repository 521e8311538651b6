"""`perdure session document …`: sessions as context documents, one JSON document each."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from perdure.domain.conversation.documents import CompactionReport, ContextData
from perdure.handles.conversation import DocumentHandle
from perdure.handles.registry.shapes import plain
from perdure.interfaces.cli.derived import JSON, Form, Group, line, table
from perdure.interfaces.cli.input import ask
from perdure.interfaces.cli.output import Output, safe

app = Group("session document", "Sessions as JSON documents: history, summary, facts, tasks.")
app.offer(
    (DocumentHandle, "list"), lambda out, found: out.entries(found, [safe(one) for one in found], empty="no documents here yet")
)


@app.derived((DocumentHandle, "load"), example="ana:coach:123")
def load(out: Output, found: ContextData) -> None:
    out.value(found, [safe(json.dumps(plain(found), ensure_ascii=False, indent=2))])


app.offer(
    (DocumentHandle, "save"),
    line(lambda done, _: f"saved as revision {done.revision}"),
    form=Form(read={"document": JSON}),
    example="@plan.json",
)


@app.derived((DocumentHandle, "compact"), example="ana:coach:123 --force")
def compact(out: Output, done: CompactionReport) -> None:
    told = [
        f"{done.summarised} entries left the history, {done.tokens_before} tokens became {done.tokens_after}",
        f"{done.facts_removed} facts and {done.tasks_removed} tasks removed",
    ]
    out.value(done, told if done.compacted or done.facts_removed or done.tasks_removed else ["nothing to compact"])


app.offer((DocumentHandle, "versions"), table({"revision": "revision", "saved": "saved_at"}, "no such document"))


@app.command()
def delete(
    ctx: typer.Context,
    document: Annotated[str, typer.Argument(help="Its id.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a document with the messages of its session, for good.

    Example: perdure session document delete ana:coach:123 --yes --user ana
    """
    out: Output = ctx.obj.out
    if not yes:
        ask(out, f"this deletes {document!r:.80} and the messages of its session")
    with ctx.obj.memory() as memory:
        gone = memory.conversation.documents.delete(document)
    out.value({"document": document, "deleted": gone}, ["deleted" if gone else "there was nothing to delete"])
