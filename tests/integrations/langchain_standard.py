"""Run in LangChain's own environment: its standard tests for retrievers and stores, on ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langchain_tests.integration_tests import BaseStoreAsyncTests, BaseStoreSyncTests, RetrieversIntegrationTests

import perdure
from perdure.integrations.langchain import PerdureKeyValueStore, PerdureRetriever

VALUES = (b"\0foo", {"bar": [1, "\0"]}, "buzz")


class TestRetriever(RetrieversIntegrationTests):
    retriever_constructor = PerdureRetriever
    retriever_query_example = "Where do I run?"

    @pytest.fixture(autouse=True)
    def _filled(self) -> Iterator[None]:
        with perdure.open("memory:", background=False) as engine:
            self.memory = engine.memory("ana")
            for place in ("the park", "the forest", "the river", "the beach"):
                self.memory.append("user", f"I run along {place}.")
            yield

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.memory}


class TestKeyValueStore(BaseStoreSyncTests[Any]):
    @pytest.fixture
    def kv_store(self) -> Iterator[PerdureKeyValueStore]:
        with perdure.open("memory:", background=False) as engine:
            yield PerdureKeyValueStore(engine.memory("ana"))

    @pytest.fixture
    def three_values(self) -> tuple[Any, Any, Any]:
        return VALUES


class TestAsyncKeyValueStore(BaseStoreAsyncTests[Any]):
    @pytest.fixture
    async def kv_store(self) -> AsyncIterator[PerdureKeyValueStore]:
        with perdure.open("memory:", background=False) as engine:
            yield PerdureKeyValueStore(engine.memory("ana"))

    @pytest.fixture
    def three_values(self) -> tuple[Any, Any, Any]:
        return VALUES
