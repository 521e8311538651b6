"""No public call slips past the access log: each is in its table, leaves exactly one entry, and is what the table says it is."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import perdure
from perdure.adapters.memory.accesses import MemoryAccesses
from perdure.domain.digests import Digest
from perdure.domain.errors import Corrupt
from perdure.domain.scope import shared_owner
from perdure.handles.agents import AgentHandle
from perdure.handles.api_keys import ApiKeyHandle
from perdure.handles.conversation import Conversation, Turn
from perdure.handles.instructions import InstructionHandle
from perdure.handles.knowledge import EntityHandle, Memories, TaskHandle, TodoHandle
from perdure.handles.lessons import LessonHandle
from perdure.handles.memory import Memory
from perdure.handles.series import SeriesHandle
from perdure.handles.state import State
from perdure.handles.transcripts import TranscriptHandle
from perdure.handles.watching import CALLS, OPENS, PASSES
from perdure.ports.rows import TABLES
from perdure.services.api_keys import ApiKeys
from perdure.testing import StoppedClock

HANDLES = (
    Memory, State, SeriesHandle, Conversation, Turn, Memories, EntityHandle, TodoHandle, TaskHandle, InstructionHandle,
    LessonHandle, TranscriptHandle, AgentHandle, ApiKeyHandle, perdure.Engine,
)  # fmt: skip
NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
T1, T2 = NOW - timedelta(days=900), NOW + timedelta(days=900)
KEY, MARIA = "profile|place|austin|fact", "person:maria"


@dataclass
class World:
    engine: perdure.Engine
    ana: Memory
    folder: Path
    lesson: str = ""
    todo: str = ""
    task: str = ""
    order: str = ""
    prepared: Any = None

    @property
    def runs(self) -> SeriesHandle:
        return self.ana.series("runs")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    settings = perdure.Settings(url="memory:", access_log="all", files_dir=str(tmp_path / "files"), transcript_messages_min=0)
    with perdure.open(settings=settings, clock=StoppedClock(NOW)) as engine:
        ana = engine.memory("ana", agent="coach", channel="c")
        made = World(engine, ana, tmp_path)
        plain = Memory(ana.scope, ana._do)
        for number in range(6):
            plain.append(
                "user" if number % 2 == 0 else "assistant", f"I run with Maria {number}", id=f"m{number}", session="s1"
            )
        plain.remember("Lives in Austin", entities=["place:Austin"], attribute="lives_in", value="Austin")
        plain.remember("Maria is my sister", "PEOPLE", entities=["person:Maria"])
        plain.remember("Marie runs", "PEOPLE", entities=["person:Marie"])
        for value in (1, 2):
            plain.state.save("k", value)
        rows = [{"id": 1, "timestamp": "2026-01-01T00:00:00Z", "sport": "run"}]
        plain.series("runs").merge(rows, window=("2026-01-01", "2026-01-02"))
        made.lesson = plain.lessons.add("Be brief", "user").id
        made.todo, made.task = plain.todos.add("Call the dentist").id, plain.tasks.start("Plan the trip").id
        made.order = plain.instructions.add("Always answer in French").id
        plain.conversation.compact(force=True)
        for _ in range(3):
            engine.process()
        yield made


Step = Callable[[World], Any]


def plainly(world: World) -> Memory:
    """A handle that nobody watches, to prepare things with."""
    return Memory(world.ana.scope, world.ana._do)


def exported(world: World) -> bytes:
    held = BytesIO()
    plainly(world).export(held)
    return held.getvalue()


def all_exported(world: World) -> bytes:
    held = BytesIO()
    world.engine._services.portable.exporting.export_all("default", held)
    return held.getvalue()


def twin(world: World) -> None:
    for name in ("Mukesh", "Makesh"):
        plainly(world).remember(f"{name} is a friend", "PEOPLE", entities=[f"person:{name}"])


def suggestion(world: World) -> str:
    twin(world)
    plainly(world).curate()
    return plainly(world).entities.suggestions()[0].id


def talk(world: World) -> None:
    plainly(world).append_many([perdure.NewMessage("user", f"more {number}") for number in range(9)])


def turned(world: World, *, many: bool) -> object:
    with world.ana.turn() as turn:
        return turn.append_many([perdure.NewMessage("user", "a")]) if many else turn.append("user", "a")


def mapped(world: World) -> None:
    held = world.engine._services.lessons.prompting.agents
    held.save("default", "coach", {"soul": "You are a coach.", "mood": None, "skill": None})
    held.map_channel("default", "here", "coach")


def a_key(world: World) -> str:
    keys = ApiKeys(world.engine._store, world.engine._clock, "default")
    return keys.create("laptop", users=None, permission="read", days=None).key.id


def fold(world: World) -> Digest:
    return plainly(world).conversation.digest("fold", 1, session="s1")


PROFILE = {"city": "Oslo"}
PREPARED: dict[str, Step] = {
    "Memory.extract": lambda w: plainly(w).append("user", "My name is Ana and I work at Acme."),
    "Memory.curate": twin,
    "Memory.import_": exported,
    "Memory.accept": lambda w: plainly(w).after("getProfile", PROFILE, "remember my profile", mode="suggest"),
    "Memory.undo": lambda w: plainly(w).journal(500)[-1].seq,
    "Conversation.expand": fold,
    "Conversation.resume": lambda w: plainly(w).conversation.close("s1"),
    "Conversation.compact": talk,
    "Conversation.fold": talk,
    "Memories.unpin": lambda w: plainly(w).memories.pin(KEY),
    "Memories.restore": lambda w: plainly(w).memories.archive(KEY),
    "EntityHandle.dismiss": suggestion,
    "TodoHandle.reopen": lambda w: plainly(w).todos.complete(w.todo),
    "LessonHandle.restore": lambda w: plainly(w).lessons.archive(w.lesson),
    "LessonHandle.unpin": lambda w: plainly(w).lessons.pin(w.lesson),
    "TranscriptHandle.prune": lambda w: plainly(w).transcripts.archive(keep=0),
    **dict.fromkeys(
        (f"AgentHandle.{name}" for name in ("get", "list", "channels", "remove", "map_channel", "unmap_channel")), mapped
    ),
    "ApiKeyHandle.revoke": a_key,
    "Engine.import_": all_exported,
}
"""What has to be there before a call, made without the log; `World.prepared` is what it gave."""
SAMPLES: dict[str, Step] = {
    "Memory.list_series": lambda w: w.ana.list_series(),
    "Memory.overview": lambda w: w.ana.overview(),
    "Memory.diff": lambda w: w.ana.diff(T1, T2),
    "Memory.audit": lambda w: w.ana.audit(),
    "Memory.export": lambda w: w.ana.export(BytesIO()),
    "Memory.recall": lambda w: w.ana.recall("Where do I live?"),
    "Memory.before": lambda w: w.ana.before("Where does Maria run?"),
    "Memory.decisions": lambda w: w.ana.decisions(),
    "Memory.context": lambda w: w.ana.context("Where do I live?"),
    "Memory.prompt": lambda w: w.ana.prompt(),
    "Memory.messages": lambda w: w.ana.messages(),
    "Memory.message": lambda w: w.ana.message("m1"),
    "Memory.sessions": lambda w: w.ana.sessions(),
    "Memory.tally": lambda w: w.ana.tally(),
    "Memory.journal": lambda w: w.ana.journal(),
    "Memory.remember": lambda w: w.ana.remember("Has a dog"),
    "Memory.seed": lambda w: w.ana.seed("I live in Lisbon. My sister is called Rita."),
    "Memory.extract": lambda w: w.ana.extract(),
    "Memory.curate": lambda w: w.ana.curate(),
    "Memory.import_": lambda w: w.ana.import_(BytesIO(w.prepared), replace=True),
    "Memory.after": lambda w: w.ana.after("getProfile", {"name": "Ana"}, "remember my profile", mode="auto"),
    "Memory.accept": lambda w: w.ana.accept(w.prepared, PROFILE),
    "Memory.run": lambda w: w.ana.run("Where do I live?", lambda text: text),
    "Memory.append": lambda w: w.ana.append("user", "hello"),
    "Memory.append_many": lambda w: w.ana.append_many([perdure.NewMessage("user", "hello")]),
    "Memory.undo": lambda w: w.ana.undo(w.prepared, cascade=True),
    "Memory.forget": lambda w: w.ana.forget(entity=MARIA),
    "Memory.reindex": lambda w: w.ana.reindex(),
    "Memory.usage": lambda w: w.ana.usage(),
    "Memory.jobs": lambda w: w.ana.jobs(),
    "Memory.retry_jobs": lambda w: w.ana.retry_jobs(),
    "Memory.accesses": lambda w: w.ana.accesses(),
    "State.load": lambda w: w.ana.state.load("k"),
    "State.find": lambda w: w.ana.state.find("k"),
    "State.history": lambda w: w.ana.state.history("k"),
    "State.keys": lambda w: w.ana.state.keys(),
    "State.list": lambda w: w.ana.state.list(),
    "State.search": lambda w: w.ana.state.search("*"),
    "State.save": lambda w: w.ana.state.save("k", 3),
    "State.delete": lambda w: w.ana.state.delete("k"),
    "State.restore": lambda w: w.ana.state.restore("k", 1),
    "State.clear": lambda w: w.ana.state.clear(),
    "SeriesHandle.about": lambda w: w.runs.about(),
    "SeriesHandle.query": lambda w: w.runs.query(T1, T2),
    "SeriesHandle.gaps": lambda w: w.runs.gaps(T1, T2),
    "SeriesHandle.windows": lambda w: w.runs.windows(T1, T2),
    "SeriesHandle.history": lambda w: w.runs.history("1"),
    "SeriesHandle.count": lambda w: w.runs.count(),
    "SeriesHandle.first": lambda w: w.runs.first(),
    "SeriesHandle.last": lambda w: w.runs.last(),
    "SeriesHandle.per": lambda w: w.runs.per("day"),
    "SeriesHandle.group": lambda w: w.runs.group("sport"),
    "SeriesHandle.distinct": lambda w: w.runs.distinct("sport"),
    "SeriesHandle.entries": lambda w: list(w.runs.entries()),
    "SeriesHandle.export": lambda w: list(w.runs.export()),
    "SeriesHandle.rows": lambda w: w.runs.rows(),
    "SeriesHandle.to_pandas": lambda w: w.runs.to_pandas(),
    "SeriesHandle.to_polars": lambda w: w.runs.to_polars(),
    "SeriesHandle.to_arrow": lambda w: w.runs.to_arrow(),
    "SeriesHandle.configure": lambda w: w.runs.configure(description="runs of Ana"),
    "SeriesHandle.merge": lambda w: w.runs.merge([{"id": 2, "timestamp": "2026-01-03T00:00:00Z"}]),
    "SeriesHandle.fetch": lambda w: w.runs.fetch("2026-01-02", "2026-01-04", lambda _: []),
    "SeriesHandle.remove": lambda w: w.runs.remove(),
    "SeriesHandle.cleanup": lambda w: w.runs.cleanup(keep_days=1),
    "Conversation.list_sessions": lambda w: w.ana.conversation.list_sessions(),
    "Conversation.session": lambda w: w.ana.conversation.session(),
    "Conversation.search": lambda w: w.ana.conversation.search("Maria"),
    "Conversation.digests": lambda w: w.ana.conversation.digests(),
    "Conversation.digest": lambda w: w.ana.conversation.digest("fold", 1, session="s1"),
    "Conversation.agent_state": lambda w: w.ana.conversation.agent_state(),
    "Conversation.expand": lambda w: list(w.ana.conversation.expand(w.prepared)),
    "Conversation.close": lambda w: w.ana.conversation.close(),
    "Conversation.resume": lambda w: w.ana.conversation.resume("s1"),
    "Conversation.compact": lambda w: w.ana.conversation.compact(force=True),
    "Conversation.fold": lambda w: w.ana.conversation.fold(),
    "Conversation.clear": lambda w: w.ana.conversation.clear(),
    "Conversation.replace": lambda w: w.ana.conversation.replace("in short"),
    "Conversation.undo": lambda w: w.ana.conversation.undo("s1"),
    "Conversation.configure": lambda w: w.ana.conversation.configure(profile="complete"),
    "Conversation.delete": lambda w: w.ana.conversation.delete("s1"),
    "Turn.append": lambda w: turned(w, many=False),
    "Turn.append_many": lambda w: turned(w, many=True),
    "Memories.list": lambda w: w.ana.memories.list(),
    "Memories.get": lambda w: w.ana.memories.get(KEY),
    "Memories.history": lambda w: w.ana.memories.history(KEY),
    "Memories.changes": lambda w: w.ana.memories.changes(KEY),
    "Memories.foundation": lambda w: w.ana.memories.foundation(),
    "Memories.rejections": lambda w: w.ana.memories.rejections(),
    "Memories.pin": lambda w: w.ana.memories.pin(KEY),
    "Memories.unpin": lambda w: w.ana.memories.unpin(KEY),
    "Memories.archive": lambda w: w.ana.memories.archive(KEY),
    "Memories.restore": lambda w: w.ana.memories.restore(KEY),
    "Memories.edit": lambda w: w.ana.memories.edit(KEY, importance=2),
    "EntityHandle.list": lambda w: w.ana.entities.list(),
    "EntityHandle.get": lambda w: w.ana.entities.get(MARIA),
    "EntityHandle.links": lambda w: w.ana.entities.links(),
    "EntityHandle.suggestions": lambda w: w.ana.entities.suggestions(),
    "EntityHandle.alias": lambda w: w.ana.entities.alias(MARIA, "Mia"),
    "EntityHandle.merge": lambda w: w.ana.entities.merge("person:marie", MARIA),
    "EntityHandle.dismiss": lambda w: w.ana.entities.dismiss(w.prepared),
    "TodoHandle.list": lambda w: w.ana.todos.list(),
    "TodoHandle.add": lambda w: w.ana.todos.add("Buy bread"),
    "TodoHandle.complete": lambda w: w.ana.todos.complete(w.todo),
    "TodoHandle.skip": lambda w: w.ana.todos.skip(w.todo),
    "TodoHandle.reopen": lambda w: w.ana.todos.reopen(w.todo),
    "TaskHandle.list": lambda w: w.ana.tasks.list(),
    "TaskHandle.start": lambda w: w.ana.tasks.start("Pack"),
    "TaskHandle.update": lambda w: w.ana.tasks.update(w.task, progress=0.5),
    "InstructionHandle.list": lambda w: w.ana.instructions.list(),
    "InstructionHandle.add": lambda w: w.ana.instructions.add("Always use metric units"),
    "InstructionHandle.withdraw": lambda w: w.ana.instructions.withdraw(w.order),
    "LessonHandle.list": lambda w: w.ana.lessons.list(),
    "LessonHandle.text": lambda w: w.ana.lessons.text("user"),
    "LessonHandle.add": lambda w: w.ana.lessons.add("Use short words", "user"),
    "LessonHandle.remove": lambda w: w.ana.lessons.remove(w.lesson),
    "LessonHandle.archive": lambda w: w.ana.lessons.archive(w.lesson),
    "LessonHandle.restore": lambda w: w.ana.lessons.restore(w.lesson),
    "LessonHandle.pin": lambda w: w.ana.lessons.pin(w.lesson),
    "LessonHandle.unpin": lambda w: w.ana.lessons.unpin(w.lesson),
    "LessonHandle.take_from": lambda w: w.ana.lessons.take_from("Done.\nMEMORY_APPEND: Use metric units"),
    "LessonHandle.edit": lambda w: w.ana.lessons.edit("- Use long words\n", "user"),
    "TranscriptHandle.list": lambda w: w.ana.transcripts.list(),
    "TranscriptHandle.read": lambda w: w.ana.transcripts.read("s1"),
    "TranscriptHandle.archive": lambda w: w.ana.transcripts.archive(keep=0),
    "TranscriptHandle.prune": lambda w: w.ana.transcripts.prune(keep=0),
    "AgentHandle.get": lambda w: w.engine.agents.get("coach"),
    "AgentHandle.list": lambda w: w.engine.agents.list(),
    "AgentHandle.channels": lambda w: w.engine.agents.channels(),
    "AgentHandle.save": lambda w: w.engine.agents.save("coach", soul="You are a coach."),
    "AgentHandle.remove": lambda w: w.engine.agents.remove("coach"),
    "AgentHandle.map_channel": lambda w: w.engine.agents.map_channel("there", "coach"),
    "AgentHandle.unmap_channel": lambda w: w.engine.agents.unmap_channel("here"),
    "ApiKeyHandle.create": lambda w: w.engine.api_keys.create("laptop"),
    "ApiKeyHandle.list": lambda w: w.engine.api_keys.list(),
    "ApiKeyHandle.revoke": lambda w: w.engine.api_keys.revoke(w.prepared),
    "Engine.users": lambda w: w.engine.users(),
    "Engine.export": lambda w: w.engine.export(BytesIO()),
    "Engine.backup": lambda w: w.engine.backup(w.folder / "all.perdure"),
    "Engine.import_": lambda w: w.engine.import_(BytesIO(w.prepared), replace=True),
    "Engine.purge": lambda w: w.engine.purge(),
    "Engine.reindex": lambda w: w.engine.reindex(),
    "Engine.accesses": lambda w: w.engine.accesses(),
}
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
        "Memory.overview", "Memory.tally", "Memory.prompt", "Memory.usage", "Memory.reindex", "Memory.retry_jobs",
        "Memory.accesses", "Memory.decisions", "State.clear", "Conversation.agent_state", "Conversation.configure",
        "Memories.foundation", "Memories.rejections", "EntityHandle.links", "EntityHandle.suggestions", "EntityHandle.merge",
        "LessonHandle.text", "LessonHandle.edit", "TranscriptHandle.archive", "TranscriptHandle.prune", "AgentHandle.remove",
        "AgentHandle.unmap_channel", "ApiKeyHandle.list", "Engine.users", "Engine.purge", "Engine.reindex", "Engine.accesses",
    )
)  # fmt: skip
"""Calls that answer with counts, with texts, or in this world with nothing."""
BESIDE_THE_POINT = {"accesses", "jobs", *(name for name, table in TABLES.items() if table.rebuilt)}


def public(kind: type) -> set[str]:
    return {f"{kind.__name__}.{name}" for name, _ in inspect.getmembers(kind) if not name.startswith("_")} | {
        f"{kind.__name__}.{name}" for name in getattr(kind, "__slots__", ()) if not name.startswith("_")
    }


def test_every_public_call_of_every_handle_has_its_place_in_the_tables() -> None:
    calls = {name for kind in HANDLES for name in public(kind)}
    logged = {f"{kind}.{name}" for kind, names in CALLS.items() for name in names}
    assert sorted(calls - logged - OPENS - PASSES.keys()) == [], "say in `handles.watching` what these calls are for"
    assert sorted((logged | OPENS | PASSES.keys()) - calls) == []
    assert len(logged) + len(OPENS) + len(PASSES) == len(logged | OPENS | PASSES.keys())
    assert all(PASSES.values())


def test_what_gives_a_handle_gives_one_that_is_watched(world: World) -> None:
    for name in sorted(OPENS - {"Memory.series", "Memory.turn", "AgentHandle.of", "Engine.memory"}):
        kind, _, what = name.partition(".")
        handle = getattr(world.ana if kind == "Memory" else world.engine, what)
        assert "_watched" in vars(handle), name
    assert "_watched" in vars(world.ana.series("runs"))
    assert "_watched" in vars(world.engine.agents.of("other"))
    with world.ana.turn() as turn:
        assert "_watched" in vars(turn)


def test_every_call_that_is_logged_has_a_sample() -> None:
    assert sorted({f"{kind}.{name}" for kind, names in CALLS.items() for name in names} ^ SAMPLES.keys()) == []


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
    assert made[0].touched or name in NAMES_NOTHING, "an answer whose class is not in `services.touching.KNOWN`"
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
        if one.name != "progress" and re.search("Target|PathLike|Callable|Fetcher", str(one.annotation))
    }
    assert giving == {"Memory.export", "Memory.run", "SeriesHandle.fetch", "Engine.export", "Engine.backup"}
    assert all(CALLS[kind][name].first for kind, _, name in (one.partition(".") for one in giving))


@pytest.mark.parametrize(
    "name",
    sorted(
        f"{kind}.{name}" for kind, calls in CALLS.items() for name, one in calls.items() if one.first or one.action == "erase"
    ),
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
    without_data = {"open", "extract_time_range"}
    assert functions - without_data == {"restore"}, "which is logged, see tests/flows/test_access_log_begun.py"


def test_nothing_of_this_exists_when_the_log_is_off() -> None:
    with perdure.open("memory:") as engine:
        ana = engine.memory("ana")
        assert type(ana) is Memory
        assert (type(ana.state), type(ana.series("x")), type(engine.agents)) == (State, SeriesHandle, AgentHandle)
        assert type(engine._store).__name__ == "MemoryStore"
        ana.append("user", "hello")
        assert ana.accesses() == [] == engine.accesses()
