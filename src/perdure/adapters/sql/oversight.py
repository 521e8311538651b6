"""Decisions of the overseer and the usage of models, of one owner in a SQL database."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.adapters.sql.statements import MAX_INTEGER, SqlStatements
from perdure.domain.models import Usage
from perdure.domain.oversight import Decision, DecisionKind
from perdure.domain.scope import Address, Owner
from perdure.ports.tables import oversight as forms


class SqlOversight:
    __slots__ = ("_owner", "_run")

    def __init__(self, run: SqlStatements, owner: Owner) -> None:
        self._run = run
        self._owner = owner

    def find_decision(self, decision_id: str) -> Decision | None:
        found = self._find(decision_id)
        return None if found is None else forms.to_decision(found)

    def list_decisions(
        self, *, limit: int, kind: DecisionKind | None = None, address: Address | None = None, before: str | None = None
    ) -> list[Decision]:
        top, last_id = MAX_INTEGER, ""
        if before is not None:
            found = self._find(before)
            if found is None:
                return []
            top, last_id = found.number, found.id
        rows = self._run.all(
            "list_decisions",
            top=top,
            last_id=last_id,
            kind=kind,
            agent=None if address is None else address.agent,
            channel=None if address is None else address.channel,
            limit=limit,
        )
        return [forms.to_decision(row) for row in rows]

    def put_decision(self, decision: Decision, *, keep: int) -> bool:
        held = self.find_decision(decision.id)
        if held is not None:
            forms.refuse_another(held, self._owner, decision)
            return False
        [(last,)] = self._run.all("last_decision")
        self._run.put("insert_decision", [forms.decision_row(self._owner, decision, last + 1)])
        self._run.send("bound_decisions", last=last + 1 - keep)
        return True

    def remove_decisions(self, ids: Sequence[str]) -> int:
        return self._run.change("remove_decisions", ids=self._run.array(list(ids))) if ids else 0

    def list_usage(self) -> list[Usage]:
        return [forms.to_usage(row) for row in self._run.all("list_usage")]

    def add_usage(self, usage: Usage) -> None:
        self._run.put("add_usage", [forms.usage_row(self._owner, usage)])

    def _find(self, decision_id: str) -> forms.DecisionRow | None:
        found = self._run.all("find_decision", id=decision_id)
        return forms.DECISIONS.named(found[0]) if found else None
