"""The curator: runs when it is due or asked, reports what it did, and can be undone as a whole.

An audit of what is remembered for a user: reads everything, changes nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice

from perdure.domain.jobs import Job
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.keys import term_value
from perdure.domain.knowledge.memories import MemoryRecord, Statement, to_memory, to_statement
from perdure.domain.knowledge.records import RecordQuery
from perdure.domain.scope import Address, MessageId, Owner
from perdure.engine.knowledge.audit import AuditFinding, AuditItem, audit
from perdure.engine.knowledge.curator import Clash, Fold, clashes, folds, is_due, read_since
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.jobs.worker import Effect
from perdure.services.knowledge.ledger import Ledger

ACTOR = "curator/1"
MEMORIES_MAX = 10_000
STATEMENTS_MAX = 50_000
CLASHES_MAX = 100


@dataclass(frozen=True, slots=True)
class Curation:
    """What one run did, or would do."""

    memories: int
    """How many it looked at."""
    folds: tuple[Fold, ...]
    clashes: tuple[Clash, ...]
    replaced: tuple[Statement, ...] = ()
    """What was kept in the user's own words until they said it so that a rule reads it."""
    action: int | None = None
    """By this number the whole run can be undone; None if it changed nothing, or was only tried."""


@dataclass(frozen=True, slots=True)
class Curator:
    store: Store
    clock: Clock

    def handle(self, job: Job) -> Effect | None:
        """The job of an address: curate if a day has passed or enough is new."""
        address = Address(job.payload["agent"], job.payload["channel"])
        if not self.store.read(job.owner, lambda view: self.due(view, address)):
            return None

        def effect(tx: Tx) -> None:
            if self.due(tx, address):
                self._run(tx, address)

        return effect

    def due(self, view: View, address: Address) -> bool:
        state = view.conversation.find_agent_state(address)
        memories = view.records.count("memory", ("status", "ACTIVE"))
        ran_at, then = (None, None) if state is None else (state.curated_at, state.curated_memories)
        return is_due(self.clock.now(), memories, ran_at, then)

    def curate(self, owner: Owner, address: Address, *, dry_run: bool) -> Curation:
        """Run now, due or not. The report leaves out what only other agents may see."""
        if dry_run:
            return _visible_part(self.store.read(owner, self._plan), address.agent)
        return _visible_part(self.store.write(owner, lambda tx: self._run(tx, address)), address.agent)

    def _plan(self, view: View) -> Curation:
        memories: list[MemoryRecord] = []
        said: dict[str, list[Statement]] = {}
        current: list[Statement] = []
        before: str | None = None
        while len(memories) < MEMORIES_MAX and (
            page := view.records.list_(RecordQuery("memory", 1_000, ("status", "ACTIVE"), before))
        ):
            memories += [to_memory(record.body) for record in page]
            before = page[-1].key
        for memory in memories:
            found = view.records.list_(RecordQuery("statement", 1_000, ("current", term_value(memory.record_key))))
            said[memory.record_key] = [to_statement(record.body) for record in found]
            current += said[memory.record_key] if len(current) < STATEMENTS_MAX else []
        made = folds(memories, said, self.clock.now())
        clashing = tuple(islice(clashes(current), CLASHES_MAX))
        return Curation(len(memories), tuple(made), clashing, tuple(read_since(current, self.clock.now())))

    def _run(self, tx: Tx, address: Address) -> Curation:
        now = self.clock.now()
        ledger = Ledger(tx, Attribution(ACTOR, now, "curated"))
        plan = self._plan(tx)
        for fold in plan.folds:
            ledger.put(fold.into, "fold")
            for statement in fold.statements:
                ledger.put(statement, "fold")
            for original in fold.originals:
                ledger.put(original, "archive")
        for statement in plan.replaced:
            ledger.put(statement, "close")
        for clash in plan.clashes:
            ledger.suggest("contradiction", (clash.one.id, clash.other.id), clash.why)
        tx.conversation.note_curated(address, at=now, memories=tx.records.count("memory", ("status", "ACTIVE")))
        return replace(plan, action=ledger.action)


def _visible_part(done: Curation, agent: str) -> Curation:
    visible = (None, agent)
    return replace(
        done,
        folds=tuple(fold for fold in done.folds if fold.into.visible_to in visible),
        clashes=tuple(clash for clash in done.clashes if clash.one.visible_to in visible),
        replaced=tuple(one for one in done.replaced if one.visible_to in visible),
    )


ROWS_MAX = 100_000
PAGE = 1_000


@dataclass(frozen=True, slots=True)
class AuditReport:
    """How much was looked at, and what is wrong with it."""

    checked: int
    findings: tuple[AuditFinding, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Findings by kind of fault."""
        return dict(sorted(Counter(finding.fault for finding in self.findings).items()))


@dataclass(frozen=True, slots=True)
class Auditor:
    store: Store
    clock: Clock

    def audit(self, owner: Owner) -> AuditReport:
        """Look through the current statements of the user."""
        items = self.store.read(owner, _items)
        return self.report(items)

    def report(self, items: list[AuditItem]) -> AuditReport:
        """Look through texts from anywhere."""
        return AuditReport(len(items), tuple(audit(items, self.clock.now())))


def _items(view: View) -> list[AuditItem]:
    found: list[Statement] = []
    before: str | None = None
    while len(found) < ROWS_MAX and (page := view.records.list_(RecordQuery("statement", PAGE, ("state", "current"), before))):
        found += [to_statement(record.body) for record in page]
        before = page[-1].key
    items = []
    for statement in found:
        memory = view.records.find("memory", statement.memory)
        kept = statement.importance >= 2 or (memory is not None and to_memory(memory.body).pinned)
        messages = {MessageId(one.message) for one in statement.evidence}
        sources = len(view.find_messages(list(messages))) if messages else 1
        if memory is None:
            sources = 0
        items.append(
            AuditItem(
                id=statement.id,
                text=statement.content,
                about=statement.subject,
                at=statement.last_mentioned,
                sources=sources,
                keep=kept,
            )
        )
    return items
