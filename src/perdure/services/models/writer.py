"""Asking a summariser for words, piece by piece, and holding it to the length asked for."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from perdure.domain.conversation.agent_state import Failure
from perdure.domain.conversation.digests import DigestKind, DigestSource, Summary, SummaryRequest
from perdure.domain.conversation.messages import Cursor, Message, MessageQuery
from perdure.domain.errors import InvalidInput, PerdureError, Unavailable
from perdure.domain.knowledge.memories import Trust, least, trust_of_message
from perdure.domain.scope import Owner
from perdure.domain.text.rules import encode_json, utf8_size
from perdure.domain.text.secrets import without_secrets
from perdure.domain.values import dataclass, replace
from perdure.engine.summary.pins import carried, fit_pins
from perdure.engine.text.sentences import cut_text
from perdure.ports.models import Summariser
from perdure.ports.store import Store, View

PAGE = 500
"""Messages read at once, and shown at once to the offline summariser."""
LESSONS_MAX = 20
FIELDS_BYTES_MAX = 65_536
DETAIL_CHARS_MAX = 200


class SummaryFailed(Unavailable):
    """The summariser gave no usable answer. Nothing was changed; the work is tried again."""

    def __init__(self, failure: Failure, *, retry_after_s: float = 1.0) -> None:
        self.failure = failure
        words = f"the summariser failed ({failure.reason}); the log is untouched and the work is tried again"
        super().__init__(words, retry_after_s=retry_after_s)


@dataclass(frozen=True, slots=True)
class DigestRequest:
    """What text is wanted: of which kind, how long, continuing what, over which messages."""

    kind: DigestKind
    sources: tuple[DigestSource, ...]
    previous: str = ""
    pinned: tuple[str, ...] = ()
    chars_max: int = 4_000
    words_max: int | None = None
    pin_tokens_max: int = 0
    """How much may be pinned; 0 for layers that pin nothing."""
    pin_words_max: int | None = None
    """In how many words, but for rules and ids."""
    offline: bool = False
    """Whatever is configured, ask no model."""
    lessons: bool = True
    tokens_max: int | None = None
    """What the text may cost, where that is less than its characters suggest."""
    question: str | None = None
    """What the user asked last; None: the last thing said in the sources."""
    until: float | None = None
    """When its caller stops waiting, in seconds as `time.monotonic` counts them; None: nobody waits."""


@dataclass(frozen=True, slots=True)
class WrittenDigest:
    summary: Summary
    pinned: tuple[str, ...]
    summariser: str
    trust: Trust = "agent"
    """That of the least of the messages it was written from, and never more than a summariser's own."""


