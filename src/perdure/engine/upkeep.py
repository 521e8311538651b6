"""The jobs that conversations cause: what each is about, and when it is due."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache

from perdure.domain.jobs import NewJob
from perdure.domain.scope import Address
from perdure.domain.text import Json

TALLY = "tally"
SWEEP = "sweep"
EXTRACT = "extract"
CURATE = "curate"
LESSONS = "lessons"
TRANSCRIPT = "transcript"
# The others bear the name of the layer they keep: `domain.layers.POLICIES`.

JUST_AFTER = timedelta(milliseconds=1)
"""A session is idle after *more* than the idle time."""


def session_job(
    kind: str, address: Address, session_number: int, due_at: datetime, more: Mapping[str, Json] | None = None
) -> NewJob:
    """Work on one session. One job of a kind per session, however many messages arrive."""
    payload = {"agent": address.agent, "channel": address.channel, "session_number": session_number}
    key = _key(address, session_number)
    # With more to say it is a job of its own: one that waits keeps what it was told.
    return NewJob(kind, key, due_at, payload) if more is None else NewJob(kind, f"{key}!", due_at, {**payload, **more})


def address_job(kind: str, address: Address, due_at: datetime) -> NewJob:
    """Work on whatever goes on at one address."""
    return NewJob(kind, _key(address, 0), due_at, {"agent": address.agent, "channel": address.channel})


@lru_cache(maxsize=4096)
def _key(address: Address, session_number: int) -> str:
    # A digest, because ids of full length would not fit into an index row.
    name = "\x1f".join((address.agent, address.channel, str(session_number)))
    return hashlib.sha256(name.encode()).hexdigest()[:32]
