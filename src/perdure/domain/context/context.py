"""What an agent is given for one request: labelled blocks of what is remembered, then the conversation as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

from perdure.domain.context.chat import (
    CHAT_FORMS,
    SYSTEM_PLACES,
    TOOL_FORMS,
    ChatForm,
    ChatLists,
    SystemPlace,
    Talk,
    ToolForm,
    as_text,
)
from perdure.domain.conversation.messages import Message
from perdure.domain.errors import InvalidInput
from perdure.domain.text.fences import fenced, frame
from perdure.domain.text.rules import check_choice, check_flag
from perdure.domain.values import dataclass, replace

BlockKind = str
CUT_MARK = " has the whole]"
"""How a text ends that was too long for its budget."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of remembered text with its kind and source."""

    kind: BlockKind
    """`foundation`, `instructions`, `spine`, `lessons`, `session_digest`, `previous_tail`, `left_off`, `summary`,
    `rolling_digest`; and of the volatile ones `memories`, `todos`, `series`."""
    title: str
    source: str
    """Which digest or messages it comes from, such as `session 3, messages 1 to 20, fold 2 by extractive/1`."""
    text: str
    tokens: int
    volatile: bool = False
    """It depends on the goal or on the hour, so it comes last: what stands before it can stay in a prompt cache."""
    sources: tuple[str, ...] = ()
    """Ids of the messages and statements that it shows word for word."""

    def render(self) -> str:
        """The text, fenced as data; it cannot close the fence."""
        return frame(self.kind, self.title, self.source, self.text)


@dataclass(frozen=True, slots=True)
class Context:
    """Blocks and messages within a budget, and what was dropped."""

    blocks: tuple[Block, ...]
    messages: tuple[Message, ...]
    """The working set, oldest first; texts that were too long are cut and say so."""
    tokens: int
    budget_tokens: int
    dropped: tuple[str, ...] = ()
    """What did not fit, in words."""
    notes: tuple[str, ...] = ()
    """What went wrong on the way, such as a fold that failed and will be tried again."""
    goal: str | None = None
    """What is asked at the end; None if nothing is, or if the conversation ends with it."""
    pending: int = 0
    """Jobs that have still to learn from what was written, so that this knows nothing of it; 0: there are none."""

    def __str__(self) -> str:
        return self.text

    @property
    def system(self) -> str:
        """The blocks that seldom change, as one text for a system message."""
        return "\n\n".join(block.render() for block in self.blocks if not block.volatile)

    @property
    def tail(self) -> str:
        """The blocks that change with the goal and the hour, as one text."""
        return "\n\n".join(block.render() for block in self.blocks if block.volatile)

    @property
    def text(self) -> str:
        """All of it as one text: `as_messages("text")`."""
        return self.as_messages("text")

    @property
    def sources(self) -> frozenset[str]:
        """Ids of the messages and statements quoted in it."""
        said = [message.id for message in self.messages if not message.content.endswith(CUT_MARK)]
        return frozenset((*said, *(one for block in self.blocks for one in block.sources)))

    @overload
    def as_messages(
        self,
        form: Literal["openai"] = "openai",
        *,
        goal: bool = True,
        system: SystemPlace = "lead",
        tools: ToolForm = "calls",
        prompt: Prompt | str | None = None,
    ) -> list[dict[str, Any]]: ...
    @overload
    def as_messages(
        self,
        form: Literal["anthropic"],
        *,
        goal: bool = True,
        system: SystemPlace = "lead",
        tools: ToolForm = "calls",
        prompt: Prompt | str | None = None,
    ) -> dict[str, Any]: ...
    @overload
    def as_messages(
        self,
        form: Literal["text"],
        *,
        goal: bool = True,
        system: SystemPlace = "lead",
        tools: ToolForm = "calls",
        prompt: Prompt | str | None = None,
    ) -> str: ...
    def as_messages(
        self,
        form: ChatForm = "openai",
        *,
        goal: bool = True,
        system: SystemPlace = "lead",
        tools: ToolForm = "calls",
        prompt: Prompt | str | None = None,
    ) -> list[dict[str, Any]] | dict[str, Any] | str:
        """What to hand to a model: one system message, then user and assistant in turn, and the goal last.

        `openai`: a list of messages, as chat templates take it, too. `anthropic`: a dict with `system` and `messages`, the
        arguments of that client. `text`: one text. What belongs to this request stands in the last turn of the user, before
        the goal. The goal is not repeated if the conversation ends with it or waits for the model after a tool; `goal=False`
        leaves it out. `system="merge"` puts the system message into the first turn of the user, and `tools="text"` tells tool
        calls in words, for models that know neither. `prompt` is what `prompt()` answers, or a text of yours: it comes first,
        and no lesson is told twice.
        """
        check_choice(form, "form", CHAT_FORMS)
        check_choice(system, "system", SYSTEM_PLACES)
        check_choice(tools, "tools", TOOL_FORMS)
        check_flag(goal, "goal")
        standing, passing = _parted(prompt)
        told = _beside(self.blocks, standing)
        lead = "\n\n".join([*standing, *(block.render() for block in told if not block.volatile)])
        tail = "\n\n".join([*passing, *(block.render() for block in told if block.volatile)])
        talk = Talk(self.messages, lead, tail, self.goal if goal else None)
        if form == "text":
            return as_text(talk)
        lists = ChatLists(talk, merged=system == "merge", in_words=tools == "text")
        return lists.anthropic() if form == "anthropic" else lists.openai()


