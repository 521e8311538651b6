"""Fixtures for tests of any kind: the PostgreSQL server, and `backend`, which runs a test on SQLite and on PostgreSQL.

def test_something(backend):
    with backend.open(deadline_s=5) as engine: ...
    run_child(backend.url, backend.schema)          # perdure.Settings(url=..., postgres_schema=...) over there
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import hypothesis
import pytest

import perdure
import pg
from perdure.ports.clock import Clock
from perdure.ports.summarise import Summariser

# How long an example takes depends on the machine; a failure prints what repeats it. Where a change is judged, the same
# examples are tried each time; everywhere else, new ones.
hypothesis.settings.register_profile("perdure", deadline=None, print_blob=True, derandomize=bool(os.environ.get("CI")))
hypothesis.settings.load_profile("perdure")

SERVER_ROOT = pytest.StashKey[Path]()
IN_WORKER = "postgres_root"
HERE = Path(__file__).parent
SLOW_ROOMS = {"docs", "http", "mcp_face", "proof", "server", "simulation", "skins", "web"}
"""Whose tests start servers, browsers or processes: the fast lane leaves them out."""
SLOW_FILES = re.compile(r"test_cli.*|.*_machine|test_against_the_oracle|test_model_faults|test_chat_models")
"""So are these, which start a process for each command, try many histories, or wait for servers that fail."""


def pytest_configure(config: pytest.Config) -> None:
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


@pytest.fixture
def postgres_schema(postgres_url: str) -> Iterator[str]:
    """The name of a schema that is this test's own."""
    with pg.fresh_schema(postgres_url) as name:
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
        if request.param == "postgres":
            url = request.getfixturevalue("postgres_url")
            chosen = Backend("postgres", url, stack.enter_context(pg.fresh_schema(url)))
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
