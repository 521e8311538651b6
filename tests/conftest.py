"""Fixtures for tests of any kind: the PostgreSQL server, and `backend`, which runs a test on SQLite and on PostgreSQL.

def test_something(backend):
    with backend.open(deadline_s=5) as engine: ...
    run_child(backend.url, backend.schema)          # perdure.Settings(url=..., postgres_schema=...) over there
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import hypothesis
import pytest
import typer.testing

import citus_cluster
import fork_server
import lanes
import perdure
import pg
import pgbouncer
import system_programs
from perdure.ports.clock import Clock
from perdure.ports.models import Summariser

# How long an example takes depends on the machine; a failure prints what repeats it. Where a change is judged, the same
# examples are tried each time; everywhere else, new ones.
hypothesis.settings.register_profile("perdure", deadline=None, print_blob=True, derandomize=bool(os.environ.get("CI")))
hypothesis.settings.load_profile("perdure")

# Building the commands takes longer than running most of them, so a runner builds them once.
typer.testing._get_command = cache(typer.testing._get_command)

# In memory if the system has room for it there: what a test kills, a kernel survives, so nothing needs to reach a disk.
IN_MEMORY = Path("/dev/shm")
IN_MEMORY_BYTES_MIN = 4 * 2**30
if IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free >= IN_MEMORY_BYTES_MIN:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))

SERVER_ROOT = pytest.StashKey[Path]()
IN_WORKER = "postgres_root"
HERE = Path(__file__).parent
SLOW_ROOMS = {"cli", "docs", "http", "mcp", "proof", "serving", "simulation", "skins", "web"}
"""Whose tests start servers, browsers or processes: the fast lane leaves them out."""
SLOW_FILES = re.compile(r".*_machine|test_against_the_oracle|test_model_faults|test_chat_models")
"""So are these, which try many histories or wait for servers that fail."""


def pytest_configure(config: pytest.Config) -> None:
    lanes.take(config.getoption("markexpr"))
    # Run in the background, tests inherit that Ctrl-C is to be ignored, and so would every program that they press it on.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    workerinput = getattr(config, "workerinput", None)
    config.stash[SERVER_ROOT] = pg.new_root() if workerinput is None else Path(workerinput[IN_WORKER])


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Called by pytest-xdist for each worker, in the process that outlives them."""
    node.workerinput[IN_WORKER] = str(node.config.stash[SERVER_ROOT])


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        pg.stop(config.stash[SERVER_ROOT])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "postgres_url" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.postgres)
        if not item.path.is_relative_to(HERE):
            continue
        if item.path.relative_to(HERE).parts[0] in SLOW_ROOMS or SLOW_FILES.fullmatch(item.path.stem):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A running PostgreSQL server. If it cannot be had, every test that asks for it fails and says why."""
    root = request.config.stash[SERVER_ROOT]
    try:
        url = pg.start(root)
    except pg.ServerFailed as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    yield url
    pg.leave(root)


@pytest.fixture(scope="session")
def pgbouncer_url(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[str]:
    """The same server behind pgbouncer in transaction mode. Where it cannot be had, its tests are left out and say so; in CI
    they fail.
    """
    server = request.config.stash[SERVER_ROOT] / "data"
    folder = pg.new_root()
    try:
        with pgbouncer.running(folder, server) as url:
            yield url
    except system_programs.NotToBeHad as error:
        if os.environ.get("CI"):
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        pytest.skip(f"left out: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def forked() -> Iterator[fork_server.ForkServer]:
    """`perdure` for tests with many commands, each in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="fork-") as folder:
        server = fork_server.ForkServer(Path(folder))
        yield server
        server.close()


@pytest.fixture(scope="session")
def distributed_schema() -> Iterator[tuple[str, str]]:
    """The cluster that `make test-citus` was given, and a schema there whose tables are distributed."""
    coordinator = citus_cluster.url()
    assert coordinator is not None, "name a cluster: make test-citus URL=postgresql://…"
    try:
        with citus_cluster.distributed(coordinator) as schema:
            yield coordinator, schema
    except citus_cluster.NoCluster as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


@pytest.fixture
def postgres_schema(postgres_url: str) -> Iterator[str]:
    """The name of a schema that is this test's own."""
    with pg.fresh_schema(postgres_url) as name:
        yield name


@pytest.fixture
def empty_schema(postgres_url: str) -> Iterator[str]:
    """The name of a schema for one store, which holds no row."""
    with pg.empty_store(postgres_url) as name:
        yield name


@dataclass(frozen=True, slots=True)
class Backend:
    """A fresh store of one kind. Its two strings are all that another process needs to open it too."""

    name: str
    url: str
    schema: str = "perdure"
    _opened: list[perdure.Engine] = field(default_factory=list, repr=False, compare=False)

    @property
    def settings(self) -> perdure.Settings:
        return pg.settings(self.url, self.schema)

    def open(
        self,
        *,
        background: bool = False,
        clock: Clock | None = None,
        summariser: Summariser | None = None,
        **fields: Any,
    ) -> perdure.Engine:
        """An engine on the store, with some fields of its settings replaced; closed at the end of the test at the latest."""
        chosen = replace(self.settings, **fields)
        engine = perdure.open(settings=chosen, background=background, clock=clock, summariser=summariser)
        self._opened.append(engine)
        return engine

    def close_all(self) -> None:
        while self._opened:
            self._opened.pop().close()


def sqlite_backend(directory: Path) -> Backend:
    return Backend("sqlite", f"sqlite:///{quote(str((directory / 'perdure.db').absolute()))}")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """Every durable kind of store in turn, empty. `indirect` parametrization with a name picks one."""
    with ExitStack() as stack:
        if request.param == "postgres" and citus_cluster.url():
            url, schema = request.getfixturevalue("distributed_schema")
            citus_cluster.empty(url, schema)
            chosen = Backend("postgres", url, schema)
        elif request.param == "postgres":
            # Flows go through a pooler where there is one; what they cannot show there, the other tests show directly.
            flow = "flows" in request.path.parts
            url = request.getfixturevalue("pgbouncer_url" if flow else "postgres_url")
            chosen = Backend("postgres", url, stack.enter_context((pg.empty_store if flow else pg.fresh_schema)(url)))
        else:
            chosen = sqlite_backend(tmp_path)
        stack.callback(chosen.close_all)
        yield chosen


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Backend]:
    """An empty SQLite store, for what only a file can show."""
    chosen = sqlite_backend(tmp_path)
    yield chosen
    chosen.close_all()


@pytest.fixture
def open_engine(backend: Backend) -> Callable[..., perdure.Engine]:
    """`backend.open`, for tests that need nothing else of it."""
    return backend.open
