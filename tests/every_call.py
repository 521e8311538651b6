"""A sample of every public call that is logged, with the world it is made in: tests that hold for all calls go through these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import perdure
from perdure.adapters.memory.store import MemoryStore
from perdure.domain.conversation.digests import Digest
from perdure.domain.conversation.documents import ContextData, HistoryEntry
from perdure.domain.knowledge.proposals import NewStatement
from perdure.domain.reports import DistributionReport
from perdure.handles.admin import AdminHandle, AgentHandle, ApiKeyHandle, JournalHandle
from perdure.handles.conversation import Conversation, DocumentHandle, TranscriptHandle, Turn
from perdure.handles.knowledge import EntityHandle, InstructionHandle, Memories, TaskHandle, TodoHandle
from perdure.handles.lessons import LessonHandle
from perdure.handles.memory import Memory
from perdure.handles.operation import Declared, declared, operations
from perdure.handles.series import SeriesHandle, UserSeries
from perdure.handles.state import State
from perdure.handles.tools import Tools
from perdure.services.access.keys import ApiKeys

HANDLES = (
    Memory,
    State,
    SeriesHandle,
    Conversation,
    Turn,
    Memories,
    EntityHandle,
    TodoHandle,
    TaskHandle,
    InstructionHandle,
    LessonHandle,
    TranscriptHandle,
    DocumentHandle,
    AgentHandle,
    ApiKeyHandle,
    JournalHandle,
    AdminHandle,
    UserSeries,
    Tools,
    perdure.Engine,
)
CALLS: dict[str, dict[str, Declared]] = {
    kind.__name__: {name: declared(getattr(kind, name)) for name in operations(kind)} for kind in HANDLES
}
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


def furnished(engine: perdure.Engine, folder: Path) -> World:
    """Something of everything there is; made without the log."""
    ana = engine.memory("ana", agent="coach", channel="c")
    made = World(engine, ana, folder)
    plain = Memory(ana.scope, ana._do)
    for number in range(6):
        plain.append("user" if number % 2 == 0 else "assistant", f"I run with Maria {number}", id=f"m{number}", session="s1")
    plain.remember("Lives in Austin", entities=["place:Austin"], attribute="lives_in", value="Austin")
    plain.remember("Maria is my sister", "PEOPLE", entities=["person:Maria"])
    plain.remember("Marie runs", "PEOPLE", entities=["person:Marie"])
    for value in (1, 2):
        plain.state.save("k", value)
    rows = [{"id": 1, "timestamp": "2026-01-01T00:00:00Z", "sport": "run"}]
    plain.series("runs").merge(rows, window=("2026-01-01", "2026-01-02"))
    made.lesson = plain.lessons.add("Be brief", "user").id
    made.todo, made.task = plain.todos.add("Call the dentist").id, plain.todos.tasks.start("Plan the trip").id
    made.order = plain.instructions.add("Always answer in French").id
    plain.conversation.compact(force=True)
    for _ in range(3):
        engine.process()
    return made


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
    world.engine._services.portability().exporter.export_all("default", held)
    return held.getvalue()


def twin(world: World) -> None:
    for name in ("Mukesh", "Makesh"):
        plainly(world).remember(f"{name} is a friend", "PEOPLE", entities=[f"person:{name}"])


def suggestion(world: World) -> str:
    twin(world)
    plainly(world).memories.curate()
    return plainly(world).entities.suggestions()[0].id


def talk(world: World) -> None:
    plainly(world).append_many([perdure.NewMessage("user", f"more {number}") for number in range(9)])


def turned(world: World, *, many: bool) -> object:
    with world.ana.turn() as turn:
        return turn.append_many([perdure.NewMessage("user", "a")]) if many else turn.append("user", "a")


def mapped(world: World) -> None:
    held = world.engine._services.lessons.prompts.agents
    held.save("default", "coach", {"soul": "You are a coach.", "mood": None, "skill": None})
    held.map_channel("default", "here", "coach")


def a_key(world: World) -> str:
    keys = ApiKeys(world.engine._store, world.engine._clock, "default")
    return keys.create("laptop", users=None, permission="read", days=None).key.id


def fold(world: World) -> Digest:
    return plainly(world).conversation.digest("fold", 1, session="s1")


def distributed(world: World) -> DistributionReport:
    """As on a cluster, which is not at hand."""
    with patch.object(MemoryStore, "distribute", lambda _: DistributionReport(("node:5432",), (), 0)):
        return world.engine.distribute()


PROFILE = {"city": "Oslo"}


def document(w: World) -> ContextData:
    """One that was saved."""
    documents = plainly(w).conversation.documents
    made = documents.load("s1")
    made.recent_history += [HistoryEntry(1_767_607_200 + number, "user", f"more {number}") for number in range(4)]
    documents.save(made)
    w.engine.process()  # what a read would see to
    return documents.load("s1")


def proposed(w: World) -> str:
    """What an agent says against the user's word; its id."""
    made = plainly(w).as_agent().memories.correct(KEY, "Lives in Minsk", value="Minsk").statement
    assert made is not None
    return made.id


