"""A chat with a memory: what is said goes into the log, what is remembered goes to the model, and its answer into the log.

The log comes first: whatever becomes of the model, what the user said is held. Without a model the answer is an echo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from perdure.domain.context.chat import ChatLists, Talk
from perdure.domain.context.context import Block
from perdure.domain.conversation.messages import Message
from perdure.domain.errors import InvalidInput
from perdure.domain.lessons import ReplyReport
from perdure.domain.models import ChatMessage, Outcome
from perdure.domain.oversight import Injection
from perdure.domain.text.rules import Json, brief, utf8_size
from perdure.domain.values import dataclass
from perdure.engine.models.answers import Unreadable
from perdure.engine.models.replies import MARK, split_reply
from perdure.handles.memory import Memory
from perdure.services.models.consultant import Consultant, Question
from perdure.services.models.prompted import prompt_named

DEADLINE_S = 120.0
REPLY_TOKENS_MAX = 2_048
ECHO: Literal["echo"] = "echo"


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """What the user said, as it is logged, and what a model is given for it."""

    said: Message
    given: Injection
    """The memory that is relevant to it, with the reason for each thing."""
    earlier: tuple[Block, ...]
    """What of earlier talk stands before the conversation: digests, where things were left."""
    messages: tuple[ChatMessage, ...]
    """All that the model reads."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the user said, what the model was given of the memory, and what came of it."""

    said: Message
    given: Injection
    """The memory that is relevant to it, with the reason for each thing."""
    earlier: tuple[Block, ...]
    """What of earlier talk stands before the conversation: digests, where things were left."""
    outcome: Outcome | Literal["echo"]
    """How asking the model ended; `echo` if there is none to ask."""
    detail: str = ""
    """Why there is no answer, in our words."""
    reply: Message | None = None
    """The answer as it is logged; None if there is none."""
    heard: ReplyReport | None = None
    """What the model asked to be remembered, and what became of that."""
    took_ms: float = 0.0

    @property
    def things(self) -> int:
        """How many things of the memory the model was given."""
        return sum(one.included for one in self.given.choices) + len(self.earlier)

    @property
    def tokens(self) -> int:
        """What they cost."""
        return self.given.tokens + sum(block.tokens for block in self.earlier)


class Chat:
    """A conversation at one address. Not for several threads at once."""

    __slots__ = ("_consultant", "memory")

    def __init__(self, memory: Memory, consultant: Consultant) -> None:
        self.memory = memory
        self._consultant = consultant

    @property
    def model(self) -> str:
        """The model that answers; empty if there is none, and an echo does."""
        return self._consultant.name if self._consultant.available else ""

    def say(self, text: str, *, deadline_s: float = DEADLINE_S) -> Exchange:
        """Log what the user said, and what the model answers to it; a model that fails is an outcome, not an error."""
        return self.answer(self.ask(text), deadline_s=deadline_s)

    def ask(self, text: str) -> ChatQuestion:
        """Log what the user said, and gather what a model is given for it. No model is asked."""
        said = self.memory.append("user", text)
        given = self.memory.before(text, target="system")
        talk = self.memory.context()
        told = {block.kind for block in given.blocks}
        # What always holds is in both; what is left tells of this conversation and of the ones before it.
        earlier = tuple(block for block in talk.blocks if block.kind not in told)
        return ChatQuestion(said, given, earlier, tuple(self._messages(text, given, earlier, talk.messages)))

    def answer(
        self, question: ChatQuestion, *, deadline_s: float = DEADLINE_S, on_text: Callable[[str], None] | None = None
    ) -> Exchange:
        """What the model answers, logged. `on_text` is called with the answer as far as it has come, from another thread."""
        if not isinstance(question, ChatQuestion):
            raise InvalidInput(f"`question` = {brief(question)} is no question; pass what `ask` returned")
        said, given, earlier = question.said, question.given, question.earlier
        if not self._consultant.available:
            words: dict[str, Json] = {"made_by": ECHO}
            reply = self.memory.append("assistant", f"You said: {said.content}", id=_reply_id(said), metadata=words)
            return Exchange(said, given, earlier, ECHO, reply=reply)
        heard_text = None if on_text is None else lambda text: on_text(_visible_part(text))
        posed = Question("chat", question.messages, None, _read, tokens_max=REPLY_TOKENS_MAX, on_text=heard_text)
        asked = self._consultant.ask(self.memory.scope.owner, posed, deadline_s=deadline_s)
        if asked.value is None:
            return Exchange(said, given, earlier, asked.outcome, asked.detail, took_ms=asked.took_ms)
        shown, _ = split_reply(asked.value)
        reply = self.memory.append(
            "assistant",
            shown.strip(),
            id=_reply_id(said),
            metadata={"made_by": f"{self.model}, {prompt_named('chat').name}", "given": given.id},
        )
        heard = self.memory.lessons.take_from(asked.value, message=reply.id)
        return Exchange(
            said=said,
            given=given,
            earlier=earlier,
            outcome=asked.outcome,
            detail=asked.detail,
            reply=reply,
            heard=heard,
            took_ms=asked.took_ms,
        )

    def _messages(
        self, text: str, given: Injection, earlier: Sequence[Block], said: Sequence[Message]
    ) -> Iterator[ChatMessage]:
        """What stays the same first, so that it can stay in the model's cache; what belongs to this question last."""
        # The lessons are in the memory that is given; the rest of the prompt says who the agent is.
        own = [part.text for part in self.memory.prompt(text).parts if part.kind != "memory"]
        standing = [prompt_named("chat").body.strip(), *own, given.stable, *(block.render() for block in earlier)]
        lead = "\n\n".join(part for part in standing if part)
        for form in ChatLists(Talk(said, lead, given.tail), in_words=True).openai():
            yield ChatMessage(form["role"], form["content"])


def _reply_id(said: Message) -> str:
    return f"{said.id}-reply"


def _visible_part(text: str) -> str:
    """The text so far as the user may see it: without lines for the memory, and without the beginning of one."""
    shown, _ = split_reply(text)
    before, _, last = shown.rpartition("\n")
    begun = last.strip().lstrip("*_`>- ")
    return before if begun and MARK.startswith(begun) else shown


def _read(found: Json) -> str | Unreadable:
    try:
        utf8_size(str(found), "the answer")
    except InvalidInput:
        return Unreadable("it has characters that no text can hold")
    shown, appends = split_reply(str(found))
    return str(found) if shown.strip() or appends else Unreadable("it is empty")
