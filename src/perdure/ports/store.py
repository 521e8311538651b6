"""The store: where everything perdure keeps lives, behind one contract (`perdure.testing.StoreContract`).

A transaction is a function handed to `read` or `write` together with the owner it is about. That shape is what allows
appends that arrive together to share one sync, and a lost answer to be repeated. The function

- sees and changes the rows of that owner only: no method takes a user, so none can name another one;
- may run in another thread, and may run again after a conflict or a lost connection: it touches the transaction and its
  own return value, nothing else, and its writes carry ids made before it was called;
- must not call a model, wait, or start another transaction.

Driver errors reach the caller as `perdure.domain.errors`, with the cause kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol, TypeVar

from perdure.domain.conversation.messages import CallState, Message, MessageQuery, Session
from perdure.domain.conversation.tally import Tally
from perdure.domain.errors import InvalidInput, Unavailable, Unsupported
from perdure.domain.jobs import Claim, Job, JobState, NewJob, QueueReport, Settlement
from perdure.domain.knowledge.journal import Attribution, Operation
from perdure.domain.models import Usage
from perdure.domain.reports import DistributionReport, Finding, StoreDescription, StoreFile
from perdure.domain.scope import Address, MessageId, Owner, SessionId, ToolCallId
from perdure.domain.values import dataclass
from perdure.ports.tables.access import AccessTx, AccessView
from perdure.ports.tables.conversation import ConversationTx, ConversationView
from perdure.ports.tables.index import IndexTx, IndexView
from perdure.ports.tables.knowledge import RecordTx, RecordView
from perdure.ports.tables.oversight import OversightTx, OversightView
from perdure.ports.tables.series import SeriesTx, SeriesView, StateTx, StateView

T = TypeVar("T")
Row = tuple[str | int | float | bytes | None, ...]
Progress = Callable[[str, int], None]
"""Called now and then during long work with the table's name and the rows done so far in it."""


def check_progress(progress: Progress | None) -> Progress | None:
    """`progress` if it can be called."""
    if progress is not None and not callable(progress):
        raise InvalidInput(f"`progress` is a `{type(progress).__name__}`; pass a function of a name and a number, or None")
    return progress


@dataclass(frozen=True, slots=True)
class Features:
    """What a store can do beyond the contract. Code and tests ask these flags, never a store's name."""

    durable: bool
    """What `write` returned survives a crash of the process and of the machine."""
    shared: bool
    """Several processes may use it at once."""
    erases_in_place: bool
    """What is removed is overwritten where it lies; otherwise tables are written anew, outside of calls."""
    row_security: bool
    """The database itself refuses rows of other owners, should our own conditions fail."""


class ReadOnly(Unavailable):
    """The store can only be read, as a replica: calls that read answer, and leave out what they would record besides."""


def not_distributed(what: str) -> Unsupported:
    """`what` is the kind of store that has no nodes."""
    return Unsupported(f"{what} is on one machine; use PostgreSQL with Citus, see docs/how-to/cluster.md")


