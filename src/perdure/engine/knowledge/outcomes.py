"""What the committer is given and what it answers: where proposals come from, what is known so far, and the outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal, Protocol

from perdure.domain.knowledge.memories import MemoryRecord, Statement, Trust
from perdure.domain.knowledge.proposals import EntityName, Proposal
from perdure.domain.values import dataclass

Verdict = Literal["added", "mentioned", "known", "superseded", "ended", "past", "proposed", "refused"]
ACCEPTED, REJECTED, OVER = "accepted", "rejected", "said to be over"
"""Why a proposal, or a statement, stands no longer."""
SHOWN_CHARS = 1_000
"""Of what was told, an outcome shows so much; what is refused may be of any length."""
CHANGED = "what was said since ends or replaces it"
SAID_SO = "the user said so"
SAID_OTHERWISE = "the user said otherwise"
REFUSED_BEFORE = "a person rejected this before; only a person brings it back"
DECIDES = (
    "the user's word stands, and this is kept beside it as a proposal; the user accepts or rejects it with "
    "`perdure memory review`, on the page under Memories, or by saying so in a message of their own"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done with one proposal, and why."""

    verdict: Verdict
    proposal: Proposal
    statement: Statement | None = None
    closed: tuple[Statement, ...] = ()
    """What it replaced or ended."""
    reason: str | None = None
    also: tuple[Outcome, ...] = ()
    """What became of the other facts, where one sentence told several."""

    def __str__(self) -> str:
        said = self.proposal.content if self.statement is None else self.statement.content
        said = said if len(said) <= SHOWN_CHARS else f"{said[: SHOWN_CHARS - 1]}…"
        lines = [f"{self.verdict}: {said}", *(f"  no longer: {one.content}" for one in self.closed)]
        if self.reason is not None:
            lines.append(f"  {self.reason}")
        return "\n".join([*lines, *map(str, self.also)])


class KnowledgeLedger(Protocol):
    """What is known so far, the changes of this run included."""

    def current(self) -> Sequence[Statement]:
        """Statements that are so now, newest first, up to a bound."""

    def memory(self, key: str) -> MemoryRecord | None:
        """The memory under a record key."""

    def statements(self, memory: str) -> Sequence[Statement]:
        """The current statements of a memory, oldest first."""

    def in_slot(self, name: str) -> Sequence[Statement]:
        """The current statements of a slot, oldest first."""

    def all_of(self, memory: str) -> Sequence[Statement]:
        """All statements of a memory, past ones and proposals too, oldest first."""

    def against(self, statement: str) -> Sequence[Statement]:
        """The proposals that speak against a statement, oldest first."""

    def slot_history(self, name: str) -> Sequence[Statement]:
        """All statements of a slot, past ones too."""

    def about(self, ref: str) -> Sequence[Statement]:
        """All statements that name an entity, past ones too."""

    def citing(self, message: str) -> Sequence[Statement]:
        """All statements that rest on a message, past ones too."""

    def resolve(self, name: EntityName) -> str:
        """The entity that a name means, through aliases; made up from the name if it is new."""

    def put_memory(self, memory: MemoryRecord) -> None:
        """Remember a change."""

    def put_statement(self, statement: Statement) -> None:
        """Remember a change."""


@dataclass(frozen=True, slots=True)
class Habits:
    """How statements under one key live together."""

    replaces: bool = False
    """The newer one takes the place of the others under its memory key."""
    grows: bool = True
    """What is said on several days becomes more important."""
    attributes: bool = True
    """A new value of an attribute closes the one before, under whatever key."""


OURS = Habits()


@dataclass(frozen=True, slots=True)
class ProposalOrigin:
    """Where proposals come from, and what holds for all of them."""

    source: str
    trust: Trust
    now: datetime
    new_id: Callable[[], str]
    is_single_valued: Callable[[str | None], bool]
    """Whether a new value of an attribute takes the place of the old one."""
    visible_to: str | None = None
    pinned: bool = False
    closings_max: int | None = None
    """None: a person decided it; there is no limit."""
    accepts: Statement | None = None
    """The waiting proposal that a person makes their own by this."""
    habits: Habits = OURS
