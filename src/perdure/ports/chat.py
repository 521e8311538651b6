"""The chat model: words for words. What the words are worth is decided by others."""

from __future__ import annotations

from typing import Protocol

from perdure.domain.errors import Unavailable
from perdure.domain.models import ChatReply, ChatRequest


class ModelTimeout(Unavailable):
    """No answer within the deadline of the request."""


class ModelRefused(Unavailable):
    """The model or its server will not answer: a refusal, a filter, a key that is not accepted, a model unknown to it."""


class ChatModel(Protocol):
    @property
    def name(self) -> str:
        """The model as its server knows it; kept with what it wrote."""

    def chat(self, request: ChatRequest) -> ChatReply:
        """The answer. `ModelTimeout`, `ModelRefused`, or another `Unavailable` where a later try may succeed.

        May be slow, may be called from several threads, and is never called inside a transaction. It ends by the
        request's deadline. The server's words are in no error: some servers quote what they were sent, some the key.
        """
