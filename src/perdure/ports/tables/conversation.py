"""The conversation part of the store: counters of an address, its open sessions, and digests of its log.

Its rows: agent states, digests and tallies, with what the journal says when one is stored over another.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, Protocol, cast

from perdure.domain.conversation.agent_state import AgentState, Failure, TurnLease
from perdure.domain.conversation.digests import DIGEST_KINDS, Digest, DigestKind, DigestSource
from perdure.domain.conversation.messages import Session
from perdure.domain.conversation.tally import Tally
from perdure.domain.errors import Conflict
from perdure.domain.knowledge.journal import Attribution, Operation
from perdure.domain.scope import Address, Owner
from perdure.domain.text.rules import Json, compact_json
from perdure.domain.times.instants import from_us, to_us
from perdure.ports.tables.knowledge import operation_by
from perdure.ports.tables.table import AnyRow, Table, address_of, instant_or_none, us_or_none


class ConversationView(Protocol):
    def find_agent_state(self, address: Address) -> AgentState | None:
        """The counters of the address; None before the user's first message there."""

    def count_turns(self) -> int:
        """Turns of this owner, at all addresses together."""

    def open_sessions(self, address: Address, *, limit: int) -> list[Session]:
        """Sessions of the address that have not ended, highest number first."""

    def sessions_to_condense(self, *, limit: int) -> list[Session]:
        """Sessions, at any address, with messages that no spine has taken in: by agent, channel and number."""

    def sessions_by_activity(self, channel_prefix: str, *, limit: int) -> list[Session]:
        """Sessions, at any address whose channel starts so, that were not deleted: latest activity first."""

    def find_digest(self, address: Address, session_number: int, kind: DigestKind, version: int) -> Digest | None:
        """One version, undone or not."""

    def latest_digest(self, address: Address, session_number: int, kind: DigestKind) -> Digest | None:
        """The highest version that is not undone."""

    def list_digests(
        self, address: Address, session_number: int | None, kind: DigestKind | None, *, limit: int
    ) -> list[Digest]:
        """Versions, undone ones too: highest session first, then by kind, highest version first."""


class ConversationTx(ConversationView, Protocol):
    def count_turn(self, address: Address, turns: int, *, at: datetime, text: str) -> None:
        """Add to the turns of the address; `at` and `text` are those of the latest one, kept if not older than held."""

    def forget_said(self, address: Address) -> None:
        """Forget what the user said last at the address; the counters stay."""

    def configure(self, address: Address, *, profile: str | None, casual: bool, private: bool, shared: bool) -> None:
        """Set which layers the address keeps, and whether its talk is casual, private or shared with others."""

    def note_rolling(self, address: Address, *, tried_at: datetime, done_at: datetime | None, error: Failure | None) -> None:
        """Set the diagnostics of the rolling digest; `done_at` None leaves the time of the last success as it is."""

    def note_curated(self, address: Address, *, at: datetime, memories: int) -> None:
        """Set when the curator last ran and how many memories there were."""

    def lock_turn(self, address: Address) -> TurnLease | None:
        """Who took the floor last, whether or not the lease has ended; nobody else sees it until the transaction ends."""

    def put_turn(self, address: Address, lease: TurnLease | None) -> None:
        """Give the floor of the address to a holder, or to nobody. Whether that is right was decided under the lock."""

    def put_digest(self, digest: Digest, *, by: Attribution) -> None:
        """Insert a version, or mark a held one as undone, and journal it. Any other change of a held one is a `Conflict`."""

    def remove_digests(self, digests: Sequence[Digest], *, by: Attribution) -> None:
        """Delete versions, and journal it."""

    def empty_session(self, session: Session, *, by: Attribution) -> None:
        """Delete the session's messages, tool calls, tally and digests; the session itself is put as given."""

    def cut_session(self, session: Session, *, by: Attribution) -> None:
        """Delete the messages beyond those that the session, which is put as given, says to have: their calls and results go
        with them, and the tally, to be made anew.
        """