def _parted(prompt: Prompt | str | None) -> tuple[list[str], list[str]]:
    """What of a prompt stays the same from request to request, and what does not."""
    if prompt is None or isinstance(prompt, str):
        return [prompt] if prompt else [], []
    if not isinstance(prompt, Prompt):
        raise InvalidInput(f"`prompt` is a `{type(prompt).__name__}`; pass what `prompt()` answers, or a text")
    return [one.text for one in prompt.parts if one.kind != "time"], [one.text for one in prompt.parts if one.kind == "time"]


def _beside(blocks: Sequence[Block], standing: Sequence[str]) -> list[Block]:
    """The blocks without the lessons that stand in the prompt already."""
    held = {line for text in standing for line in text.split("\n") if line.startswith("- ")}
    kept = []
    for block in blocks:
        if block.kind == "lessons" and held:
            lines = [line for line in block.text.split("\n") if fenced(line) not in held]
            block = replace(block, text="\n".join(lines))  # noqa: PLW2901 - the same without some lines
        if block.text:
            kept.append(block)
    return kept


PartKind = Literal["soul", "mood", "memory", "skill", "time"]
PART_KINDS: tuple[PartKind, ...] = ("soul", "mood", "memory", "skill", "time")
"""In the order in which they stand: what changes most often comes last, so that a prompt keeps its beginning."""
MEMORY_HEADING = "Memory (lessons learned — follow these)"
NOTES_HEADING = "Notes the assistant made for itself (not the user's word)"


@dataclass(frozen=True, slots=True)
class PromptPart:
    kind: PartKind
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """An agent's system prompt, within a budget."""

    parts: tuple[PromptPart, ...]
    """Those that have something to say, in order."""
    tokens: int
    budget_tokens: int
    agent: str
    """The agent that answers: that of the handle, or the one its channel is mapped to."""
    period: str
    """`night`, `morning`, `afternoon` or `evening`, where the users are."""
    dropped: tuple[str, ...] = ()
    """What did not fit, in words."""
    notes: tuple[str, ...] = ()
    """What went wrong on the way, such as a file that cannot be read."""

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The whole prompt."""
        return "\n\n".join(part.text for part in self.parts)

    def part(self, kind: PartKind) -> str:
        """The text of one part, or empty."""
        return next((part.text for part in self.parts if part.kind == kind), "")
