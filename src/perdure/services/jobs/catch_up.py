"""Reading sees what was written: a call that reads first does what is due for its user, for a bounded time.

The jobs that wait are asked for beside the first thing that the call reads, so that one with nothing to do waits for nothing
more. They run as a worker would run them, under leases, between that read and another one; never while something is written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar
from datetime import datetime
from functools import partial
from typing import Any, TypeVar, cast

from perdure.domain.errors import PerdureError
from perdure.domain.jobs import Job, is_due
from perdure.domain.scope import Owner
from perdure.domain.values import dataclass, field, replace
from perdure.engine.conversation.jobs import CURATE, EXTRACT, TALLY
from perdure.ports.clock import Clock
from perdure.ports.store import Store, View
from perdure.ports.tables.index import INDEX_JOB
from perdure.services.jobs.worker import Handler, Worker, in_words

T = TypeVar("T")
LEARNING = (TALLY, EXTRACT, CURATE)
"""What lies between a message and the memories in it."""
WAITING_MAX = 1_000
LATE_S = 60.0
"""Work that a reading call leaves to a worker, and that has waited for longer, is told of in the log."""
LOG = logging.getLogger("perdure.jobs")


@dataclass(slots=True)
class CatchUp:
    """Runs what is due for one user inside a call that reads."""

    store: Store
    clock: Clock
    handlers: Mapping[str, Handler]
    """Of what such a call may do; none: all of it is left to a worker."""
    seconds: float
    read_some: Callable[[Owner, Sequence[Job], float], None] | None
    """Has new messages read: their words, and the orders in them. That is no learning, and done whatever the handlers are;
    None: by a worker alone."""
    indexes: Callable[[Owner], bool] = lambda _owner: False
    """Whether the index of an owner lacks so little that it is made within a call."""
    failures: int = 0
    """How often the store kept it from its work, and, if it did so the last time, why."""
    last_failure: str | None = None
    _told: list[bool] = field(default_factory=list)

    def only_looking(self) -> CatchUp:
        """The same for a caller who may only read: it says what waits and does nothing of it."""
        return replace(self, handlers={}, read_some=None)

    def due(self, waiting: Sequence[Job], now: datetime) -> bool:
        """Whether something of this is to be done, and may be done here."""
        return self.seconds > 0 and any(job.kind in self.handlers and is_due(job, now) for job in waiting)

    def reads(self, waiting: Sequence[Job]) -> bool:
        """Whether there may be messages that nobody has read, which may be read here."""
        return self.read_some is not None and any(job.kind == TALLY for job in waiting)

    def run(self, owner: Owner, kinds: Sequence[str], waiting: Sequence[Job], now: datetime) -> bool:
        """Do what is due for the owner, until nothing is or the time is up; one page of new messages and one job of each kind
        in any case, so that a slow machine gets there, too. What goes wrong is kept with the job, or counted here: a call
        that reads answers with what is there. False if there was nothing to do.
        """
        due = self.due(waiting, now)
        if not due and not self.reads(waiting):
            return False
        try:
            if not self.store.describe().read_only:
                self._run(owner, kinds, [job for job in waiting if job.kind == TALLY], due=due)
            self.last_failure = None
        except PerdureError as error:
            self.failures += 1
            self.last_failure = in_words(error)
        return True

    def _run(self, owner: Owner, kinds: Sequence[str], counting: Sequence[Job], *, due: bool) -> None:
        until = self.clock.monotonic() + self.seconds
        if self.read_some is not None and counting:
            _apart(partial(self.read_some, owner, counting, self.seconds))
        if not due:
            return
        self._work(owner, LEARNING, max(0.0, until - self.clock.monotonic()))
        if INDEX_JOB in kinds and INDEX_JOB in self.handlers and self.indexes(owner):
            self._work(owner, (INDEX_JOB,), max(0.0, until - self.clock.monotonic()))

    def _work(self, owner: Owner, kinds: Sequence[str], seconds: float) -> None:
        mine = {kind: self.handlers[kind] for kind in kinds if kind in self.handlers}
        worker = Worker(self.store, self.clock, mine, f"reading-{self.clock.new_id()}", owner=owner)
        _apart(partial(worker.process, seconds, one_of_each=True))

    def tell(self, waiting: Sequence[Job], now: datetime) -> None:
        """Have it in the log, once, that work waits which nobody does."""
        late = [job for job in waiting if job.state == "ready" and job.due_at and (now - job.due_at).total_seconds() > LATE_S]
        if late and not self._told:
            self._told.append(True)
            LOG.warning(
                "%d jobs of a user wait for a worker, for more than %d s; run `perdure worker`, or open with `background=True`",
                len(late),
                LATE_S,
            )


def _apart(work: Callable[[], object]) -> None:
    """In a context of its own: what it changes is no doing of the call that waits for it."""
    Context().run(work)


@dataclass(slots=True)
class Reading:
    """A call that reads, while it is under way."""

    owner: Owner
    catch_up: CatchUp
    kinds: tuple[str, ...]
    begun: bool = False
    first: bool = False
    """Whether its first read is under way."""
    pending: int = 0
    """Jobs that have still to learn from what was written, so that the answer knows nothing of it."""


_READING: ContextVar[Reading | None] = ContextVar("perdure_reading", default=None)


@contextmanager
def reading(owner: Owner, catch_up: CatchUp, *, indexed: bool) -> Iterator[Reading]:
    """While this lasts, the owner's first read through a `FreshStore` catches up; `indexed`: on the search index, too."""
    call = Reading(owner, catch_up, (*LEARNING, INDEX_JOB) if indexed else LEARNING)
    token = _READING.set(call)
    try:
        yield call
    finally:
        _READING.reset(token)


def is_read_again() -> bool:
    """Whether what is being read will be read once more if messages wait to be read: what they say need not be looked up."""
    call = _READING.get()
    return call is not None and call.first and call.catch_up.read_some is not None


class FreshStore:
    """Passes everything on; the first read of a call that reads is made again once what was due is done."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    def read(self, owner: Owner, work: Callable[[View], T], *, deadline_s: float | None = None) -> T:
        call = _READING.get()
        if call is None or call.begun or call.owner != owner:
            return self._inner.read(owner, work, deadline_s=deadline_s)
        call.begun = True

        def beside(view: View) -> tuple[T, list[Job]]:
            waiting = view.ask_waiting(call.kinds, limit=WAITING_MAX)
            return work(view), waiting()

        call.first = True
        try:
            answer, waiting = self._inner.read(owner, beside, deadline_s=deadline_s)
        finally:
            call.first = False
        now = call.catch_up.clock.now()
        if call.catch_up.run(owner, call.kinds, waiting, now):
            answer, waiting = self._inner.read(owner, beside, deadline_s=deadline_s)
        left = [job for job in waiting if job.kind in LEARNING]
        call.pending = len(left)
        if left:
            call.catch_up.tell(left, now)
        return answer

    def __getattr__(self, name: str) -> Any:
        # Whatever else the port has is passed on unchanged; the port's own type says what that is.
        return getattr(self._inner, name)


def fresh(store: Store) -> Store:
    """The store as services should use it whose reads a caller waits for."""
    return cast(Store, FreshStore(store))
