"""A conversation in the forms that chat models take: one system message, then user and assistant in turn, and the goal last.

Strict chat templates refuse a system message in the middle, two messages of one role in a row, an empty turn, several calls
in one message, a call without its result, and ids that are not nine letters and digits. A log may have all of these.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b32encode
from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

from perdure.domain.conversation.messages import Message, ToolCall
from perdure.domain.text.fences import fenced, frame, one_item
from perdure.domain.text.patterns import pattern
from perdure.domain.values import dataclass, field

ChatForm = Literal["openai", "anthropic", "text"]
SystemPlace = Literal["lead", "merge"]
ToolForm = Literal["calls", "text"]
CHAT_FORMS: tuple[str, ...] = get_args(ChatForm)
SYSTEM_PLACES: tuple[str, ...] = get_args(SystemPlace)
TOOL_FORMS: tuple[str, ...] = get_args(ToolForm)

BEGINNING = "(The conversation begins.)"
NO_REPLY = "(No reply.)"
NO_RESULT = "(No result yet.)"
"""What stands where the log has nothing and a template needs something."""
CALL_ID_CHARS = 9
NAME_CHARS_MAX = 64
_CALL_ID = pattern(r"[A-Za-z0-9]{9}")
_NAME_GAPS = pattern(r"[^A-Za-z0-9_-]")

Form = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Talk:
    """What a model is given: what always holds, the conversation, what belongs to this request, and what is asked."""

    messages: Sequence[Message]
    lead: str = ""
    tail: str = ""
    goal: str | None = None


@dataclass(slots=True)
class UserTurn:
    """What stands in one turn of the user: their words, and what a host or a tool put there."""

    texts: list[str]
    asked: int | None = None
    """Which of the texts the user said last."""

    def add(self, text: str, *, said: bool) -> None:
        if said:
            self.asked = len(self.texts)
        self.texts.append(text)

    def put_before_question(self, text: str) -> None:
        place = len(self.texts) if self.asked is None else self.asked
        self.texts.insert(place, text)
        self.asked = None if self.asked is None else self.asked + 1


@dataclass(slots=True)
class Reply:
    """A plain answer of the agent."""

    text: str


@dataclass(slots=True)
class CallStep:
    """Calls that the agent makes at once, with their results."""

    text: str
    calls: list[tuple[ToolCall, Message | None]]


Step = UserTurn | Reply | CallStep


@dataclass
class ChatLists:
    """A talk arranged so that the strictest template takes it."""

    talk: Talk
    merged: bool = False
    """The system message stands in the first turn of the user."""
    in_words: bool = False
    """Calls and results are told in words."""
    steps: list[Step] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    """What stands in the list and in none of the messages, but for the goal."""

    def __post_init__(self) -> None:
        under_way = False
        for step in _steps(self.talk.messages):
            under_way = isinstance(step, CallStep)
            self._put(step)
        self._ask(under_way=under_way)
        if self.steps and not isinstance(self.steps[0], UserTurn):
            self.steps.insert(0, UserTurn([self._added(BEGINNING)], 0))
        self._place_tail()
        if self.merged and self.talk.lead:
            if not self.steps:
                self.steps.append(UserTurn([]))
            first = self.steps[0]
            assert isinstance(first, UserTurn)  # noqa: S101 - seen to above
            first.texts.insert(0, self.talk.lead)

    def _ask(self, *, under_way: bool) -> None:
        """Have the goal stand last. While the agent is at it, only if the log does not say what was asked: then first."""
        goal = fenced(self.talk.goal or "").strip()
        if not goal:
            return
        if not under_way:
            self._put(UserTurn([goal], 0))
        elif not any(isinstance(step, UserTurn) and step.asked is not None for step in self.steps):
            if not isinstance(self.steps[0], UserTurn):
                self.steps.insert(0, UserTurn([]))
            first = self.steps[0]
            assert isinstance(first, UserTurn)  # noqa: S101 - made so above
            first.add(goal, said=True)

    def _place_tail(self) -> None:
        if not self.talk.tail:
            return
        turns = [step for step in self.steps if isinstance(step, UserTurn)]
        asking = [step for step in turns if step.asked is not None]
        if not turns:
            self.steps.append(UserTurn([self.talk.tail]))
        else:
            (asking or turns)[-1].put_before_question(self.talk.tail)

    def _put(self, step: Step) -> None:
        """Add a step so that turns alternate."""
        if isinstance(step, CallStep) and self.in_words:
            self._put_in_words(step)
            return
        if isinstance(step, CallStep):
            self.added += [NO_RESULT for _, result in step.calls if result is None]
        elif isinstance(step, UserTurn) and step.asked is None:
            self.added += [text.split("\n", 1)[0] for text in step.texts]
        last = self.steps[-1] if self.steps else None
        match step, last:
            case UserTurn(), UserTurn():
                for place, text in enumerate(step.texts):
                    last.add(text, said=place == step.asked)
            case UserTurn(), CallStep():
                self.steps += [Reply(self._added(NO_REPLY)), step]
            case Reply(), Reply():
                last.text = f"{last.text}\n\n{step.text}"
            case CallStep(), Reply():
                # What was said on the way belongs to the call: the turn has one plain answer, at its end.
                step.text = "\n\n".join(part for part in (last.text, step.text) if part)
                self.steps[-1] = step
            case _:
                self.steps.append(step)

    def _put_in_words(self, step: CallStep) -> None:
        told = [f"[{_name(call)} was called with {_arguments(call)}]" for call, _ in step.calls]
        self._put(Reply("\n\n".join(part for part in (step.text, *told) if part)))
        results = [
            frame("conversation", f"Result of {_name(call)}", "the log", one_item(f"tool: {_result(result)}"))
            for call, result in step.calls
        ]
        self._put(UserTurn(results))

    def _added(self, text: str) -> str:
        self.added.append(text)
        return text

    def openai(self) -> list[Form]:
        """A list of messages with the roles `system`, `user`, `assistant` and `tool`."""
        lead = [] if self.merged or not self.talk.lead else [{"role": "system", "content": self.talk.lead}]
        return [*lead, *(form for step in self.steps for form in _openai(step))]

    def anthropic(self) -> Form:
        """`system` and `messages`, as the client of that name takes them."""
        messages = [form for step in self.steps for form in _anthropic(step)]
        if self.merged or not self.talk.lead:
            return {"messages": messages}
        # It changes seldom, so it is worth keeping.
        lead = {"type": "text", "text": self.talk.lead, "cache_control": {"type": "ephemeral"}}
        return {"system": [lead], "messages": messages}


def _steps(messages: Sequence[Message]) -> Iterator[Step]:
    """The log step by step: results stand with their calls, and what has no words is left out."""
    results = {message.tool_call_id: message for message in messages if message.tool_call_id is not None}
    made = {call.id for message in messages for call in message.tool_calls}
    for message in messages:
        text = fenced(message.content).strip()
        if message.tool_calls:
            yield CallStep(text, [(call, results.get(call.id)) for call in message.tool_calls])
        elif message.role == "assistant" and text:
            yield Reply(text)
        elif message.role == "user" and text:
            yield UserTurn([text], 0)
        elif message.role == "system" and text:
            yield UserTurn([frame("conversation", "Said by the host", "the log", one_item(f"system: {text}"))])
        elif message.role == "tool" and message.tool_call_id not in made and text:
            yield UserTurn([frame("conversation", "Result of a tool", "the log", one_item(f"tool: {text}"))])


def _openai(step: Step) -> Iterator[Form]:
    match step:
        case UserTurn():
            yield {"role": "user", "content": "\n\n".join(step.texts)}
        case Reply():
            yield {"role": "assistant", "content": step.text}
        case CallStep():
            text = step.text
            for call, result in step.calls:
                # One at a time, with its result right behind it: several at once are refused by some, and mean the same.
                made = {"name": _name(call), "arguments": _arguments(call)}
                calls = [{"id": _call_id(call.id), "type": "function", "function": made}]
                yield {"role": "assistant", "content": text, "tool_calls": calls}
                yield {"role": "tool", "tool_call_id": _call_id(call.id), "content": _result(result)}
                text = ""


def _anthropic(step: Step) -> Iterator[Form]:
    match step:
        case UserTurn():
            yield {"role": "user", "content": [{"type": "text", "text": text} for text in step.texts]}
        case Reply():
            yield {"role": "assistant", "content": [{"type": "text", "text": step.text}]}
        case CallStep():
            said = [{"type": "text", "text": step.text}] if step.text else []
            uses = [
                {"type": "tool_use", "id": _call_id(call.id), "name": _name(call), "input": json.loads(_arguments(call))}
                for call, _ in step.calls
            ]
            yield {"role": "assistant", "content": [*said, *uses]}
            results = [
                {"type": "tool_result", "tool_use_id": _call_id(call.id), "content": _result(result)}
                | ({"is_error": True} if result is not None and result.failed else {})
                for call, result in step.calls
            ]
            yield {"role": "user", "content": results}


def as_text(talk: Talk) -> str:
    """All of it as one text. Only the first line of each message is not set in, so that none can pass for another one."""
    said = [one_item(line) for message in talk.messages for line in _lines(message)]
    goal = fenced(talk.goal or "").strip()
    under_way = bool(talk.messages) and (talk.messages[-1].role == "tool" or bool(talk.messages[-1].tool_calls))
    asks = [place for place, line in enumerate(said) if line.startswith("user: ")]
    if goal and not (under_way and asks):
        said.append(one_item(f"user: {goal}"))
        asks = [len(said) - 1]
    place = asks[-1] if asks else len(said)
    return "\n\n".join(part for part in (talk.lead, *said[:place], talk.tail, *said[place:]) if part)


def _lines(message: Message) -> Iterator[str]:
    text = fenced(message.content)
    if text.strip() or not message.tool_calls:
        yield f"{message.role}: {text}"
    for call in message.tool_calls:
        yield f"{message.role}: [{_name(call)} was called with {_arguments(call)}]"


def call_text(call: ToolCall) -> str:
    """A call as it stands in a list, for counting it."""
    made = {"name": _name(call), "arguments": _arguments(call)}
    return json.dumps({"id": _call_id(call.id), "type": "function", "function": made}, ensure_ascii=False)


def _result(result: Message | None) -> str:
    return NO_RESULT if result is None else fenced(result.content)


def _arguments(call: ToolCall) -> str:
    """An object, which is what models and templates know; anything else becomes the value of one."""
    given = call.arguments
    whole = given if isinstance(given, dict) else {} if given is None else {"value": given}
    return fenced(json.dumps(whole, ensure_ascii=False))


def _name(call: ToolCall) -> str:
    return _NAME_GAPS.sub("_", call.name)[:NAME_CHARS_MAX]


def _call_id(given: str) -> str:
    """The id, or one made of it: the same every time, so that what is cached stays."""
    if _CALL_ID.fullmatch(given):
        return given
    return b32encode(hashlib.sha256(given.encode()).digest()).decode().lower()[:CALL_ID_CHARS]
