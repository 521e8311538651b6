"""Who is asked for words and vectors: what the host brought along, what the settings name, or rules and the built-in table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict
from urllib.parse import parse_qsl

from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge.proposals import Extraction, ExtractionRequest
from perdure.domain.text.rules import brief
from perdure.engine.text.tokens import estimate_tokens
from perdure.ports.clock import Clock
from perdure.ports.models import ChatModel, Embedder, Extractor, Reranker, Summariser
from perdure.ports.store import Store
from perdure.services.models.consultant import Consultant
from perdure.settings import Settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


class HostModels(TypedDict, total=False):
    """What a host may bring along instead of the rules and the built-in embedder."""

    summariser: Summariser | None
    extractor: Extractor | None
    embedder: Embedder | None
    reranker: Reranker | None
    model: ChatModel | None


class LazyRuleExtractor:
    """The rule extractor, loaded when it is first asked: its patterns take longer than all the rest of opening a store."""

    name = "rules/1"

    def extract(self, request: ExtractionRequest) -> Extraction:
        from perdure.engine.extraction.extractor import RuleExtractor

        return RuleExtractor().extract(request)


def check_summariser(summariser: object) -> None:
    """`InvalidInput` unless it has what the port of a summariser asks for, or is None."""
    if summariser is None:
        return
    name = getattr(summariser, "name", None)
    if not isinstance(name, str) or not 0 < len(name) <= 100 or not name.isprintable():
        raise InvalidInput(f"the `name` of the summariser = {name!r:.60} must be a printable text of 1 to 100 characters")
    if not callable(getattr(summariser, "summarise", None)):
        raise InvalidInput(
            f"`summariser` is a `{type(summariser).__name__}`; it needs a `name` and a method `summarise(request)`"
        )


def check_extractor(extractor: object) -> None:
    """`InvalidInput` unless it has what the port of a extractor asks for, or is None."""
    if extractor is None:
        return
    if not isinstance(getattr(extractor, "name", None), str) or not callable(getattr(extractor, "extract", None)):
        raise InvalidInput(f"`extractor` is a `{type(extractor).__name__}`; it needs a `name` and a method `extract(request)`")


def check_reranker(reranker: object) -> None:
    """`InvalidInput` unless it has what the port of a reranker asks for, or is None."""
    named = isinstance(getattr(reranker, "name", None), str)
    if reranker is not None and (not named or not callable(getattr(reranker, "rerank", None))):
        raise InvalidInput(
            f"`reranker` is a `{type(reranker).__name__}`; it needs a `name` and a method `rerank(question, texts)`"
        )


def check_model(model: object) -> None:
    """`InvalidInput` unless it has what the port of a chat model asks for, or is None."""
    named = isinstance(getattr(model, "name", None), str)
    if model is not None and (not named or not callable(getattr(model, "chat", None))):
        raise InvalidInput(f"`model` is a `{type(model).__name__}`; it needs a `name` and a method `chat(request)`")


def model_of(settings: Settings) -> ChatModel | None:
    """The chat model that the setting `model` names; None: there is none, and rules do its work."""
    if not settings.model:
        return None
    protocol, _, rest = settings.model.partition(":")
    address, _, named = rest.partition("#")
    name, _, options = named.partition("?")
    given = dict(parse_qsl(options, keep_blank_values=True))
    allowed = {"num_ctx"} if protocol == "ollama" else set()
    if protocol not in ("openai", "ollama") or not address or not name or not given.keys() <= allowed:
        # Not quoted: it may hold a password.
        raise InvalidInput(
            "setting `model` cannot be read; use openai:URL#MODEL or ollama:URL#MODEL, "
            "the latter with ?num_ctx=TOKENS behind it if the model should read more at once"
        )
    from perdure.adapters.models.chat import NUM_CTX, ModelServer, ollama_model, openai_model

    window = given.get("num_ctx", str(NUM_CTX))
    if not (window.isascii() and window.isdigit()):
        raise InvalidInput(f"`num_ctx` = {brief(window)} in the setting `model` must be a whole number")
    server = ModelServer(address, name, settings.model_key, int(window[:12]))
    return openai_model(server) if protocol == "openai" else ollama_model(server)


@dataclass(frozen=True, slots=True)
class ModelParts:
    """Who is asked for words: the model if there is one, and what writes summaries and proposes memories."""

    consultant: Consultant
    summariser: Summariser | None
    """None: the offline one."""
    extractor: Extractor
    rules: Extractor | None
    """What stands in for the model when it has failed for good."""
    close: Callable[[], None]


def helpers_of(store: Store, clock: Clock, settings: Settings, given: HostModels) -> ModelParts:
    """What the host brought along comes first, then the model, from the host or the settings, then the rules."""
    summariser, extractor, model = given.get("summariser"), given.get("extractor"), given.get("model")
    check_summariser(summariser)
    check_extractor(extractor)
    check_model(model)
    made = model_of(settings) if model is None else None
    consultant = Consultant(store, clock, made if model is None else model)
    close = getattr(made, "close", lambda: None)
    if not consultant.available:
        return ModelParts(consultant, summariser, extractor or LazyRuleExtractor(), None, close)
    from perdure.services.models.model_backed import ModelExtractor, ModelSummariser

    rules = LazyRuleExtractor() if extractor is None else None
    return ModelParts(
        consultant, summariser or ModelSummariser(consultant), extractor or ModelExtractor(consultant), rules, close
    )


def embedder_of(setting: str, key: str = "") -> Embedder:
    """The embedder that the setting `embedder` names; `key` is what its server wants."""
    kind, _, rest = setting.partition(":")
    if kind == "onnx":
        from perdure.adapters.embedding.onnx import OnnxEmbedder

        return OnnxEmbedder(Path(rest))
    if kind in ("openai", "ollama"):
        from perdure.adapters.embedding.http import OLLAMA, OPENAI, HttpEmbedder, ServerModel

        address, _, model = rest.rpartition("#")
        return HttpEmbedder(ServerModel(address, model, key), OPENAI if kind == "openai" else OLLAMA)
    from perdure.adapters.embedding.static import StaticEmbedder

    return StaticEmbedder()


def token_count(tokenizer: str) -> Callable[[str], int]:
    """What counts tokens by the setting `tokenizer`."""
    if not tokenizer:
        return estimate_tokens
    from perdure.adapters.models.tokens import token_counter

    return token_counter(tokenizer).count
