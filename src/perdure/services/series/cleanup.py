"""The recurring job that cleans up series which say how long to keep their entries."""

from __future__ import annotations

from perdure.domain.jobs import Job, NewJob
from perdure.domain.scope import Owner
from perdure.engine.conversation.jobs import next_slot
from perdure.ports.clock import Clock
from perdure.ports.store import Store
from perdure.ports.tables.series import to_series
from perdure.services.jobs.worker import Handler
from perdure.services.series.series import SeriesService

CLEANUP = "series_cleanup"
DAILY = "17 3 * * *"


def cleanup_job(clock: Clock) -> NewJob:
    """Once a night, for all series with `keep_days`."""
    return NewJob(CLEANUP, CLEANUP, next_slot(DAILY, clock.now()), repeat=DAILY)


def cleanup_handler(store: Store, service: SeriesService) -> Handler:
    def handle(_job: Job) -> None:
        due: list[tuple[Owner, str, float]] = []
        with store.snapshot() as snapshot:
            for row in snapshot.rows("series"):
                series = to_series(row)
                if series.spec.keep_days is not None:
                    due.append((Owner(str(row[0]), str(row[1])), series.name, series.spec.keep_days))
        # One short transaction per series; running twice removes nothing more.
        for owner, name, keep_days in due:
            service.cleanup(owner, name, keep_days)

    return handle