PREPARED: dict[str, Step] = {
    "Memories.extract": lambda w: plainly(w).append("user", "My name is Ana and I work at Acme."),
    "Memories.curate": twin,
    "Memory.import_": exported,
    "Tools.accept": lambda w: plainly(w).after("getProfile", PROFILE, "remember my profile", mode="suggest"),
    "Memory.undo": lambda w: plainly(w).journal.list(500)[-1].seq,
    "Conversation.expand": fold,
    "Conversation.resume": lambda w: plainly(w).conversation.close("s1"),
    "Conversation.compact": talk,
    "Conversation.fold": talk,
    "Memories.proposals": proposed,
    "Memories.accept": proposed,
    "Memories.reject": proposed,
    "Memories.unpin": lambda w: plainly(w).memories.pin(KEY),
    "Memories.restore": lambda w: plainly(w).memories.archive(KEY),
    "EntityHandle.dismiss": suggestion,
    "TodoHandle.reopen": lambda w: plainly(w).todos.complete(w.todo),
    "LessonHandle.restore": lambda w: plainly(w).lessons.archive(w.lesson),
    "LessonHandle.unpin": lambda w: plainly(w).lessons.pin(w.lesson),
    "TranscriptHandle.prune": lambda w: plainly(w).conversation.transcripts.archive(keep=0),
    **dict.fromkeys((f"DocumentHandle.{name}" for name in ("list", "load", "save", "compact", "versions", "delete")), document),
    **dict.fromkeys(
        (f"AgentHandle.{name}" for name in ("get", "list", "channels", "remove", "map_channel", "unmap_channel")), mapped
    ),
    "ApiKeyHandle.revoke": a_key,
    "Engine.import_": all_exported,
}
"""What has to be there before a call, made without the log; `World.prepared` is what it gave."""
SAMPLES: dict[str, Step] = {
    "UserSeries.list": lambda w: w.ana.series.list(),
    "AdminHandle.overview": lambda w: w.ana.admin.overview(),
    "JournalHandle.diff": lambda w: w.ana.journal.diff(T1, T2),
    "Memories.audit": lambda w: w.ana.memories.audit(),
    "Memory.export": lambda w: w.ana.export(BytesIO()),
    "Memory.recall": lambda w: w.ana.recall("Where do I live?"),
    "Memory.before": lambda w: w.ana.before("Where does Maria run?"),
    "JournalHandle.decisions": lambda w: w.ana.journal.decisions(),
    "Memory.context": lambda w: w.ana.context("Where do I live?"),
    "Memory.prompt": lambda w: w.ana.prompt(),
    "Memory.messages": lambda w: w.ana.messages(),
    "Conversation.message": lambda w: w.ana.conversation.message("m1"),
    "Conversation.sessions": lambda w: w.ana.conversation.sessions(),
    "Conversation.tally": lambda w: w.ana.conversation.tally(),
    "JournalHandle.list": lambda w: w.ana.journal.list(),
    "Memory.remember": lambda w: w.ana.remember("Has a dog"),
    "Memory.remember_many": lambda w: w.ana.remember_many([NewStatement("Has a dog"), NewStatement("Has a cat")]),
    "Memories.seed": lambda w: w.ana.memories.seed("I live in Lisbon. My sister is called Rita."),
    "Memories.extract": lambda w: w.ana.memories.extract(),
    "Memories.curate": lambda w: w.ana.memories.curate(),
    "Memory.import_": lambda w: w.ana.import_(BytesIO(w.prepared), replace=True),
    "Memory.after": lambda w: w.ana.after("getProfile", {"name": "Ana"}, "remember my profile", mode="auto"),
    "Tools.accept": lambda w: w.ana.tools.accept(w.prepared, PROFILE),
    "Memory.run": lambda w: w.ana.run("Where do I live?", lambda text: text),
    "Memory.append": lambda w: w.ana.append("user", "hello"),
    "Memory.append_many": lambda w: w.ana.append_many([perdure.NewMessage("user", "hello")]),
    "Memory.undo": lambda w: w.ana.undo(w.prepared, cascade=True),
    "Memory.forget": lambda w: w.ana.forget(entity=MARIA),
    "AdminHandle.reindex": lambda w: w.ana.admin.reindex(),
    "AdminHandle.usage": lambda w: w.ana.admin.usage(),
    "AdminHandle.jobs": lambda w: w.ana.admin.jobs(),
    "AdminHandle.retry_jobs": lambda w: w.ana.admin.retry_jobs(),
    "JournalHandle.accesses": lambda w: w.ana.journal.accesses(),
    "State.load": lambda w: w.ana.state.load("k"),
    "State.find": lambda w: w.ana.state.find("k"),
    "State.history": lambda w: w.ana.state.history("k"),
    "State.keys": lambda w: w.ana.state.keys(),
    "State.list": lambda w: w.ana.state.list(),
    "State.search": lambda w: w.ana.state.search("*"),
    "State.save": lambda w: w.ana.state.save("k", 3),
    "State.append": lambda w: w.ana.state.append("log", ["hello"]),
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
    "Conversation.pop": lambda w: w.ana.conversation.pop("s1"),
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
    "Memories.groups": lambda w: w.ana.memories.groups(),
    "Memories.get": lambda w: w.ana.memories.get(KEY),
    "Memories.history": lambda w: w.ana.memories.history(KEY),
    "Memories.changes": lambda w: w.ana.memories.changes(KEY),
    "Memories.foundation": lambda w: w.ana.memories.foundation(),
    "Memories.rejections": lambda w: w.ana.memories.rejections(),
    "Memories.proposals": lambda w: w.ana.memories.proposals(),
    "Memories.accept": lambda w: w.ana.memories.accept(w.prepared),
    "Memories.reject": lambda w: w.ana.memories.reject(w.prepared),
    "Memories.pin": lambda w: w.ana.memories.pin(KEY),
    "Memories.unpin": lambda w: w.ana.memories.unpin(KEY),
    "Memories.archive": lambda w: w.ana.memories.archive(KEY),
    "Memories.restore": lambda w: w.ana.memories.restore(KEY),
    "Memories.correct": lambda w: w.ana.memories.correct(KEY, "Lives in Boston", value="Boston"),
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
    "TaskHandle.list": lambda w: w.ana.todos.tasks.list(),
    "TaskHandle.start": lambda w: w.ana.todos.tasks.start("Pack"),
    "TaskHandle.update": lambda w: w.ana.todos.tasks.update(w.task, progress=0.5),
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
    "DocumentHandle.list": lambda w: w.ana.conversation.documents.list(),
    "DocumentHandle.load": lambda w: w.ana.conversation.documents.load("s1"),
    "DocumentHandle.save": lambda w: w.ana.conversation.documents.save(w.prepared),
    "DocumentHandle.compact": lambda w: w.ana.conversation.documents.compact("s1", force=True),
    "DocumentHandle.versions": lambda w: w.ana.conversation.documents.versions("s1"),
    "DocumentHandle.delete": lambda w: w.ana.conversation.documents.delete("s1"),
    "TranscriptHandle.list": lambda w: w.ana.conversation.transcripts.list(),
    "TranscriptHandle.read": lambda w: w.ana.conversation.transcripts.read("s1"),
    "TranscriptHandle.archive": lambda w: w.ana.conversation.transcripts.archive(keep=0),
    "TranscriptHandle.prune": lambda w: w.ana.conversation.transcripts.prune(keep=0),
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
    "Engine.repair_clock": lambda w: w.engine.repair_clock(),
    "Engine.distribute": distributed,
    "Engine.reindex": lambda w: w.engine.reindex(),
    "Engine.accesses": lambda w: w.engine.accesses(),
}
