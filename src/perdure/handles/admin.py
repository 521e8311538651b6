"""`ana.journal` and `ana.admin`: what was done, and upkeep; `engine.agents` and `engine.api_keys`: what a space shares."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from perdure.domain.access import Access, ApiKey, NewApiKey
from perdure.domain.conversation.agent_state import Agent, ChannelAgent
from perdure.domain.jobs import Job, JobState
from perdure.domain.knowledge.journal import Operation
from perdure.domain.models import Usage
from perdure.domain.oversight import Decision, DecisionKind
from perdure.domain.reports import Overview
from perdure.domain.scope import Scope
from perdure.domain.values import dataclass
from perdure.handles import arguments as arg
from perdure.handles.operation import Arg, Handle, fresh, operation, space_scope, unlogged
from perdure.ports.clock import Clock
from perdure.ports.store import Progress
from perdure.services.access.keys import ApiKeys
from perdure.services.access.log import AccessLog
from perdure.services.conversation.history import DAYS_MAX, LogReader, OverviewService
from perdure.services.index.job import Indexer
from perdure.services.jobs.erasure import Erasures
from perdure.services.knowledge.memories import Knowledge
from perdure.services.lessons.agents import Agents

AgentId = Annotated[str, arg.an_id("The agent's id.", "coach")]
ChannelId = Annotated[str, arg.an_id("The channel.", "discord:42")]
KeyId = Annotated[str, Arg("The key's id.", pattern="^[0-9a-f]{12}$", example="0123456789ab")]
AGENT_CHARS_MAX = 50_000


@dataclass(frozen=True, slots=True)
class AdminServices:
    """What the handles of the journal and of upkeep call."""

    clock: Clock
    history: LogReader
    overview: OverviewService
    indexer: Indexer
    knowledge: Knowledge
    erasures: Erasures


class JournalHandle(Handle, namespace="journal"):
    """Changes, decisions and accesses, and who made them."""

    __slots__ = ("_accesses", "_do")

    def __init__(self, scope: Scope, services: AdminServices, accesses: AccessLog, log: AccessLog | None = None) -> None:
        super().__init__(scope, log)
        self._do = services
        self._accesses = accesses

    @operation("read")
    def list(self, limit: arg.Limit = 50, *, before: arg.BeforeNumber = None) -> Sequence[Operation]:
        """List changes of derived data, by whom and why, newest first."""
        return self._do.history.journal(self.scope, limit=limit, before=before)

    @operation("read")
    def diff(
        self,
        start: Annotated[datetime, Arg("Start of the range.", example="2026-01-01T00:00:00Z")],
        end: Annotated[datetime, Arg("End of the range.", example="2030-01-01T00:00:00Z")],
    ) -> Sequence[Operation]:
        """Compare derived data at two moments, row by row. One operation for each: as it was before, and as it was after."""
        return self._do.knowledge.diff(self.scope, start, end)

    @operation("admin")
    def accesses(self, limit: arg.Limit = 50, *, before: arg.BeforeId = None) -> Sequence[Access]:
        """List who read or changed this user's data, newest first, if `access_log` is on.

        `before` continues after an entry of the list before: its id.
        """
        return self._accesses.list_(self.scope.owner, limit=limit, before=before)

    @operation("read")
    def decisions(
        self,
        kind: Annotated[DecisionKind | None, Arg("Of this kind only.")] = None,
        *,
        limit: arg.Limit = 50,
        before: arg.BeforeId = None,
    ) -> Sequence[Decision]:
        """List what agents were given and what was kept, and why. Newest first: for which goal or tool, and what the overseer
        chose.
        """
        return self._do.history.decisions(self.scope, kind, limit=limit, before=before)


class AdminHandle(Handle, namespace="admin"):
    """Upkeep of one user's data."""

    __slots__ = ("_do",)

    def __init__(self, scope: Scope, services: AdminServices, log: AccessLog | None = None) -> None:
        super().__init__(scope, log)
        self._do = services

    @operation("read")
    @fresh()
    def overview(self, *, days: Annotated[int, Arg("How many days, up to today.", ge=1, le=DAYS_MAX)] = 30) -> Overview:
        """Show counts and recent activity of a user. How much is held of what, and how much came and changed on each of the
        last days.
        """
        return self._do.overview.overview(self.scope, days=days)

    @operation("admin", permission="read")
    def jobs(
        self, state: Annotated[JobState | None, Arg("In this state only.")] = None, *, limit: arg.Limit = 100
    ) -> Sequence[Job]:
        """List a user's jobs with their last errors. Those in one state, or in all."""
        return self._do.history.jobs(self.scope, state, limit=limit)

    @operation("admin", permission="write")
    def retry_jobs(self) -> int:
        """Give a user's dead jobs fresh tries. The number says how many there were."""
        return self._do.history.retry_jobs(self.scope, self._do.clock.now())

    @operation("admin", permission="write")
    def reindex(self, progress: Progress | None = None) -> int:
        """Rebuild this user's search index while the old one answers; returns its size."""
        return self._do.indexer.reindex(self.scope.owner, progress)

    @operation("admin", permission="read")
    def usage(self) -> Sequence[Usage]:
        """Show what models were asked for a user, and what it cost. By purpose and outcome: how often, for how many tokens, how
        long.
        """
        return self._do.history.usage(self.scope)


