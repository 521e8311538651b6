"""The search index of one owner: a log of entries, the vectors that belong to them, and packs of both.

Everything here is derived and can be made anew from what it tells of. An entry is never changed: what replaces it has a
higher number and names it, so that a reader who has seen everything up to a number needs to read only what is beyond it.
What an entry's body says is the engine's business (`engine.search.entries`); stores keep it as bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from perdure.domain.context.recall import NewEntry
from perdure.domain.errors import Conflict
from perdure.domain.jobs import NewJob, new_job
from perdure.domain.scope import Owner
from perdure.domain.times.instants import from_us
from perdure.domain.values import dataclass, field, replace
from perdure.ports.tables.jobs import job_row
from perdure.ports.tables.table import AnyRow, Table

INDEX_JOB = "index"
INDEX_ATTEMPTS_MAX = 1_000
"""Six weeks of tries: nothing stands in for an embedder that is away, so its work waits for it longer than others wait."""
INDEX_SINCE = 5
"""The schema version that brought the index. Of an older backup, its migration makes the jobs that fill it."""
GONE = "gone"
"""The kind of an entry that only says that another one is no more."""


@dataclass(frozen=True, slots=True)
class IndexHead:
    """How far the index of an owner goes."""

    incarnation: str = ""
    """Another one after an owner was erased or restored: numbers of another incarnation mean other entries."""
    last: int = 0
    """The number of the newest entry."""
    lexicon: int = 0
    """The version of the rules by which all that is held was indexed; 0: not all of it is."""
    embedder: str = ""
    """Whose vectors answer; empty before the first ones are there."""
    vectored: int = 0
    """Every entry up to this number has its vectors, or can have none."""
    coming: str = ""
    """The embedder whose vectors are to answer next, while they are being made."""
    coming_upto: int = 0


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """An entry as it is held. `replaces` is the number of the entry that it takes the place of; 0 if none.

    An entry that is replaced goes, unless it had replaced another one itself: then it stays without a body, because
    that other one may stand in a pack, and nobody else says that it is no more.
    """

    number: int
    kind: str
    ref: str
    replaces: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Pack:
    """Entries from one number to another with their vectors, laid out for reading at once. A copy: it may be dropped."""

    first: int
    last: int
    embedder: str
    body: bytes


class IndexView(Protocol):
    def head(self) -> IndexHead:
        """How far the index goes. In `write`, it is locked until the transaction ends."""

    def entries(self, after: int, *, upto: int, limit: int) -> list[IndexEntry]:
        """Entries with numbers above `after` and not above `upto`, by number."""

    def find_entries(self, kind: str, refs: Sequence[str]) -> dict[str, int]:
        """The numbers of those of `refs` that are indexed."""

    def vectors(self, embedder: str, after: int, *, upto: int) -> list[tuple[int, bytes]]:
        """Vectors of an embedder by the number of their entry, above `after` and not above `upto`."""

    def packs(self) -> list[Pack]:
        """All packs, by number. They do not overlap."""

    def pack_spans(self) -> list[tuple[int, int]]:
        """The first and last numbers of all packs, by number."""

    def count_entries(self, kind: str) -> int:
        """How many entries of a kind there are."""


class IndexTx(IndexView, Protocol):
    """What is added, put and removed here, packs included, is done when the transaction ends, after everything else in it,
    together with the job that makes vectors: rivals wait for each other only then, and in one order."""

    def begin(self) -> None:
        """Have there be an index for what is still to be taken in: empty, if there is none."""

    def add(self, entries: Sequence[NewEntry], *, now: datetime) -> None:
        """Have entries of things that are new inserted. One that is indexed already is a `Conflict`."""

    def put(self, entries: Sequence[NewEntry], *, now: datetime) -> None:
        """Have entries inserted; those that are held for the same things are replaced, unless they say the same."""

    def remove(self, kind: str, refs: Sequence[str], *, now: datetime) -> None:
        """Have the entries of these things taken out, with their vectors and the packs that hold them."""

    def put_head(self, head: IndexHead) -> None:
        """Replace what the head says, except for the incarnation, and `last`, which only grows by adding entries.

        Where there is no head, because nothing was ever indexed or the owner was erased, nothing happens.
        """

    def put_vectors(self, embedder: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Insert or replace vectors; those of entries that are no more are left out."""

    def remove_vectors(self, embedder: str) -> None:
        """Drop all vectors of an embedder."""

    def fix(self) -> None:
        """Make head, entries and vectors agree, whatever has happened to them; all packs go, and the incarnation is another.

        `last` is not below the highest number, vectors belong to entries, no entry names another one, and rows that only said
        what is gone are gone themselves. Where there are no entries and no head, nothing happens.
        """

    def put_pack(self, pack: Pack) -> None:
        """Insert a pack, in place of those that overlap it."""

    def remove_packs(self) -> None:
        """Have all packs dropped."""


@dataclass(slots=True)
class PendingEntries:
    """What a transaction wants of the index: for each thing the latest word, and whether the thing is new."""

    entries: dict[tuple[str, str], NewEntry | None] = field(default_factory=dict)
    added: set[tuple[str, str]] = field(default_factory=set)
    """What must not be held already."""
    without_packs: bool = False
    begun: bool = False
    now: datetime | None = None

    @property
    def fresh(self) -> bool:
        """Nothing of it can be held already, so that nobody has to look."""
        return len(self.added) == len(self.entries)

    def add(self, entries: Sequence[NewEntry], now: datetime) -> None:
        """As `IndexTx.add`."""
        self.added |= {(entry.kind, entry.ref) for entry in entries if (entry.kind, entry.ref) not in self.entries}
        self._note(entries, now)

    def put(self, entries: Sequence[NewEntry], now: datetime) -> None:
        """As `IndexTx.put`."""
        self._note(entries, now)

    def remove(self, kind: str, refs: Sequence[str], now: datetime) -> None:
        """As `IndexTx.remove`."""
        self.now = now
        self.entries |= {(kind, ref): None for ref in refs}

    def _note(self, entries: Sequence[NewEntry], now: datetime) -> None:
        self.now = now
        self.entries |= {(entry.kind, entry.ref): entry for entry in entries}


