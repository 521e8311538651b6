"""A plugin for pytest: LangGraph's own tests of its stores run on `PerdureStore`, where they wait on a clock that is moved.

What their stores are given (a file, an embedder, fields) an engine of ours is given; after each put a worker has its turn, as
one would in the background: vectors of an embedder that a host brings are made by workers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace
from typing import Any

import langgraph.store.memory
import langgraph.store.sqlite
import langgraph.store.sqlite.aio
import pytest
from langgraph.store.base import PutOp

import perdure
from perdure.integrations.embedder import EmbedderFrom
from perdure.integrations.langgraph import PerdureStore
from perdure.testing import StoppedClock

CLOCK = StoppedClock()
OPEN: list[perdure.Engine] = []


class SwappedStore(PerdureStore):
    """With the arguments and the attributes of those that it stands for."""

    def __init__(self, where: str = ":memory:", *, index: Any = None, ttl: Any = None) -> None:
        url = "memory:" if where == ":memory:" else f"sqlite:///{where}.perdure"
        self.index_config, self.embeddings = index, None if index is None else index["embed"]
        embedder = None if index is None else EmbedderFrom(index["embed"], name="theirs", dims=index["dims"])
        self.engine = perdure.open(url, background=False, embedder=embedder, clock=CLOCK)
        OPEN.append(self.engine)
        fields = (index or {}).get("fields") or (index or {}).get("text_fields") or ("$",)
        super().__init__(self.engine.memory("somebody"), fields=fields, ttl=ttl, now=CLOCK.now)
        self._put_keys: set[tuple[tuple[str, ...], str]] = set()

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        wanted = list(ops)
        results = super().batch(wanted)
        puts = [op for op in wanted if isinstance(op, PutOp)]
        self._put_keys |= {(op.namespace, op.key) for op in puts if op.value is not None}
        if puts and self.embeddings is not None:
            self.engine.process()
        return results

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """How many items have gone since the last time; ours go by themselves."""
        gone = {one for one in self._put_keys if self.get(*one, refresh_ttl=False) is None}
        self._put_keys -= gone
        return len(gone)

    def setup(self) -> None:
        """Ours are set up when they are opened."""

    start_ttl_sweeper = stop_ttl_sweeper = setup

    @classmethod
    @contextmanager
    def from_conn_string(cls, where: str, **given: Any) -> Iterator[SwappedStore]:
        store = cls(where, **given)
        yield store
        assert store.engine.verify().clean


class SwappedAsyncStore(SwappedStore):
    async def sweep_ttl(self) -> int:  # type: ignore[override]
        return await asyncio.to_thread(super().sweep_ttl)

    async def setup(self) -> None:  # type: ignore[override]
        """Ours are set up when they are opened."""

    start_ttl_sweeper = stop_ttl_sweeper = setup

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, where: str, **given: Any) -> AsyncIterator[SwappedAsyncStore]:  # type: ignore[override]
        store = cls(where, **given)
        yield store
        assert store.engine.verify().clean


class SwappedMemoryStore(SwappedStore):
    def __init__(self, *, index: Any = None) -> None:
        super().__init__(index=index)


langgraph.store.memory.InMemoryStore = SwappedMemoryStore  # type: ignore[misc]
langgraph.store.sqlite.SqliteStore = SwappedStore  # type: ignore[misc]
langgraph.store.sqlite.AsyncSqliteStore = SwappedAsyncStore  # type: ignore[misc]
langgraph.store.sqlite.aio.AsyncSqliteStore = SwappedAsyncStore  # type: ignore[misc]


@pytest.fixture(autouse=True)
def moved_clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Their tests of expiry sleep: here the clock is moved instead. All that a test opened is closed."""

    async def sleep(seconds: float) -> None:
        CLOCK.move(seconds=seconds)
        await asyncio.sleep(0)

    for module, moved in ((time, lambda seconds: CLOCK.move(seconds=seconds)), (asyncio, sleep)):
        if hasattr(request.module, module.__name__):
            theirs = SimpleNamespace(**{**vars(module), "sleep": moved})
            monkeypatch.setattr(request.module, module.__name__, theirs)
    yield
    while OPEN:
        OPEN.pop().close()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "flaky(retries): theirs wait for times; these do not")
