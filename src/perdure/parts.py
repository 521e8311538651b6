"""The parts an engine is put together from: the store of a URL, the models that settings or hosts name. With `app`, the only
module that names adapters, and only when one is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict
from urllib.parse import parse_qsl, unquote, urlsplit

from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge import Extraction, ExtractionRequest
from perdure.domain.text import brief, utf8_size
from perdure.engine.tokens import estimate_tokens
from perdure.ports.chat import ChatModel
from perdure.ports.clock import Clock
from perdure.ports.embedding import Embedder
from perdure.ports.extract import Extractor
from perdure.ports.lessons import AgentFiles, LessonFiles
from perdure.ports.rerank import Reranker
from perdure.ports.store import Store
from perdure.ports.summarise import Summariser
from perdure.services.consulting import Consultant
from perdure.settings import Settings, default_store_path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

VECTORS_KEPT_MAX = 50_000
_VECTORS: dict[str, Floats] = {}


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
    if settings.encryption_key and asked.kind != "sqlite":
        raise InvalidInput("`encryption_key` encrypts SQLite files only; leave it out, or encrypt the server's disk")
    if asked.kind == "memory":
        from perdure.adapters.memory.store import MemoryStore

        return MemoryStore()
    if asked.kind == "sqlite":
        from perdure.adapters.sqlite.store import SqliteStore

        return SqliteStore(
            asked.path, synchronous=settings.durability.upper(), busy_s=settings.deadline_s, key=settings.encryption_key
        )
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


def scratch_store(folder: Path, key: str = "") -> Store:
    """A store that is thrown away with its folder: what is imported is looked at there first. Encrypted as the real one is."""
    from perdure.adapters.sqlite.store import SqliteStore

    return SqliteStore(folder / "scratch.db", synchronous="NORMAL", key=key)


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


def word_vectors(texts: Sequence[str]) -> Floats:
    """A row for each text, by the built-in embedder. Words come again and again, so those that were asked for are kept."""
    import numpy as np

    # What is needed is held here meanwhile: another thread may find the store of them full, and empty it.
    held = {text: row for text in texts if (row := _VECTORS.get(text)) is not None}
    missing = [text for text in dict.fromkeys(texts) if text not in held]
    if missing:
        from perdure.adapters.embedding.static import StaticEmbedder

        made = dict(zip(missing, StaticEmbedder().embed(missing), strict=True))
        held |= made
        if len(_VECTORS) + len(made) > VECTORS_KEPT_MAX:
            _VECTORS.clear()
        _VECTORS.update(made)
    return np.stack([held[text] for text in texts])


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
    from perdure.adapters.models.chat import NUM_CTX, ModelServer
    from perdure.adapters.models.ollama import ollama_model
    from perdure.adapters.models.openai import openai_model

    window = given.get("num_ctx", str(NUM_CTX))
    if not (window.isascii() and window.isdigit()):
        raise InvalidInput(f"`num_ctx` = {brief(window)} in the setting `model` must be a whole number")
    server = ModelServer(address, name, settings.model_key, int(window[:12]))
    return openai_model(server) if protocol == "openai" else ollama_model(server)


@dataclass(frozen=True, slots=True)
class Helpers:
    """Who is asked for words: the model if there is one, and what writes summaries and proposes memories."""

    consultant: Consultant
    summariser: Summariser | None
    """None: the offline one."""
    extractor: Extractor
    rules: Extractor | None
    """What stands in for the model when it has failed for good."""
    close: Callable[[], None]


def helpers_of(store: Store, clock: Clock, settings: Settings, given: Models) -> Helpers:
    """What the host brought along comes first, then the model, from the host or the settings, then the rules."""
    summariser, extractor, model = given.get("summariser"), given.get("extractor"), given.get("model")
    check_summariser(summariser)
    check_extractor(extractor)
    check_model(model)
    made = model_of(settings) if model is None else None
    consultant = Consultant(store, clock, made if model is None else model)
    close = getattr(made, "close", lambda: None)
    if not consultant.available:
        return Helpers(consultant, summariser, extractor or Rules(), None, close)
    from perdure.services.modelled import ModelExtractor, ModelSummariser

    rules = Rules() if extractor is None else None
    return Helpers(consultant, summariser or ModelSummariser(consultant), extractor or ModelExtractor(consultant), rules, close)


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
    from perdure.adapters.tokens import token_counter

    return token_counter(tokenizer).count


def lesson_files(settings: Settings) -> LessonFiles | None:
    """Where lesson books are kept as files; None if nowhere."""
    if not settings.files_dir and not settings.agents_dir:
        return None
    from perdure.adapters.lessons import LessonFolders

    folders = [Path(one) if one else None for one in (settings.files_dir, settings.agents_dir)]
    return LessonFolders(folders[0], folders[1], settings.space)


def agent_files(settings: Settings) -> AgentFiles | None:
    """Where agents are kept as folders; None if nowhere."""
    if not settings.agents_dir:
        return None
    from perdure.adapters.agents import AgentFolders

    return AgentFolders(Path(settings.agents_dir))
