"""Proves that the store works by using it: a message goes in, a job runs, the counts come back, and no trace is left.

What the counts of asking models say is told with it: which purposes fail, how, and what helps.

The chat model, the embedder and the reranker are asked one small thing each, and nothing is stored.
"""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby, islice

from perdure.domain.conversation.messages import NewMessage
from perdure.domain.errors import Corrupt
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.memories import to_statement
from perdure.domain.knowledge.records import Record, RecordKind, record_kind
from perdure.domain.models import ChatMessage, ChatRequest, Usage
from perdure.domain.reports import ClockReport, DoctorReport, Health, IndexCacheReport, ModelPart, PartReport
from perdure.domain.scope import RESERVED, Address, Owner, Scope
from perdure.domain.text.rules import Json
from perdure.domain.times.instants import from_us, to_us
from perdure.domain.values import dataclass
from perdure.engine.knowledge.terms import terms_of
from perdure.ports.clock import Clock
from perdure.ports.models import Reranker
from perdure.ports.store import Store, Tx
from perdure.ports.tables.knowledge import OPERATIONS
from perdure.services.conversation.append import Appender
from perdure.services.conversation.history import LogReader
from perdure.services.index.writes import enter_record
from perdure.services.jobs.erasure import Erasures
from perdure.services.jobs.worker import Handler, Worker
from perdure.services.models.consultant import Consultant, failure_of
from perdure.services.models.embedders import Embedders, embedded

SUCCESSES = ("ok", "repaired")
FAILED_SHARE = 0.5
ASKED_MIN = 10
"""Fewer questions say little about a share."""
RECENT = timedelta(days=1)
"""A failure that is longer ago, and was followed by an answer, is over."""
_REMEDIES = {
    "timeout": "use a faster model or a nearer server",
    "refused": "check the name of the model and `model_key`",
    "unavailable": "check the setting `model`, and that its server runs",
    "unreadable": "use a model that keeps to a JSON schema",
}


def _spoken(seconds: float) -> str:
    """`12 minutes`, `3 hours`, `2 days`."""
    for length, unit in ((86_400, "days"), (3_600, "hours")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 60:.0f} minutes"


def model_troubles(counts: Sequence[Usage], now: datetime) -> list[str]:
    """A line for each purpose whose last question failed, or most of whose questions do."""
    return [line for _, group in groupby(sorted(counts, key=_purpose), key=_purpose) if (line := _trouble(list(group), now))]


def _trouble(group: list[Usage], now: datetime) -> str | None:
    failed = [one for one in group if one.outcome not in SUCCESSES]
    if not failed:
        return None
    asked, lost = sum(one.calls for one in group), sum(one.calls for one in failed)
    last = max(group, key=lambda one: one.last_at)
    last_failed = max(failed, key=lambda one: one.last_at)
    often = asked >= ASKED_MIN and lost >= asked * FAILED_SHARE and now - last_failed.last_at < RECENT
    if last.outcome in SUCCESSES and not often:
        return None
    remedy = _REMEDIES.get(last_failed.outcome, "look at the model")
    words = f"{lost} of {asked} calls for `{last.purpose}` failed, last: {last_failed.outcome}"
    return f"model: {words}; {remedy}; meanwhile the rules stand in and what waits is tried again"


def _purpose(usage: Usage) -> str:
    return usage.purpose


