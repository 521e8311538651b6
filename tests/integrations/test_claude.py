"""The session store for the Claude Agent SDK: the SDK's conformance suite, and the SDK's own helpers reading what is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integrations.framework import HERE, ready, run

NAME = "claude"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    ready(NAME)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_the_conformance_suite_passes_whole(tmp_path: Path, kind: str) -> None:
    url = "memory:" if kind == "memory" else f"sqlite:///{tmp_path}/store.db"
    done = run(NAME, str(HERE / "claude_conformance.py"), url, cwd=tmp_path)
    assert done.stdout.strip() == "14 contracts", done.stderr[-2_000:]


def test_sessions_are_kept_as_they_are_and_the_second_knows_what_was_said_in_the_first(tmp_path: Path) -> None:
    done = run(NAME, str(HERE / "claude_sessions.py"), cwd=tmp_path)
    assert done.stdout.strip() == "all kept", done.stderr[-2_000:]
