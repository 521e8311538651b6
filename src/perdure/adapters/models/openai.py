"""OpenAI's protocol, which most servers speak: `POST /v1/chat/completions`."""

from __future__ import annotations

from typing import Any

from perdure.adapters.models.chat import Heard, Manner, ModelServer, Protocol, ServedModel, sendable, spoken, tokens
from perdure.domain.models import ChatReply, ChatRequest
from perdure.domain.text import Json


def openai_model(server: ModelServer) -> ServedModel:
    """A model behind `{base_url}/v1/chat/completions`; a `base_url` that ends in `/v1` already is taken as it is."""
    return ServedModel(server, OPENAI)


def _question(server: ModelServer, request: ChatRequest, manner: Manner) -> dict[str, Json]:
    question: dict[str, Json] = {
        "model": server.model,
        "messages": spoken(request),
        manner.tokens_key: request.tokens_max,
        "stream": False,
    }
    if manner.has_temperature:
        question["temperature"] = request.temperature
    if request.schema is not None and manner.form == 0:
        named = {"name": request.purpose, "schema": sendable(request.schema), "strict": True}
        question["response_format"] = {"type": "json_schema", "json_schema": named}
    elif request.schema is not None and manner.form == 1:
        question["response_format"] = {"type": "json_object"}
    return question


def _heard(answer: Any) -> Heard:
    choice = answer["choices"][0]
    message, usage = choice["message"], answer.get("usage") or {}
    refused = bool(message.get("refusal")) or choice.get("finish_reason") == "content_filter"
    content = message.get("content")
    if isinstance(content, list):  # some servers answer in parts
        content = "".join(part["text"] for part in content if part.get("type") == "text")
    if not isinstance(content, str):
        content = _nothing(refused)
    reply = ChatReply(
        content, tokens(usage.get("prompt_tokens")), tokens(usage.get("completion_tokens")),
        cut=choice.get("finish_reason") == "length",
    )  # fmt: skip
    return Heard(reply, refused)


def _nothing(refused: bool) -> str:
    if not refused:
        raise TypeError("no content")
    return ""


OPENAI = Protocol("openai", lambda base: base.removesuffix("/v1") + "/v1/chat/completions", _question, _heard)
