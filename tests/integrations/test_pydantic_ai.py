"""The capability and the toolset for Pydantic AI, with a real agent on the framework's test models."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integrations.framework import HERE, ready, run

NAME = "pydantic-ai"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    ready(NAME)


def test_the_second_conversation_knows_what_was_said_in_the_first(tmp_path: Path) -> None:
    done = run(NAME, str(HERE / "pydantic_ai_runs.py"), cwd=tmp_path)
    assert done.stdout.strip() == "3 passed", done.stderr[-2_000:]
