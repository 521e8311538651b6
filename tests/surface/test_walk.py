"""The walks that `tools/walk.py` traces stay short."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import walk
from walk import Function, Walk

MODULES_MAX = {"append": 21, "jobs": 74, "recall": 35, "before": 74, "fetch": 20}
"""Through how many modules each call may lead. These numbers may only shrink; `python tools/walk.py NAME --calls` shows the way.
`before` took one more when fences became a module of their own; it and `recall` one more when reading began to learn.
`before` took three more when it began to know what limits a goal (`statements`), whether it needs anything (`needs`), and to look
in the log whether the goal was said in the session that is open (`messages`); `jobs` three, when a judge began to say which
sentences tell something that lasts (`verbatim`, `judge`) and which notes they bring to an end (`changes`). What appending no longer does, seven modules of words, times and orders, the jobs do with five more; `before` looks for
messages that wait for them (`unread`). `fetch` took one more when the windows of a series, declared and inferred, got a module of
their own (`ledger`).
`before` reads keys and series for every goal but greetings and sums, since a goal may name one of them: three more."""


@pytest.fixture(scope="module")
def walks() -> dict[str, Walk]:
    return walk.walks()


@pytest.fixture(scope="module")
def modules() -> dict[str, list[str]]:
    """What each walk touches, traced in a process of its own: what other tests left in memory would change the way."""
    done = subprocess.run([sys.executable, walk.__file__, "--json"], capture_output=True, text=True, check=True, timeout=300)
    return {name: one["modules"] for name, one in json.loads(done.stdout).items()}


@pytest.mark.parametrize("name", walk.WALKS)
def test_a_call_leads_through_few_modules(name: str, modules: dict[str, list[str]]) -> None:
    assert len(modules[name]) <= MODULES_MAX[name], "\n".join(modules[name])


def test_a_walk_is_read_from_the_outside_in(walks: dict[str, Walk]) -> None:
    lines = list(walks["recall"].lines())
    assert "handles/memory.py Memory.recall" in [line.strip() for line in lines[:3]]
    assert len(lines) == len(walks["recall"].called_by)
    assert any(line.strip().startswith("adapters/sqlite/store.py ") for line in lines)


def test_functions_that_are_alike_are_told_apart_by_their_files() -> None:
    text = "def __init__(self, run): self.run = run"
    codes = [
        next(one for one in compile(text, str(walk.SRC / name), "exec").co_consts if hasattr(one, "co_code"))
        for name in ("a.py", "b.py")
    ]
    assert codes[0] == codes[1]
    assert [walk.function_of(code) for code in codes] == [Function("a.py", "__init__"), Function("b.py", "__init__")]


def test_a_change_of_room_is_counted_once_for_each_pair_of_functions() -> None:
    trip = Walk()
    ask, read, row = Function("handles/a.py", "ask"), Function("services/b.py", "read"), Function("services/c.py", "row")
    for called, by in ((ask, None), (read, ask), (row, read), (read, ask), (row, ask)):
        trip.enter(called, by)
    assert trip.changes == 2
    assert trip.modules == ["handles/a.py", "services/b.py", "services/c.py"]
    assert list(trip.lines()) == ["handles/a.py ask", "  services/b.py read", "    services/c.py row"]