# -- agent states ------------------------------------------------------------------------------------------------------


class AgentStateRow(NamedTuple):
    space: str
    user_id: str
    agent: str
    channel: str
    turns: int
    last_at_us: int | None
    last_text: str | None
    profile: str | None
    casual: int
    private: int
    rolling_tried_us: int | None
    rolling_done_us: int | None
    rolling_error: str | None
    curated_us: int | None
    curated_memories: int | None
    turn_holder: str | None
    turn_until_us: int | None
    shared: int


AGENT_STATES = Table("agent_states", AgentStateRow, 4)


def agent_state_row(owner: Owner, state: AgentState, lease: TurnLease | None = None) -> AgentStateRow:
    return AgentStateRow(
        space=owner.space,
        user_id=owner.user,
        agent=state.address.agent,
        channel=state.address.channel,
        turns=state.turns,
        last_at_us=us_or_none(state.last_at),
        last_text=state.last_text,
        profile=state.profile,
        casual=int(state.casual),
        private=int(state.private),
        rolling_tried_us=us_or_none(state.rolling_tried_at),
        rolling_done_us=us_or_none(state.rolling_done_at),
        rolling_error=failure_text(state.rolling_error),
        curated_us=us_or_none(state.curated_at),
        curated_memories=state.curated_memories,
        turn_holder=None if lease is None else lease.holder,
        turn_until_us=None if lease is None else to_us(lease.until),
        shared=int(state.shared),
    )


def failure_text(failure: Failure | None) -> str | None:
    return None if failure is None else compact_json({"reason": failure.reason, "detail": failure.detail})


def to_agent_state(row: AnyRow) -> AgentState:
    return AGENT_STATES.read(row, _read_agent_state)


def _read_agent_state(row: AgentStateRow) -> AgentState:
    return AgentState(
        address=address_of(row.agent, row.channel),
        turns=row.turns,
        last_at=instant_or_none(row.last_at_us),
        last_text=row.last_text,
        profile=row.profile,
        casual=bool(row.casual),
        private=bool(row.private),
        rolling_tried_at=instant_or_none(row.rolling_tried_us),
        rolling_done_at=instant_or_none(row.rolling_done_us),
        rolling_error=None if row.rolling_error is None else Failure(**json.loads(row.rolling_error)),
        curated_at=instant_or_none(row.curated_us),
        curated_memories=row.curated_memories,
        shared=bool(row.shared),
    )


def to_turn(row: AnyRow) -> TurnLease | None:
    return AGENT_STATES.read(row, _read_turn)


def _read_turn(row: AgentStateRow) -> TurnLease | None:
    return None if row.turn_holder is None else TurnLease(row.turn_holder, from_us(cast(int, row.turn_until_us)))


# -- digests -----------------------------------------------------------------------------------------------------------


class DigestRow(NamedTuple):
    space: str
    user_id: str
    agent: str
    channel: str
    session_number: int
    kind: str
    version: int
    made_at_us: int
    undone: int
    body: str
    operation: int


DIGESTS = Table("digests", DigestRow, 7)


def digest_body(digest: Digest) -> str:
    """Everything about a digest that its key does not say, as JSON text."""
    return compact_json(
        {
            "policy": digest.policy,
            "based_on": digest.based_on,
            "sources": [
                [one.address.agent, one.address.channel, one.session_number, one.first_seq, one.last_seq]
                for one in digest.sources
            ],
            "text": digest.text,
            "pinned": list(digest.pinned),
            "lessons": list(digest.lessons),
            "fields": dict(digest.fields),
            "summariser": digest.summariser,
            "fallback": digest.fallback,
        }
    )


