"""No public call slips past the access log: each is declared, leaves exactly one entry, and is what its declaration says."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import perdure
from every_call import CALLS, HANDLES, NOW, PREPARED, SAMPLES, World, furnished
from perdure.adapters.memory.access import MemoryAccesses
from perdure.domain.errors import Corrupt
from perdure.domain.scope import shared_owner
from perdure.handles.admin import AgentHandle
from perdure.handles.memory import Memory
from perdure.handles.operation import Handle, is_operation
from perdure.handles.series import SeriesHandle
from perdure.handles.state import State
from perdure.ports.tables.rows import TABLES
from perdure.testing import StoppedClock


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    settings = perdure.Settings(url="memory:", access_log="all", files_dir=str(tmp_path / "files"), transcript_messages_min=0)
    with perdure.open(settings=settings, clock=StoppedClock(NOW)) as engine:
        yield furnished(engine, tmp_path)


# What a call leaves behind that is for reading all the same.
ITS_OWN_NOTES = {
    "Memory.before": {"decisions", "echoes"},
    "Memory.context": {"echoes"},
    "Memory.prompt": {"echoes"},
}
WITHOUT_ROWS = {
    "Memory.import_": "what comes in is what was there",
    "Engine.import_": "the same",
    "Memory.run": "what it changes is what the caller's own tools find",
    "TranscriptHandle.archive": "transcripts are files",
    "TranscriptHandle.prune": "the same",
}
"""Calls that are for changing something, but not a row."""
NAMES_NOTHING = frozenset(
    (
        "AdminHandle.overview",
        "Conversation.tally",
        "Memory.prompt",
        "AdminHandle.usage",
        "AdminHandle.reindex",
        "AdminHandle.retry_jobs",
        "JournalHandle.accesses",
        "JournalHandle.decisions",
        "State.clear",
        "Conversation.agent_state",
        "Conversation.configure",
        "Memories.foundation",
        "Memories.groups",
        "Memories.rejections",
        "EntityHandle.links",
        "EntityHandle.suggestions",
        "EntityHandle.merge",
        "LessonHandle.text",
        "LessonHandle.edit",
        "TranscriptHandle.archive",
        "TranscriptHandle.prune",
        "AgentHandle.remove",
        "AgentHandle.unmap_channel",
        "ApiKeyHandle.list",
        "Engine.users",
        "Engine.purge",
        "Engine.repair_clock",
        "Engine.distribute",
        "Engine.reindex",
        "Engine.accesses",
    )
)
"""Calls that answer with counts, with texts, or in this world with nothing."""
BESIDE_THE_POINT = {"accesses", "jobs", *(name for name, table in TABLES.items() if table.rebuilt)}


def all_handles(kind: type[Handle] = Handle) -> set[type[Handle]]:
    return {
        one for made in kind.__subclasses__() for one in {made, *all_handles(made)} if one.__module__.startswith("perdure.")
    }


def test_every_handle_is_looked_at() -> None:
    assert all_handles() == set(HANDLES)


def opens(member: object) -> bool:
    """Whether a public member is a property that gives another handle, whose calls are declared in turn."""
    if not isinstance(member, property) or member.fget is None:
        return False
    return inspect.get_annotations(member.fget, eval_str=True)["return"] in HANDLES


def reason(member: object) -> str:
    """Why a public member is not logged, if it says so."""
    return str(vars(member.fget if isinstance(member, property) else member).get("_unlogged", ""))


@pytest.mark.parametrize("kind", HANDLES)
def test_every_public_member_is_logged_or_opens_a_handle_or_says_why_not(kind: type) -> None:
    of_itself = {"scope", *(name for name in getattr(kind, "__slots__", ()) if name == "name")}
    members = {name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")}
    silent = [
        name
        for name, member in members.items()
        if name not in of_itself and not is_operation(member) and not opens(member) and not reason(member)
    ]
    assert silent == [], "declare these with `@operation`, or say with `@unlogged` why they are in no log"


def test_what_gives_a_handle_gives_one_whose_calls_are_logged(world: World) -> None:
    for holder in (world.ana, world.engine):
        for name in dir(type(holder)):
            if opens(inspect.getattr_static(type(holder), name)) and name != "tools":  # which calls the state and the series
                assert getattr(holder, name)._log is not None, name
    assert world.ana.series("runs")._log is not None
    assert world.engine.agents.of("other")._log is not None
    with world.ana.turn() as turn:
        assert turn._log is not None
    world.ana.tools.call_tool("saveState", {"key": "k", "value": 1})
    assert world.ana.journal.accesses()[0].call == "state.save"


def test_every_call_that_is_logged_has_a_sample() -> None:
    assert sorted({f"{kind}.{name}" for kind, calls in CALLS.items() for name in calls} ^ SAMPLES.keys()) == []


def rows(engine: perdure.Engine) -> dict[str, list[Any]]:
    with engine._store.snapshot() as snapshot:
        return {table: list(snapshot.rows(table)) for table in TABLES if table not in BESIDE_THE_POINT}


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_call_leaves_one_entry_and_is_what_the_table_says(world: World, name: str) -> None:
    kind, _, method = name.partition(".")
    owner = world.ana.scope.owner if kind not in ("AgentHandle", "ApiKeyHandle", "Engine") else shared_owner("default")
    log = world.ana._do.log
    action = CALLS[kind][method].action
    if name in PREPARED:
        world.prepared = PREPARED[name](world)
    before, noted = rows(world.engine), len(log.list_(owner, limit=1_000))
    SAMPLES[name](world)
    entries = list(log.list_(owner, limit=1_000))
    made = entries[: len(entries) - noted]
    assert [(one.call.split(".")[-1], one.action, one.outcome) for one in made] == [(method.rstrip("_"), action, "done")]
    assert made[0].touched or name in NAMES_NOTHING, "an answer whose class is not in `services.access.touched.KNOWN`"
    after = rows(world.engine)
    changed = {table for table in after if after[table] != before[table]} - ITS_OWN_NOTES.get(name, set())
    if action in ("change", "erase"):
        assert changed or name in WITHOUT_ROWS, "it is no change"
    else:
        assert changed == set() or kind == "ApiKeyHandle", "it is neither a read nor upkeep"
    assert world.engine.verify().findings == ()


def test_what_gives_to_somewhere_else_than_its_answer_is_logged_first() -> None:
    """By what its arguments are: something that is written to, or a function of the caller's."""
    giving = {
        f"{kind.__name__}.{name}"
        for kind in HANDLES
        for name, call in inspect.getmembers(kind, callable)
        if f"{kind.__name__}.{name}" in SAMPLES
        for one in inspect.signature(call).parameters.values()
        if one.name != "progress" and re.search(r"\bTarget|PathLike|Callable|Fetcher", str(one.annotation))
    }
    assert giving == {"Memory.export", "Memory.run", "SeriesHandle.fetch", "Engine.export", "Engine.backup"}
    assert all(CALLS[kind][name].first for kind, _, name in (one.partition(".") for one in giving))


