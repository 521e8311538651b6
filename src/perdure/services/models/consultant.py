"""Asking the chat model: within a deadline, no matter whose code the model is; the answer is read, repaired once, and counted.

Nothing raised by a model leaves this module: what came of a question is a value (`Consultation`). No transaction is open while
a model is asked.

Waiting for something only as long as one has time: what comes too late is left to itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from perdure.domain.errors import InvalidInput, PerdureError, Unavailable
from perdure.domain.models import ChatMessage, ChatReply, ChatRequest, Consultation, Outcome, Purpose, Usage
from perdure.domain.scope import Owner
from perdure.domain.text.rules import Json
from perdure.domain.values import dataclass, field, replace
from perdure.engine.models.answers import ANSWER_CHARS_MAX, Unreadable, is_refusal, read_answer
from perdure.engine.models.prompts import filled
from perdure.ports.clock import Clock
from perdure.ports.models import ChatModel, ModelRefused, ModelTimeout
from perdure.ports.store import Store, Tx
from perdure.services.models.prompted import prompt_named

T = TypeVar("T")

ABANDONED_MAX = 8
"""Calls that were given up but have not ended, of one engine; beyond them a model that hangs is not asked again."""
MODEL_SHARE = 0.95
"""Of the time that is left, what the model is told: one that keeps to it ends by itself, before it is given up."""
REPAIR_S_MIN = 0.05
SHOWN_CHARS_MAX = 2_000
"""Of an unreadable answer, what the model is shown again."""
DETAIL_CHARS_MAX = 200
COUNT_S = 2.0
"""How long counting may take; the answer waits for it."""
NO_MODEL = "no model is configured"
_FORMS = {
    True: "Answer with one JSON object with the keys asked for, and nothing else: no fence, no words around it.",
    False: "Answer with the text asked for, and nothing else.",
}


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """What a model is asked, and how its answer is read."""

    purpose: Purpose
    messages: tuple[ChatMessage, ...]
    schema: Mapping[str, Json] | None
    """What the answer must look like; None: free text."""
    read: Callable[[Json], T | Unreadable]
    """Makes the answer a value: gets the object if there is a schema and it holds, else the text."""
    tokens_max: int = 1_024
    on_text: Callable[[str], None] | None = None
    """Called with the answer as far as it has come, where the model can; from another thread."""


@dataclass(frozen=True, slots=True)
class _CallResult:
    """What one call came to: a reply, or why there is none."""

    reply: ChatReply | None = None
    outcome: Outcome = "ok"
    detail: str = ""
    retry_after_s: float | None = None


class _AbandonedCalls:
    """How many calls were given up and have not ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    def add(self, change: int) -> None:
        with self._lock:
            self._count += change

    @property
    def too_many(self) -> bool:
        return self._count >= ABANDONED_MAX


