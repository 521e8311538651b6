"""The checkpointer and the store for LangGraph: its conformance suite for checkpointers, and its own tests of its stores."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import frameworks
from tests.integrations.framework import HERE, ready, run

NAME = "langgraph"
pytestmark = pytest.mark.slow
ALL = {
    "put": 17,
    "put_writes": 10,
    "get_tuple": 10,
    "list": 16,
    "delete_thread": 5,
    "delete_for_runs": 7,
    "copy_thread": 8,
    "prune": 8,
}

OF_SQLITE = {
    "test_store.py::test_vector_store_initialization": "reads the tables of their file",
    "test_store.py::test_nonnull_migrations": "reads their migrations",
    "test_store.py::test_sql_injection_vulnerability[memory]": "has a name refused that their SQL cannot take; ours finds nothing",
    "test_store.py::test_sql_injection_vulnerability[file]": "the same",
    "test_store.py::test_escape_glob_literal": "calls a function of theirs that writes SQL",
    "test_store.py::test_namespace_match_pattern": "the same",
    "test_store.py::test_list_namespaces_prefix_uses_indexable_condition": "reads the SQL that they make",
    "test_async_store.py::test_no_running_loop[memory]": "has calls of threads refused by a store for event loops; ours takes both",
    "test_async_store.py::test_no_running_loop[file]": "the same",
}
"""Tests of langgraph-checkpoint-sqlite that look into the class that ours stands for, and why: 9 of 153."""


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    ready(NAME)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_the_conformance_suite_passes_whole(tmp_path: Path, kind: str) -> None:
    url = "memory:" if kind == "memory" else f"sqlite:///{tmp_path}/store.db"
    done = run(NAME, str(HERE / "langgraph_conformance.py"), url, cwd=tmp_path)
    assert done.stdout.splitlines() == [*(f"{name} {count} 0" for name, count in ALL.items()), "81 passed"], done.stderr[
        -2_000:
    ]


def test_two_branches_of_a_thread_keep_their_own_values(tmp_path: Path) -> None:
    done = run(NAME, str(HERE / "langgraph_branches.py"), cwd=tmp_path)
    assert done.stdout.strip() == "each its own", done.stderr[-2_000:]


def suite(package: str, *paths: str, leave_out: tuple[str, ...] = ()) -> str:
    """What pytest says at the end of tests of theirs that run on our store."""
    options = ["-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", "-o", "addopts=", "-p", "langgraph_stores_swapped"]
    options += [word for name in leave_out for word in ("--deselect", f"tests/{name}")]
    done = run(NAME, "-m", "pytest", *options, *(f"tests/{path}" for path in paths), cwd=frameworks.source(NAME, package))
    said = re.findall(r"^(\d+ passed.*) in ", done.stdout, re.MULTILINE)
    assert len(said) == 1, done.stdout[-4_000:] + done.stderr
    return str(said[0])


def test_the_tests_of_their_store_in_memory_pass_on_ours() -> None:
    assert suite("langgraph-checkpoint", "test_store.py") == "114 passed"


def test_the_tests_of_their_store_on_sqlite_pass_on_ours() -> None:
    told = suite(
        "langgraph-checkpoint-sqlite", "test_store.py", "test_async_store.py", "test_ttl.py", leave_out=tuple(OF_SQLITE)
    )
    assert told == "144 passed, 9 deselected"


def test_a_graph_finds_in_a_second_thread_what_it_put_in_the_first(tmp_path: Path) -> None:
    done = run(NAME, str(HERE / "langgraph_store.py"), cwd=tmp_path)
    assert done.stdout.strip() == "found", done.stderr[-2_000:]