LATE_S = 300.0
WAIT_S = 0.05
WAITS_MAX = 100
DEAD_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Doctor:
    store: Store
    clock: Clock
    ingest: Appender
    history: LogReader
    erasures: Erasures
    handlers: Mapping[str, Handler]
    versions: Mapping[str, str]
    indexes: Callable[[], IndexCacheReport]
    model: str = ""
    """The chat model in use, if one is."""

    def examine(self, known: Sequence[str] = ()) -> DoctorReport:
        """Prove the round trip; `known` are degradations the caller has noticed. Of a store that can only be read, only reading
        is proved.
        """
        started = self.clock.monotonic()
        if not self.store.describe().read_only:
            self._round_trip()
        took_ms = (self.clock.monotonic() - started) * 1000
        seen = self.look((*known, *self._from_the_future()))
        versions = {"python": platform.python_version(), **self.versions, **seen.store.versions}
        dead = tuple(self.store.list_dead(limit=DEAD_SHOWN))
        return DoctorReport(
            store=seen.store,
            queue=seen.queue,
            round_trip_ms=took_ms,
            versions=versions,
            degraded=seen.degraded,
            dead_jobs=dead,
            model=self.model,
            models=seen.models,
            indexes=seen.indexes,
        )

    def _from_the_future(self) -> list[str]:
        seen = ClockRepair(self.store, self.clock).look()
        if seen.latest is None:
            return []
        rows = f"{seen.rows} {'row' if seen.rows == 1 else 'rows'}"
        whose = f"{seen.users} {'user' if seen.users == 1 else 'users'}"
        latest = seen.latest.isoformat(timespec="seconds")
        remedy = "set the clock right, then run `perdure admin repair-clock`"
        return [f"clock: {rows} of {whose} dated after now, up to {latest}; {remedy}"]

    def look(self, known: Sequence[str] = (), users: int = 0) -> Health:
        """The state of things, without trying anything."""
        store = self.store.describe()
        queue = self.store.queue(self.clock.now())
        degraded = [*store.degraded, *known]
        remaining = self.erasures.waiting()
        if remaining is not None:
            degraded.append(f"erasure: bytes of what was forgotten are still on the disk: {remaining}")
        if queue.dead:
            degraded.append(f"jobs: {queue.dead} failed; fix the cause, then `perdure admin jobs retry`")
        if queue.failing:
            degraded.append(f"jobs: {queue.failing} failed and are tried again; `perdure admin jobs list` says why")
        if queue.late_s > LATE_S:
            waits = f"jobs: a job has waited {_spoken(queue.late_s)} and no worker takes it"
            degraded.append(f"{waits}; run `perdure worker`, or open with `background=True`")
        asked = tuple(self.store.usage())
        if self.model:
            degraded += model_troubles(asked, self.clock.now())
        return Health(store, queue, tuple(degraded), users, asked, indexes=self.indexes())

    def _round_trip(self) -> None:
        """An owner of its own, used once and erased, so that no user's data is touched."""
        owner = Owner(f"{RESERVED}doctor", self.clock.new_id())
        scope = Scope(owner, Address())
        try:
            [sent] = self.ingest.append(scope, [NewMessage("user", "Is anybody there?")])
            if self.history.messages(scope, limit=1) != [sent]:
                raise Corrupt("a message came back other than it was stored; run `perdure admin verify`")
            self._wait_for_its_job(scope)
        finally:
            self.store.erase(owner)

    def _wait_for_its_job(self, scope: Scope) -> None:
        """Run just this owner's job, unless a worker elsewhere was faster."""
        worker = Worker(self.store, self.clock, self.handlers, f"doctor-{scope.owner.user}", owner=scope.owner)
        pause = threading.Event()
        for _ in range(WAITS_MAX):
            worker.process(0.0)
            if self.history.tally(scope, None).messages == 1:
                return
            pause.wait(WAIT_S)
        raise Corrupt(
            "a message was stored but its job left no result; run `perdure admin verify` and look at `perdure admin jobs list`"
        )


CHECK_S = 15.0
QUESTION = "Is anybody there?"
REMEDIES: dict[ModelPart, str] = {
    "model": "Check the setting `model` and `model_key`, and that its server runs. Meanwhile rules do its work.",
    "embedder": "Check the setting `embedder` and `embedder_key`, and that its server runs. Meanwhile words are searched.",
    "reranker": "Check the reranker that was given to `perdure.open`. Meanwhile hits keep their order.",
}


