"""Fixtures of the lane `make test-model`: real models on this machine, behind real servers.

`qwen` is good enough to be right in easy cases. `smollm2` keeps to a schema and is wrong: whatever it says, nothing may break.
Without the models the tests are skipped, but not where they were asked for: `make test-model` sets `LOCAL_MODEL`.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import local_model
import perdure
from perdure.adapters.models.chat import ModelServer, ServedModel, ollama_model, openai_model
from perdure.domain.models import ChatReply, ChatRequest
from perdure.services.models import prompted
from perdure.testing import StoppedClock
from tests.model.servers import OllamaFront, Served, ServerFailed, serving

ASKED_FOR = "LOCAL_MODEL"
THREADS = int(os.environ.get("LOCAL_MODEL_THREADS", "1"))
"""Two are slower than one where another process wants the second core: the threads wait for each other in a loop."""

BRIEF_TOKENS = 250
PATIENCE_S = 900.0
"""A processor that others use, too, takes longer than jobs usually wait."""


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yield from _served(local_model.SMOLLM2, tmp_path_factory.mktemp("smollm2"))


@pytest.fixture(scope="session")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yield from _served(local_model.QWEN, tmp_path_factory.mktemp("qwen"))


@pytest.fixture(scope="session")
def ollama_smollm2(smollm2: Served) -> Iterator[OllamaFront]:
    with OllamaFront(smollm2).running() as front:
        yield front


@pytest.fixture(scope="session")
def ollama_qwen(qwen: Served) -> Iterator[OllamaFront]:
    with OllamaFront(qwen).running() as front:
        yield front


@pytest.fixture(params=["openai", "ollama"])
def right(request: pytest.FixtureRequest, qwen: Served, ollama_qwen: OllamaFront) -> str:
    """The setting `model` for the one that is right in easy cases."""
    return _setting(request.param, qwen, ollama_qwen)


@dataclass(frozen=True, slots=True)
class Brief:
    """A model that is stopped early: one that has begun to repeat itself goes on to the end of what a request allows."""

    model: ServedModel

    @property
    def name(self) -> str:
        return self.model.name

    def chat(self, request: ChatRequest) -> ChatReply:
        return self.model.chat(replace(request, tokens_max=min(request.tokens_max, BRIEF_TOKENS)))


@pytest.fixture(params=["openai", "ollama"])
def wrong(request: pytest.FixtureRequest, smollm2: Served, ollama_smollm2: OllamaFront) -> Iterator[Brief]:
    """The one that is wrong."""
    if request.param == "openai":
        model = openai_model(ModelServer(smollm2.url, smollm2.model))
    else:
        model = ollama_model(ModelServer(ollama_smollm2.url, smollm2.model))
    yield Brief(model)
    model.close()


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., perdure.Engine]]:
    """Opens an engine on a store of its own with that model. Its clock stands still, so that the same is asked each time."""
    monkeypatch.setattr(prompted, "CALL_S", PATIENCE_S)
    engines = []

    def opened(model: str | Brief, **fields: Any) -> perdure.Engine:
        """`model` is the setting, or the model itself."""
        url = f"sqlite:///{quote(str(tmp_path / f'perdure{len(engines)}.db'))}"
        named, given = (model, None) if isinstance(model, str) else ("", model)
        settings = perdure.Settings(url=url, model=named, **fields)
        engines.append(perdure.open(settings=settings, clock=StoppedClock(), model=given))
        return engines[-1]

    yield opened
    for engine in engines:
        engine.close()


def _setting(dialect: str, served: Served, front: OllamaFront) -> str:
    return f"{dialect}:{served.url if dialect == 'openai' else front.url}#{served.model}"


def _served(model: local_model.Model, folder: Path) -> Iterator[Served]:
    if missing := _missing(model):
        if os.environ.get(ASKED_FOR):
            raise pytest.fail.Exception(missing, pytrace=False)
        pytest.skip(missing)
    try:
        with serving(model.path, model.name, log=folder / "server.log", threads=THREADS) as served:
            yield served
    except ServerFailed as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def _missing(model: local_model.Model) -> str:
    if importlib.util.find_spec("xllamacpp") is None:
        return "the extra `test-model` is not installed; use: make test-model"
    return "" if model.is_here() else f"{model.path} is not there; use: make test-model"
