"""What a user's memory holds, at a glance: how much of what, and how much came and changed on each day.

What the store-wide calls answer: verification, backup, health, work done, files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Literal

from perdure.domain.jobs import Job, QueueReport
from perdure.domain.models import Usage


@dataclass(frozen=True, slots=True)
class DayActivity:
    """One day, where the user is."""

    day: date
    messages: int = 0
    changes: int = 0
    """Operations of the journal."""


@dataclass(frozen=True, slots=True)
class Overview:
    """Counts of what is held, and the last days, the oldest first."""

    counts: Mapping[str, int]
    """By name: `messages`, `sessions`, `memories`, `pinned`, `archived`, `entities`, `todos` and `instructions` that are open,
    `suggestions`, `state`, `series`, `jobs_waiting`, `jobs_dead`."""
    days: tuple[DayActivity, ...]
    partial: bool = False
    """There is more than was counted: the numbers of sessions, messages, keys, series or days are lower bounds."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken invariant: which law, where, and what was seen. It never quotes stored text."""

    law: str
    where: str
    seen: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The outcome of checking every invariant. `checked` counts the rows read of each table."""

    checked: Mapping[str, int]
    findings: tuple[Finding, ...]
    truncated: bool = False

    @property
    def clean(self) -> bool:
        return not self.findings


@dataclass(frozen=True, slots=True)
class BackupReport:
    """A finished backup: where it is, what it holds, and the digest of its content."""

    path: Path
    bytes: int
    rows: Mapping[str, int]
    schema_version: int
    sha256: str


@dataclass(frozen=True, slots=True)
class StoreFile:
    """A file the store keeps data in."""

    path: Path
    bytes: int


@dataclass(frozen=True, slots=True)
class StoreDescription:
    """What kind of store this is and what it runs on."""

    backend: str
    location: str
    schema_version: int
    versions: Mapping[str, str]
    durability: str
    bytes: int
    degraded: tuple[str, ...] = ()
    encryption: str = "none"
    """What of it is encrypted on the disk, and by what; `none` as far as perdure knows."""
    read_only: bool = False
    """Whether nothing can be written, as on a replica."""


@dataclass(frozen=True, slots=True)
class Health:
    """The state of everything, as far as looking tells; nothing is written for it."""

    store: StoreDescription
    queue: QueueReport
    degraded: tuple[str, ...]
    users: int
    models: tuple[Usage, ...] = ()
    """What models were asked on behalf of all users, by purpose and outcome."""
    worker_trouble: str | None = None
    """What keeps the background worker of this process from its work."""
    indexes: IndexCacheReport | None = None
    """The search indexes that this process holds in memory."""

    @property
    def healthy(self) -> bool:
        return not self.degraded


ModelPart = Literal["model", "embedder", "reranker"]


@dataclass(frozen=True, slots=True)
class PartReport:
    """A model, an embedder or a reranker: which one is in use, and whether it answers."""

    part: ModelPart
    name: str
    """What is in use; empty: nothing."""
    state: Literal["off", "configured", "answers", "failed"]
    """`configured`: it was not asked."""
    problem: str = ""
    remedy: str = ""
    took_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class IndexCacheReport:
    """The search indexes that this process holds in memory."""

    bytes: int
    bytes_max: int
    """The setting `index_cache_bytes`, or an eighth of the memory."""
    users: int
    hits: int
    """Questions whose index was there."""
    misses: int
    """Questions for which it was read from the store."""
    evicted: int
    """Indexes that were dropped for want of room."""

    @property
    def hit_rate(self) -> float:
        asked = self.hits + self.misses
        return self.hits / asked if asked else 1.0


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """A proven round trip, and the state of everything around it."""

    store: StoreDescription
    queue: QueueReport
    round_trip_ms: float
    versions: Mapping[str, str]
    degraded: tuple[str, ...]
    dead_jobs: tuple[Job, ...] = ()
    """The jobs that failed for good most recently, with their errors."""
    model: str = ""
    """The chat model in use; empty: none, and the rules do its work."""
    models: tuple[Usage, ...] = ()
    """What models were asked on behalf of all users, by purpose and outcome."""
    indexes: IndexCacheReport | None = None
    """The search indexes that this process holds in memory."""

    @property
    def healthy(self) -> bool:
        return not self.degraded


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """One turn of the job worker."""

    ran: int
    failed: int
    parked: int
    lost: int
    """Runs whose lease had passed to another worker before they could be settled; their effect was not stored."""
    leases_missed: int = 0
    """How often a lease could not be prolonged."""


@dataclass(frozen=True, slots=True)
class ClockReport:
    """Rows that were written by a clock that ran ahead."""

    rows: int
    users: int
    latest: datetime | None
    """The latest time that one of them was given; None: there is none."""


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """What a purge gave back."""

    jobs_removed: int
    bytes_before: int
    bytes_after: int
    bytes_remain: str = ""
    """What keeps bytes of what was removed on the disk, until the job `erase` has run again; empty: they are gone."""


@dataclass(frozen=True, slots=True)
class DistributionReport:
    """The tables of a store, spread over the nodes of a cluster."""

    nodes: tuple[str, ...]
    """The nodes that hold rows, as `host:port`."""
    tables: tuple[str, ...]
    """The tables that were distributed now."""
    already: int = 0
    """How many tables were distributed before."""
