"""The jobs that conversations cause: what each is about, and when it is due.

When a job runs next: after a failure, and at the slots of a repeating one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from cronsim import CronSim, CronSimError

from perdure.domain.errors import InvalidInput
from perdure.domain.jobs import Job, NewJob, Settlement
from perdure.domain.scope import Address
from perdure.domain.text.rules import Json, brief

TALLY = "tally"
SWEEP = "sweep"
EXTRACT = "extract"
CURATE = "curate"
LESSONS = "lessons"
TRANSCRIPT = "transcript"
# The others bear the name of the layer they keep: `domain.conversation.digests.POLICIES`.

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


BACKOFF_FIRST_S = 2.0
BACKOFF_MOST_S = 3_600.0
ERROR_CHARS_MAX = 500
EVERY = "every:"


def backoff_s(attempts: int, chance: float) -> float:
    """Seconds until the next try: doubling, bounded, spread by `chance` in [0, 1) so that rivals do not march in step."""
    ceiling = min(BACKOFF_MOST_S, BACKOFF_FIRST_S * 2.0 ** min(attempts - 1, 30))
    return ceiling * (0.5 + chance / 2)


def next_slot(repeat: str, now: datetime) -> datetime:
    """The first slot after `now`. Slots missed while nothing ran are not made up for: one run, not a stampede."""
    if repeat.startswith(EVERY):
        step_s = _interval_s(repeat)
        passed = (now - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() // step_s
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=(passed + 1) * step_s)
    try:
        return next(CronSim(repeat, now)).astimezone(UTC)
    except (CronSimError, StopIteration, ValueError) as error:
        raise InvalidInput(
            f"`repeat` = {brief(repeat, 60)} is neither `every:SECONDS` nor a cron line such as `*/30 * * * *`"
        ) from error


def is_repeat(repeat: str) -> bool:
    """Whether a text says when something repeats."""
    try:
        next_slot(repeat, datetime(2026, 1, 1, tzinfo=UTC))
    except InvalidInput:
        return False
    return True


def _interval_s(repeat: str) -> float:
    text = repeat.removeprefix(EVERY)
    try:
        step_s = float(text)
    except ValueError:
        step_s = 0.0
    if not 1.0 <= step_s <= 366 * 86_400:
        raise InvalidInput(f"`repeat` = {brief(repeat, 60)} must be `every:` and 1 to 31,622,400 seconds, e.g. `every:1800`")
    return step_s


def after_success(job: Job, now: datetime) -> Settlement:
    if job.repeat is not None:
        return Settlement("ready", next_slot(job.repeat, now), 0, None, failed=False)
    return Settlement("done", None, job.attempts, None, failed=False)


def after_failure(
    job: Job, error: str, now: datetime, chance: float, *, retriable: bool = True, wanted_s: float = 0.0
) -> Settlement:
    """Try again later while tries are left; then park it as dead, or let a repeating one wait for its next slot.

    `wanted_s`: how long the failing side asked to be left alone.
    """
    text = error[:ERROR_CHARS_MAX]
    if retriable and job.attempts < job.attempts_max:
        wait_s = max(backoff_s(job.attempts, chance), min(wanted_s, BACKOFF_MOST_S))
        return Settlement("ready", now + timedelta(seconds=wait_s), job.attempts, text, failed=True)
    if job.repeat is not None:
        return Settlement("ready", next_slot(job.repeat, now), 0, text, failed=True)
    return Settlement("dead", None, job.attempts, text, failed=True)


def spent(job: Job) -> bool:
    """Its tries ran out without any run reporting back: the workers that claimed it died or hung."""
    return job.attempts > job.attempts_max