def index_job(now: datetime) -> NewJob:
    """The job that makes vectors of what is new, one per owner."""
    return NewJob(INDEX_JOB, INDEX_JOB, now, attempts_max=INDEX_ATTEMPTS_MAX)


def planned(pending: PendingEntries, held: dict[tuple[str, str], int], last: int) -> list[IndexEntry]:
    """The rows that carry out what is pending behind the number `last`, given the numbers of what is held of it."""
    if not pending.added.isdisjoint(held):
        raise Conflict("something that is new is indexed already; read again")
    made: list[IndexEntry] = []
    for name, entry in pending.entries.items():
        number = held.get(name, 0)
        if entry is not None:
            made.append(IndexEntry(last + len(made) + 1, entry.kind, entry.ref, number, entry.body))
        elif number:
            made.append(IndexEntry(last + len(made) + 1, GONE, str(last + len(made) + 1), number, b""))
    return made


def kept_head(held: IndexHead, head: IndexHead) -> IndexHead:
    """`head` with what only the store itself changes."""
    return replace(head, incarnation=held.incarnation, last=held.last)


INDEXED = ("sessions", "records", "state_keys", "series")
"""The tables of what an index tells of."""


def seed_rows(owner: Owner, incarnation: str, counts: Mapping[str, int]) -> tuple[tuple[str, AnyRow], ...]:
    """What has the index of an owner made anew from nothing: an empty head, and the job that fills it.

    None of that if, by the number of rows in each table, there is nothing to index.
    """
    if not any(counts.get(table) for table in INDEXED):
        return ()
    job = new_job(owner, index_job(from_us(0)), from_us(0))
    return ("index_heads", head_row(owner, IndexHead(incarnation))), ("jobs", job_row(job))


# -- the stored form ---------------------------------------------------------------------------------------------------


class IndexHeadRow(NamedTuple):
    space: str
    user_id: str
    incarnation: str
    last: int
    lexicon: int
    embedder: str
    vectored: int
    coming: str
    coming_upto: int


class IndexEntryRow(NamedTuple):
    space: str
    user_id: str
    number: int
    kind: str
    ref: str
    replaces: int
    body: bytes


class IndexVectorRow(NamedTuple):
    space: str
    user_id: str
    embedder: str
    number: int
    body: bytes


class IndexPackRow(NamedTuple):
    space: str
    user_id: str
    first: int
    last: int
    embedder: str
    body: bytes


INDEX_HEADS = Table("index_heads", IndexHeadRow, 2, rebuilt=True)
INDEX_ENTRIES = Table("index_entries", IndexEntryRow, 3, rebuilt=True)
INDEX_VECTORS = Table("index_vectors", IndexVectorRow, 4, rebuilt=True)
INDEX_PACKS = Table("index_packs", IndexPackRow, 3, rebuilt=True)


def head_row(owner: Owner, head: IndexHead) -> IndexHeadRow:
    return IndexHeadRow(
        space=owner.space,
        user_id=owner.user,
        incarnation=head.incarnation,
        last=head.last,
        lexicon=head.lexicon,
        embedder=head.embedder,
        vectored=head.vectored,
        coming=head.coming,
        coming_upto=head.coming_upto,
    )


def to_head(row: AnyRow) -> IndexHead:
    return INDEX_HEADS.read(row, _read_head)


def _read_head(row: IndexHeadRow) -> IndexHead:
    return IndexHead(
        incarnation=row.incarnation,
        last=row.last,
        lexicon=row.lexicon,
        embedder=row.embedder,
        vectored=row.vectored,
        coming=row.coming,
        coming_upto=row.coming_upto,
    )


def index_entry_row(owner: Owner, entry: IndexEntry) -> IndexEntryRow:
    return IndexEntryRow(
        space=owner.space,
        user_id=owner.user,
        number=entry.number,
        kind=entry.kind,
        ref=entry.ref,
        replaces=entry.replaces,
        body=entry.body,
    )


def to_index_entry(row: AnyRow) -> IndexEntry:
    return INDEX_ENTRIES.read(row, _read_entry)


def _read_entry(row: IndexEntryRow) -> IndexEntry:
    if not isinstance(row.body, bytes) or not row.number > row.replaces >= 0:
        raise ValueError(row.ref)
    return IndexEntry(row.number, row.kind, row.ref, row.replaces, row.body)


def vector_rows(owner: Owner, embedder: str, vectors: Sequence[tuple[int, bytes]]) -> list[IndexVectorRow]:
    return [IndexVectorRow(owner.space, owner.user, embedder, number, body) for number, body in vectors]


def pack_row(owner: Owner, pack: Pack) -> IndexPackRow:
    return IndexPackRow(
        space=owner.space,
        user_id=owner.user,
        first=pack.first,
        last=pack.last,
        embedder=pack.embedder,
        body=pack.body,
    )


def to_pack(row: AnyRow) -> Pack:
    return INDEX_PACKS.read(row, lambda held: Pack(held.first, held.last, held.embedder, held.body))
