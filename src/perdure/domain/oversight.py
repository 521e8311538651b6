"""The overseer: what is given to an agent before a goal, what is kept of a tool's result, and the record of both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Literal, get_args

from perdure.domain.context.context import Block
from perdure.domain.scope import Address
from perdure.domain.text.rules import Json
from perdure.domain.times.spans import Span
from perdure.domain.values import dataclass, field

Target = Literal["goal", "first_step", "system"]
"""Where the text goes: behind the goal in the seed's form, into the first step, or into a system message."""
TARGETS: tuple[Target, ...] = get_args(Target)
SaveMode = Literal["manual", "suggest", "auto"]
SAVE_MODES: tuple[SaveMode, ...] = get_args(SaveMode)
ChoiceKind = Literal["state", "series", "memory", "message", "card", "lesson", "instruction", "digest", "todo"]
DecisionKind = Literal["before", "after"]
WindowRule = bool | str | tuple[str, str] | tuple[datetime, datetime]
"""Which time a tool fetches: `True`, the one that the goal names; words such as `last 24 hours`; the names of the two
parameters that it takes it by; or two moments."""
Covers = Literal["window", "entries", "nothing"]
HEADING = "[Relevant Memory]"
NEVER_SAVED = frozenset(
    [
        "getCurrentDate",
        "calculateTimestamp",
        "llm_analyze",
        "saveState",
        "loadState",
        "deleteState",
        "listStateKeys",
        "searchState",
        "mergeTimeseriesState",
        "queryTimeseriesState",
        "cleanupTimeseriesState",
        "remember",
        "recall",
        "forget",
        "addTodo",
        "listTodos",
        "completeTodo",
        "addLesson",
        "listLessons",
    ]
)
"""Tools whose results are never kept: they read the clock, or think aloud (S1-19), or tell what is kept already."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One candidate for a goal: included or not, and why."""

    kind: ChoiceKind
    id: str
    included: bool
    reason: str
    score: float = 0.0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Injection:
    """What an agent is given before a goal."""

    id: str
    """Of the record of this decision."""
    goal: str
    target: Target
    blocks: tuple[Block, ...]
    values: Mapping[str, Json]
    """What `target="goal"` shows as JSON: by state key and series, then by the kinds of the other things."""
    choices: tuple[Choice, ...]
    tokens: int
    """What `text` costs; with `target="goal"`, besides the goal itself."""
    budget_tokens: int
    time_range: Span | None = None
    model_calls: int = 0
    outcome: str = "rules"
    """How the model's part ended, or `rules` if none was asked."""
    took_ms: float = 0.0
    notes: tuple[str, ...] = ()
    """What is degraded, late or left out."""
    pending: int = 0
    """Jobs that have still to learn from what was written, so that this knows nothing of it; 0: there are none."""

    def __str__(self) -> str:
        return self.text

    @property
    def nothing(self) -> bool:
        """Nothing is injected: the goal runs as it is."""
        return not self.blocks

    @property
    def stable(self) -> str:
        """The part that seldom changes: put it first, for prompt caches."""
        return "\n\n".join(block.render() for block in self.blocks if not block.volatile)

    @property
    def tail(self) -> str:
        """The part that belongs to this goal: put it last."""
        return "\n\n".join(block.render() for block in self.blocks if block.volatile)

    @property
    def version(self) -> str:
        """Changes when the stable part does."""
        return hashlib.sha256(self.stable.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def text(self) -> str:
        """With `target="goal"`, the goal followed by relevant memory; else the memory alone."""
        if self.target == "goal":
            return (
                self.goal
                if self.nothing
                else f"{self.goal}\n\n{HEADING}\n{json.dumps(self.values, indent=2, ensure_ascii=False)}"
            )
        return "\n\n".join(part for part in (self.stable, self.tail) if part)


@dataclass(frozen=True, slots=True)
class SeriesOffer:
    """How a tool's result could be merged into a series."""

    name: str
    id_field: str
    time_field: str
    entries: int
    window: Span
    """From the first entry to the last. That it was fetched completely is for the caller to say."""
    id_template: str | None = None
    """Where no single field tells the entries apart."""


@dataclass(frozen=True, slots=True)
class AskedTool:
    """How a tool was asked: its arguments by name, which of them were given, when, and the window that its host declares."""

    arguments: Mapping[str, object]
    """With the defaults of those that were left out."""
    given: frozenset[str]
    at: datetime
    window: WindowRule | None = None


@dataclass(frozen=True, slots=True)
class KeptResult:
    """What was kept of a tool's result."""

    id: str
    """Of the record of this decision."""
    tool: str
    mode: SaveMode
    action: Literal["none", "suggested", "saved", "merged", "unchanged", "refused"]
    reason: str
    key: str | None = None
    """The state key or series it was saved under, or would be."""
    series: SeriesOffer | None = None
    revision: int | None = None
    """Of the state key; the value it had before is the revision before."""
    preview: str = ""
    window: Span | None = None
    """The time that was asked of the tool and answered completely, as far as that is known."""
    covers: Covers = "nothing"
    """What counts as covered once it is merged: the `window`; only the time between its `entries`, since nobody says what
    was asked for; or nothing."""
    model_calls: int = 0
    outcome: str = "rules"
    took_ms: float = 0.0

    @property
    def saved(self) -> bool:
        return self.action in ("saved", "merged")


@dataclass(frozen=True, slots=True)
class Decision:
    """A recorded decision of `before` or `after`."""

    id: str
    at: datetime
    address: Address
    kind: DecisionKind
    body: Mapping[str, Json] = field(default_factory=dict)
    """What was asked, chosen and why. It names keys and ids and quotes no values."""
