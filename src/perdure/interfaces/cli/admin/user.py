"""The upkeep of one user's data: jobs, overview, usage of models."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.domain.models import Usage
from perdure.domain.reports import Overview
from perdure.handles.admin import AdminHandle
from perdure.interfaces.cli.derived import Group, derived, line, table
from perdure.interfaces.cli.output import Columns, Output, counted, plural, safe

COUNTED = {"state": "state_keys", "pinned": "memories_pinned", "archived": "memories_archived", "jobs_dead": "jobs_failed"}
jobs_app = Group("admin jobs", "A user's jobs, and another try for failed ones.")


JOBS: Columns = {
    "kind": "kind",
    "key": "key",
    "state": "state",
    "due": "due_at",
    "tries": lambda one: f"{one.attempts}/{one.attempts_max}",
    "error": "last_error",
}
jobs_app.offer((AdminHandle, "jobs"), table(JOBS, "no such jobs"), name="list", example="--state dead")
jobs_app.offer(
    (AdminHandle, "retry_jobs"), line(lambda count, _: f"{plural(count, 'failed job')} ready again", retried=""), name="retry"
)


@derived((AdminHandle, "overview"), example="perdure admin overview --days 7 --user ana")
def overview(out: Output, found: Overview) -> None:
    counts = ", ".join(counted(COUNTED.get(name, name), count) for name, count in found.counts.items() if count)
    active = [day for day in found.days if day.messages or day.changes]
    busy = (f"{day.day.isoformat()}  {plural(day.messages, 'message')}, {plural(day.changes, 'change')}" for day in active)
    more = ["there is more than was counted"] if found.partial else []
    out.value(found, [counts or "nothing stored yet", *busy, *more])


@derived((AdminHandle, "usage"), example="perdure admin usage --user ana")
def usage(out: Output, found: Sequence[Usage]) -> None:
    out.entries(found, usage_lines(found), empty="no model was asked")


def usage_lines(counts: Sequence[Usage]) -> list[str]:
    """A line for each purpose: how often a model was asked, with which outcomes, and what it cost."""
    lines = []
    for purpose in sorted({one.purpose for one in counts}):
        group = sorted((one for one in counts if one.purpose == purpose), key=lambda one: (-one.calls, one.outcome))
        outcomes = ", ".join(f"{one.calls} {safe(one.outcome)}" for one in group)
        cost = f"{sum(one.tokens_in for one in group):,} tokens in, {sum(one.tokens_out for one in group):,} out"
        lines.append(f"{safe(purpose)}: {outcomes}; {cost}, {sum(one.took_ms for one in group) / 1000:.1f} s")
    return lines
