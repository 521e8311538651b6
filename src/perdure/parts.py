"""The parts an engine is put together from: the store of a URL, the models that settings or hosts name. With `app`, the only
module that names adapters, and only when one is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict
from urllib.parse import parse_qsl, unquote, urlsplit

from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge import Extraction, ExtractionRequest
from perdure.domain.text import utf8_size
from perdure.engine.tokens import estimate_tokens
from perdure.ports.chat import ChatModel
from perdure.ports.embedding import Embedder
from perdure.ports.extract import Extractor
from perdure.ports.rerank import Reranker
from perdure.ports.store import Store
from perdure.ports.summarise import Summariser
from perdure.settings import Settings, default_store_path


class Models(TypedDict, total=False):
    """What a host may bring along instead of the rules and the built-in embedder."""

    summariser: Summariser | None
    extractor: Extractor | None
    embedder: Embedder | None
    reranker: Reranker | None
    model: ChatModel | None


class Rules:
    """The rule extractor, loaded when it is first asked: its patterns take longer than all the rest of opening a store."""

    name = "rules/1"

    def extract(self, request: ExtractionRequest) -> Extraction:
        from perdure.engine.extraction import RuleExtractor

        return RuleExtractor().extract(request)


@dataclass(frozen=True, slots=True)
class Target:
    """A store URL taken apart."""

    kind: str
    path: str = ""


def target(url: str) -> Target:
    """Which store a URL means; `InvalidInput` if none."""
    if not url:
        return Target("sqlite", str(default_store_path()))
    if url == "memory:":
        return Target("memory")
    try:
        utf8_size(url, "the store URL")
        parts = urlsplit(url)
    except ValueError:
        raise InvalidInput("the store URL cannot be read; use sqlite:///FILE, postgresql://… or memory:") from None
    if parts.scheme in ("postgresql", "postgres"):
        return Target("postgres")
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1 and parts.path.startswith("/"):
        if parts.path.endswith("/:memory:"):
            raise InvalidInput("a store in memory is opened with the URL memory:")
        if parse_qsl(parts.query, keep_blank_values=True) or parts.fragment:
            raise InvalidInput("a `sqlite:` URL takes no `?` or `#`; write them as %3F and %23 if they are part of the name")
        # As elsewhere: three slashes for a relative path, four for an absolute one.
        path = unquote(parts.path[1:])
        utf8_size(path, "the path in the store URL")
        return Target("sqlite", path)
    # The URL is not quoted: it may carry a password.
    raise InvalidInput(
        f"the store URL with scheme {parts.scheme!r:.20} cannot be opened; "
        "use sqlite:///FILE (relative), sqlite:////FILE (absolute), postgresql://… or memory:"
    )


def open_store(settings: Settings) -> Store:
    """The store that the settings name, opened."""
    asked = target(settings.url)
    if asked.kind == "memory":
        from perdure.adapters.memory.store import MemoryStore

        return MemoryStore()
    if asked.kind == "sqlite":
        from perdure.adapters.sqlite.store import SqliteStore

        return SqliteStore(asked.path, synchronous=settings.durability.upper(), busy_s=settings.deadline_s)
    try:
        from perdure.adapters.postgres.store import PostgresStore
    except ImportError as error:
        raise InvalidInput(f"PostgreSQL needs `{error.name}`; install it with: pip install 'perdure[postgres]'") from error
    return PostgresStore(
        settings.url,
        schema=settings.postgres_schema,
        pool_max=settings.postgres_pool_max,
        deadline_s=settings.deadline_s,
    )


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


def near_words(word: str) -> Sequence[tuple[str, float]]:
    """Words of like meaning, by the built-in table, which is read when it is first asked."""
    from perdure.adapters.embedding.kin import bundled_kin

    return bundled_kin().near(word)


def embedder_of(setting: str) -> Embedder:
    """The embedder that the setting `embedder` names."""
    kind, _, rest = setting.partition(":")
    if kind == "onnx":
        from perdure.adapters.embedding.onnx import OnnxEmbedder

        return OnnxEmbedder(Path(rest))
    if kind in ("openai", "ollama"):
        from perdure.adapters.embedding.http import OLLAMA, OPENAI, HttpEmbedder, ServerModel

        address, _, model = rest.rpartition("#")
        return HttpEmbedder(ServerModel(address, model), OPENAI if kind == "openai" else OLLAMA)
    from perdure.adapters.embedding.static import StaticEmbedder

    return StaticEmbedder()


def token_count(tokenizer: str) -> Callable[[str], int]:
    """What counts tokens by the setting `tokenizer`."""
    if not tokenizer:
        return estimate_tokens
    from perdure.adapters.tokens import token_counter

    return token_counter(tokenizer).count
