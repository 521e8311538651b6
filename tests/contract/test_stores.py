"""Every store keeps every promise: the shipped contract, on all three."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.adapters.memory.store import MemoryStore
from perdure.adapters.postgres.store import PostgresStore
from perdure.adapters.sqlite.store import SqliteStore
from perdure.ports.store import Store
from perdure.testing import FailingStore, StoreContract

KEY = "a horse that is correct"


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Iterator[Store]:
        store = MemoryStore()
        yield store
        store.close()


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        store = SqliteStore(tmp_path / "perdure.db")
        yield store
        store.close()


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encrypted store. Deriving a key takes a while by intention; the copies of one file share it."""
    path = tmp_path_factory.mktemp("encrypted") / "perdure.db"
    SqliteStore(path, key=KEY).close()
    return path


class TestEncryptedSqliteStore(StoreContract):
    """SQLCipher's driver is another one, behind the same few calls."""

    @pytest.fixture
    def store(self, empty: Path, tmp_path: Path) -> Iterator[Store]:
        store = SqliteStore(shutil.copy(empty, tmp_path), key=KEY)
        yield store
        store.close()


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def store(self, postgres_url: str, empty_schema: str) -> Iterator[Store]:
        store = PostgresStore(postgres_url, schema=empty_schema)
        yield store
        store.close()


class TestPostgresStoreBehindPgbouncer(StoreContract):
    """In transaction mode: each transaction may meet a session that another store has used before."""

    @pytest.fixture
    def store(self, pgbouncer_url: str, empty_schema: str) -> Iterator[Store]:
        store = PostgresStore(pgbouncer_url, schema=empty_schema)
        yield store
        store.close()


class TestFailingStoreThatDoesNotFail(StoreContract):
    @pytest.fixture
    def store(self) -> Iterator[Store]:
        store = FailingStore(MemoryStore())
        yield store
        store.close()
