"""The servers of this lane answer as the real ones do: otherwise the other tests would prove nothing."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.model.servers import OllamaFront, Served

pytestmark = pytest.mark.model

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "big": {"type": "boolean"}},
    "required": ["city", "big"],
    "additionalProperties": False,
}
QUESTION = [{"role": "user", "content": "Name a city in France, and say whether it is big."}]


def post(url: str, body: dict[str, Any], timeout_s: float = 300) -> bytes:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout_s) as reply:
        return bytes(reply.read())


def ollama_body(front: OllamaFront, **more: Any) -> dict[str, Any]:
    options = {"num_ctx": 2048, "temperature": 0, "num_predict": 60, **more.pop("options", {})}
    return {"model": front.served.model, "messages": QUESTION, "stream": False, "options": options, **more}


def test_an_answer_has_the_shape_of_the_schema(smollm2: Served) -> None:
    shape = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}}
    body = {"model": smollm2.model, "messages": QUESTION, "response_format": shape, "temperature": 0, "max_tokens": 60}
    reply = json.loads(post(f"{smollm2.url}/v1/chat/completions", body))
    assert reply["choices"][0]["finish_reason"] == "stop"
    assert json.loads(reply["choices"][0]["message"]["content"]).keys() == {"city", "big"}
    assert reply["usage"]["prompt_tokens"] > 0


def test_ollama_answers_in_the_shape_asked_for(ollama_smollm2: OllamaFront) -> None:
    reply = json.loads(post(f"{ollama_smollm2.url}/api/chat", ollama_body(ollama_smollm2, format=SCHEMA)))
    assert json.loads(reply["message"]["content"]).keys() == {"city", "big"}
    assert (reply["done"], reply["done_reason"]) == (True, "stop")
    assert reply["prompt_eval_count"] > 0
    assert reply["eval_count"] > 0


def test_ollama_streams_unless_told_not_to(ollama_smollm2: OllamaFront) -> None:
    body = ollama_body(ollama_smollm2, options={"num_predict": 5})
    del body["stream"]
    lines = [json.loads(line) for line in post(f"{ollama_smollm2.url}/api/chat", body).splitlines()]
    assert [line["done"] for line in lines] == [False, True]
    assert lines[0]["message"]["content"]
    assert lines[1]["done_reason"] == "length"


def test_ollama_forgets_the_start_of_what_does_not_fit(ollama_smollm2: OllamaFront) -> None:
    before = ollama_smollm2.forgot
    long = [{"role": "user", "content": "so it went on " * 300}]
    body = ollama_body(ollama_smollm2, messages=long, options={"num_ctx": 256, "num_predict": 4})
    reply = json.loads(post(f"{ollama_smollm2.url}/api/chat", body))
    assert reply["prompt_eval_count"] <= 256
    assert ollama_smollm2.forgot == before + 1


def test_ollama_refuses_what_does_not_fit_if_it_may_not_be_cut(ollama_smollm2: OllamaFront) -> None:
    long = [{"role": "user", "content": "so it went on " * 300}]
    body = ollama_body(ollama_smollm2, messages=long, truncate=False, options={"num_ctx": 256})
    with pytest.raises(urllib.error.HTTPError, match="400") as caught:
        post(f"{ollama_smollm2.url}/api/chat", body)
    caught.value.close()


@pytest.mark.parametrize(
    ("path", "change", "status"), [("/api/chat", {"model": "other"}, 404), ("/api/embed", {}, 501), ("/x", {}, 404)]
)
def test_what_ollama_cannot_do_it_says(ollama_smollm2: OllamaFront, path: str, change: dict[str, Any], status: int) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        post(f"{ollama_smollm2.url}{path}", ollama_body(ollama_smollm2) | change)
    with caught.value as reply:
        assert reply.code == status
        assert json.load(reply)["error"]


def test_work_for_somebody_who_hung_up_ends(ollama_smollm2: OllamaFront) -> None:
    endless = [{"role": "user", "content": "Count: one, two, three, " + "and on, " * 1500}]
    started = time.monotonic()
    with pytest.raises((TimeoutError, socket.timeout)):
        post(
            f"{ollama_smollm2.url}/api/chat",
            ollama_body(ollama_smollm2, messages=endless, options={"num_ctx": 8192, "num_predict": 4000}),
            timeout_s=1,
        )
    post(f"{ollama_smollm2.url}/api/chat", ollama_body(ollama_smollm2, options={"num_predict": 2}))
    assert time.monotonic() - started < 60, "4,000 tokens take longer than a minute"
