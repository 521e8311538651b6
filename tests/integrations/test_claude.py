"""The Claude Agent SDK: its conformance suite for session stores, its own helpers reading what is kept, and Claude Code itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

import frameworks
import perdure
from tests.integrations import messages_api
from tests.integrations.framework import HERE, ready, run

NAME = "claude"
SCRIPT = Path(sys.executable).with_name("perdure")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    ready(NAME)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_the_conformance_suite_passes_whole(tmp_path: Path, kind: str) -> None:
    url = "memory:" if kind == "memory" else f"sqlite:///{tmp_path}/store.db"
    done = run(NAME, str(HERE / "claude_conformance.py"), url, cwd=tmp_path)
    assert done.stdout.strip() == "14 passed", done.stderr[-2_000:]


def test_sessions_are_kept_as_they_are_and_the_second_knows_what_was_said_in_the_first(tmp_path: Path) -> None:
    done = run(NAME, str(HERE / "claude_sessions.py"), cwd=tmp_path)
    assert done.stdout.strip() == "all kept", done.stderr[-2_000:]


def test_claude_code_with_the_plugin_knows_in_the_second_session_what_was_said_in_the_first(tmp_path: Path) -> None:
    """The real program, installed plugin and all; only the API behind it is a stand-in."""
    programs, project = tmp_path / "programs", tmp_path / "project"
    programs.mkdir()
    project.mkdir()
    [bundled] = frameworks.python(NAME).parents[1].glob("lib/python*/site-packages/claude_agent_sdk/_bundled/claude")
    (programs / "claude").symlink_to(bundled)
    quiet = dict.fromkeys(("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY"), "1")
    with messages_api.serving() as (url, asked):
        home = {
            "HOME": str(tmp_path),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
        }

        def run_in_project(*words: str) -> str:
            done = subprocess.run(
                words,
                env={**home, **quiet},
                cwd=project,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
                stdin=subprocess.DEVNULL,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        store = f"sqlite:///{tmp_path}/memory.db"
        connected = run_in_project(
            str(SCRIPT), "agent", "connect", "claude-code", "--user", "ana", "--url", store, "--deadline", "200", "--json"
        )
        assert json.loads(connected)["installed"] is True
        assert "passed" in run_in_project("claude", "plugin", "validate", json.loads(connected)["folder"])
        assert run_in_project("claude", "-p", "I live in Lisbon, and my sister is called Rita.").strip() == messages_api.SAID
        learned = wait_until_learned(store)
        assert run_in_project("claude", "-p", "Where do I live?").strip() == messages_api.SAID
    first, second = (
        json.dumps(next(one for one in asked if prompt in json.dumps(one)))
        for prompt in ("sister is called Rita", "Where do I live?")
    )
    assert "<memory " not in first
    assert "<memory " in second
    assert "Lisbon" in second
    with perdure.open(store, background=False) as engine:
        said = [one.content for one in engine.memory("ana", agent="claude-code", channel=str(project)).messages()]
    assert any("Lisbon" in one for one in learned)
    assert said[:2] == ["I live in Lisbon, and my sister is called Rita.", messages_api.SAID]


def wait_until_learned(store: str) -> list[str]:
    """What is known once the jobs are done. The worker of the plugin may have been ended with a job in hand, whose lease runs out."""
    end = monotonic() + 400
    with perdure.open(store, background=False) as engine:
        while monotonic() < end:
            engine.process()
            if known := [one.content for one in engine.memory("ana").memories.list()]:
                return known
            sleep(0.2)
    raise AssertionError("nothing was learned")
