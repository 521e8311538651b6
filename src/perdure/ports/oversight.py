"""Storing what the overseer decided and what models were asked; part of a `View` and a `Tx`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol, cast, get_args

from perdure.domain.errors import Conflict
from perdure.domain.models import Usage
from perdure.domain.oversight import Decision, DecisionKind
from perdure.domain.scope import Address, Owner
from perdure.domain.times import from_us, to_us
from perdure.ports.rows import AnyRow, address_of, dump, readable

DECISIONS_KEPT = 1_000
"""Of one owner; the oldest go first."""


class OversightView(Protocol):
    def find_decision(self, decision_id: str) -> Decision | None:
        """The decision as held; None if there was none, or if it was forgotten since."""

    def list_decisions(
        self, *, limit: int, kind: DecisionKind | None = None, address: Address | None = None, before: str | None = None
    ) -> Sequence[Decision]:
        """The one that was stored last comes first; of one kind and address if asked.

        With `before`, those that were stored before the decision with that id: none, if that one is not held any more.
        """

    def list_usage(self) -> Sequence[Usage]:
        """What models were asked on behalf of this owner, by purpose and outcome."""


class OversightTx(OversightView, Protocol):
    def put_decision(self, decision: Decision, *, keep: int) -> bool:
        """Store a decision, and forget those of the owner that were stored before the last `keep`.

        True if it is new; False, and nothing happens, if it is held already; another one under its id is a `Conflict`.
        Where several are stored at the same moment, a few more may be kept.
        """

    def remove_decisions(self, ids: Sequence[str]) -> int:
        """Forget those of `ids` that are held; how many these were."""

    def add_usage(self, usage: Usage) -> None:
        """Add to what is counted for its purpose and outcome; `last_at` becomes the later of both.

        Counts carry no id, so the store itself does not run a transaction again that adds some, unless it knows that it was
        not committed: where that cannot be told, `write` is `Unavailable`.
        """


# -- the stored form ---------------------------------------------------------------------------------------------------


def decision_row(owner: Owner, decision: Decision, number: int) -> AnyRow:
    """`number` says in which order they were stored; several that were stored at the same moment may have the same."""
    return (
        owner.space, owner.user, decision.id, number, to_us(decision.at), decision.address.agent, decision.address.channel,
        decision.kind, dump(dict(decision.body)),
    )  # fmt: skip


def to_decision(row: AnyRow) -> Decision:
    return readable("decisions", _read_decision, row)


def _read_decision(row: AnyRow) -> Decision:
    _, _, name, number, at, agent, channel, kind, text = row
    body = json.loads(text)
    if number < 1 or kind not in get_args(DecisionKind) or not isinstance(body, dict):
        raise ValueError(kind)
    return Decision(name, from_us(at), address_of(agent, channel), cast(DecisionKind, kind), body)


def refuse_another(held: Decision, owner: Owner, decision: Decision) -> None:
    """A `Conflict` unless both are the same decision, as they are after a lost answer."""
    if to_decision(decision_row(owner, decision, 1)) != held:
        raise Conflict(f"another decision has the id {decision.id!r:.80}; give each an id of its own")


def usage_row(owner: Owner, usage: Usage) -> AnyRow:
    return (
        owner.space, owner.user, usage.purpose, usage.outcome, usage.calls, usage.tokens_in, usage.tokens_out,
        round(usage.took_ms * 1000), to_us(usage.last_at),
    )  # fmt: skip


def to_usage(row: AnyRow) -> Usage:
    return readable("usage", _read_usage, row)


def _read_usage(row: AnyRow) -> Usage:
    _, _, purpose, outcome, calls, tokens_in, tokens_out, took_us, last_at = row
    if min(calls, tokens_in, tokens_out, took_us) < 0:
        raise ValueError(purpose)
    return Usage(purpose, outcome, calls, tokens_in, tokens_out, took_us / 1000, from_us(last_at))


def usage_sum(held: AnyRow, row: AnyRow) -> AnyRow:
    """Two rows of one purpose and outcome together."""
    counts = (one + other for one, other in zip(held[4:8], row[4:8], strict=True))
    return (*held[:4], *counts, max(held[8], row[8]))
