"""`/u/{user}/chat`: a talk with the configured model. Beside each answer: what was given, and what was learned of the turn.

Without a model it shows what one would be given. With scripts the answer is shown while it comes, as lines of JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import StreamingResponse

from perdure.app import chat_with
from perdure.domain.conversation.messages import Message
from perdure.domain.errors import InvalidInput, PerdureError
from perdure.domain.knowledge.entities import Instruction, Todo
from perdure.domain.knowledge.journal import Operation
from perdure.domain.knowledge.proposals import Evidence
from perdure.domain.oversight import Choice, Decision
from perdure.domain.values import dataclass, field, replace
from perdure.handles.chat import Chat, ChatQuestion, Exchange
from perdure.handles.memory import Memory
from perdure.interfaces.lines import LINES, Line, Say, work_lines
from perdure.interfaces.visible import visible
from perdure.interfaces.web.page import door, memory_of, page, rendered
from perdure.interfaces.web.pages.context import block_rows, choice_names

router = APIRouter()
MESSAGES_SHOWN = 20
TEXT_CHARS_MAX = 8_000
LOOKED_AT = 200
"""So many of the newest memories, todos, lessons and operations are looked through for what a turn taught."""


@dataclass(frozen=True, slots=True)
class LearnedThing:
    """Something that rests on a message."""

    kind: str
    text: str
    link: tuple[str, ...]
    how: str
    """`new` if the message was the first to say it, `known already`, or `corrected` since."""
    undo: int | None
    """The newest change of it, which `undo` takes back."""
    memory: str = ""
    statement: str = ""
    attribute: str = ""
    value: str = ""
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class GivenThings:
    """What a model was given, or would be."""

    tokens: int
    budget: int
    taken: Sequence[tuple[Choice, str, tuple[str, ...]]]
    left: int
    blocks: Sequence[dict[str, Any]] = ()
    """Word for word; of a turn that was just made."""
    messages: Sequence[Any] = ()
    """All that a model would read, where there is none."""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """What the user said, and what came of it."""

    said: Message | None
    replies: tuple[Message, ...] = ()
    given: GivenThings | None = None
    learned: Sequence[LearnedThing] = ()
    problem: str = ""
    """Why there is no answer."""
    lessons: Sequence[str] = field(default=())
    """What the model asked to remember of how to behave."""
    is_fresh: bool = False
    unlearned: str = ""
    """Why nothing was learned yet."""


@router.get("/u/{user:id}/chat")
def show(request: Request) -> Response:
    memory = memory_of(request)
    return _page(request, _chat(request, memory), _turns(memory))


@router.post("/u/{user:id}/chat")
def say(request: Request, text: Annotated[str, Form(max_length=TEXT_CHARS_MAX)] = "") -> Response:
    """Log a message, have the model answer it, and learn from both."""
    memory = memory_of(request, "write")
    if not text.strip():
        raise InvalidInput("the message is empty; write something")
    chat = _chat(request, memory)
    if LINES in request.headers.get("accept", ""):
        return StreamingResponse(
            work_lines("a chat", lambda tell: _turn_made(request, chat, text.strip(), tell)), media_type=LINES
        )
    question = chat.ask(text.strip())
    turn = _answered(chat, question, None)
    earlier = [one for one in _turns(memory) if one.said is None or one.said.id != question.said.id]
    return _page(request, chat, [*earlier, turn])


def _chat(request: Request, memory: Memory) -> Chat:
    return chat_with(door(request).seen, memory)


def _page(request: Request, chat: Chat, turns: Sequence[ChatTurn]) -> Response:
    return page(request, "chat.html", turns=turns, model=chat.model, chars_max=TEXT_CHARS_MAX)


def _turn_made(request: Request, chat: Chat, text: str, say: Say) -> Line:
    """Says what was given and the answer as it comes, and returns the whole turn."""
    question = chat.ask(text)
    say({"given": rendered(request, "chat_given.html", given=_given_things(chat, question))})
    turn = _answered(chat, question, lambda so_far: say({"text": visible(so_far)}))
    return {"turn": rendered(request, "chat_turn.html", turn=turn, model=chat.model)}


# -- a turn that is made


def _answered(chat: Chat, question: ChatQuestion, on_text: Callable[[str], None] | None) -> ChatTurn:
    exchange = chat.answer(question, on_text=on_text) if chat.model else None
    if exchange is not None and exchange.reply is not None and on_text is not None:
        on_text(exchange.reply.content)  # before anything is learned, which may take a while
    unlearned = _learn(chat.memory)
    replies = () if exchange is None or exchange.reply is None else (exchange.reply,)
    return ChatTurn(
        said=question.said,
        replies=replies,
        given=_given_things(chat, question),
        learned=_learned(chat.memory, {one.id for one in (question.said, *replies)}),
        problem=_problem(exchange),
        lessons=() if exchange is None or exchange.heard is None else [one.text for one in exchange.heard.appended],
        is_fresh=True,
        unlearned=unlearned,
    )


def _learn(memory: Memory) -> str:
    """Learn from the new messages at once; a job would do so later. Why that failed, if it did."""
    try:
        memory.memories.extract()
    except PerdureError as error:
        return f"Not learned yet: {error}. A job tries again."
    return ""


def _problem(exchange: Exchange | None) -> str:
    if exchange is None or exchange.reply is not None:
        return ""
    detail = f": {exchange.detail}" if exchange.detail else ""
    return f"The model gave no answer ({exchange.outcome}{detail}). Your message is kept."


def _given_things(chat: Chat, question: ChatQuestion) -> GivenThings:
    given = question.given
    names = choice_names(chat.memory, given.choices)
    shown = [*question.earlier, *given.blocks]
    rows = [(one.kind, one.title, one.source, one.text, one.tokens, one.volatile) for one in shown]
    return GivenThings(
        tokens=sum(one.tokens for one in shown),
        budget=given.budget_tokens,
        taken=[(one, *names.get(one.id, (one.id, ()))) for one in given.choices if one.included],
        left=sum(not one.included for one in given.choices),
        blocks=block_rows(rows),
        messages=() if chat.model else question.messages,
    )


# -- turns of before


def _turns(memory: Memory) -> list[ChatTurn]:
    """The last messages of this agent and channel, by turn: what was said, and what followed."""
    turns: list[ChatTurn] = []
    for one in memory.messages(MESSAGES_SHOWN):
        if one.role == "user" or not turns:
            turns.append(ChatTurn(one) if one.role == "user" else ChatTurn(None, (one,)))
        else:
            turns[-1] = replace(turns[-1], replies=(*turns[-1].replies, one))
    told = _told_of(memory, turns)
    learned = _LearnedBefore(memory) if turns else None
    return [
        replace(one, given=told.get(_decision_id(one)), learned=() if learned is None else learned.of(_ids(one)))
        for one in turns
    ]


def _ids(turn: ChatTurn) -> set[str]:
    return {one.id for one in (turn.said, *turn.replies) if one is not None}


def _decision_id(turn: ChatTurn) -> str:
    found = [str(one.metadata["given"]) for one in turn.replies if one.metadata and "given" in one.metadata]
    return found[-1] if found else ""


def _told_of(memory: Memory, turns: Sequence[ChatTurn]) -> dict[str, GivenThings]:
    """What was given in these turns, by the id of the decision, as far as the decisions are kept."""
    wanted = {_decision_id(one) for one in turns} - {""}
    if not wanted:
        return {}
    held = {one.id: one for one in memory.journal.decisions("before", limit=LOOKED_AT) if one.id in wanted}
    choices = {name: _choices(one) for name, one in held.items()}
    names = choice_names(memory, [one for found in choices.values() for one in found])
    return {
        name: GivenThings(
            tokens=_whole(held[name].body.get("tokens")),
            budget=_whole(held[name].body.get("budget_tokens")),
            taken=[(one, *names.get(one.id, (one.id, ()))) for one in found],
            left=len(_rows(held[name], "left_out")),
        )
        for name, found in choices.items()
    }


def _choices(decision: Decision) -> list[Choice]:
    return [Choice(kind, name, included=True, reason=reason) for kind, name, reason in _rows(decision, "included")]


def _rows(decision: Decision, name: str) -> list[Any]:
    found = decision.body.get(name)
    return found if isinstance(found, list) else []


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


# -- what was learned


def _learned(memory: Memory, messages: Set[str]) -> list[LearnedThing]:
    return _LearnedBefore(memory).of(messages)


class _LearnedBefore:
    """What is newest, read once for all turns of a page."""

    def __init__(self, memory: Memory) -> None:
        self._memories = memory.memories.list(limit=LOOKED_AT)
        self._others: list[tuple[Todo | Instruction, str, str, tuple[str, ...]]] = [
            *((one, "todo", one.content, ("todos",)) for one in memory.todos.list(limit=LOOKED_AT)),
            *((one, "instruction", one.content, ("todos",)) for one in memory.instructions.list(limit=LOOKED_AT)),
        ]
        self._changes: dict[tuple[str, str], Operation] = {}
        self._corrects: dict[str, set[str]] = {}
        """The messages behind a statement that was corrected, by the id of its correction, which rests on none itself."""
        for one in reversed(memory.journal.list(LOOKED_AT)):
            self._changes[one.kind, one.key] = one
            after = one.after if isinstance(one.after, Mapping) else {}
            if one.kind == "statement" and after.get("closed_by"):
                sources = {str(said["message"]) for said in after["evidence"]} or self._corrects.get(one.key, set())
                self._corrects[str(after["closed_by"])] = sources

    def of(self, messages: Set[str]) -> list[LearnedThing]:
        """What rests on one of these messages."""
        found = [
            LearnedThing(
                kind="memory",
                text=one.content,
                link=("memories", one.memory),
                how=_how(one.evidence, messages),
                undo=self._undo("statement", one.id),
                memory=one.memory,
                statement=one.id,
                attribute=one.attribute or "",
                value=one.value or "",
                pinned=held.memory.pinned,
            )
            for held in self._memories
            for one in held.statements
            if ({said.message for said in one.evidence} or self._corrects.get(one.id, set())) & messages
        ]
        found += [
            LearnedThing(kind, text, link, how=_how(one.evidence, messages), undo=self._undo(kind, one.record_key))
            for one, kind, text, link in self._others
            if any(said.message in messages for said in one.evidence)
        ]
        return found

    def _undo(self, kind: str, key: str) -> int | None:
        change = self._changes.get((kind, key))
        return None if change is None else change.seq


def _how(evidence: Sequence[Evidence], messages: Set[str]) -> str:
    if not evidence:
        return "corrected"
    return "new" if evidence[0].message in messages else "known already"
