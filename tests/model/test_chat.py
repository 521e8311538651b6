"""The chat clients against real servers: OpenAI's protocol as llama.cpp speaks it, and Ollama's, with a real model behind."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from perdure.adapters.models.chat import ModelServer, ServedModel, ollama_model, openai_model
from perdure.domain.errors import Unavailable
from perdure.domain.models import ChatMessage, ChatRequest
from perdure.ports.models import ModelRefused, ModelTimeout
from tests.model.servers import OllamaFront, Served

pytestmark = pytest.mark.model

SCHEMA = {
    "type": "object",
    "properties": {"keys": {"type": "array", "items": {"enum": ["alpha", "beta"]}, "maxItems": 2}},
    "required": ["keys"],
    "additionalProperties": False,
}
PATIENCE_S = 300.0


def asking(text: str, **more: object) -> ChatRequest:
    fields = {"tokens_max": 60, "deadline_s": PATIENCE_S, **more}
    return ChatRequest((ChatMessage("system", "You answer briefly."), ChatMessage("user", text)), **fields)  # type: ignore[arg-type]


@pytest.fixture(params=["openai", "ollama"])
def client(request: pytest.FixtureRequest, smollm2: Served, ollama_smollm2: OllamaFront) -> Iterator[ServedModel]:
    if request.param == "openai":
        model = openai_model(ModelServer(smollm2.url, smollm2.model))
    else:
        model = ollama_model(ModelServer(ollama_smollm2.url, smollm2.model))
    yield model
    model.close()


def test_an_answer_comes_with_what_it_cost(client: ServedModel) -> None:
    reply = client.chat(asking("Say hello.", tokens_max=20))
    assert reply.text.strip()
    assert reply.tokens_in > 5
    assert 0 < reply.tokens_out <= 20


def test_a_schema_is_kept(client: ServedModel) -> None:
    reply = client.chat(asking("Which of alpha and beta comes first in the alphabet?", schema=SCHEMA))
    assert not reply.cut
    assert set(json.loads(reply.text)["keys"]) <= {"alpha", "beta"}


def test_the_same_question_has_the_same_answer(client: ServedModel) -> None:
    request = asking("Name three colours.", tokens_max=20)
    assert client.chat(request).text == client.chat(request).text


def test_an_answer_that_was_cut_says_so(client: ServedModel) -> None:
    reply = client.chat(asking("Count from one to one hundred, in words.", tokens_max=8))
    assert reply.cut
    assert reply.tokens_out == 8


def test_the_deadline_holds_and_the_server_goes_on(client: ServedModel) -> None:
    started = time.monotonic()
    with pytest.raises(ModelTimeout):
        client.chat(asking("Tell me everything. " * 500, tokens_max=4_000, deadline_s=1.0))
    assert time.monotonic() - started < 5
    assert client.chat(asking("Say hello.", tokens_max=5)).text.strip()


def test_more_than_the_model_can_read_is_refused_and_not_cut(client: ServedModel, ollama_smollm2: OllamaFront) -> None:
    forgot = ollama_smollm2.forgot
    with pytest.raises(ModelRefused):
        client.chat(asking("Tell me everything. " * 3_000))
    assert ollama_smollm2.forgot == forgot


def test_a_model_that_is_not_there_is_refused(ollama_smollm2: OllamaFront) -> None:
    client = ollama_model(ModelServer(ollama_smollm2.url, "no-such-model"))
    with pytest.raises(ModelRefused):
        client.chat(asking("Say hello."))
    client.close()


def test_no_server_is_unavailable() -> None:
    client = openai_model(ModelServer("http://127.0.0.1:9", "smollm2"))
    with pytest.raises(Unavailable) as caught:
        client.chat(asking("Say hello.", deadline_s=5.0))
    assert not isinstance(caught.value, ModelTimeout | ModelRefused)
    client.close()
