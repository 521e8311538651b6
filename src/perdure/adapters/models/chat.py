"""Chat models behind a server: asks once, reads the answer, and learns what the server takes.

OpenAI's protocol (`POST /v1/chat/completions`), which most servers speak, and Ollama's own (`POST /api/chat`), which takes
`num_ctx` and says when it would cut. The way there and back is in `adapters/wire.py`. An answer may come in pieces: OpenAI's
servers send events, Ollama's a JSON object on each line. One that comes at once all the same is fine, too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from perdure.adapters.wire import DeadlinePassed, Peer, RequestRefused, Wire, check_address, unreadable
from perdure.domain.errors import InvalidInput, Unsupported
from perdure.domain.models import ChatReply, ChatRequest
from perdure.domain.text.rules import Json, brief
from perdure.domain.values import dataclass, field, replace
from perdure.ports.models import ModelRefused, ModelTimeout

DONE = b"[DONE]"


class TextStream:
    """Takes lines as they come, and tells the text as far as it has come."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._rest = b""
        self._pieces = 0
        self.text = ""
        self.ended = False

    def take(self, part: bytes) -> None:
        """More bytes; whole lines of them are read."""
        *lines, self._rest = (self._rest + part).split(b"\n")
        for line in lines:
            self._read(line)

    def whole(self) -> object:
        """The answer; None if it did not come in pieces."""
        self._read(self._rest)
        if not self._pieces:
            return None
        # One that broke off is no answer: what is missing is not guessed.
        return self._answer() if self.ended else {}

    def _read(self, line: bytes) -> None:
        line = line.strip().removeprefix(b"data:").strip()
        if line == DONE:
            self.ended = True
            return
        try:
            piece: Any = json.loads(line)
            added = self._take_piece(piece)
        except (ValueError, RecursionError, KeyError, IndexError, TypeError, AttributeError):
            return  # a comment, the name of an event, or no piece
        self._pieces += 1
        if added:
            self.text += added
            self._tell(self.text)

    def _take_piece(self, piece: Any) -> str:
        """The words that a piece adds; whatever it raises means that it is none."""
        raise NotImplementedError

    def _answer(self) -> Json:
        raise NotImplementedError


class OpenAIStream(TextStream):
    """`data: {"choices": [{"delta": {"content": "Hel"}}]}`, a line each; the last one has the cost and no choice."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(tell)
        self._finish: str | None = None
        self._refusal = ""
        self._usage: Json = None

    def _take_piece(self, piece: Any) -> str:
        self._usage = piece.get("usage") or self._usage
        if not piece["choices"]:
            return ""
        choice = piece["choices"][0]
        delta = choice["delta"]
        self._finish = choice.get("finish_reason") or self._finish
        self.ended = self.ended or self._finish is not None
        self._refusal += str(delta.get("refusal") or "")
        return str(delta.get("content") or "")

    def _answer(self) -> Json:
        message = {"content": self.text, "refusal": self._refusal or None}
        return {"choices": [{"message": message, "finish_reason": self._finish}], "usage": self._usage}


class OllamaStream(TextStream):
    """`{"message": {"content": "Hel"}, "done": false}`, a line each; the last one has the cost."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(tell)
        self._last: dict[str, Json] = {}

    def _take_piece(self, piece: Any) -> str:
        content = piece["message"]["content"]
        self._last = dict(piece)
        self.ended = piece.get("done") is True
        return str(content or "")

    def _answer(self) -> Json:
        return {**self._last, "message": {"content": self.text}}


CALLS_MAX = 4
REPLY_BYTES_MAX = 4 * 1024 * 1024
NUM_CTX = 8_192
NUM_CTX_MAX = 2**21
REFUSED_AGAIN_S = 300.0
"""What was refused is hardly granted at once: somebody has to fix a key, load a model or ask otherwise."""
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
class RequestForm:
    """How a server wants to be asked, as far as it is known: not all take what their protocol promises."""

    form: int = 0
    """How the schema is sent: 0 as it is, 1 only that JSON is wanted, 2 not at all."""
    tokens_key: str = "max_tokens"
    has_temperature: bool = True
    streams: bool = True
    """Whether it sends an answer in pieces, where somebody wants to see it come."""

    def instead(self, refusal: RequestRefused, *, has_schema: bool, is_streamed: bool = False) -> RequestForm | None:
        """Another way to ask after a refusal; None if there is no other."""
        if refusal.reason or not refusal.may_be_length:
            return None
        if refusal.param == "max_tokens" and self.tokens_key == "max_tokens":
            return replace(self, tokens_key="max_completion_tokens")
        if refusal.param == "temperature" and self.has_temperature:
            return replace(self, has_temperature=False)
        if has_schema:
            return replace(self, form=self.form + 1) if self.form < 2 else None
        return replace(self, streams=False) if is_streamed and self.streams else None


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """What a server's answer says: the reply, or that the model will not."""

    reply: ChatReply
    refused: bool = False


@dataclass(frozen=True, slots=True)
class ChatProtocol:
    """What differs between servers."""

    name: str
    url: Callable[[str], str]
    question: Callable[[ModelServer, ChatRequest, RequestForm], dict[str, Json]]
    read: Callable[[Any], ServerAnswer]
    """Reads an answer; whatever it raises over one of another shape means that the answer is unreadable."""
    stream: Callable[[Callable[[str], None]], TextStream]
    """Reads one that comes in pieces, and tells the text as far as it has come."""


