"""What calls about a whole user or the whole store answer: overview, export, import, verification, backup, health."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Literal, get_args

from perdure.domain.jobs import Job, QueueReport
from perdure.domain.models import Usage
from perdure.domain.values import dataclass


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


ExportFormat = Literal["jsonl", "vault", "seed"]
EXPORT_FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
"""`jsonl`: every row, exactly. `vault`: a folder of Markdown notes, for people. `seed`: memories under the seed's names."""
IMPORT_FORMATS = ("auto", "jsonl", "vault", "mem0", "mcp")
"""`mem0`: what mem0 exports as JSON. `mcp`: the `memory.json` of the reference memory server of MCP. Plugins add others."""

FORMAT = "perdure-export"
VERSION = 1


@dataclass(frozen=True, slots=True)
class ExportPart:
    """The rows of one user in an exported file. A file of several users has a part for each."""

    schema: int
    space: str
    user: str
    number: int = 1
    of: int = 1
    rows: int = 0

    def heading(self) -> dict[str, object]:
        """What the first line of it says."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "schema": self.schema,
            "space": self.space,
            "user": self.user,
            "part": self.number,
            "of": self.of,
        }


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What was written."""

    format: ExportFormat
    users: tuple[str, ...]
    rows: Mapping[str, int]
    """Rows by table; of a vault, notes by kind."""
    bytes: int
    sha256: str = ""
    """Of everything in the file, before it is packed; empty for a vault."""
    written: tuple[str, ...] = ()
    """Notes of a vault that are new, or say something else than before."""
    removed: tuple[str, ...] = ()
    """Notes that told of what is no more."""
    edited: tuple[str, ...] = ()
    """Notes that a person has changed since they were written: they are left as they are."""


Verdict = Literal["added", "changed", "mentioned", "unchanged", "ignored", "refused"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True, slots=True)
class ImportedItem:
    """What became of one thing that was to be imported."""

    where: str
    """The note and its line, or the place in the other engine's export."""
    kind: str
    """`memory`, `lesson`, `todo`, `relation`, or `note`."""
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something that looks wrong with what another engine has remembered."""

    fault: str
    items: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was imported, or with `dry_run` would be."""

    format: str
    users: tuple[str, ...]
    dry_run: bool
    rows: Mapping[str, int]
    """Rows by table, of a lossless export."""
    items: tuple[ImportedItem, ...] = ()
    """Of the other formats: what became of each thing."""
    doubts: tuple[Doubt, ...] = ()
    """Of another engine's export: what an audit finds."""

    @property
    def counts(self) -> dict[str, int]:
        """How many things met which end."""
        found = [item.verdict for item in self.items]
        return {verdict: found.count(verdict) for verdict in VERDICTS if verdict in found}
