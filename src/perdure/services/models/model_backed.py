"""The summariser and the extractor over the chat model that is configured: they ask, with a schema, through the consultant.

What was said is shown in portions that fit the window of a small model; each summary continues the one before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from perdure.domain.conversation.digests import DigestKind, Summary, SummaryRequest
from perdure.domain.conversation.messages import Message
from perdure.domain.errors import Unavailable
from perdure.domain.knowledge.proposals import Extraction, ExtractionRequest
from perdure.domain.models import ChatMessage, Consultation, Purpose
from perdure.domain.scope import SYSTEM
from perdure.domain.text.rules import Json
from perdure.domain.values import dataclass, replace
from perdure.engine.extraction.verbatim import surely_tells_nothing
from perdure.engine.models import answers
from perdure.engine.models.answers import Unreadable
from perdure.engine.models.prompts import as_data, filled, message_form, render
from perdure.engine.models.replies import (
    PROPOSALS_MAX,
    TODOS_MAX,
    extraction_data,
    extraction_of,
    fold_fields,
    read_text,
    session_fields,
    spine_fields,
)
from perdure.engine.text.sentences import cut_text
from perdure.engine.text.tokens import estimate_tokens
from perdure.services.models.consultant import Consultant, Question
from perdure.services.models.prompted import RETRY_AFTER_S, prompt_named, summary_of

T = TypeVar("T")


CALL_S = 120.0
"""What one question of a job may take. Nobody waits for it; a request that does brings a deadline of its own."""


PORTION_TOKENS_MAX = 3_000
"""What is shown at once. With all else and the answer it fits the 8,192 tokens that small models are run with."""


ANSWER_TOKENS_MAX = 2_048


BEFORE_TOKENS_MAX, BEFORE_CHARS_MAX = 1_000, 1_200
"""What is shown of earlier messages, for understanding: in all, and of each."""
NAME_CHARS_MAX = 100


_QUESTIONS: dict[DigestKind, tuple[str, answers.Schema | None, Callable[[Json], object]]] = {
    "fold": ("fold_fields", answers.FOLD, fold_fields),
    "rolling": ("rolling", None, read_text),
    "session": ("session", answers.SESSION, session_fields),
    "spine": ("spine", answers.SPINE, spine_fields),
}


@dataclass(frozen=True, slots=True)
class ModelSummariser:
    consultant: Consultant

    @property
    def name(self) -> str:
        return name_of(self.consultant)

    def summarise(self, request: SummaryRequest) -> Summary:
        """`Unavailable` with the outcome if a question has no usable answer, or the request's deadline is over."""
        until = time.monotonic() + (CALL_S if request.deadline_s is None else request.deadline_s)
        summary, lessons = Summary(request.previous), dict[str, None]()
        for portion in portions(request.messages) or [()]:
            asked = replace(request, previous=summary.text, messages=portion)
            left_s = CALL_S if request.deadline_s is None else until - time.monotonic()
            summary = self._ask(asked, left_s)
            lessons |= dict.fromkeys(summary.lessons)
        return replace(summary, lessons=tuple(lessons))

    def _ask(self, request: SummaryRequest, left_s: float) -> Summary:
        prompt, schema, read = _QUESTIONS[request.kind]

        def summary(answer: Json) -> Summary | Unreadable:
            return summary_of(read(answer), request)

        words = render(prompt_named(prompt), request)
        tokens = min(ANSWER_TOKENS_MAX, 256 + request.chars_max // 2)
        question = Question(request.kind, (ChatMessage("user", words),), schema, summary, tokens)
        got = self.consultant.ask(request.owner or SYSTEM, question, deadline_s=left_s)
        return _usable(got, self.name, request.kind)


@dataclass(frozen=True, slots=True)
class ModelExtractor:
    """Asks for proposals. It only proposes; the committer decides."""

    consultant: Consultant

    @property
    def name(self) -> str:
        return name_of(self.consultant)

    def extract(self, request: ExtractionRequest) -> Extraction:
        """`Unavailable` with the outcome if a question has no usable answer. Nothing is asked where surely nothing is told."""
        found = Extraction()
        before = request.before
        for portion in portions(request.messages):
            tells = may_tell(before[-1:], portion)
            part = self._ask(replace(request, messages=portion, before=latest(before))) if tells else Extraction()
            found = replace(
                found,
                proposals=found.proposals + part.proposals,
                todos=found.todos + part.todos,
                skipped=found.skipped + part.skipped,
            )
            before = (*before, *portion)
        return found

    def _ask(self, request: ExtractionRequest) -> Extraction:
        def extraction(answer: Mapping[str, Json]) -> Extraction:
            return extraction_of(answer, request)

        values = {"data": extraction_data(request), "proposals_max": str(PROPOSALS_MAX), "todos_max": str(TODOS_MAX)}
        words = filled(prompt_named("extract"), values)
        question = Question("extract", (ChatMessage("user", words),), answers.EXTRACTION, extraction, ANSWER_TOKENS_MAX)
        got = self.consultant.ask(request.owner or SYSTEM, question, deadline_s=CALL_S)
        return _usable(got, self.name, "extract")


def may_tell(before: Sequence[Message], portion: Sequence[Message]) -> bool:
    """Whether the user tells anything there, as far as can be told without a model. An answer may, whatever its words."""
    asked = False
    for message in (*before, *portion):
        if message.role == "user" and message in portion and (asked or not surely_tells_nothing(message.content)):
            return True
        asked = message.role == "assistant" and message.content.rstrip().endswith("?")
    return False


def name_of(consultant: Consultant) -> str:
    """The model's name as it is kept with what it wrote."""
    shown = "".join(char for char in consultant.name if char.isprintable())[:NAME_CHARS_MAX]
    return shown or "model"


def portions(messages: Sequence[Message]) -> list[tuple[Message, ...]]:
    """The messages in runs that each cost no more than may be shown at once, or are a single one."""
    return list(_portions(messages))


def _portions(messages: Sequence[Message]) -> Iterator[tuple[Message, ...]]:
    held: list[Message] = []
    tokens = 0
    for message in messages:
        cost = estimate_tokens(as_data(message_form(message)))
        if held and tokens + cost > PORTION_TOKENS_MAX:
            yield tuple(held)
            held, tokens = [], 0
        held.append(message)
        tokens += cost
    if held:
        yield tuple(held)


def latest(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The last of the messages, each cut short, that may be shown before those that matter."""
    found: list[Message] = []
    left = BEFORE_TOKENS_MAX
    for message in reversed(messages):
        short = replace(message, content=cut_text(message.content, BEFORE_CHARS_MAX))
        left -= estimate_tokens(as_data(message_form(short)))
        if left < 0:
            break
        found.append(short)
    return tuple(reversed(found))


def _usable(got: Consultation[T], name: str, purpose: Purpose) -> T:
    if got.value is None:
        why = f"{got.outcome}: {got.detail}" if got.detail else got.outcome
        after_s = RETRY_AFTER_S if got.retry_after_s is None else got.retry_after_s
        raise Unavailable(f"model `{name}` gave no usable `{purpose}` ({why}); it is asked again later", retry_after_s=after_s)
    return got.value