@dataclass(frozen=True, slots=True)
class ModelChecks:
    consultant: Consultant
    embedders: Embedders
    embedder_setting: str
    reranker: Reranker | None

    def reports(self, *, ask: bool) -> tuple[PartReport, ...]:
        """One for each part; `ask`: with an answer from each that is in use."""
        return (
            _report("model", self.consultant.name if self.consultant.available else "", self._chat if ask else None),
            _report("embedder", self.embedder_setting if self.embedders.in_use else "", self._embed if ask else None),
            _report("reranker", "" if self.reranker is None else str(self.reranker.name), self._rerank if ask else None),
        )

    def _chat(self) -> object:
        model = self.consultant.model
        request = ChatRequest((ChatMessage("user", QUESTION),), tokens_max=16, deadline_s=CHECK_S)
        return None if model is None else model.chat(request)

    def _embed(self) -> object:
        current = self.embedders.current()
        return None if current is None else embedded(current, [QUESTION], "query")

    def _rerank(self) -> object:
        return None if self.reranker is None else [float(one) for one in self.reranker.rerank(QUESTION, [QUESTION])]


def _report(part: ModelPart, name: str, ask: Callable[[], object] | None) -> PartReport:
    if not name or ask is None:
        return PartReport(part, name, "configured" if name else "off")
    started = time.monotonic()  # real time: it is a server that is waited for
    why = failure_of(ask, CHECK_S)
    took_ms = (time.monotonic() - started) * 1000
    if why:
        return PartReport(part, name, "failed", problem=why, remedy=REMEDIES[part], took_ms=took_ms)
    return PartReport(part, name, "answers", took_ms=took_ms)


ROWS_PER_WRITE = 200
ACTOR = "clock/1"
ELAPSED = ("created_at", "updated_at", "made_at", "ended_at", "archived_at", "repeated_at")
"""Fields that tell when something was done; others, such as when a todo is due, may well be in the future."""
RecordName = tuple[RecordKind, str]


@dataclass(frozen=True, slots=True)
class ClockRepair:
    store: Store
    clock: Clock

    def look(self) -> ClockReport:
        """How many rows were last changed after now. Reads the journal once, and changes nothing."""
        found, latest = self._ahead()
        return ClockReport(sum(len(names) for names in found.values()), len(found), latest)

    def repair(self) -> ClockReport:
        """Bring these rows back to now, a few at a time, each time as one action of the journal."""
        found, latest = self._ahead()
        for owner, names in found.items():
            for some in _parts(names):
                self._settle(owner, some)
        return ClockReport(sum(len(names) for names in found.values()), len(found), latest)

    def _ahead(self) -> tuple[Mapping[Owner, list[RecordName]], datetime | None]:
        now_us = to_us(self.clock.now())
        found: dict[Owner, dict[RecordName, None]] = {}
        latest = now_us
        with self.store.snapshot() as snapshot:
            for row in snapshot.rows("operations"):
                change = OPERATIONS.read(row, lambda named: named)  # the times alone: bodies are not looked at
                kind = record_kind(change.kind)
                if kind is None:
                    continue
                mine = found.setdefault(Owner(change.space, change.user_id), {})
                if change.after is not None and change.at_us > now_us:
                    mine[kind, change.key] = None
                    latest = max(latest, change.at_us)
                else:
                    mine.pop((kind, change.key), None)  # it was changed again, or removed
        ahead = {owner: list(names) for owner, names in found.items() if names}
        return ahead, from_us(latest) if ahead else None

    def _settle(self, owner: Owner, names: list[RecordName]) -> None:
        now = self.clock.now()

        def work(tx: Tx) -> None:
            tx.records.lock()
            by = Attribution(ACTOR, now, "written by a clock that ran ahead")
            for kind, key in names:
                held = tx.records.find(kind, key)
                if held is None:
                    continue
                body = settled_body(kind, held.body, now)
                was = terms_of(kind, held.body)
                tx.records.put(Record(kind, key, body), terms_of(kind, body), by=by, action="update", was=was)
                enter_record(tx, kind, key, body, now=now)

        self.store.write(owner, work)


def settled_body(kind: RecordKind, body: Mapping[str, Json], now: datetime) -> Mapping[str, Json]:
    """A record with what a clock that ran ahead wrote brought back."""
    if kind == "statement":
        return to_statement(body).settled(now).body()
    most = to_us(now)
    return {
        name: min(value, most) if name in ELAPSED and isinstance(value, int) and not isinstance(value, bool) else value
        for name, value in body.items()
    }


def _parts(names: list[RecordName]) -> Iterator[list[RecordName]]:
    waiting = iter(names)
    while some := list(islice(waiting, ROWS_PER_WRITE)):
        yield some
