"""The reference that is written from the code is what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

import reference

PAGES = reference.pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_is_what_the_code_says(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == PAGES[page], "run `python tools/reference.py`"


def test_a_key_without_a_meaning_or_a_call_without_a_word_would_show() -> None:
    assert " |  |" not in PAGES[reference.SETTINGS]
    assert "`append(role: str, content: str, **fields: Unpack[MessageFields]) -> Message`: " in PAGES[reference.CALLS]