class ServedModel:
    """A chat model behind a server. Safe to share between threads."""

    def __init__(self, server: ModelServer, protocol: ChatProtocol, *, pause: Callable[[float], None] = time.sleep) -> None:
        if find_spec("httpx2") is None:
            raise Unsupported("models over HTTP need httpx2; install `perdure[models]`, or leave the setting `model` empty")
        self._server = server
        self._protocol = protocol
        peer = Peer("model", protocol.url(server.base_url.rstrip("/")), server.api_key, REPLY_BYTES_MAX, CALLS_MAX)
        self._who = peer.who
        self._wire = Wire(peer, pause=pause)
        self._manner = RequestForm()

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
                reply = self._ask(request, manner, until)
                self._manner = manner
                return reply
            except RequestRefused as error:
                words = f"{error}, because of its content" if error.reason in FILTERED else str(error)
                other = manner.instead(error, has_schema=request.schema is not None, is_streamed=_is_streamed(request, manner))
            if other is None:
                raise ModelRefused(words, retry_after_s=REFUSED_AGAIN_S)
            manner = other

    def close(self) -> None:
        """Give the connections back; it can be used again."""
        self._wire.close()

    def _ask(self, request: ChatRequest, manner: RequestForm, until: float) -> ChatReply:
        question = self._protocol.question(self._server, request, manner)
        try:
            answer = self._wire.ask(question, until=until, deadline_s=request.deadline_s, stream=self._stream(request, manner))
        except DeadlinePassed as error:
            raise ModelTimeout(str(error)) from error
        read = _read_answer(self._protocol, answer)
        if read is None:
            raise unreadable(self._who, "it has no words where they belong")
        if read.refused:
            raise ModelRefused(f"{self._who} will not answer this: it, or a filter, refuses", retry_after_s=REFUSED_AGAIN_S)
        return read.reply

    def _stream(self, request: ChatRequest, manner: RequestForm) -> Callable[[], TextStream] | None:
        tell = request.on_text
        return None if tell is None or not _is_streamed(request, manner) else lambda: self._protocol.stream(tell)


def _is_streamed(request: ChatRequest, manner: RequestForm) -> bool:
    return request.on_text is not None and request.schema is None and manner.streams


def _read_answer(protocol: ChatProtocol, answer: object) -> ServerAnswer | None:
    # The errors stay here: they may quote the answer.
    try:
        return protocol.read(answer)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return None


def wire_messages(request: ChatRequest) -> list[Json]:
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


def ollama_model(server: ModelServer) -> ServedModel:
    """A model behind `{base_url}/api/chat`."""
    return ServedModel(server, OLLAMA)


def _ollama_question(server: ModelServer, request: ChatRequest, manner: RequestForm) -> dict[str, Json]:
    question: dict[str, Json] = {
        "model": server.model,
        "messages": wire_messages(request),
        "stream": _is_streamed(request, manner),
        # Off: a conversation cut by the server is cut without a word, at its oldest part, where our instructions stand.
        "truncate": False,
        "options": {"num_ctx": server.num_ctx, "num_predict": request.tokens_max, "temperature": request.temperature},
    }
    if request.schema is not None and manner.form < 2:
        question["format"] = sendable(request.schema) if manner.form == 0 else "json"
    return question


def _read_ollama(answer: Any) -> ServerAnswer:
    content = answer["message"]["content"]
    if not isinstance(content, str):
        raise TypeError("no content")
    return ServerAnswer(
        ChatReply(
            content,
            tokens(answer.get("prompt_eval_count")),
            tokens(answer.get("eval_count")),
            cut=answer.get("done_reason") == "length",
        )
    )


OLLAMA = ChatProtocol("ollama", lambda base: base + "/api/chat", _ollama_question, _read_ollama, OllamaStream)


def openai_model(server: ModelServer) -> ServedModel:
    """A model behind `{base_url}/v1/chat/completions`; a `base_url` that ends in `/v1` already is taken as it is."""
    return ServedModel(server, OPENAI)


def _openai_question(server: ModelServer, request: ChatRequest, manner: RequestForm) -> dict[str, Json]:
    question: dict[str, Json] = {
        "model": server.model,
        "messages": wire_messages(request),
        manner.tokens_key: request.tokens_max,
        "stream": _is_streamed(request, manner),
    }
    if _is_streamed(request, manner):
        question["stream_options"] = {"include_usage": True}
    if manner.has_temperature:
        question["temperature"] = request.temperature
    if request.schema is not None and manner.form == 0:
        named = {"name": request.purpose, "schema": sendable(request.schema), "strict": True}
        question["response_format"] = {"type": "json_schema", "json_schema": named}
    elif request.schema is not None and manner.form == 1:
        question["response_format"] = {"type": "json_object"}
    return question


def _read_openai(answer: Any) -> ServerAnswer:
    choice = answer["choices"][0]
    message, usage = choice["message"], answer.get("usage") or {}
    refused = bool(message.get("refusal")) or choice.get("finish_reason") == "content_filter"
    content = message.get("content")
    if isinstance(content, list):  # some servers answer in parts
        content = "".join(part["text"] for part in content if part.get("type") == "text")
    if not isinstance(content, str):
        content = _nothing(refused)
    reply = ChatReply(
        content,
        tokens(usage.get("prompt_tokens")),
        tokens(usage.get("completion_tokens")),
        cut=choice.get("finish_reason") == "length",
    )
    return ServerAnswer(reply, refused)


def _nothing(refused: bool) -> str:
    if not refused:
        raise TypeError("no content")
    return ""


OPENAI = ChatProtocol(
    "openai",
    lambda base: base.removesuffix("/v1") + "/v1/chat/completions",
    _openai_question,
    _read_openai,
    OpenAIStream,
)
