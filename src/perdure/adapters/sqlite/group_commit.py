"""Group commit: writers that arrive while another one waits for the disk are committed together, with one sync.

The first writer leads: it runs its own work and that of everybody who queued up meanwhile, commits once, and only then
lets them go. There is no writer thread to own or stop, and a lone writer pays nothing for it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from perdure.domain.errors import Unavailable

GROUP_MAX = 256


class Ticket:
    """One caller's work and, once `settle` was called, its outcome."""

    __slots__ = ("_wake", "error", "heir", "result", "settled", "work")

    def __init__(self, work: Any) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.settled = False
        self.heir = False
        """Told to lead the next batch."""
        self._wake = threading.Lock()
        self._wake.acquire()

    def wait(self, seconds: float) -> bool:
        return self._wake.acquire(timeout=max(0.0, seconds))

    def wait_for_ever(self) -> None:
        self._wake.acquire()

    def wake(self) -> None:
        self._wake.release()


class WriterGroup:
    """Hands each batch of tickets to `commit`, from one thread at a time."""

    def __init__(self, commit: Callable[[Sequence[Ticket]], None]) -> None:
        self._commit = commit
        self._mutex = threading.Lock()
        self._queue: deque[Ticket] = deque()
        self._led = False

    def submit(self, ticket: Ticket, deadline_s: float) -> None:
        """Return when the ticket is settled. `Unavailable` if its turn does not come in time; then it never will."""
        with self._mutex:
            self._queue.append(ticket)
            if not self._led:
                self._led = True
                leads = True
            else:
                leads = False
        if not leads:
            self._wait_for_turn(ticket, deadline_s)
            if ticket.settled:
                return
        self._lead()

    def _wait_for_turn(self, ticket: Ticket, deadline_s: float) -> None:
        try:
            if ticket.wait(deadline_s):
                return
        except BaseException:
            # Ctrl-C in a waiting thread: those behind must not wait for a leader that is gone.
            if not self._leave(ticket):
                ticket.wait_for_ever()
            raise
        with self._mutex:
            waits = ticket in self._queue and not ticket.heir
            if waits:
                self._queue.remove(ticket)
        if waits:
            raise Unavailable(f"the write waited {deadline_s:.1f} s behind others; try again")
        # It is being committed, or is about to lead: the outcome is near and must not be lost.
        ticket.wait_for_ever()

    def _leave(self, ticket: Ticket) -> bool:
        """Take a ticket out of the queue, passing on the lead if it had it. False if it is being committed already."""
        with self._mutex:
            if ticket not in self._queue:
                return ticket.settled
            self._queue.remove(ticket)
            heir = self._next_heir() if ticket.heir else None
        if heir is not None:
            heir.wake()
        return True

    def _next_heir(self) -> Ticket | None:
        """Under the mutex: who leads next; without anybody, the next to come will."""
        heir = self._queue[0] if self._queue else None
        self._led = heir is not None
        if heir is not None:
            heir.heir = True
        return heir

    def _lead(self) -> None:
        with self._mutex:
            batch = [self._queue.popleft() for _ in range(min(GROUP_MAX, len(self._queue)))]
        try:
            self._commit(batch)
        finally:
            with self._mutex:
                heir = self._next_heir()
            # The batch goes first: those callers may be back with their next write in time for the heir's batch.
            for ticket in batch[1:]:
                ticket.settled = True
                ticket.wake()
            if heir is not None:
                heir.wake()

    def drain(self, seconds: float) -> bool:
        """Wait until nobody writes; False if that does not happen in time."""
        until = time.monotonic() + seconds
        while True:
            with self._mutex:
                if not self._led:
                    return True
            if time.monotonic() >= until:
                return False
            time.sleep(0.001)
