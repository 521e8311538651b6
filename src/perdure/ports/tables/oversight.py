"""Storing what the overseer decided and what models were asked; part of a `View` and a `Tx`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple, Protocol, cast, get_args

from perdure.domain.errors import Conflict
from perdure.domain.models import Usage
from perdure.domain.oversight import Decision, DecisionKind
from perdure.domain.scope import Address, Owner
from perdure.domain.text.rules import compact_json
from perdure.domain.times.instants import from_us, to_us
from perdure.ports.tables.table import AnyRow, Table, address_of

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


class DecisionRow(NamedTuple):
    space: str
    user_id: str
    id: str
    number: int
    """In which order they were stored; several that were stored at the same moment may have the same."""
    at_us: int
    agent: str
    channel: str
    kind: str
    body: str


class UsageRow(NamedTuple):
    space: str
    user_id: str
    purpose: str
    outcome: str
    calls: int
    tokens_in: int
    tokens_out: int
    took_us: int
    last_at_us: int


DECISIONS = Table("decisions", DecisionRow, 3)
USAGE = Table("usage", UsageRow, 4)


def decision_row(owner: Owner, decision: Decision, number: int) -> DecisionRow:
    return DecisionRow(
        space=owner.space,
        user_id=owner.user,
        id=decision.id,
        number=number,
        at_us=to_us(decision.at),
        agent=decision.address.agent,
        channel=decision.address.channel,
        kind=decision.kind,
        body=compact_json(dict(decision.body)),
    )


def to_decision(row: AnyRow) -> Decision:
    return DECISIONS.read(row, _read_decision)


def _read_decision(row: DecisionRow) -> Decision:
    body = json.loads(row.body)
    if row.number < 1 or row.kind not in get_args(DecisionKind) or not isinstance(body, dict):
        raise ValueError(row.kind)
    return Decision(row.id, from_us(row.at_us), address_of(row.agent, row.channel), cast(DecisionKind, row.kind), body)


def refuse_another(held: Decision, owner: Owner, decision: Decision) -> None:
    """A `Conflict` unless both are the same decision, as they are after a lost answer."""
    if to_decision(decision_row(owner, decision, 1)) != held:
        raise Conflict(f"another decision has the id {decision.id!r:.80}; give each its own id")


def usage_row(owner: Owner, usage: Usage) -> UsageRow:
    return UsageRow(
        space=owner.space,
        user_id=owner.user,
        purpose=usage.purpose,
        outcome=usage.outcome,
        calls=usage.calls,
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        took_us=round(usage.took_ms * 1000),
        last_at_us=to_us(usage.last_at),
    )


def to_usage(row: AnyRow) -> Usage:
    return USAGE.read(row, _read_usage)


def _read_usage(row: UsageRow) -> Usage:
    if min(row.calls, row.tokens_in, row.tokens_out, row.took_us) < 0:
        raise ValueError(row.purpose)
    return Usage(
        purpose=row.purpose,
        outcome=row.outcome,
        calls=row.calls,
        tokens_in=row.tokens_in,
        tokens_out=row.tokens_out,
        took_ms=row.took_us / 1000,
        last_at=from_us(row.last_at_us),
    )


def usage_sum(held: UsageRow, row: UsageRow) -> UsageRow:
    """Two rows of one purpose and outcome together."""
    return held._replace(
        calls=held.calls + row.calls,
        tokens_in=held.tokens_in + row.tokens_in,
        tokens_out=held.tokens_out + row.tokens_out,
        took_us=held.took_us + row.took_us,
        last_at_us=max(held.last_at_us, row.last_at_us),
    )
