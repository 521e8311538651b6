"""Decisions of the overseer and the usage of models, in plain dicts."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.adapters.memory.held import OwnerRows
from perdure.domain.models import Usage
from perdure.domain.oversight import Decision, DecisionKind
from perdure.domain.scope import Address, Owner
from perdure.ports import oversight as forms
from perdure.ports.rows import AnyRow


class MemoryOversight:
    def __init__(self, held: OwnerRows, owner: Owner) -> None:
        self._held = held
        self._owner = owner

    def find_decision(self, decision_id: str) -> Decision | None:
        return next((forms.to_decision(row) for row in self._held.of("decisions", decision_id)), None)

    def list_decisions(
        self, *, limit: int, kind: DecisionKind | None = None, address: Address | None = None, before: str | None = None
    ) -> list[Decision]:
        rows = self._newest_first()
        if before is not None:
            rows = rows[[row[2] for row in rows].index(before) + 1 :] if self.find_decision(before) is not None else []
        found = map(forms.to_decision, rows)
        return [one for one in found if kind in (None, one.kind) and address in (None, one.address)][:limit]

    def put_decision(self, decision: Decision, *, keep: int) -> bool:
        held = self.find_decision(decision.id)
        if held is not None:
            forms.refuse_another(held, self._owner, decision)
            return False
        last = max((row[3] for row in self._held.of("decisions")), default=0)
        self._held.put("decisions", forms.decision_row(self._owner, decision, last + 1))
        self.remove_decisions([row[2] for row in self._newest_first() if row[3] <= last + 1 - keep])
        return True

    def remove_decisions(self, ids: Sequence[str]) -> int:
        gone = [row for row in self._held.of("decisions") if row[2] in ids]
        for row in gone:
            self._held.remove("decisions", row[:3])
        return len(gone)

    def list_usage(self) -> list[Usage]:
        return [forms.to_usage(row) for row in self._held.of("usage")]

    def add_usage(self, usage: Usage) -> None:
        row = forms.usage_row(self._owner, usage)
        for held in self._held.of("usage", usage.purpose, usage.outcome):
            row = forms.usage_sum(held, row)
        self._held.put("usage", row)

    def _newest_first(self) -> list[AnyRow]:
        return sorted(self._held.of("decisions"), key=lambda row: (row[3], row[2]), reverse=True)
