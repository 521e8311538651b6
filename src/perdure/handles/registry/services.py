"""What the handle of a memory calls, put together once by `compose`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from perdure.domain.knowledge.memories import Writer
from perdure.domain.values import dataclass, field, replace
from perdure.handles.admin import AdminServices
from perdure.handles.conversation import ConversationServices
from perdure.handles.knowledge import KnowledgeServices
from perdure.handles.lessons import LessonServices
from perdure.handles.oversight import OversightServices
from perdure.handles.registry.toolset import HostTools
from perdure.handles.series import SeriesServices
from perdure.services.access.log import AccessLog
from perdure.services.context.recall import RecallService
from perdure.services.context.state_search import StateSearch
from perdure.services.jobs.catch_up import CatchUp
from perdure.services.series.state import StateService

if TYPE_CHECKING:
    from perdure.services.portability.transfer import Portability


@dataclass(frozen=True, slots=True)
class MemoryServices:
    """What a handle calls."""

    conversation: ConversationServices
    state: StateService
    state_search: StateSearch
    series: SeriesServices
    knowledge: KnowledgeServices
    recall: RecallService
    oversight: OversightServices
    lessons: LessonServices
    admin: AdminServices
    portability: Callable[[], Portability]
    """Loaded when it is first called for."""
    log: AccessLog
    catch_up: CatchUp
    """Does what is due before a call reads."""
    writer: Writer = "user"
    """Whose word is stored through this handle."""
    tools: HostTools = field(default_factory=HostTools)
    """What the host has added with `engine.add_tool`."""

    @property
    def active_log(self) -> AccessLog | None:
        """The log, if calls are logged."""
        return self.log if self.log.on else None

    def by_agent(self) -> MemoryServices:
        """The same for a model: what it stores is the agent's word."""
        talk, known, taught = self.conversation.by_agent(), self.knowledge.by_agent(), self.lessons.by_agent()
        return replace(self, writer="agent", conversation=talk, knowledge=known, lessons=taught)

    def only_reading(self) -> MemoryServices:
        """The same for a caller who may change nothing: what is due stays with a worker."""
        return replace(self, catch_up=self.catch_up.only_looking())

    def confined(self) -> MemoryServices:
        """The same for a caller who may reach one user alone."""
        return replace(self, lessons=self.lessons.confined())
