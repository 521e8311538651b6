"""The reference that is written from the code is what the code says."""

from __future__ import annotations

import inspect
from collections import Counter
from pathlib import Path

import pytest

import cli_reference
import perdure
import reference
from perdure.handles.operation import is_operation, parameters

PAGES = reference.pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_is_what_the_code_says(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == PAGES[page], "run `python tools/reference.py`"


def test_a_key_without_a_meaning_or_a_call_without_a_word_would_show() -> None:
    assert " |  |" not in PAGES[reference.SETTINGS]
    page = PAGES[reference.CALLS]
    assert "- `append(role, content, *, id=None, at=None, session=None, tokens=None, metadata=None, " in page
    assert "- `budget_tokens`: Tokens at most. 100 to 10,000,000.\n" in page
    assert [name for name in _shared_parameters() if f"\n- `{name}`: " not in page] == []


def _shared_parameters() -> set[str]:
    """Those that several operations take, but for what their names say already."""
    handles = (perdure.Engine, perdure.Memory, *reference.public("perdure.handles").values())
    methods = [method for kind in handles for _, method in inspect.getmembers(kind, inspect.isfunction)]
    given = [one for method in methods if is_operation(method) for one in parameters(method)]
    taken = Counter(one.name for one in given if one.arg.text and not reference.SELF_EVIDENT.fullmatch(one.arg.text))
    return {name for name, count in taken.items() if count > 1}


def test_the_commands_are_those_that_there_are() -> None:
    assert cli_reference.PAGE.read_text(encoding="utf-8") == cli_reference.page(), "run `python tools/cli_reference.py`"