class View(Protocol):
    """Reading one owner's rows, all as of one moment."""

    @property
    def state(self) -> StateView:
        """The owner's key-value state."""

    @property
    def series(self) -> SeriesView:
        """The owner's time series."""

    @property
    def conversation(self) -> ConversationView:
        """Counters, open sessions and digests of the owner's conversations."""

    @property
    def records(self) -> RecordView:
        """What is known: memories, statements, entities, todos."""

    @property
    def index(self) -> IndexView:
        """What all of that is found by."""

    @property
    def oversight(self) -> OversightView:
        """What the overseer decided, and what models were asked."""

    @property
    def accesses(self) -> AccessView:
        """Who asked for what of the owner's data."""

    def together(self, *works: Callable[[], Any]) -> Sequence[Any]:
        """What each of these works answers that read from this view, one beside the other: a store that is far away asks for
        what all of them need at once. Each may run more than once, so it touches nothing but its answer.
        """

    def find_messages(self, ids: Sequence[MessageId]) -> dict[MessageId, Message]:
        """Those of `ids` that are held."""

    def list_messages(self, query: MessageQuery) -> list[Message]:
        """Messages of one address in log order (session number, then seq), oldest first.

        The latest `limit` of them, or the latest before `before`, or the first after `after` (both exclusive).
        """

    def latest_session(self, address: Address) -> Session | None:
        """The session of the address with the highest number. In `write`, it is locked until the transaction ends."""

    def find_session(self, address: Address, session: SessionId | int) -> Session | None:
        """The session by its id, or by its number if given an integer. In `write`, it is locked until the transaction ends."""

    def list_sessions(self, address: Address | None, *, limit: int, before: int | None = None) -> list[Session]:
        """Sessions of the address (of all addresses if None), highest number first; ties by agent, then channel.

        Deleted ones are left out.
        """

    def find_calls(self, address: Address, ids: Sequence[ToolCallId]) -> list[CallState]:
        """All calls under `ids` at the address, by session number, then id: an id may be used anew in another session."""

    def find_tally(self, address: Address, session_number: int) -> Tally | None:
        """The derived counts of a session; None before the first run of its job."""

    def find_job(self, kind: str, key: str) -> Job | None:
        """The job as held, in whatever state."""

    def list_jobs(self, state: JobState | None, *, limit: int) -> list[Job]:
        """Jobs of this owner, in one state or all, by kind and key."""

    def ask_waiting(self, kinds: Sequence[str], *, limit: int) -> Callable[[], list[Job]]:
        """The owner's jobs of these kinds that are ready or running, by `due_at`, kind and key. They are asked for with the
        next question, so that a store that is far away is waited for once; the function answers with them.
        """

    def list_operations(self, *, limit: int, before: int | None = None) -> list[Operation]:
        """The journal of this owner, newest first."""

    def operation_times(self, *, since: datetime, limit: int) -> list[datetime]:
        """When the last `limit` operations of the journal were made, newest first; those before `since` are left out."""


class Tx(View, Protocol):
    """Reading and writing one owner's rows: all of it happens, or none."""

    @property
    def state(self) -> StateTx:
        """The owner's key-value state."""

    @property
    def series(self) -> SeriesTx:
        """The owner's time series."""

    @property
    def conversation(self) -> ConversationTx:
        """Counters, open sessions and digests of the owner's conversations."""

    @property
    def records(self) -> RecordTx:
        """What is known: memories, statements, entities, todos."""

    @property
    def index(self) -> IndexTx:
        """What all of that is found by."""

    @property
    def oversight(self) -> OversightTx:
        """What the overseer decided, and what models were asked."""

    @property
    def accesses(self) -> AccessTx:
        """Who asked for what of the owner's data."""

    @property
    def journalled(self) -> Sequence[int]:
        """The numbers of the operations that this transaction has recorded so far."""

    def put_sessions(self, sessions: Iterable[Session]) -> None:
        """Insert, or update by (address, number). Another session under the same id at the address is a `Conflict`."""

    def append(self, messages: Sequence[Message]) -> None:
        """Insert messages. A taken id or a taken place (session number, seq) is a `Conflict`."""

    def put_calls(self, address: Address, calls: Iterable[CallState]) -> None:
        """Insert, or update by (address, session number, id)."""

    def enqueue(self, job: NewJob, *, now: datetime, queue_max: int) -> bool:
        """Make sure the work will be done; True if that took a new row.

        For a job that is held, `domain.jobs.requeued` says what becomes of it. A new row beyond `queue_max` waiting or
        running jobs of this owner is `LimitExceeded`.
        """

    def settle(self, job: Job, settlement: Settlement, *, now: datetime) -> bool:
        """End the run that claimed `job`, as `domain.jobs.settled` says. False, and nothing changes, if it lost its lease."""

    def extend(self, job: Job, until: datetime) -> bool:
        """Prolong a running job's lease, under the same condition as `settle`."""

    def retry_job(self, kind: str, key: str, *, now: datetime) -> bool:
        """Make a dead job ready with fresh tries. False if there is no dead job of that name."""

    def remove_jobs(self, *, done_before: datetime) -> int:
        """Forget jobs that were done before that instant."""

    def redact(self, message: Message) -> None:
        """Replace content, metadata and the arguments of tool calls of a message that is held. For forgetting only.

        Its place, id and role stay, and so do ids and names of calls, because they pair.
        """

    def rewrite(self, change: Callable[[str], str]) -> dict[str, list[Row]]:
        """Put every text that is not a name through `change`; the rows that it changed, by table, as they are now.

        `ports.tables.redaction` says what is a name. JSON stays JSON. For forgetting only: it changes what is otherwise never
        changed.
        """

    def put_tally(self, tally: Tally, *, by: Attribution) -> None:
        """Store the counts and journal the change. A held tally with a higher `up_to_seq` is a `Conflict`."""