@pytest.mark.parametrize(
    "name",
    sorted(f"{kind}.{name}" for kind, calls in CALLS.items() for name, one in calls.items() if one.first),
)
def test_what_is_logged_first_does_nothing_if_it_cannot_be(world: World, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> bool:
        raise Corrupt("a page is damaged; restore")

    if name in PREPARED:
        world.prepared = PREPARED[name](world)
    before, files = rows(world.engine), sorted(world.folder.rglob("*"))
    monkeypatch.setattr(MemoryAccesses, "put_access", refuse)
    with pytest.raises(perdure.Unavailable, match="nothing is done"):
        SAMPLES[name](world)
    monkeypatch.undo()
    assert rows(world.engine) == before
    assert sorted(world.folder.rglob("*")) == files


def test_functions_of_the_package_are_about_no_data_or_are_logged() -> None:
    functions = {name for name in perdure.__all__ if inspect.isfunction(getattr(perdure, name))}
    without_data = {"open", "extract_time_range", "tool"}
    assert functions - without_data == {"restore"}, "which is logged, see tests/flows/access/test_log_order.py"


def test_nothing_of_this_exists_when_the_log_is_off() -> None:
    with perdure.open("memory:") as engine:
        ana = engine.memory("ana")
        assert type(ana) is Memory
        assert (type(ana.state), type(ana.series("x")), type(engine.agents)) == (State, SeriesHandle, AgentHandle)
        assert (ana._log, ana.state._log, ana.series("x")._log, engine._log, engine.agents._log) == (None,) * 5
        assert type(engine._store).__name__ == "MemoryStore"
        ana.append("user", "hello")
        assert ana.journal.accesses() == [] == engine.accesses()
