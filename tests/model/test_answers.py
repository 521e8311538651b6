"""Structured answers of real models: a value of the shape asked for, or an outcome that says why there is none."""

from __future__ import annotations

from contextlib import closing

import pytest

from perdure.adapters.memory.store import MemoryStore
from perdure.adapters.models.chat import ModelServer, ollama_model, openai_model
from perdure.domain.models import OUTCOMES, ChatMessage, Consultation
from perdure.domain.scope import Owner
from perdure.domain.text.rules import Json
from perdure.engine.models.answers import an_object, complaints
from perdure.ports.models import ChatModel
from perdure.services.models.consultant import Consultant, Question
from perdure.testing import StoppedClock
from tests.model.servers import OllamaFront, Served

pytestmark = pytest.mark.model

SHAPE = an_object(city={"type": "string"}, country={"type": "string"}, inhabitants={"type": "integer"})
WORDS = "Lisbon is a city in Portugal with 567131 inhabitants. Put that into JSON with the keys city, country and inhabitants."
OWNER = Owner("default", "ana")


def asked(model: ChatModel, *, tokens_max: int = 80, deadline_s: float = 300.0) -> Consultation[Json]:
    question: Question[Json] = Question("chat", (ChatMessage("user", WORDS),), SHAPE, lambda answer: answer, tokens_max)
    consulted = Consultant(MemoryStore(), StoppedClock(), model).ask(OWNER, question, deadline_s=deadline_s)
    assert consulted.outcome in OUTCOMES
    assert (consulted.value is not None) == (consulted.outcome in ("ok", "repaired"))
    assert consulted.calls in (1, 2)
    assert consulted.value is None or complaints(consulted.value, SHAPE) == []
    return consulted


@pytest.mark.parametrize("dialect", ["openai", "ollama"])
def test_a_good_model_fills_the_shape_with_what_it_was_told(dialect: str, qwen: Served, ollama_qwen: OllamaFront) -> None:
    make, url = (openai_model, qwen.url) if dialect == "openai" else (ollama_model, ollama_qwen.url)
    with closing(make(ModelServer(url, qwen.model))) as model:
        consulted = asked(model)
    assert (consulted.outcome, consulted.value) == ("ok", {"city": "Lisbon", "country": "Portugal", "inhabitants": 567131})
    assert consulted.tokens_in > 30
    assert consulted.tokens_out > 10


def test_a_bad_model_has_the_shape_if_nothing_else(wrong: ChatModel) -> None:
    assert asked(wrong).outcome in ("ok", "repaired", "unreadable")


def test_an_answer_that_was_cut_is_no_value(wrong: ChatModel) -> None:
    consulted = asked(wrong, tokens_max=6)
    assert (consulted.outcome, consulted.calls) == ("unreadable", 2)


def test_a_deadline_is_an_outcome(wrong: ChatModel) -> None:
    assert asked(wrong, deadline_s=0.05).outcome == "timeout"
