"""Storing what the overseer decided and what models were asked; part of a `View` and a `Tx`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from perdure.domain.models import Usage
from perdure.domain.oversight import Decision, DecisionKind
from perdure.domain.scope import Address

DECISIONS_KEPT = 1_000
"""Of one owner; the oldest go first."""


class OversightView(Protocol):
    def list_decisions(
        self, *, limit: int, kind: DecisionKind | None = None, address: Address | None = None, before: str | None = None
    ) -> Sequence[Decision]:
        """Newest first, of one kind and address if asked; older than the decision with the id `before`."""

    def list_usage(self) -> Sequence[Usage]:
        """What models were asked on behalf of this owner, by purpose and outcome."""


class OversightTx(OversightView, Protocol):
    def put_decision(self, decision: Decision, *, keep: int) -> None:
        """Store a decision, and forget those of the owner that are older than the newest `keep`."""

    def add_usage(self, usage: Usage) -> None:
        """Add to what is counted for its purpose and outcome; `last_at` becomes the later of both."""