class Snapshot(Protocol):
    """The store, or what one owner has in it, at one moment, as stored rows: what backup writes and verification reads."""

    schema_version: int

    def rows(self, table: str, owner: Owner | None = None) -> Iterator[Row]:
        """Rows of one of `ports.tables.rows.TABLES`, in its column order, by primary key: everybody's, or one owner's."""


class Store(Protocol):
    features: Features

    def read(self, owner: Owner, work: Callable[[View], T], *, deadline_s: float | None = None) -> T:
        """Run `work` on the owner's rows as of one moment and return what it returns."""

    def write(self, owner: Owner, work: Callable[[Tx], T], *, deadline_s: float | None = None) -> T:
        """Run `work` and return what it returns once its changes are durable; if it raises, nothing of it remains.

        `Unavailable` when that takes longer than the deadline (default: the store's own). Then the changes may or may
        not have been made, and the caller repeats the call with the same ids.
        """

    def claim(self, claim: Claim) -> list[Job]:
        """Take up to `limit` due jobs of the given kinds, of any owner, earliest first, and lease them to the worker.

        Due are ready jobs whose time has come and running jobs whose lease has ended; if there are none, those that a clock
        which was set back has left behind (`domain.jobs.is_stranded`). `domain.jobs.claimed` says what a claim changes. Two
        workers never hold the same job under the same fence.
        """

    def queue(self, now: datetime) -> QueueReport:
        """Counts over all owners."""

    def list_dead(self, *, limit: int) -> list[Job]:
        """Dead jobs of all owners, most recently parked first: what an operator has to look at."""

    def usage(self) -> Sequence[Usage]:
        """What models were asked on behalf of all owners together, by purpose and outcome."""

    def remove_done(self, *, before: datetime) -> int:
        """Forget jobs of all owners that were done before that instant."""

    def erase(self, owner: Owner) -> int:
        """Delete every row of the owner, whatever the table; how many there were."""

    def snapshot(self, owner: Owner | None = None) -> AbstractContextManager[Snapshot]:
        """A consistent view of everything, or of nothing but one owner's rows. Writers go on meanwhile."""

    def restore(self, schema_version: int, tables: Iterable[tuple[str, Iterator[Row]]], *, replace: bool) -> Mapping[str, int]:
        """Take over the rows of a snapshot, then migrate them to this version; how many came of each table.

        All in one transaction: old or new, never a mixture. A store that holds rows is a `Conflict` unless `replace`.
        If the tables of the index are not among them, each owner gets a job that makes it anew.
        """

    def refill(self, owner: Owner, tables: Iterable[tuple[str, Iterator[Row]]], *, replace: bool) -> Mapping[str, int]:
        """Make these rows of this schema version all that the owner has, but for its access log; how many came of each table.

        No matter whose they were, they become this owner's. All in one transaction: old or new, never a mixture. An owner that
        holds rows is a `Conflict` unless `replace`. The tables of the index and its job are not among them: the owner gets
        a job that makes the index anew.
        """

    def check(self) -> Iterator[Finding]:
        """What the database itself finds wrong: damaged pages, a schema that is not the expected one."""

    def overwrite(self) -> str:
        """Overwrite what was removed, as far as that takes no longer than removing it did.

        Answers what is left to `purge`, and why, in words; with an empty text if nothing is.
        """

    def purge(self, progress: Progress | None = None) -> None:
        """Overwrite all that was ever removed and give freed space back to the disk, as far as the database can; that may
        take as long as the store is large. `Unavailable` if somebody still sees what was removed: then again later.
        """

    def distribute(self) -> DistributionReport:
        """Spread the tables over the nodes of a cluster, each user on one of them. `Unsupported` if the store has none.

        What is distributed already stays as it is, so that one that was stopped can be run again.
        """

    def describe(self) -> StoreDescription:
        """Versions, size, durability, and what is degraded."""

    def files(self) -> tuple[StoreFile, ...]:
        """The files that hold the data, if this process can see them."""

    def close(self) -> None:
        """Release everything. Calls after it are `Unavailable`; closing again does nothing."""
