"""Proves that the store works by using it: a message goes in, a job runs, the counts come back, and no trace is left."""

from __future__ import annotations

import platform
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perdure.domain.errors import Corrupt
from perdure.domain.messages import NewMessage
from perdure.domain.reports import DoctorReport, Health
from perdure.domain.scope import RESERVED, Address, Owner, Scope
from perdure.engine.usage import model_troubles
from perdure.ports.clock import Clock
from perdure.ports.store import Store
from perdure.services.history import History
from perdure.services.ingest import Ingest
from perdure.services.work import Handler, Worker

LATE_S = 300.0
WAIT_S = 0.05
WAITS_MAX = 100
DEAD_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Doctor:
    store: Store
    clock: Clock
    ingest: Ingest
    history: History
    handlers: Mapping[str, Handler]
    versions: Mapping[str, str]
    model: str = ""
    """The chat model in use, if one is."""

    def examine(self, known: Sequence[str] = ()) -> DoctorReport:
        """Prove the round trip; `known` are degradations the caller has noticed."""
        started = self.clock.monotonic()
        self._round_trip()
        took_ms = (self.clock.monotonic() - started) * 1000
        seen = self.look(known)
        versions = {"python": platform.python_version(), **self.versions, **seen.store.versions}
        dead = tuple(self.store.list_dead(limit=DEAD_SHOWN))
        return DoctorReport(seen.store, seen.queue, took_ms, versions, seen.degraded, dead, self.model, seen.models)

    def look(self, known: Sequence[str] = (), users: int = 0) -> Health:
        """The state of things, without trying anything."""
        store = self.store.describe()
        queue = self.store.queue(self.clock.now())
        degraded = [*store.degraded, *known]
        if queue.dead:
            degraded.append(f"jobs: {queue.dead} gave up; mend the cause, then `perdure jobs retry`")
        if queue.failing:
            degraded.append(f"jobs: {queue.failing} failed and are tried again; `perdure jobs` says why")
        if queue.late_s > LATE_S:
            degraded.append(f"jobs: the oldest due one waits for {queue.late_s:.0f} s; run `perdure worker`")
        asked = tuple(self.store.usage())
        if self.model:
            degraded += model_troubles(asked, self.clock.now())
        return Health(store, queue, tuple(degraded), users, asked)

    def _round_trip(self) -> None:
        """An owner of its own, used once and erased, so that no user's data is touched."""
        owner = Owner(f"{RESERVED}doctor", self.clock.new_id())
        scope = Scope(owner, Address())
        try:
            [sent] = self.ingest.append(scope, [NewMessage("user", "Is anybody there?")])
            if self.history.messages(scope, limit=1) != [sent]:
                raise Corrupt("a message came back other than it was stored; run `perdure verify`")
            self._wait_for_its_job(scope)
        finally:
            self.store.erase(owner)

    def _wait_for_its_job(self, scope: Scope) -> None:
        """Run just this owner's job, unless a worker elsewhere was faster."""
        worker = Worker(self.store, self.clock, self.handlers, f"doctor-{scope.owner.user}", owner=scope.owner)
        pause = threading.Event()
        for _ in range(WAITS_MAX):
            worker.process(0.0)
            if self.history.tally(scope, None).messages == 1:
                return
            pause.wait(WAIT_S)
        raise Corrupt("a message was stored but its job left no result; run `perdure verify` and look at `perdure jobs`")
