"""`perdure session transcript …`: the Markdown files of a user's sessions."""

from __future__ import annotations

from perdure.handles.conversation import TranscriptHandle
from perdure.interfaces.cli.derived import Group, line, table
from perdure.interfaces.cli.lines.conversation import MessageLines
from perdure.interfaces.cli.output import Columns

COLUMNS: Columns = {
    "session": "session",
    "agent": "address.agent",
    "channel": "address.channel",
    "last": "last_at",
    "bytes": "size",
    "state": lambda one: "archived" if one.archived else "active",
    "file": "path",
}
app = Group("session transcript", "Sessions as Markdown files (setting `files_dir`).")
app.offer((TranscriptHandle, "list"), table(COLUMNS, "no transcripts here yet"))
app.offer(
    (TranscriptHandle, "read"),
    lambda out, found: out.entries(
        found, MessageLines(out.width, full=True).lines(found), empty="this session has no transcript"
    ),
)
app.offer(
    (TranscriptHandle, "archive"),
    line(lambda count, _: f"{count} transcripts archived", archived=""),
    needs_one=True,
    example="--keep 100",
)
app.offer(
    (TranscriptHandle, "prune"),
    line(lambda count, _: f"{count} transcripts deleted", deleted=""),
    needs_one=True,
    example="--before 2026-01-01T00:00:00+00:00",
)
