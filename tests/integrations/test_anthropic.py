"""The memory tool of Anthropic's SDK on a user's state: its six commands as they are documented, and undo."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integrations.framework import HERE, ready, run

NAME = "anthropic"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    ready(NAME)


def test_the_memory_tool_does_what_is_documented_and_can_be_undone(tmp_path: Path) -> None:
    done = run(NAME, str(HERE / "memory_tool.py"), cwd=tmp_path)
    assert done.stdout.strip() == "3 passed", done.stderr[-2_000:]
