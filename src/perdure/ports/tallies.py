"""Tallies as rows, and what the journal says when one is stored over another."""

from __future__ import annotations

import json

from perdure.domain.errors import Conflict
from perdure.domain.journal import Attribution, Operation
from perdure.domain.scope import Owner
from perdure.domain.tally import Tally
from perdure.ports.rows import AnyRow, address_of, dump, readable


def tally_key(tally: Tally) -> str:
    """The name of a tally in the journal."""
    return dump([tally.address.agent, tally.address.channel, tally.session_number])


def tally_operation(seq: int, held: Tally | None, tally: Tally | None, by: Attribution) -> Operation:
    """The journal entry of storing `tally` over `held`, or of removing it if None.

    Counts never go back: that would be a late, outdated run.
    """
    if held is not None and tally is not None and held.up_to_seq > tally.up_to_seq:
        raise Conflict(f"the tally already counts {held.up_to_seq} messages, more than {tally.up_to_seq}; read again")
    subject = tally if tally is not None else held
    if subject is None:
        raise Conflict("there is no tally to remove; read again")
    action = "add" if held is None else "remove" if tally is None else "update"
    before = None if held is None else held.body()
    after = None if tally is None else tally.body()
    return Operation(seq, by.at, by.actor, action, "tally", tally_key(subject), before, after, by.why, by.batch or seq)


def tally_row(owner: Owner, tally: Tally, operation: int) -> AnyRow:
    address = tally.address
    return (
        owner.space, owner.user, address.agent, address.channel, tally.session_number, tally.up_to_seq,
        dump(tally.body()), operation,
    )  # fmt: skip


def to_tally(row: AnyRow) -> Tally:
    return readable("tallies", _read_tally, row)


def _read_tally(row: AnyRow) -> Tally:
    _, _, agent, channel, number, up_to_seq, body, _ = row
    counts = json.loads(body)
    return Tally(
        address_of(agent, channel), number, up_to_seq, counts["by_role"], counts["tokens_by_role"], counts["by_tool"],
        counts["failures"], counts.get("input_tokens", 0), counts.get("output_tokens", 0),
    )  # fmt: skip
