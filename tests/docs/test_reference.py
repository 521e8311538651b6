"""The reference that is written from the code is what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

import cli_reference
import reference

PAGES = reference.pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_is_what_the_code_says(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == PAGES[page], "run `python tools/reference.py`"


def test_a_key_without_a_meaning_or_a_call_without_a_word_would_show() -> None:
    assert " |  |" not in PAGES[reference.SETTINGS]
    page = PAGES[reference.CALLS]
    assert "- `append(role, content, *, id=None, at=None, session=None, tokens=None, metadata=None, " in page
    assert "    - `role: 'user' | 'assistant' | 'tool' | 'system'`: Who said it.\n" in page
    assert "    - `limit: int`: Hits at most. 1 to 100.\n" in page


def test_the_commands_are_those_that_there_are() -> None:
    assert cli_reference.PAGE.read_text(encoding="utf-8") == cli_reference.page(), "run `python tools/cli_reference.py`"