@dataclass(frozen=True, slots=True)
class Consultant:
    """Asks the model that is configured, if one is. Safe to share between threads."""

    store: Store
    clock: Clock
    model: ChatModel | None
    _abandoned: _AbandonedCalls = field(default_factory=_AbandonedCalls, repr=False)

    @property
    def available(self) -> bool:
        """Whether there is a model to ask. Without one everything works by rules."""
        return self.model is not None

    @property
    def name(self) -> str:
        """The model's name, as it is kept with what it wrote; empty without one."""
        name: object = "" if self.model is None else getattr(self.model, "name", "")
        return name if isinstance(name, str) else ""

    def ask(self, owner: Owner, question: Question[T], *, deadline_s: float) -> Consultation[T]:
        """What came of it, after `deadline_s` at the latest; counted on behalf of the owner."""
        if self.model is None:
            return Consultation("unavailable", detail=NO_MODEL)
        # Real time, not the clock's: it is threads that are waited for.
        started = time.monotonic()
        consulted = self._consulted(self.model, question, started + deadline_s)
        consulted = replace(consulted, took_ms=(time.monotonic() - started) * 1000)
        return self._counted(owner, question.purpose, consulted)

    def _consulted(self, model: ChatModel, question: Question[T], until: float) -> Consultation[T]:
        spent: Consultation[T] = Consultation("ok")
        messages, why = question.messages, ""
        for is_repair in (False, True):
            if is_repair and until - time.monotonic() < REPAIR_S_MIN:
                break
            said = self._call(model, replace(_request(question), messages=messages), until)
            spent = _plus(spent, said)
            if said.reply is None:
                return replace(spent, outcome=said.outcome, detail=said.detail, retry_after_s=said.retry_after_s)
            read = _read(question, said.reply)
            # With a schema only what cannot be read may be a refusal; free text may always be one.
            if (question.schema is None or isinstance(read, Unreadable)) and is_refusal(said.reply.text):
                return replace(spent, outcome="refused", detail="it says that it will not")
            if not isinstance(read, Unreadable):
                return replace(spent, outcome="repaired" if is_repair else "ok", value=read, detail=why)
            why = read.why
            messages = (*question.messages, *_repair(said.reply.text, why, has_schema=question.schema is not None))
        return replace(spent, outcome="unreadable", detail=why)

    def _call(self, model: ChatModel, request: ChatRequest, until: float) -> _CallResult:
        """One call, given up at the deadline even if the model does not keep to it."""
        if self._abandoned.too_many:
            words = f"{ABANDONED_MAX} earlier calls have not ended; the model hangs"
            return _CallResult(outcome="unavailable", detail=words)
        left_s = until - time.monotonic()
        if left_s <= 0:
            return _CallResult(outcome="timeout", detail="no time was left to ask")
        call = _Call(model, replace(request, deadline_s=left_s * MODEL_SHARE), self._abandoned)
        if not call.started():
            return _CallResult(outcome="unavailable", detail="no thread is left to ask in")
        return call.result(until)

    def _counted(self, owner: Owner, purpose: Purpose, consulted: Consultation[T]) -> Consultation[T]:
        usage = Usage(
            purpose=purpose,
            outcome=consulted.outcome,
            calls=1,
            tokens_in=consulted.tokens_in,
            tokens_out=consulted.tokens_out,
            took_ms=consulted.took_ms,
            last_at=self.clock.now(),
        )

        def count(tx: Tx) -> None:
            tx.oversight.add_usage(usage)

        try:
            self.store.write(owner, count, deadline_s=COUNT_S)
        except PerdureError as error:
            # The answer is there and paid for: it is used, and that it is not counted is said.
            note = f"not counted ({error.code})"
            return replace(consulted, detail=f"{consulted.detail}; {note}" if consulted.detail else note)
        return consulted


class _Call:
    """One call of a model in a thread of its own, which is left behind when it does not end in time."""

    def __init__(self, model: ChatModel, request: ChatRequest, abandoned: _AbandonedCalls) -> None:
        self._model = model
        self._request = request
        self._abandoned = abandoned
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._given_up = False
        self._result = _CallResult(outcome="timeout", detail="no answer within the deadline")

    def started(self) -> bool:
        try:
            threading.Thread(target=self._run, name="perdure-consult", daemon=True).start()
        except RuntimeError:
            return False
        return True

    def result(self, until: float) -> _CallResult:
        try:
            self._ended.wait(max(0.0, until - time.monotonic()))
        finally:  # also when Ctrl-C ends the waiting
            with self._lock:
                if not self._ended.is_set():
                    self._given_up = True
                    self._abandoned.add(1)
        return self._result

    def _run(self) -> None:
        said = _chat(self._model, self._request)
        with self._lock:
            if self._given_up:
                self._abandoned.add(-1)
            else:
                self._result = said
            self._ended.set()


