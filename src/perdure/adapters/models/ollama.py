"""Ollama's own protocol: `POST /api/chat`. Unlike its OpenAI face, it takes `num_ctx` and says when it would cut."""

from __future__ import annotations

from typing import Any

from perdure.adapters.models.chat import Heard, Manner, ModelServer, Protocol, ServedModel, sendable, spoken, tokens
from perdure.domain.models import ChatReply, ChatRequest
from perdure.domain.text import Json


def ollama_model(server: ModelServer) -> ServedModel:
    """A model behind `{base_url}/api/chat`."""
    return ServedModel(server, OLLAMA)


def _question(server: ModelServer, request: ChatRequest, manner: Manner) -> dict[str, Json]:
    question: dict[str, Json] = {
        "model": server.model,
        "messages": spoken(request),
        "stream": False,
        # Off: a conversation cut by the server is cut without a word, at its oldest part, where our instructions stand.
        "truncate": False,
        "options": {"num_ctx": server.num_ctx, "num_predict": request.tokens_max, "temperature": request.temperature},
    }
    if request.schema is not None and manner.form < 2:
        question["format"] = sendable(request.schema) if manner.form == 0 else "json"
    return question


def _heard(answer: Any) -> Heard:
    content = answer["message"]["content"]
    if not isinstance(content, str):
        raise TypeError("no content")
    return Heard(
        ChatReply(
            content, tokens(answer.get("prompt_eval_count")), tokens(answer.get("eval_count")),
            cut=answer.get("done_reason") == "length",
        )
    )  # fmt: skip


OLLAMA = Protocol("ollama", lambda base: base + "/api/chat", _question, _heard)
