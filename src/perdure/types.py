"""The values that callers import: what calls answer with, and what those bring who write a model or an extractor of their own.

>>> from perdure.types import Extraction, ExtractionRequest, Hit
>>> class Silent:
...     name = "silent/1"
...     def extract(self, request: ExtractionRequest) -> Extraction:
...         return Extraction()
>>> def quoted(hit: Hit) -> str:
...     return f"{hit.speaker}, {hit.at:%Y-%m-%d}: {hit.text}"
"""

from perdure.domain.context.context import Block, Prompt, PromptPart
from perdure.domain.context.recall import (
    Arm,
    Blend,
    EntryKind,
    Hit,
    LeftOut,
    Neighbour,
    Recall,
    SeriesGap,
    Trace,
    Uncovered,
    Understood,
)
from perdure.domain.conversation.agent_state import Agent, ChannelAgent
from perdure.domain.knowledge.entities import AgentTask, Entity, Instruction, Link, Rejection, Suggestion, Todo
from perdure.domain.knowledge.memories import MemoryRecord, MemoryWithStatements, Statement
from perdure.domain.knowledge.proposals import (
    EntityName,
    Evidence,
    Extraction,
    ExtractionRequest,
    NewStatement,
    Proposal,
    TodoProposal,
)
from perdure.domain.lessons import Lesson, LessonOrigin, RefusedLesson, ReplyReport
from perdure.domain.limits import Switches
from perdure.domain.models import ChatMessage, ChatReply, ChatRequest, Consultation, Usage
from perdure.domain.oversight import Choice, Decision, Injection, KeptResult, SaveMode, SeriesOffer, Target
from perdure.engine.knowledge.outcomes import Outcome
from perdure.handles.oversight import GoalRun
from perdure.ports.models import ChatModel, Embedder, ModelRefused, ModelTimeout, Reranker
from perdure.services.forget.forget import ForgetReport
from perdure.services.knowledge.curation import AuditReport, Curation, PendingProposal
from perdure.services.knowledge.extraction import ExtractionReport
from perdure.services.knowledge.memories import MemoryGroup
from perdure.services.models.prompted import PromptedExtractor

__all__ = [
    "Agent",
    "AgentTask",
    "Arm",
    "AuditReport",
    "Blend",
    "Block",
    "ChannelAgent",
    "ChatMessage",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "Choice",
    "Consultation",
    "Curation",
    "Decision",
    "Embedder",
    "Entity",
    "EntityName",
    "EntryKind",
    "Evidence",
    "Extraction",
    "ExtractionReport",
    "ExtractionRequest",
    "ForgetReport",
    "GoalRun",
    "Hit",
    "Injection",
    "Instruction",
    "KeptResult",
    "LeftOut",
    "Lesson",
    "LessonOrigin",
    "Link",
    "MemoryGroup",
    "MemoryRecord",
    "MemoryWithStatements",
    "ModelRefused",
    "ModelTimeout",
    "Neighbour",
    "NewStatement",
    "Outcome",
    "PendingProposal",
    "Prompt",
    "PromptPart",
    "PromptedExtractor",
    "Proposal",
    "Recall",
    "RefusedLesson",
    "Rejection",
    "ReplyReport",
    "Reranker",
    "SaveMode",
    "SeriesGap",
    "SeriesOffer",
    "Statement",
    "Suggestion",
    "Switches",
    "Target",
    "Todo",
    "TodoProposal",
    "Trace",
    "Uncovered",
    "Understood",
    "Usage",
]
