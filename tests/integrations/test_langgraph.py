"""The checkpointer for LangGraph: the conformance suite that LangGraph has for others' checkpointers."""

from __future__ import annotations

from pathlib import Path

import pytest

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