@dataclass(frozen=True, slots=True)
class DigestWriter:
    """Reads the messages of its sources in pages and has them summarised, each piece continuing the one before."""

    store: Store
    chosen: Summariser
    offline: Summariser
    count: Callable[[str], int]
    window: int

    def write(self, owner: Owner, wanted: DigestRequest) -> WrittenDigest:
        """`SummaryFailed` if the summariser raises."""
        summariser = self.offline if wanted.offline else self.chosen
        window = PAGE if summariser is self.offline else self.window
        text, pinned = wanted.previous, wanted.pinned
        lessons: dict[str, None] = {}
        summary = Summary(text)
        trust: Trust = "agent"
        question = self._last_said(owner, wanted.sources) if wanted.question is None else wanted.question
        for piece in self._pieces(owner, wanted.sources, window):
            left_s = None if wanted.until is None else wanted.until - time.monotonic()
            if left_s is not None and left_s <= 0:
                raise SummaryFailed(Failure("timeout", "there was no time left to ask"))
            request = SummaryRequest(
                kind=wanted.kind,
                previous=text,
                messages=piece,
                chars_max=wanted.chars_max,
                words_max=wanted.words_max,
                question=question,
                owner=owner,
                deadline_s=left_s,
            )
            summary = summary_by(summariser, request)
            trust = least((trust, *(trust_of_message(message.role, message.metadata) for message in piece)), trust)
            text = self._within(summary.text, wanted.tokens_max)
            lessons |= dict.fromkeys(summary.lessons)
            if wanted.pin_tokens_max:
                found = carried(pinned, piece)
                pinned = fit_pins(found, wanted.pin_tokens_max, self.count, words_max=wanted.pin_words_max)
        kept = tuple(islice(lessons, LESSONS_MAX)) if wanted.lessons else ()
        return WrittenDigest(replace(summary, text=text, lessons=kept), pinned, without_secrets(summariser.name), trust)

    def _within(self, text: str, tokens_max: int | None) -> str:
        """`text`, shortened until it costs no more than that: characters say little about tokens in some scripts."""
        while tokens_max is not None and text and (tokens := self.count(text)) > tokens_max:
            text = cut_text(text, min(len(text) - 1, len(text) * tokens_max // tokens))
        return text

    def _last_said(self, owner: Owner, sources: Sequence[DigestSource]) -> str:
        if not sources:
            return ""
        last = sources[-1]
        near = replace(last, first_seq=max(last.first_seq, last.last_seq - PAGE + 1))
        said = [message.content for message in read_source(self.store, owner, near) if message.role == "user"]
        return said[-1] if said else ""

    def _pieces(self, owner: Owner, sources: Sequence[DigestSource], window: int) -> Iterator[tuple[Message, ...]]:
        held: list[Message] = []
        for source in sources:
            for message in read_source(self.store, owner, source):
                held.append(message)
                if len(held) == window:
                    yield tuple(held)
                    held.clear()
        if held:
            yield tuple(held)


def read_source(store: Store, owner: Owner, source: DigestSource) -> Iterator[Message]:
    """The messages of one run, page by page. They never change, so the pages fit together."""
    number, seq = source.session_number, source.first_seq - 1
    while seq < source.last_seq:
        query = MessageQuery(
            source.address, PAGE, number, before=Cursor(number, source.last_seq + 1), after=Cursor(number, seq)
        )

        def read(view: View, query: MessageQuery = query) -> list[Message]:
            return view.list_messages(query)

        page = store.read(owner, read)
        if not page:
            return  # the session was deleted meanwhile
        yield from page
        seq = page[-1].seq


def summary_by(summariser: Summariser, request: SummaryRequest) -> Summary:
    """What it answers, held to the length; `SummaryFailed` whatever it raises."""
    try:
        summary = checked_summary(summariser.summarise(request))
    except Exception as error:  # the plugin edge: a summariser may be anybody's code
        raise SummaryFailed(in_short(error), retry_after_s=wanted_pause(error)) from error
    return replace(summary, text=cut_text(summary.text, request.chars_max, request.words_max))


def checked_summary(summary: object) -> Summary:
    """The summary as it can be stored, without secrets; raises unless it is one."""
    if not isinstance(summary, Summary):
        raise InvalidInput(f"the summariser answered with a `{type(summary).__name__}`; return a `perdure.Summary`")
    utf8_size(summary.text, "the summary's text")
    # Whatever the annotations say: a summariser is anybody's code.
    lessons: object = summary.lessons
    fields: object = summary.fields
    if isinstance(lessons, str) or not isinstance(lessons, Sequence):
        raise InvalidInput("`lessons` of a summary must be a list of texts")
    for lesson in lessons:
        utf8_size(lesson, "a lesson")
    if not isinstance(fields, Mapping):
        raise InvalidInput("`fields` of a summary must be a mapping")
    held = encode_json(dict(fields), "`fields` of a summary", bytes_max=FIELDS_BYTES_MAX, limit="the fields of a summary")
    told = tuple(without_secrets(lesson) for lesson in lessons)
    return replace(summary, text=without_secrets(summary.text), lessons=told, fields=json.loads(held))


def wanted_pause(error: Exception) -> float:
    """How long the failing server asks to be left alone."""
    return error.retry_after_s if isinstance(error, Unavailable) else 1.0


def in_short(error: Exception) -> Failure:
    """An error as it is kept. The words of foreign errors may quote the conversation, so only their kind is."""
    if isinstance(error, PerdureError):
        return Failure(error.code, str(error)[:DETAIL_CHARS_MAX])
    return Failure(type(error).__name__)