def digest_row(owner: Owner, digest: Digest, operation: int) -> DigestRow:
    return DigestRow(
        space=owner.space,
        user_id=owner.user,
        agent=digest.address.agent,
        channel=digest.address.channel,
        session_number=digest.session_number,
        kind=digest.kind,
        version=digest.version,
        made_at_us=to_us(digest.made_at),
        undone=int(digest.undone),
        body=digest_body(digest),
        operation=operation,
    )


def to_digest(row: AnyRow) -> Digest:
    return DIGESTS.read(row, _read_digest)


def _read_digest(row: DigestRow) -> Digest:
    if row.kind not in DIGEST_KINDS:
        raise ValueError(row.kind)
    body = json.loads(row.body)
    return Digest(
        address=address_of(row.agent, row.channel),
        session_number=row.session_number,
        kind=row.kind,
        version=row.version,
        policy=body["policy"],
        based_on=body["based_on"],
        sources=tuple(DigestSource(address_of(one[0], one[1]), *one[2:]) for one in body["sources"]),
        text=body["text"],
        pinned=tuple(body["pinned"]),
        lessons=tuple(body["lessons"]),
        fields=body["fields"],
        summariser=body["summariser"],
        fallback=body["fallback"],
        made_at=from_us(row.made_at_us),
        undone=bool(row.undone),
    )


def digest_key(digest: Digest) -> str:
    """What identifies a digest in the journal."""
    return compact_json([digest.address.agent, digest.address.channel, digest.session_number, digest.kind, digest.version])


def digest_record(digest: Digest) -> Json:
    """What the journal keeps of a digest: enough to tell a changed one, and none of its words, so that deleting is enough."""
    words = hashlib.sha256(digest_body(digest).encode()).hexdigest()
    return {"policy": digest.policy, "last_seq": digest.last_seq, "undone": digest.undone, "sha256": words}


def digest_operation(seq: int, held: Digest | None, digest: Digest | None, by: Attribution) -> Operation:
    """The journal entry of putting `digest` where `held` is; removing it if None."""
    subject = digest if digest is not None else held
    if subject is None or (held is not None and digest is not None and replace(held, undone=digest.undone) != digest):
        raise Conflict("a digest of that version is held already, with other words; read again and write the next version")
    action = "add" if held is None else "remove" if digest is None else "undo" if digest.undone else "redo"
    before = None if held is None else digest_record(held)
    after = None if digest is None else digest_record(digest)
    return operation_by(by, seq, action=action, kind="digest", key=digest_key(subject), before=before, after=after)


# -- tallies -----------------------------------------------------------------------------------------------------------


class TallyRow(NamedTuple):
    space: str
    user_id: str
    agent: str
    channel: str
    session_number: int
    up_to_seq: int
    body: str
    operation: int


TALLIES = Table("tallies", TallyRow, 5)


def tally_row(owner: Owner, tally: Tally, operation: int) -> TallyRow:
    return TallyRow(
        space=owner.space,
        user_id=owner.user,
        agent=tally.address.agent,
        channel=tally.address.channel,
        session_number=tally.session_number,
        up_to_seq=tally.up_to_seq,
        body=compact_json(tally.body()),
        operation=operation,
    )


def to_tally(row: AnyRow) -> Tally:
    return TALLIES.read(row, _read_tally)


def _read_tally(row: TallyRow) -> Tally:
    counts = json.loads(row.body)
    return Tally(
        address=address_of(row.agent, row.channel),
        session_number=row.session_number,
        up_to_seq=row.up_to_seq,
        by_role=counts["by_role"],
        tokens_by_role=counts["tokens_by_role"],
        by_tool=counts["by_tool"],
        failures=counts["failures"],
        input_tokens=counts.get("input_tokens", 0),
        output_tokens=counts.get("output_tokens", 0),
    )


def tally_key(tally: Tally) -> str:
    """The name of a tally in the journal."""
    return compact_json([tally.address.agent, tally.address.channel, tally.session_number])


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
    return operation_by(by, seq, action=action, kind="tally", key=tally_key(subject), before=before, after=after)
