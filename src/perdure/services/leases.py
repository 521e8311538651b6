"""Prolongs the leases of jobs that run long, so that nobody else takes them while their worker lives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType

from perdure.domain.errors import PerdureError
from perdure.domain.jobs import Job
from perdure.ports.clock import Clock
from perdure.ports.store import Store


class LeaseKeeper:
    """Owns one thread, started when the first job is held and ended with the `with` block."""

    def __init__(self, store: Store, clock: Clock, lease_s: float) -> None:
        self._store = store
        self._clock = clock
        self._lease_s = lease_s
        self._held: Job | None = None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.missed = 0
        """Prolongations the store refused or could not make."""

    def __enter__(self) -> LeaseKeeper:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    @contextmanager
    def keeping(self, job: Job) -> Iterator[None]:
        with self._lock:
            self._held = job
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep, name="perdure-lease-keeper", daemon=True)
            self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._held = None

    def _keep(self) -> None:
        while not self._stop.wait(self._lease_s / 3):
            with self._lock:
                job = self._held
            if job is None:
                continue
            self.missed += not self._prolonged(job)

    def _prolonged(self, job: Job) -> bool:
        until = self._clock.now() + timedelta(seconds=self._lease_s)
        try:
            return self._store.write(job.owner, lambda tx: tx.extend(job, until))
        except PerdureError:
            # The lease may now pass to another worker; the fence then stops this run's effect.
            return False
