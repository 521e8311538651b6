"""Asking the model (B-16, B-19, B-27): a typed outcome within the deadline, whoever's code the model is; counted, never raised."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import perdure
from perdure.adapters.memory.store import MemoryStore
from perdure.domain.models import ChatMessage, ChatReply, ChatRequest, Consultation, Usage
from perdure.domain.scope import Owner
from perdure.domain.text.rules import Json
from perdure.engine.models.answers import Unreadable
from perdure.ports.models import ModelRefused, ModelTimeout
from perdure.services.models.consultant import Consultant, Question
from perdure.testing import FailingStore, StoppedClock

ANA = Owner("default", "ana")
SCHEMA = {"type": "object", "properties": {"keys": {"type": "array", "items": {"type": "string"}}}, "required": ["keys"]}
GOOD = json.dumps({"keys": ["a"]})
WAIT_S = 20.0


class Scripted:
    """A host's model: each act answers one question, or raises."""

    name = "scripted/1"

    def __init__(self, *acts: str | ChatReply | BaseException | Callable[[], Any]) -> None:
        self.acts = list(acts)
        self.requests: list[ChatRequest] = []

    def chat(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        act = self.acts.pop(0)
        if isinstance(act, BaseException):
            raise act
        if callable(act):
            act = act()
        return ChatReply(act, 10, 5) if isinstance(act, str) else act


def question(read: Callable[[Json], Any] = lambda answer: answer["keys"], schema: Any = SCHEMA) -> Question[Any]:
    return Question("relevance", (ChatMessage("system", "You choose."), ChatMessage("user", "Which?")), schema, read)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def asked(store: Any, model: Any, *, deadline_s: float = WAIT_S, **more: Any) -> Consultation[Any]:
    return Consultant(store, StoppedClock(), model).ask(ANA, question(**more), deadline_s=deadline_s)


def counted(store: MemoryStore) -> list[tuple[str, str, int, int, int]]:
    found = store.read(ANA, lambda view: list(view.oversight.list_usage()))
    return [(one.purpose, one.outcome, one.calls, one.tokens_in, one.tokens_out) for one in found]


def test_a_good_answer_is_a_value_and_is_counted(store: MemoryStore) -> None:
    model = Scripted(GOOD)
    got = asked(store, model)
    assert (got.outcome, got.value, got.calls, got.tokens_in, got.tokens_out) == ("ok", ["a"], 1, 10, 5)
    assert got.took_ms > 0
    assert model.requests[0].schema == SCHEMA
    assert model.requests[0].purpose == "relevance"
    assert counted(store) == [("relevance", "ok", 1, 10, 5)]


def test_no_model_is_a_mode_and_not_counted(store: MemoryStore) -> None:
    consultant = Consultant(store, StoppedClock(), None)
    assert not consultant.available
    assert consultant.name == ""
    got = consultant.ask(ANA, question(), deadline_s=1)
    assert (got.outcome, got.value, got.calls) == ("unavailable", None, 0)
    assert counted(store) == []


def test_an_unreadable_answer_is_repaired_once_and_only_once(store: MemoryStore) -> None:
    model = Scripted("I choose a.", GOOD)
    got = asked(store, model)
    assert (got.outcome, got.value, got.calls, got.tokens_in) == ("repaired", ["a"], 2, 20)
    system, user, own, ours = model.requests[1].messages
    assert (system, user) == question().messages
    assert own == ChatMessage("assistant", "I choose a.")
    assert "no JSON object" in ours.content
    assert counted(store) == [("relevance", "repaired", 1, 20, 10)]

    model = Scripted("No.", '{"keys": 5}', GOOD)
    got = asked(store, model)
    assert (got.outcome, got.value, got.calls) == ("unreadable", None, 2)
    assert got.detail == "`keys` must be a list"
    assert len(model.acts) == 1, "there is no third turn"


def test_a_repair_shows_the_model_only_the_beginning_of_a_long_answer(store: MemoryStore) -> None:
    model = Scripted("x" * 100_000, GOOD)
    assert asked(store, model).outcome == "repaired"
    assert len(model.requests[1].messages[2].content) == 2_000


def test_a_model_is_told_that_its_answer_was_cut(store: MemoryStore) -> None:
    model = Scripted(ChatReply('{"keys": ["a', 10, 5, cut=True), GOOD)
    assert asked(store, model).outcome == "repaired"
    assert "reached the length" in model.requests[1].messages[3].content


@pytest.mark.parametrize(
    "wrong", [lambda answer: Unreadable("nothing of it can be used"), lambda answer: answer["nope"], lambda answer: int("x")]
)
def test_what_the_reader_refuses_is_repaired_too(wrong: Callable[[Json], Any], store: MemoryStore) -> None:
    got = asked(store, Scripted(GOOD, GOOD), read=wrong)
    assert (got.outcome, got.value, got.calls) == ("unreadable", None, 2)


def test_free_text_is_handed_on_as_it_is(store: MemoryStore) -> None:
    assert asked(store, Scripted("Plain words."), schema=None, read=lambda answer: answer).value == "Plain words."


@pytest.mark.parametrize(
    ("error", "outcome", "detail"),
    [
        (ModelTimeout("no answer within 2 s"), "timeout", "no answer within 2 s"),
        (ModelRefused("it wants another API key"), "refused", "it wants another API key"),
        (perdure.Unavailable("busy", retry_after_s=7), "unavailable", "busy"),
        (TimeoutError("my secret is 42"), "timeout", "TimeoutError"),
        (ValueError("my secret is 42"), "unavailable", "ValueError"),
        (KeyError("my secret is 42"), "unavailable", "KeyError"),
        (SystemExit("my secret is 42"), "unavailable", "SystemExit"),
        (KeyboardInterrupt("my secret is 42"), "unavailable", "KeyboardInterrupt"),
        (RecursionError(), "unavailable", "RecursionError"),
    ],
)
def test_whatever_a_model_raises_is_an_outcome_and_its_words_are_kept_out(
    error: BaseException, outcome: str, detail: str, store: MemoryStore
) -> None:
    got = asked(store, Scripted(error))
    assert (got.outcome, got.value, got.detail, got.calls) == (outcome, None, detail, 1)
    assert got.retry_after_s == (7 if "busy" in detail else 1.0 if outcome == "refused" else None)
    assert counted(store) == [("relevance", outcome, 1, 0, 0)]


@pytest.mark.parametrize("reply", [None, "text", {"text": "x"}, ChatReply(None), ChatReply(b"x")])  # type: ignore[arg-type]
def test_an_answer_that_is_no_reply_is_unavailable(reply: Any, store: MemoryStore) -> None:
    got = asked(store, Scripted(lambda: (reply,)[0] if not isinstance(reply, str) else ["x"]))
    assert got.outcome == "unavailable"
    assert "return a `ChatReply`" in got.detail


@pytest.mark.parametrize("cost", [-1, True, "9", None, 2**40])
def test_a_cost_that_is_none_is_counted_as_nothing(cost: Any, store: MemoryStore) -> None:
    assert asked(store, Scripted(ChatReply(GOOD, cost, cost))).outcome == "ok"
    assert counted(store) == [("relevance", "ok", 1, 0, 0)]


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_a_model_that_ignores_its_deadline_is_given_up(store: MemoryStore, release: threading.Event) -> None:
    started = time.monotonic()
    model = Scripted(lambda: release.wait(WAIT_S) and GOOD)
    got = asked(store, model, deadline_s=0.2)
    assert time.monotonic() - started < 5
    assert (got.outcome, got.calls) == ("timeout", 1)
    assert model.requests[0].deadline_s < 0.2
    assert counted(store) == [("relevance", "timeout", 1, 0, 0)]


def test_the_repair_shares_the_deadline(store: MemoryStore, release: threading.Event) -> None:
    started = time.monotonic()
    got = asked(store, Scripted("No.", lambda: release.wait(WAIT_S) and GOOD), deadline_s=0.4)
    assert time.monotonic() - started < 5
    assert (got.outcome, got.calls) == ("timeout", 2)


def test_no_time_is_a_timeout_without_a_call(store: MemoryStore) -> None:
    model = Scripted(GOOD)
    assert asked(store, model, deadline_s=0).outcome == "timeout"
    assert model.requests == []


def test_a_model_that_hangs_is_asked_a_few_times_and_then_no_more(store: MemoryStore, release: threading.Event) -> None:
    model = Scripted(*[lambda: release.wait(WAIT_S) and GOOD] * 8, GOOD)
    consultant = Consultant(store, StoppedClock(), model)
    outcomes = [consultant.ask(ANA, question(), deadline_s=0.02).outcome for _ in range(8)]
    assert outcomes == ["timeout"] * 8
    started = time.monotonic()
    got = consultant.ask(ANA, question(), deadline_s=WAIT_S)
    assert (got.outcome, len(model.requests)) == ("unavailable", 8)
    assert "hangs" in got.detail
    assert time.monotonic() - started < 5, "at once"
    release.set()
    until = time.monotonic() + WAIT_S
    while consultant._abandoned.too_many and time.monotonic() < until:
        time.sleep(0.01)
    assert consultant.ask(ANA, question(), deadline_s=WAIT_S).outcome == "ok", "when they have ended, it is asked again"


def test_ctrl_c_ends_the_waiting(store: MemoryStore, release: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """B-19: what is caught is the model's trouble, never the user's."""
    monkeypatch.setattr(threading.Event, "wait", lambda self, timeout=None: (_ for _ in ()).throw(KeyboardInterrupt()))
    consultant = Consultant(store, StoppedClock(), Scripted(GOOD))
    with pytest.raises(KeyboardInterrupt):
        consultant.ask(ANA, question(), deadline_s=1)


def test_an_answer_that_cannot_be_counted_is_still_used_and_says_so(store: MemoryStore) -> None:
    failing = FailingStore(store)
    failing.fail_next(perdure.Unavailable("the store is busy"))
    got = asked(failing, Scripted(GOOD))
    assert (got.outcome, got.value, got.detail) == ("ok", ["a"], "not counted (unavailable)")
    assert counted(store) == []


def test_no_transaction_is_open_while_a_model_is_asked(store: MemoryStore) -> None:
    def write() -> str:
        store.write(ANA, lambda tx: None, deadline_s=5)
        return GOOD

    assert asked(store, Scripted(write)).outcome == "ok"


def test_each_user_has_their_own_count(store: MemoryStore) -> None:
    consultant = Consultant(store, StoppedClock(), Scripted(GOOD, GOOD, GOOD))
    for user in ("ana", "ben", "ana"):
        consultant.ask(Owner("default", user), question(), deadline_s=WAIT_S)
    assert counted(store) == [("relevance", "ok", 2, 20, 10)]
    [total] = store.usage()
    assert isinstance(total, Usage)
    assert (total.calls, total.tokens_in) == (3, 30)
