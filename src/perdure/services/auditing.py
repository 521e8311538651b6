"""An audit of what is remembered for a user: reads everything, changes nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from perdure.domain.memories import Statement, to_memory, to_statement
from perdure.domain.records import RecordQuery
from perdure.domain.scope import MessageId, Owner
from perdure.engine.auditing import AuditFinding, AuditItem, audit
from perdure.ports.clock import Clock
from perdure.ports.store import Store, View

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
class Auditing:
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
        items.append(AuditItem(statement.id, statement.content, statement.subject, statement.last_mentioned, sources, kept))
    return items
