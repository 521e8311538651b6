"""A store on a cluster keeps every promise that a store on one server keeps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import citus_cluster
import perdure
from perdure.adapters.postgres.store import PostgresStore
from perdure.ports.store import Store
from perdure.testing import StoreContract


class TestDistributedStore(StoreContract):
    @pytest.fixture
    def store(self, distributed_schema: tuple[str, str]) -> Iterator[Store]:
        url, schema = distributed_schema
        citus_cluster.empty(url, schema)
        store = PostgresStore(url, schema=schema)
        yield store
        store.close()


def test_a_distributed_store_is_sound_and_healthy(distributed_schema: tuple[str, str]) -> None:
    url, schema = distributed_schema
    citus_cluster.empty(url, schema)
    with perdure.open(settings=perdure.Settings(url=url, postgres_schema=schema)) as engine:
        ana = engine.memory("ana")
        ana.append("user", "I live in Lisbon")
        engine.process(60)
        assert engine.verify().findings == ()
        report = engine.doctor()
        assert report.degraded == ()
        assert "citus" in report.versions
        assert engine.distribute().tables == ()
