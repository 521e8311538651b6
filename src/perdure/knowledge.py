"""The values of knowledge, for those who write an extractor of their own or read what `remember` and `extract` answer.

>>> from perdure.knowledge import Extraction, ExtractionRequest
>>> class Silent:
...     name = "silent/1"
...     def extract(self, request: ExtractionRequest) -> Extraction:
...         return Extraction()
"""

from perdure.domain.agents import Agent, ChannelAgent
from perdure.domain.knowledge import EntityName, Evidence, Extraction, ExtractionRequest, Proposal, TodoProposal
from perdure.domain.lessons import Heard, Lesson, Origin, Refused
from perdure.domain.memories import MemoryRecord, Statement
from perdure.domain.prompts import Prompt, PromptPart
from perdure.domain.things import AgentTask, Entity, Link, Rejection, Suggestion, Todo
from perdure.engine.committing import Outcome
from perdure.services.auditing import AuditReport
from perdure.services.curating import Curation
from perdure.services.extracting import Learned
from perdure.services.forgetting import Forgotten
from perdure.services.knowledge import Recalled
from perdure.services.prompted_extraction import PromptedExtractor

__all__ = [
    "Agent",
    "AgentTask",
    "AuditReport",
    "ChannelAgent",
    "Curation",
    "Entity",
    "EntityName",
    "Evidence",
    "Extraction",
    "ExtractionRequest",
    "Forgotten",
    "Heard",
    "Learned",
    "Lesson",
    "Link",
    "MemoryRecord",
    "Origin",
    "Outcome",
    "Prompt",
    "PromptPart",
    "PromptedExtractor",
    "Proposal",
    "Recalled",
    "Refused",
    "Rejection",
    "Statement",
    "Suggestion",
    "Todo",
    "TodoProposal",
]
