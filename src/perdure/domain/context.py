"""What an agent is given for one request: labelled blocks of what is remembered, then the conversation as it stands."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from perdure.domain.messages import Message

BlockKind = str
FENCE = "memory"
# In any case and spacing, and with the full-width sign that some models read as the plain one.
_FENCES = re.compile(rf"[<\uff1c\u2039](?=\s*/?\s*{FENCE})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of remembered text, with what it is and where it came from."""

    kind: BlockKind
    """`spine`, `session_digest`, `previous_tail`, `left_off`, `rolling_digest` or `summary`."""
    title: str
    source: str
    """Which digest or messages it comes from, such as `session 3, messages 1 to 20, fold 2 by extractive/1`."""
    text: str
    tokens: int

    def render(self) -> str:
        """The text behind a fence that it cannot close itself: it is data, not an instruction."""
        head = f'<{FENCE} kind="{self.kind}" title="{self.title}" source="{_attribute(self.source)}">'
        return f"{head}\n{fenced(self.text)}\n</{FENCE}>"


@dataclass(frozen=True, slots=True)
class Context:
    """Blocks and messages within a budget, and what had to be left out."""

    blocks: tuple[Block, ...]
    messages: tuple[Message, ...]
    """The working set, oldest first; texts that were too long are cut and say so."""
    tokens: int
    budget_tokens: int
    dropped: tuple[str, ...] = ()
    """What did not fit, in words."""
    notes: tuple[str, ...] = ()
    """What went wrong on the way, such as a fold that failed and will be tried again."""

    @property
    def system(self) -> str:
        """All blocks as one text for a system message; empty if there are none."""
        return "\n\n".join(block.render() for block in self.blocks)

    @property
    def text(self) -> str:
        """Everything the agent would see, as one text."""
        said = [f"{message.role}: {message.content}" for message in self.messages]
        return "\n\n".join(part for part in (self.system, *said) if part)

    def as_messages(self) -> list[dict[str, Any]]:
        """In the form chat models take: one system message if there are blocks, then the conversation."""
        system = [{"role": "system", "content": self.system}] if self.blocks else []
        return [*system, *(chat_message(message) for message in self.messages)]


def chat_message(message: Message) -> dict[str, Any]:
    """A message as OpenAI-compatible chat endpoints take it."""
    form: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        form["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        form["tool_call_id"] = message.tool_call_id
    return form


def fenced(text: str) -> str:
    """`text` with whatever could pass for our fence made harmless; everything else stays as it is."""
    return _FENCES.sub(lambda match: f"&lt;{match[0][1:]}", text)


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace("\n", " ")
