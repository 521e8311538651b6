"""Who is asked for words and vectors: what the host brought along, what the settings name, or rules and the built-in table.

Parts that other distributions bring along: named in a setting, found by entry point, made when an engine opens.

An entry point is a callable that takes one text, what stands behind the name and a colon in the setting, and returns the part:
`toy` calls it with an empty text, `toy:fast` with `fast`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, cast
from urllib.parse import parse_qsl

from perdure.domain.errors import InvalidInput, LimitExceeded, PerdureError
from perdure.domain.knowledge.proposals import Extraction, ExtractionRequest
from perdure.domain.reports import IMPORT_FORMATS
from perdure.domain.text.rules import brief
from perdure.domain.values import dataclass
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
    from importlib.metadata import EntryPoints


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


Group = Literal["embedders", "rerankers", "extractors", "summarisers", "importers", "stores"]
BUILT_IN = {
    "embedder": ("static", "none", "onnx:FOLDER", "openai:URL#MODEL", "ollama:URL#MODEL"),
    "reranker": (),
    "extractor": (),
    "summariser": (),
}
"""What a setting may name besides plugins; empty: nothing, or the part that is built in."""
ENTRIES_MAX = 1_000_000
_GROUPS: dict[str, Group] = {
    "embedder": "embedders",
    "reranker": "rerankers",
    "extractor": "extractors",
    "summariser": "summarisers",
}


def plugin_names(group: Group) -> list[str]:
    """The names of the plugins of a kind that are installed, in order."""
    return sorted({point.name for point in _points(group)})


def plugin(group: Group, name: str, options: str) -> object | None:
    """What the plugin of this name makes of its options; None if there is none. `InvalidInput` if it fails."""
    found = next(iter(_points(group).select(name=name)), None)
    if found is None:
        return None
    try:
        return cast("Callable[[str], object]", found.load())(options)
    except PerdureError:
        raise
    except Exception as error:  # the plugin edge: it is anybody's code
        why = type(error).__name__
        raise InvalidInput(
            f"plugin {name!r:.60} of `perdure.{group}` cannot be used ({why}); fix or remove {found.value!r:.80}"
        ) from error


def _points(group: Group) -> EntryPoints:
    from importlib.metadata import entry_points  # loaded when a plugin is looked for: it brings along what reads archives

    return entry_points(group=f"perdure.{group}")


def unknown(what: str, value: str, group: Group, built_in: Sequence[str]) -> InvalidInput:
    """One line that says what there is."""
    names = [*built_in, *plugin_names(group)]
    there = f"use one of {', '.join(names)}, or" if names else "there is none yet:"
    return InvalidInput(f"{what} = {brief(value, 60)} is unknown; {there} install a plugin (entry point `perdure.{group}`)")


def with_plugins(settings: Settings, given: HostModels) -> HostModels:
    """What the host brought along, and where it brought nothing, the plugins that the settings name."""
    found: dict[str, object] = dict(given)
    for name, group in _GROUPS.items():
        setting = getattr(settings, name)
        kind, _, options = setting.partition(":")
        if kind in {one.partition(":")[0] for one in BUILT_IN[name]} or (not setting and name != "embedder"):
            continue
        if (made := plugin(group, kind, options)) is None:
            raise unknown(f"setting `{name}`", setting, group, BUILT_IN[name])
        if found.get(name) is None:
            found[name] = made
    return cast("HostModels", found)


class InstalledImporters:
    """The importers that are installed. Theirs is the text of a file; what they return are memories, as mem0 exports them."""

    def check(self, name: str) -> None:
        if name not in plugin_names("importers"):
            raise unknown("`format` (`--format`)", name, "importers", IMPORT_FORMATS)

    def entries(self, name: str, text: str) -> Sequence[Mapping[str, object]]:
        found = plugin("importers", name, text)
        entries = list(islice(found, ENTRIES_MAX + 1)) if isinstance(found, Iterable) else [found]
        if len(entries) > ENTRIES_MAX:
            raise LimitExceeded(f"importer {name!r:.60} found more than {ENTRIES_MAX} memories; import them in parts")
        if not all(isinstance(one, Mapping) and isinstance(one.get("memory"), str) for one in entries):
            raise InvalidInput(f"importer {name!r:.60} must return mappings with a text under `memory`; fix it")
        return cast("list[Mapping[str, object]]", entries)
