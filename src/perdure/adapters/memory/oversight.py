"""Decisions of the overseer and the usage of models, in plain dicts."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.adapters.memory.tables import OwnerTables
from perdure.domain.models import Usage
from perdure.domain.oversight import Decision, DecisionKind
from perdure.domain.scope import Address
from perdure.ports.tables import oversight as forms
from perdure.ports.tables.oversight import DECISIONS, USAGE, DecisionRow


class MemoryOversight:
    def __init__(self, tables: OwnerTables) -> None:
        self._tables = tables
        self._owner = tables.owner

    def find_decision(self, decision_id: str) -> Decision | None:
        row = self._tables.find(DECISIONS, decision_id)
        return None if row is None else forms.to_decision(row)

    def list_decisions(
        self, *, limit: int, kind: DecisionKind | None = None, address: Address | None = None, before: str | None = None
    ) -> list[Decision]:
        rows = self._newest_first()
        if before is not None:
            rows = rows[[row.id for row in rows].index(before) + 1 :] if self.find_decision(before) is not None else []
        found = map(forms.to_decision, rows)
        return [one for one in found if kind in (None, one.kind) and address in (None, one.address)][:limit]

    def put_decision(self, decision: Decision, *, keep: int) -> bool:
        held = self.find_decision(decision.id)
        if held is not None:
            forms.refuse_another(held, self._owner, decision)
            return False
        last = max((row.number for row in self._tables.each(DECISIONS)), default=0)
        self._tables.put(DECISIONS, forms.decision_row(self._owner, decision, last + 1))
        self.remove_decisions([row.id for row in self._newest_first() if row.number <= last + 1 - keep])
        return True

    def remove_decisions(self, ids: Sequence[str]) -> int:
        gone = [row for row in self._tables.of(DECISIONS) if row.id in ids]
        for row in gone:
            self._tables.remove(DECISIONS, row)
        return len(gone)

    def list_usage(self) -> list[Usage]:
        return [forms.to_usage(row) for row in self._tables.of(USAGE)]

    def add_usage(self, usage: Usage) -> None:
        row = forms.usage_row(self._owner, usage)
        held = self._tables.find(USAGE, usage.purpose, usage.outcome)
        self._tables.put(USAGE, row if held is None else forms.usage_sum(held, row))

    def _newest_first(self) -> list[DecisionRow]:
        return sorted(self._tables.of(DECISIONS), key=lambda row: (row.number, row.id), reverse=True)
