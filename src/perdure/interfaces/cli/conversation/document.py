"""`perdure session document|transcript …`: sessions as context documents, and as Markdown files."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from perdure.domain.conversation.documents import CompactionReport, ContextData
from perdure.handles.conversation import DocumentHandle, TranscriptHandle
from perdure.handles.registry.shapes import plain
from perdure.interfaces.cli.derived import JSON, Form, Group, line, table
from perdure.interfaces.cli.input import ask
from perdure.interfaces.cli.lines.conversation import MessageLines
from perdure.interfaces.cli.output import Columns, Output, safe

documents = Group("session document", "Sessions as JSON documents: history, summary, facts, tasks.")
documents.offer(
    (DocumentHandle, "list"), lambda out, found: out.entries(found, [safe(one) for one in found], empty="no documents here yet")
)


@documents.derived((DocumentHandle, "load"), example="ana:coach:123")
def load(out: Output, found: ContextData) -> None:
    out.value(found, [safe(json.dumps(plain(found), ensure_ascii=False, indent=2))])


documents.offer(
    (DocumentHandle, "save"),
    line(lambda done, _: f"saved as revision {done.revision}"),
    form=Form(read={"document": JSON}),
    example="@plan.json",
)


@documents.derived((DocumentHandle, "compact"), example="ana:coach:123 --force")
def compact(out: Output, done: CompactionReport) -> None:
    told = [
        f"{done.summarised} entries left the history, {done.tokens_before} tokens became {done.tokens_after}",
        f"{done.facts_removed} facts and {done.tasks_removed} tasks removed",
    ]
    out.value(done, told if done.compacted or done.facts_removed or done.tasks_removed else ["nothing to compact"])


documents.offer((DocumentHandle, "versions"), table({"revision": "revision", "saved": "saved_at"}, "no such document"))


@documents.command()
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


COLUMNS: Columns = {
    "session": "session",
    "agent": "address.agent",
    "channel": "address.channel",
    "last": "last_at",
    "bytes": "size",
    "state": lambda one: "archived" if one.archived else "active",
    "file": "path",
}
transcripts = Group("session transcript", "Sessions as Markdown files (setting `files_dir`).")
transcripts.offer((TranscriptHandle, "list"), table(COLUMNS, "no transcripts here yet"))
transcripts.offer(
    (TranscriptHandle, "read"),
    lambda out, found: out.entries(
        found, MessageLines(out.width, full=True).lines(found), empty="this session has no transcript"
    ),
)
transcripts.offer(
    (TranscriptHandle, "archive"),
    line(lambda count, _: f"{count} transcripts archived", archived=""),
    needs_one=True,
    example="--keep 100",
)
transcripts.offer(
    (TranscriptHandle, "prune"),
    line(lambda count, _: f"{count} transcripts deleted", deleted=""),
    needs_one=True,
    example="--before 2026-01-01T00:00:00+00:00",
)
