"""Overwriting what was removed: at once where that costs no more than what was removed, else by a job of the store's own.

The job stands in the queue before anything is removed. A process that dies over a removal leaves it to a worker.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from perdure.domain.errors import PerdureError, Unavailable
from perdure.domain.jobs import Job, NewJob
from perdure.domain.scope import SYSTEM
from perdure.domain.values import dataclass
from perdure.ports.clock import Clock
from perdure.ports.store import Progress, Store, Tx
from perdure.services.jobs.worker import RunLater, Worker

ERASE = "erase"
REST = "rest"
"""The job for what a call leaves on the disk."""
FORESEEN = "foreseen"
"""The job for what a call that is under way would leave on the disk if it died."""
FORESEEN_AFTER = timedelta(minutes=1)
AGAIN_AFTER = timedelta(minutes=1)
RUNS_APART = timedelta(minutes=10)
"""Anyone who may forget something of one user's must not keep the server busy with all tables."""
QUEUE_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Erasures:
    """Sees to it that what was removed leaves the disk, and knows whether it has."""

    store: Store
    clock: Clock

    def foresee(self) -> None:
        """Before something is removed."""
        if self.store.features.durable:
            name = FORESEEN if self.store.features.erases_in_place else REST
            self._enqueue(name, self.clock.now() + FORESEEN_AFTER)

    def carry_out(self) -> str:
        """After something was removed: overwrite it; until when bytes of it stay on the disk, or nothing."""
        try:
            left = self.store.overwrite()
        except Unavailable as error:
            left = str(error)
        if not left:
            return ""
        due = self._enqueue(REST, self.clock.now())
        return (
            f"bytes of it stay on the disk until the job `{ERASE}` has run, not before {due:%Y-%m-%dT%H:%M:%SZ} "
            f"(`perdure worker`), or `perdure admin purge`, at once: {left}"
        )

    def purge(self, progress: Progress | None) -> str:
        """Overwrite everything now, as the job would; what keeps bytes on the disk until it runs again, or nothing."""
        if not self.store.features.durable:
            self.store.purge(progress)
            return ""
        self._enqueue(REST, self.clock.now(), at_once=True)
        refused: list[PerdureError] = []

        def handle(_job: Job) -> RunLater | None:
            try:
                return self._run(progress)
            except PerdureError as error:
                refused.append(error)
                raise

        Worker(self.store, self.clock, {ERASE: handle}, f"purge-{self.clock.new_id()}", owner=SYSTEM).process(0.0)
        if refused:
            raise refused[0]
        return self.waiting() or ""

    def handle(self, _job: Job) -> RunLater | None:
        return self._run(None)

    def waiting(self) -> str | None:
        """What keeps bytes of something that was removed on the disk; None if nothing does."""
        held = self.store.read(SYSTEM, lambda view: view.find_job(ERASE, REST))
        if held is None or held.state == "done":
            return None
        if held.state == "running":
            return f"the job `{ERASE}` is at it"
        return held.last_error or f"the job `{ERASE}` waits for a worker; run `perdure worker`, or `perdure admin purge`"

    def _run(self, progress: Progress | None) -> RunLater | None:
        try:
            self.store.purge(progress)
        except Unavailable as error:
            # A reader may last for hours; no number of tries is too many.
            return RunLater(self.clock.now() + AGAIN_AFTER, why=str(error))
        return None

    def _enqueue(self, name: str, due: datetime, *, at_once: bool = False) -> datetime:
        now = self.clock.now()

        def work(tx: Tx) -> datetime:
            held = tx.find_job(ERASE, name)
            at = due
            if held is not None and not at_once:
                if held.state == "ready" and held.due_at is not None:
                    return held.due_at
                at = max(due, held.updated_at + RUNS_APART) if held.state == "done" else due
            tx.enqueue(NewJob(ERASE, name, at), now=now, queue_max=QUEUE_MAX)
            return at

        return self.store.write(SYSTEM, work)