class AgentHandle(Handle, namespace="agents"):
    """The agents of a space: folders if the setting `agents_dir` is set, else rows. A folder's text comes before a row's."""

    __slots__ = ("_do",)

    def __init__(self, space: str, agents: Agents, log: AccessLog | None = None) -> None:
        super().__init__(space_scope(space), log)
        self._do = agents

    @property
    @unlogged("it says what the handle is bound to")
    def space(self) -> str:
        """The space whose agents these are."""
        return self.scope.owner.space

    @unlogged("it opens a handle, whose calls are logged")
    def of(self, space: str) -> AgentHandle:
        """The agents of another space."""
        Scope.of("any", space=space)  # which checks it
        return AgentHandle(space, self._do, self._log)

    @operation("read")
    def get(self, id: AgentId) -> Agent:
        """One agent; `NotFound` if it has neither a folder nor a row."""
        return self._do.get(self.space, id)

    @operation("read")
    def list(self, *, limit: arg.Limit = 100) -> Sequence[Agent]:
        """List agents by id."""
        return self._do.list_(self.space, limit=limit)

    @operation("change", permission="admin")
    def save(
        self,
        id: AgentId,
        *,
        soul: Annotated[str | None, Arg("Its persona.", max_length=AGENT_CHARS_MAX, pattern=arg.PLAIN)] = None,
        mood: Annotated[str | None, Arg("Its tone at present.", max_length=AGENT_CHARS_MAX, pattern=arg.PLAIN)] = None,
        skill: Annotated[str | None, Arg("What it can do, and how.", max_length=AGENT_CHARS_MAX, pattern=arg.PLAIN)] = None,
    ) -> Agent:
        """Set an agent's texts; None keeps a text, an empty one removes it."""
        return self._do.save(self.space, id, {"soul": soul, "mood": mood, "skill": skill})

    @operation("change", permission="admin")
    def remove(self, id: AgentId) -> bool:
        """Remove an agent's texts. Its lessons and its memory stay. False if there is no such agent."""
        return self._do.remove(self.space, id)

    @operation("change", permission="admin")
    def map_channel(self, channel: ChannelId, agent: AgentId) -> ChannelAgent:
        """Let an agent answer on a channel, if a call names none. Its lessons are drawn and shown there."""
        return self._do.map_channel(self.space, channel, agent)

    @operation("change", permission="admin")
    def unmap_channel(self, channel: ChannelId) -> bool:
        """No agent answers on the channel by itself any more. False if the channel was not mapped."""
        return self._do.unmap_channel(self.space, channel)

    @operation("read")
    def channels(self, *, limit: arg.Limit = 100) -> Sequence[ChannelAgent]:
        """List the channels that are mapped to an agent, by name."""
        return self._do.channels(self.space, limit=limit)


class ApiKeyHandle(Handle, namespace="api_keys"):
    """API keys of the space. Only digests of them are kept."""

    __slots__ = ("_keys",)

    def __init__(self, space: str, keys: ApiKeys, log: AccessLog | None = None) -> None:
        super().__init__(space_scope(space), log)
        self._keys = keys

    @operation("admin")
    def create(
        self,
        name: Annotated[str, Arg("A name to tell it from others.", min_length=1, max_length=100)],
        *,
        users: Annotated[
            Sequence[arg.Id] | None, Arg("The users it is for; all, if left out.", min_length=1, max_length=1_000)
        ] = None,
        permission: Annotated[
            Literal["read", "write", "admin"], Arg("What it permits; each includes the ones before.")
        ] = "write",
        days: Annotated[float | None, Arg("Days until it expires.", gt=0, le=36_500)] = None,
        agent: Annotated[bool, Arg("A model holds it: what it stores is the agent's word.")] = False,
    ) -> NewApiKey:
        """Make a key for some users, or for all (None). Its secret is in the answer and nowhere else.

        `permission` is `read`, `write` (with `read`) or `admin` (with both). With `days`, it ends by itself. With `agent`, what
        it stores is an agent's word: it replaces what agents said, and against a person's word it is a proposal.
        """
        return self._keys.create(name, users=users, permission=permission, days=days, agent=agent)

    @operation("admin")
    def list(self) -> Sequence[ApiKey]:
        """List API keys, the newest first. Secrets are not kept and cannot be shown."""
        return self._keys.list_()

    @operation("admin")
    def revoke(self, key_id: KeyId) -> ApiKey:
        """Take an API key out of use, for good. A running server refuses it within 5 seconds."""
        return self._keys.revoke(key_id)

    @unlogged("asked by the guard of a server for every request; what that reaches is logged")
    def recognise(self, secret: str) -> ApiKey | None:
        """The key with this secret, if it is in use."""
        return self._keys.recognise(secret)

    @unlogged("asked by the guard of a server for every request; what that reaches is logged")
    def find(self, key_id: str) -> ApiKey | None:
        """The key with that id, if it is in use."""
        return self._keys.find(key_id)

    @unlogged("it tells nothing of anybody")
    def in_use(self) -> bool:
        """Whether any key is in use."""
        return self._keys.any_alive()
