"""Decisions of the overseer and the usage of models, of one owner in a SQL database."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.adapters.statements import MAX_INTEGER, Statements
from perdure.domain.models import Usage
from perdure.domain.oversight import Decision, DecisionKind
from perdure.domain.scope import Address, Owner
from perdure.ports import oversight as forms
from perdure.ports.rows import AnyRow


class SqlOversight:
    __slots__ = ("_owner", "_prefix", "_run")

    def __init__(self, run: Statements, owner: Owner) -> None:
        self._run = run
        self._owner = owner
        self._prefix = (owner.space, owner.user)

    def find_decision(self, decision_id: str) -> Decision | None:
        found = self._find(decision_id)
        return None if found is None else forms.to_decision(found)

    def list_decisions(
        self, *, limit: int, kind: DecisionKind | None = None, address: Address | None = None, before: str | None = None
    ) -> list[Decision]:
        top, name = MAX_INTEGER, ""
        if before is not None:
            found = self._find(before)
            if found is None:
                return []
            _, _, name, top, *_ = found
        agent, channel = (None, None) if address is None else (address.agent, address.channel)
        values = (*self._prefix, top, top, name, kind, kind, agent, agent, channel, limit)
        return [forms.to_decision(row) for row in self._run.all("list_decisions", values)]

    def put_decision(self, decision: Decision, *, keep: int) -> bool:
        held = self.find_decision(decision.id)
        if held is not None:
            forms.refuse_another(held, self._owner, decision)
            return False
        [(last,)] = self._run.all("last_decision", self._prefix)
        self._run.put("insert_decision", [forms.decision_row(self._owner, decision, last + 1)])
        self._run.change("bound_decisions", (*self._prefix, last + 1 - keep))
        return True

    def remove_decisions(self, ids: Sequence[str]) -> int:
        return self._run.change("remove_decisions", (*self._prefix, self._run.array(list(ids)))) if ids else 0

    def list_usage(self) -> list[Usage]:
        return [forms.to_usage(row) for row in self._run.all("list_usage", self._prefix)]

    def add_usage(self, usage: Usage) -> None:
        self._run.once()
        self._run.put("add_usage", [forms.usage_row(self._owner, usage)])

    def _find(self, decision_id: str) -> AnyRow | None:
        found = self._run.all("find_decision", (*self._prefix, decision_id))
        return found[0] if found else None
