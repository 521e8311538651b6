"""Adapters whose framework has no suite for others: its real agents, with a scripted model, in the framework's environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integrations.framework import HERE, ready, run

pytestmark = pytest.mark.slow
CHECKS = {"adk": 9, "agent-framework": 6, "llama-index": 4}
"""How many checks the script of a framework has."""


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("name", CHECKS)
def test_what_one_expects_of_memory_there_happens(tmp_path: Path, name: str, kind: str) -> None:
    ready(name)
    done = run(name, str(HERE / f"{name.replace('-', '_')}_checks.py"), kind, cwd=tmp_path)
    assert done.stdout.splitlines()[-1:] == [f"{CHECKS[name]} passed"], done.stdout + done.stderr[-3_000:]
