"""Chat models behind a server, whichever protocol it speaks: asks once, reads the answer, and learns what the server takes.

The protocols are in `openai.py` and `ollama.py`, the way there and back in `adapters/wire.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from perdure.adapters.wire import Peer, Wire, check_address
from perdure.adapters.wire_failures import Late, Refused, unreadable
from perdure.domain.errors import InvalidInput, Unsupported
from perdure.domain.models import ChatReply, ChatRequest
from perdure.domain.text import Json, brief
from perdure.ports.chat import ModelRefused, ModelTimeout

CALLS_MAX = 4
REPLY_BYTES_MAX = 4 * 1024 * 1024
NUM_CTX = 8_192
NUM_CTX_MAX = 2**21
REFUSED_AGAIN_S = 300.0
"""What was refused is hardly granted at once: somebody has to mend a key, load a model or ask otherwise."""
LENGTHS = ("minLength", "maxLength")
FILTERED = ("content_filter", "content_policy_violation")


@dataclass(frozen=True, slots=True)
class ModelServer:
    """Where a chat model is. The key goes into a header and is shown nowhere."""

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    num_ctx: int = NUM_CTX
    """How much the model reads at once, in tokens; sent where the protocol has a place for it."""

    def __post_init__(self) -> None:
        check_address("model", self.base_url, self.model, self.api_key)
        if isinstance(self.num_ctx, bool) or not isinstance(self.num_ctx, int) or not 256 <= self.num_ctx <= NUM_CTX_MAX:
            raise InvalidInput(
                f"the model's `num_ctx` = {brief(self.num_ctx)} must be a whole number from 256 to {NUM_CTX_MAX}"
            )


@dataclass(frozen=True, slots=True)
class Manner:
    """How a server wants to be asked, as far as it is known: not all take what their protocol promises."""

    form: int = 0
    """How the schema is sent: 0 as it is, 1 only that JSON is wanted, 2 not at all."""
    tokens_key: str = "max_tokens"
    has_temperature: bool = True

    def instead(self, refusal: Refused, *, has_schema: bool) -> Manner | None:
        """Another way to ask after a refusal; None if there is no other."""
        if refusal.reason or not refusal.may_be_length:
            return None
        if refusal.param == "max_tokens" and self.tokens_key == "max_tokens":
            return replace(self, tokens_key="max_completion_tokens")
        if refusal.param == "temperature" and self.has_temperature:
            return replace(self, has_temperature=False)
        return replace(self, form=self.form + 1) if has_schema and self.form < 2 else None


@dataclass(frozen=True, slots=True)
class Heard:
    """What a server's answer says: the reply, or that the model will not."""

    reply: ChatReply
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Protocol:
    """What differs between servers."""

    name: str
    url: Callable[[str], str]
    question: Callable[[ModelServer, ChatRequest, Manner], dict[str, Json]]
    heard: Callable[[Any], Heard]
    """Reads an answer; whatever it raises over one of another shape means that the answer is unreadable."""


class ServedModel:
    """A chat model behind a server. Safe to share between threads."""

    def __init__(self, server: ModelServer, protocol: Protocol, *, pause: Callable[[float], None] = time.sleep) -> None:
        if find_spec("httpx2") is None:
            raise Unsupported("models over HTTP need httpx2; install `perdure[models]`, or leave the setting `model` empty")
        self._server = server
        self._protocol = protocol
        peer = Peer("model", protocol.url(server.base_url.rstrip("/")), server.api_key, REPLY_BYTES_MAX, CALLS_MAX)
        self._who = peer.who
        self._wire = Wire(peer, pause=pause)
        self._manner = Manner()

    def __repr__(self) -> str:
        return f"ServedModel({self._protocol.name}, {self._server.base_url!r}, model={self._server.model!r})"

    @property
    def name(self) -> str:
        return self._server.model

    def chat(self, request: ChatRequest) -> ChatReply:
        """As the port says. Concurrent questions beyond a few wait, and their waiting counts."""
        until = time.monotonic() + request.deadline_s
        manner = self._manner
        while True:  # each turn answers, gives up, or knows one way less to ask
            try:
                reply = self._asked(request, manner, until)
                self._manner = manner
                return reply
            except Refused as error:
                words = f"{error}, because of its content" if error.reason in FILTERED else str(error)
                other = manner.instead(error, has_schema=request.schema is not None)
            if other is None:
                raise ModelRefused(words, retry_after_s=REFUSED_AGAIN_S)
            manner = other

    def close(self) -> None:
        """Give the connections back; it can be used again."""
        self._wire.close()

    def _asked(self, request: ChatRequest, manner: Manner, until: float) -> ChatReply:
        question = self._protocol.question(self._server, request, manner)
        try:
            answer = self._wire.ask(question, until=until, deadline_s=request.deadline_s)
        except Late as error:
            raise ModelTimeout(str(error)) from error
        heard = _heard(self._protocol, answer)
        if heard is None:
            raise unreadable(self._who, "it has no words where they belong")
        if heard.refused:
            raise ModelRefused(f"{self._who} will not answer this: it, or a filter, refuses", retry_after_s=REFUSED_AGAIN_S)
        return heard.reply


def _heard(protocol: Protocol, answer: object) -> Heard | None:
    # The errors stay here: they may quote the answer.
    try:
        return protocol.heard(answer)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return None


def spoken(request: ChatRequest) -> list[Json]:
    """The messages as both protocols have them; half surrogates, which many servers choke on, as `?`."""
    return [{"role": one.role, "content": one.content.encode("utf-8", "replace").decode()} for one in request.messages]


def sendable(schema: Mapping[str, Json]) -> dict[str, Json]:
    """The schema without bounds on the length of texts: some servers refuse them, others build huge grammars of them.

    They are checked when the answer is read.
    """
    plain: dict[str, Json] = _without_lengths(schema)
    return plain


def _without_lengths(value: Json) -> Json:
    if isinstance(value, Mapping):
        # A property may be called like a word of the schema; it then stands for a schema, not for a number.
        return {name: _without_lengths(one) for name, one in value.items() if name not in LENGTHS or isinstance(one, Mapping)}
    return [_without_lengths(one) for one in value] if isinstance(value, list | tuple) else value


def tokens(value: object) -> int:
    """A count that a server gives; 0 where it gives none, or nonsense."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else 0