def _chat(model: ChatModel, request: ChatRequest) -> _CallResult:
    try:
        reply: object = model.chat(request)
    except ModelTimeout as error:
        return _CallResult(outcome="timeout", detail=_short(error))
    except ModelRefused as error:
        return _CallResult(outcome="refused", detail=_short(error), retry_after_s=error.retry_after_s)
    except Unavailable as error:
        return _CallResult(outcome="unavailable", detail=_short(error), retry_after_s=error.retry_after_s)
    except TimeoutError as error:
        return _CallResult(outcome="timeout", detail=_short(error))
    except BaseException as error:  # noqa: BLE001 - the plugin edge, in a thread of its own: a model may be anybody's code
        return _CallResult(outcome="unavailable", detail=_short(error))
    if not isinstance(reply, ChatReply) or not isinstance(reply.text, str):
        return _CallResult(outcome="unavailable", detail=f"it answered with a `{type(reply).__name__}`; return a `ChatReply`")
    return _CallResult(reply)


def _short(error: BaseException) -> str:
    """An error in short. The words of foreign errors may quote the conversation or a key, so only their kind is kept."""
    return str(error)[:DETAIL_CHARS_MAX] if isinstance(error, PerdureError) else type(error).__name__


def _request(question: Question[T]) -> ChatRequest:
    return ChatRequest(question.messages, question.purpose, question.schema, question.tokens_max, on_text=question.on_text)


def _read(question: Question[T], reply: ChatReply) -> T | Unreadable:
    if len(reply.text) > ANSWER_CHARS_MAX:
        return Unreadable(f"the answer has more than {ANSWER_CHARS_MAX} characters")
    found: Json = reply.text if question.schema is None else read_answer(reply.text, question.schema)
    if not isinstance(found, Unreadable):
        read = _read_value(question, found)
        if not isinstance(read, Unreadable):
            return read
        found = read
    # A text that was cut may still say something; an object that was cut is none, and the model should know why.
    return Unreadable(f"{found.why}; it reached the length allowed, so be brief") if reply.cut else found


def _read_value(question: Question[T], found: Json) -> T | Unreadable:
    try:
        return question.read(found)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, InvalidInput):
        return Unreadable("a part of it has not the shape asked for")


def _repair(answer: str, why: str, *, has_schema: bool) -> tuple[ChatMessage, ChatMessage]:
    """The second turn: its own answer, cut short, and our words about it."""
    words = filled(prompt_named("repair"), {"why": why, "form": _FORMS[has_schema]})
    return ChatMessage("assistant", answer[:SHOWN_CHARS_MAX] or "(nothing)"), ChatMessage("user", words)


def _plus(spent: Consultation[T], said: _CallResult) -> Consultation[T]:
    reply = said.reply or ChatReply("")
    return replace(
        spent,
        calls=spent.calls + 1,
        tokens_in=spent.tokens_in + _whole(reply.tokens_in),
        tokens_out=spent.tokens_out + _whole(reply.tokens_out),
    )


def _whole(number: object) -> int:
    return number if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**31 else 0


LEFT_MAX = 16
"""So many calls that nobody waits for any more may go on at once; beyond, nothing new is begun."""
_LEFT = threading.BoundedSemaphore(LEFT_MAX)


class TooLate(Unavailable):
    """It is not done yet, and there is no more time."""


def failure_of(work: Callable[[], object], seconds: float) -> str:
    """Why it fails, be it anybody's code; empty if it does not."""
    try:
        run_within(seconds, work)
    except Exception as error:  # noqa: BLE001 - the plugin edge
        return _short(error)
    return ""


def run_within(seconds: float, work: Callable[[], T]) -> T:
    """What `work` gives, or raises; `TooLate` if that takes longer. It then goes on in its own thread, unheard."""
    if seconds <= 0 or not _LEFT.acquire(blocking=False):
        raise TooLate("there was no time left for it")
    answer: list[T] = []
    trouble: list[BaseException] = []

    def run() -> None:
        try:
            answer.append(work())
        except BaseException as error:  # noqa: BLE001 - handed on to the caller, who waits for it
            trouble.append(error)
        finally:
            _LEFT.release()

    thread = threading.Thread(target=run, name="perdure-within", daemon=True)
    thread.start()
    thread.join(seconds)
    if trouble:
        raise trouble[0]
    if not answer:
        raise TooLate(f"it took longer than {seconds:.1f} s")
    return answer[0]
