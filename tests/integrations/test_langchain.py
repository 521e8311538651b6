"""LangChain: its standard tests on our retriever and key-value store, and two conversations with its agent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.integrations.framework import HERE, ready, run

NAME = "langchain"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    ready(NAME)


def test_the_standard_tests_for_retrievers_and_stores_pass_whole(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
    options = ["-q", "-c", str(tmp_path / "pytest.ini"), "--noconftest", "-p", "no:cacheprovider", "--import-mode=importlib"]
    done = run(NAME, "-m", "pytest", *options, str(HERE / "langchain_standard.py"), cwd=tmp_path)
    assert re.search(r"^29 passed in ", done.stdout, re.MULTILINE), done.stdout[-4_000:] + done.stderr


def test_the_second_conversation_knows_what_was_said_in_the_first(tmp_path: Path) -> None:
    done = run(NAME, str(HERE / "two_conversations_langchain.py"), cwd=tmp_path)
    assert done.stdout.strip() == "both know", done.stderr[-3_000:]
