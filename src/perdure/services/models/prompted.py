"""A summariser over anything that completes text: renders the prompt, asks, reads the reply, and holds it to its length.

An extractor over anything that completes text: renders the prompt, asks, and reads proposals out of the reply.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from perdure.domain.conversation.digests import DigestKind, Summary, SummaryRequest
from perdure.domain.errors import Unavailable
from perdure.domain.knowledge.proposals import Extraction, ExtractionRequest
from perdure.domain.values import dataclass
from perdure.engine.models.answers import Unreadable
from perdure.engine.models.prompts import PromptTemplate, filled, read_prompt, render
from perdure.engine.models.replies import (
    PROPOSALS_MAX,
    TODOS_MAX,
    FieldsReply,
    FoldReply,
    TextReply,
    extraction_data,
    read_extraction,
    read_fold,
    read_session,
    read_spine,
    read_text,
)
from perdure.engine.summary.extractive import session_summary, spine_summary
from perdure.engine.text.sentences import cut_text

RETRY_AFTER_S = 60.0
"""A model that answered in no usable form is asked again after this time; the same words at once rarely help."""


@dataclass(frozen=True, slots=True)
class PromptedSummariser:
    """An extractor that asks `complete(prompt)`. Whatever `complete` raises goes through."""

    complete: Callable[[str], str]
    name: str
    """Name and version of the model, kept with every digest it writes."""

    def summarise(self, request: SummaryRequest) -> Summary:
        """`Unavailable` if the reply cannot be read; its words stay out of the message."""
        reply = self.complete(render(prompt_for(request.kind), request))
        read = _READERS[request.kind](reply) if isinstance(reply, str) else Unreadable("the reply is no text")
        summary = summary_of(read, request)
        if isinstance(summary, Unreadable):
            raise Unavailable(
                f"summariser `{self.name}` gave no usable `{request.kind}` ({summary.why}); it is asked again later",
                retry_after_s=RETRY_AFTER_S,
            )
        return summary


def summary_of(read: object, request: SummaryRequest) -> Summary | Unreadable:
    """What was read of a reply, held to the length asked for."""
    match read:
        case FoldReply(context, lessons):
            return Summary(cut_text(context, request.chars_max, request.words_max), lessons)
        case TextReply(text):
            return Summary(cut_text(" ".join(text.split()), request.chars_max, request.words_max))
        case FieldsReply(fields):
            fitted = session_summary if request.kind == "session" else spine_summary
            return fitted(fields, request.chars_max, request.words_max)
        case Unreadable():
            return read
    raise TypeError(f"a reply is read as a `{type(read).__name__}`")


_READERS: dict[DigestKind, Callable[[str], FoldReply | TextReply | FieldsReply | Unreadable]] = {
    "fold": read_fold,
    "rolling": read_text,
    "session": read_session,
    "spine": read_spine,
}


@cache
def prompt_for(kind: DigestKind) -> PromptTemplate:
    """The prompt that asks for a digest of this kind."""
    return prompt_named(kind)


@cache
def prompt_named(name: str) -> PromptTemplate:
    """The prompt of that name."""
    return read_prompt((Path(sys.modules["perdure"].__path__[0]) / "prompts" / f"{name}.md").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class PromptedExtractor:
    """An extractor that asks `complete(prompt)`. It only proposes; the committer decides."""

    complete: Callable[[str], str]
    name: str
    """Name and version of the model, kept with everything it proposes."""

    def extract(self, request: ExtractionRequest) -> Extraction:
        """`Unavailable` if the reply cannot be read; its words stay out of the message."""
        values = {"data": extraction_data(request), "proposals_max": str(PROPOSALS_MAX), "todos_max": str(TODOS_MAX)}
        reply = self.complete(filled(prompt_named("extract"), values))
        read = read_extraction(reply, request) if isinstance(reply, str) else Unreadable("the reply is no text")
        if isinstance(read, Unreadable):
            raise Unavailable(
                f"extractor `{self.name}` gave no usable answer ({read.why}); it is asked again later",
                retry_after_s=RETRY_AFTER_S,
            )
        return read
