"""Asking a chat model: what is asked, what came of it, and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Generic, Literal, TypeVar, get_args

from perdure.domain.text.rules import Json
from perdure.domain.values import dataclass, field

Purpose = Literal["relevance", "storage", "extract", "fold", "rolling", "session", "spine", "chat"]
"""What a model is asked for; calls and tokens are counted by it."""
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)

Outcome = Literal["ok", "repaired", "unreadable", "timeout", "refused", "unavailable"]
"""How asking ended. `repaired`: the first answer could not be read, the second could."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

ChatRole = Literal["system", "user", "assistant"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: ChatRole
    content: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a model."""

    messages: tuple[ChatMessage, ...]
    purpose: Purpose = "chat"
    schema: Mapping[str, Json] | None = None
    """The JSON schema of the answer, sent natively where the server can; None: free text."""
    tokens_max: int = 1_024
    """What the answer may cost."""
    temperature: float = 0.0
    deadline_s: float = 60.0
    """How long it may take in all, tries and pauses included."""
    on_text: Callable[[str], None] | None = field(default=None, repr=False, compare=False)
    """Called with the answer as far as it has come, each time more of it does. A model that cannot do so leaves it alone; one
    that has to ask again starts over."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    cut: bool = False
    """The answer reached `tokens_max` before its end."""


@dataclass(frozen=True, slots=True)
class Consultation(Generic[T]):
    """The outcome of a question to a model: a value, or why there is none."""

    outcome: Outcome
    value: T | None = None
    detail: str = ""
    """Why, in our words; never the model's."""
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    took_ms: float = 0.0
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls, tokens and time of a model, by purpose and outcome."""

    purpose: str
    outcome: str
    calls: int
    tokens_in: int
    tokens_out: int
    took_ms: float
    last_at: datetime
