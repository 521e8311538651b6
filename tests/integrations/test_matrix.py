"""The page that says what each adapter was tried with."""

from __future__ import annotations

from datetime import date

import pytest

import frameworks
import integrations

PAGE = integrations.PAGE.read_text()
ROWS = integrations.rows(PAGE)


@pytest.mark.parametrize("name", frameworks.FRAMEWORKS)
def test_the_page_tells_of_the_version_that_is_pinned(name: str) -> None:
    told = {row.version for row in ROWS if row.name == name}
    assert told == {frameworks.version(name)}, f"run `python tools/integrations.py {name}`"


def test_the_page_is_as_the_tool_writes_it() -> None:
    assert integrations.text([], ROWS) == PAGE


def test_each_row_says_what_passed_and_when() -> None:
    assert all(row.passed > 0 and date.fromisoformat(row.date) for row in ROWS)


def test_new_runs_take_the_place_of_the_rows_of_their_framework_alone() -> None:
    new = integrations.Row("adk", "9.9", "`tests/integrations/new.py`", 3, "2030-01-02")
    page = integrations.text([new], ROWS)
    assert [row for row in integrations.rows(page) if row.name == "adk"] == [new]
    assert [row for row in integrations.rows(page) if row.name != "adk"] == [row for row in ROWS if row.name != "adk"]
