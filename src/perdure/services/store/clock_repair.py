"""Rows that were written by a clock that ran ahead: found in the journal, told, and brought back to now.

Messages, entries and values stay as they were stored: they are what was said. The journal stays, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.memories import to_statement
from perdure.domain.knowledge.records import Record, RecordKind, record_kind
from perdure.domain.reports import ClockReport
from perdure.domain.scope import Owner
from perdure.domain.text.rules import Json
from perdure.domain.times.instants import from_us, to_us
from perdure.engine.knowledge.terms import terms_of
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx
from perdure.ports.tables.knowledge import OPERATIONS
from perdure.services.index.writes import enter_record

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
                tx.records.put(Record(kind, key, body), terms_of(kind, body), by=by, action="update")
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
