"""The combined prompt of an agent: its texts, the lessons that hold where it talks, and the time, packed into a budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from perdure.domain.context.context import PartKind, Prompt
from perdure.domain.conversation.agent_state import Agent
from perdure.domain.errors import Corrupt, InvalidInput, Unavailable
from perdure.domain.limits import NUMBER_MAX
from perdure.domain.scope import Scope
from perdure.domain.text.rules import brief, utf8_size
from perdure.engine.context.prompt import combine, period_of, time_line
from perdure.ports.clock import Clock
from perdure.ports.store import Store
from perdure.services.index.writes import register_echoes
from perdure.services.lessons.agents import Agents
from perdure.services.lessons.lessons import Lessons

BUDGET_MIN = 100
LESSON_FRAME = 8
"""Tokens that a lesson costs beside its text, at most."""
BUDGET_TOKENS = 4_000


@dataclass(frozen=True, slots=True)
class PromptService:
    store: Store
    clock: Clock
    agents: Agents
    lessons: Lessons
    count: Callable[[str], int]
    zone: str
    all_lessons: bool = False
    """Every lesson is shown, beyond the budget."""

    def prompt(self, scope: Scope, request: str, *, budget_tokens: int, lessons: bool = True) -> Prompt:
        """Soul, mood, memory and skill of the agent that answers here, and the time. Never over the budget."""
        utf8_size(request, "`request`")
        if (
            not isinstance(budget_tokens, int)
            or isinstance(budget_tokens, bool)
            or not BUDGET_MIN <= budget_tokens <= NUMBER_MAX
        ):
            raise InvalidInput(f"`budget_tokens` = {brief(budget_tokens)} must be a whole number of at least {BUDGET_MIN}")
        shown = self.lessons.for_address(scope)
        notes = list(shown.notes)
        agent = Agent(shown.agent)
        try:
            agent = self.agents.find(scope.owner.space, shown.agent) or agent
        except (Corrupt, Unavailable) as error:
            notes.append(str(error))
        local = self.clock.now().astimezone(ZoneInfo(self.zone))
        texts: dict[PartKind, str] = {
            "soul": agent.soul,
            "mood": agent.mood,
            "skill": agent.skill,
            "time": time_line(local, self.zone),
        }
        told = shown.lessons if lessons else ()
        room = budget_tokens + (sum(self.count(one.text) + LESSON_FRAME for one in told) * 4 if self.all_lessons else 0)
        parts, dropped = combine(texts, told, request, room, self.count)
        register_echoes(self.store, self.clock, scope.owner, [part for part in parts if part.kind != "time"])
        tokens = sum(part.tokens for part in parts)
        return Prompt(
            parts=parts,
            tokens=tokens,
            budget_tokens=budget_tokens,
            agent=shown.agent,
            period=period_of(local.hour),
            dropped=dropped,
            notes=tuple(notes),
        )
