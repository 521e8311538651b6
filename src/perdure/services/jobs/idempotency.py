"""A request that a caller repeats is carried out once, across restarts and processes.

What is kept is that it was made, never what was answered: a kept answer would be a copy of the user's words that
forgetting does not reach. `Idempotency-Key` of the HTTP API is what this is for.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta
from typing import Literal

from perdure.domain.errors import Conflict
from perdure.domain.scope import ERASURES, ID_BYTES_MAX, RESERVED, Owner
from perdure.domain.state import Revision
from perdure.domain.text.rules import check_id, compact_json
from perdure.domain.values import dataclass, replace
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx

PREFIX = f"{RESERVED}once/"
DAYS_KEPT = 2
"""A request is known for at least a day: that of its day and of the day before."""
SWEPT_MAX = 200
"""Old ones are removed by the next caller, so many at a time: more than come in at once."""
KEPT_REVISIONS = 2


@dataclass(frozen=True, slots=True)
class RequestState:
    """What is known of a request: `new` means that it is the caller's to carry out."""

    state: Literal["new", "begun", "done"]
    key: str
    status: int | None = None
    erasures: int = 0
    """How often something of this owner's was forgotten: an answer from before may tell what is to be told no more."""


@dataclass(frozen=True, slots=True)
class IdempotentRequests:
    store: Store
    clock: Clock

    def claim(self, owner: Owner, request: str, fingerprint: str) -> RequestState:
        """Take a request on, or say what became of it. The same id for something else is a `Conflict`."""
        check_id(request, "Idempotency-Key", bytes_max=ID_BYTES_MAX)
        now, mine = self.clock.now(), self.clock.new_id()
        digest = hashlib.sha256(request.encode()).hexdigest()[:40]
        days = [now - timedelta(days=back) for back in range(DAYS_KEPT)]
        keys = [f"{PREFIX}{day:%Y-%m-%d}/{digest}" for day in days]

        def work(tx: Tx) -> RequestState:
            count = tx.accesses.version().erasures
            for key in keys:
                held = tx.state.find(key)
                if held is not None and held.body is not None:
                    return replace(_request_state(held, mine, fingerprint), erasures=count)
            _sweep(tx, now, oldest=f"{PREFIX}{days[-1]:%Y-%m-%d}")
            body = compact_json({"fingerprint": fingerprint, "status": None})
            tx.state.put(Revision(keys[0], 1, body, now, request=mine), keep=KEPT_REVISIONS)
            return RequestState("new", keys[0], erasures=count)

        return self.store.write(owner, work)

    def finish(self, owner: Owner, claim: RequestState, status: int) -> None:
        """Say that a request was carried out, and with which status it was answered."""
        now, mine = self.clock.now(), self.clock.new_id()

        def work(tx: Tx) -> None:
            held = tx.state.find(claim.key)
            if held is None or held.body is None or held.request == mine:
                return  # forgotten with its user, or done before
            body = compact_json({**json.loads(held.body), "status": status})
            tx.state.put(Revision(claim.key, held.number + 1, body, now, request=mine), keep=KEPT_REVISIONS)

        self.store.write(owner, work)

    def release(self, owner: Owner, claim: RequestState) -> None:
        """Let the request be made again: it changed nothing."""
        self.store.write(owner, lambda tx: tx.state.remove(claim.key))


def note_erasure(tx: Tx, now: datetime) -> None:
    """Begins every transaction that forgets: whatever was answered before must not be answered again.

    First of all, because all of these write the same row: anyone who comes second must wait before it holds anything.
    """
    held = tx.state.find(ERASURES)
    number = 1 if held is None else held.number + 1
    tx.state.put(Revision(ERASURES, number, "1", now, request=f"erasure {number}"), keep=1)


def _request_state(held: Revision, mine: str, fingerprint: str) -> RequestState:
    if held.request == mine:
        return RequestState("new", held.key)  # claimed just now; only the answer was lost
    told = json.loads(held.body or "{}")
    if told.get("fingerprint") != fingerprint:
        raise Conflict("this `Idempotency-Key` was used for another request; give each request its own")
    status = told.get("status")
    return RequestState("begun" if status is None else "done", held.key, status)


def _sweep(tx: Tx, now: datetime, *, oldest: str) -> None:
    for info in tx.state.list_keys(now=now, prefix=PREFIX, after=None, limit=SWEPT_MAX):
        if info.key >= oldest:
            break
        tx.state.remove(info.key)
