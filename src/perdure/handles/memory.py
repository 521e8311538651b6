"""`Memory`: a handle bound to one scope. Every piece of data is reached through one; there is no call without a scope."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perdure.domain.errors import InvalidInput
from perdure.domain.jobs import Job, JobState
from perdure.domain.journal import Operation
from perdure.domain.messages import Message, MessageFields, NewMessage, Session
from perdure.domain.scope import Scope
from perdure.domain.series import Series
from perdure.domain.tally import Tally
from perdure.handles.series import SeriesHandle, SeriesRules, SeriesServices
from perdure.handles.state import State
from perdure.handles.tools import Tools
from perdure.ports.clock import Clock
from perdure.services.history import History
from perdure.services.ingest import Ingest
from perdure.services.state import StateService

if TYPE_CHECKING:
    from typing import Unpack


@dataclass(frozen=True, slots=True)
class MemoryServices:
    """What a handle calls."""

    clock: Clock
    ingest: Ingest
    history: History
    state: StateService
    series: SeriesServices


class Memory:
    """What one user and one agent have between them on one channel. Cheap to make, safe to share between threads."""

    __slots__ = ("_do", "scope")

    def __init__(self, scope: Scope, services: MemoryServices) -> None:
        self.scope = scope
        self._do = services

    @property
    def state(self) -> State:
        """Key-value state of this user, shared by their agents and channels."""
        return State(self.scope.owner, self._do.state)

    def series(self, name: str, **rules: Unpack[SeriesRules]) -> SeriesHandle:
        """A time series of this user, shared by their agents and channels. Rules are fixed at its first use."""
        return SeriesHandle(self.scope.owner, name, rules, self._do.series)

    def list_series(self, limit: int = 100) -> Sequence[Series]:
        """The series there are, by name."""
        return self._do.series.series.list_series(self.scope.owner, limit=limit)

    @property
    def tools(self) -> Tools:
        """State and series as tools for an agent."""
        return Tools(self.state, self.series)

    def append(self, role: str, content: str, **fields: Unpack[MessageFields]) -> Message:
        """Log one message, durably, and queue the work it causes.

        `role` is `user`, `assistant`, `tool` or `system`. Optional: `id` (repeating it is a no-op that answers with
        `repeated=True`; the same id with another body is a `Conflict`), `at` (aware; default now), `session` (default:
        the open one, or a new one after a long silence), `tokens` (default: estimated), `metadata` (a JSON object),
        `tool_calls` (of an assistant message), `tool_call_id` and `failed` (of a tool message).
        """
        return self._do.ingest.append(self.scope, [_new_message(role, content, fields)])[0]

    def append_many(self, messages: Iterable[NewMessage]) -> list[Message]:
        """Log several messages in one transaction: all of them, in order, or none."""
        return self._do.ingest.append(self.scope, messages)

    def messages(
        self, limit: int = 20, *, session: str | None = None, before: str | None = None, after: str | None = None
    ) -> Sequence[Message]:
        """The latest messages, oldest first; of one session, or on either side of the message with a given id."""
        return self._do.history.messages(self.scope, limit=limit, session=session, before=before, after=after)

    def message(self, id: str) -> Message:
        """One message by its id; `NotFound` if this address has none."""
        return self._do.history.message(self.scope, id)

    def sessions(self, limit: int = 20) -> Sequence[Session]:
        """The sessions of this address, newest first."""
        return self._do.history.sessions(self.scope, limit=limit)

    def tally(self, session: str | None = None) -> Tally:
        """Counts of a session (default: the newest). Derived by a job, so they may lag behind the log."""
        return self._do.history.tally(self.scope, session)

    def journal(self, limit: int = 50, *, before: int | None = None) -> Sequence[Operation]:
        """What was changed in this user's derived data, by whom and why, newest first."""
        return self._do.history.journal(self.scope, limit=limit, before=before)

    def jobs(self, state: JobState | None = None, *, limit: int = 100) -> Sequence[Job]:
        """This user's jobs, in one state or in all."""
        return self._do.history.jobs(self.scope, state, limit=limit)

    def retry_jobs(self) -> int:
        """Give this user's dead jobs fresh tries; how many there were."""
        return self._do.history.retry_jobs(self.scope, self._do.clock.now())

    def __repr__(self) -> str:
        owner, address = self.scope.owner, self.scope.address
        return f"Memory(space={owner.space!r}, user={owner.user!r}, agent={address.agent!r}, channel={address.channel!r})"


def _new_message(role: str, content: str, fields: MessageFields) -> NewMessage:
    try:
        return NewMessage(role, content, **fields)
    except TypeError:
        known = NewMessage.__dataclass_fields__
        extra = sorted(name for name in fields if name not in known)
        raise InvalidInput(f"`append` does not take {', '.join(extra)}; it takes {', '.join(known)}") from None
