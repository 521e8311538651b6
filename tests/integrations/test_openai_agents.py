"""The session for the OpenAI Agents SDK: the SDK's own tests of a session, and two conversations with its runner."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import frameworks
from tests.integrations.framework import HERE, ready, run

NAME = "openai-agents"
pytestmark = pytest.mark.slow
ABOUT_SQLITE = (
    "close_closes_worker_thread_connections",
    "reaps_connections_from_exited_worker_threads",
    "closes_retired_connections_before_the_next_allocation",
    "keeps_connections_of_live_worker_threads",
    "closed_rejects_empty_add_items",
    "pop_item_skips_corrupt_most_recent",
    "pop_item_returns_none_after_dropping_only_corrupt_rows",
    "get_items_limit_skips_corrupt_newest_rows",
    "get_items_session_settings_limit_skips_corrupt_rows",
    "file_lock_is_shared_across_instances",
    "failed_add_items_releases_write_lock",
    "failed_clear_session_rolls_back",
    "failed_pop_item_releases_write_lock",
    "rollback_failure_evicts_connection",
    "close_retries_quarantined_connection",
    "post_commit_cancellation_propagates_after_known_outcome",
)
"""Tests that look into the connections, locks, rows and tables of the class that ours stands for: 18 of the 71."""


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    ready(NAME)


def test_the_tests_of_a_session_pass_on_ours() -> None:
    options = ["-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", "-p", "sqlite_session_swapped"]
    options += [
        word for name in ABOUT_SQLITE for word in ("--deselect", f"tests/memory/test_session.py::test_sqlite_session_{name}")
    ]
    suites = ["tests/memory/test_session.py", "tests/memory/test_session_limit.py"]
    done = run(NAME, "-m", "pytest", *options, *suites, cwd=frameworks.source(NAME))
    assert re.search(r"^53 passed, 18 deselected", done.stdout, re.MULTILINE), done.stdout[-4_000:] + done.stderr


def test_the_second_conversation_knows_what_was_said_in_the_first(tmp_path: Path) -> None:
    done = run(NAME, str(HERE / "two_conversations_openai.py"), cwd=tmp_path)
    assert done.stdout.strip() == "both know", done.stderr
