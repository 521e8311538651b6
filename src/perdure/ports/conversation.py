"""The conversation part of the store: counters of an address, its open sessions, and digests of its log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from perdure.domain.agents import AgentState, Failure, TurnLease
from perdure.domain.digests import Digest, DigestKind
from perdure.domain.journal import Attribution
from perdure.domain.messages import Session
from perdure.domain.scope import Address


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
