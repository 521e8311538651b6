"""A secret through every public call, in every text it takes: refused or marked, and nowhere on the disk.

Each call gets a secret of its own, so that what is found on the disk names the call that let it in.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import perdure
import perdure.aio  # it knows every handle, which are else loaded when they are used
from perdure.documents import ContextData, ContextManager
from perdure.domain.errors import InvalidInput, PerdureError
from perdure.domain.knowledge.proposals import NewStatement
from perdure.domain.scope import ToolCallId
from perdure.handles.operation import Handle, operations

AT = "2026-03-01T00:00:00+00:00"
KEY = "profile|place|austin|fact"


@dataclass
class World:
    engine: perdure.Engine
    ana: perdure.Memory
    lesson: str
    todo: str
    task: str
    folder: Path

    @property
    def runs(self) -> Any:
        return self.ana.series("runs")


Step = Callable[[World, str], object]


def in_turn(world: World, secret: str) -> object:
    with world.ana.turn() as turn:
        return turn.append("user", f"it is {secret}", metadata={secret: [secret]})


def many_in_turn(world: World, secret: str) -> object:
    with world.ana.turn() as turn:
        return turn.append_many([perdure.NewMessage("user", f"it is {secret}")])


def called(world: World, identity: str, name: str, argument: str) -> object:
    call = perdure.ToolCall(ToolCallId(identity), name, {"token": argument, argument: 1})
    return world.ana.append("assistant", "", tool_calls=[call])


def entry(number: object, **more: object) -> dict[str, object]:
    return {"id": number, "timestamp": AT, **more}


def foreign(secret: str) -> io.BytesIO:
    """What MCP's memory server keeps: an entity by a name, and what was observed of another."""
    lines = [
        {"type": "entity", "name": secret, "entityType": "person", "observations": [f"{secret} likes tea"]},
        {"type": "entity", "name": "Rita Lopes", "entityType": "person", "observations": [f"Rita has {secret}"]},
        {"type": "relation", "from": "Rita Lopes", "to": secret, "relationType": "knows"},
        {"type": "relation", "from": "Rita Lopes", "to": "Maria Lopes", "relationType": f"uses {secret}"},
    ]
    return io.BytesIO("\n".join(json.dumps(line) for line in lines).encode())


def vault(world: World, secret: str) -> object:
    """Notes that a person edits: a secret at the end of every line, in a note's own fields, and in a new note."""
    folder = world.folder / "notes"
    world.ana.export(folder, "vault")
    held = {note: note.read_text() for note in folder.rglob("*.md")}
    for note, text in held.items():
        note.write_text("\n".join(f"{line} {secret}" if line.startswith("- ") else line for line in text.split("\n")))
    (folder / "new.md").write_text(f"---\ntitle: {secret}\n---\n# {secret}\n\n- Ana has {secret}\n")
    try:
        return world.ana.import_(folder, "vault")
    finally:
        shutil.rmtree(folder)


def mem0(secret: str) -> io.BytesIO:
    return io.BytesIO(
        json.dumps({"results": [{"id": "1", "memory": f"Ana uses {secret}", "metadata": {"x": secret}}]}).encode()
    )


def accepted(world: World, secret: str) -> object:
    kept = world.ana.after("getProfile", {"city": "Oslo"}, "remember my profile", mode="suggest")
    return world.ana.tools.accept(kept, {"city": secret})


def run(world: World, secret: str) -> object:
    def agent(goal: str, tools: dict[str, Callable[[], object]]) -> str:
        tools["lookup"]()
        return f"{goal} {secret}"

    return world.ana.run(f"remember {secret}", agent, {"lookup": lambda: {"bio": secret}}, mode="auto")


WRITES: dict[str, tuple[Step, ...]] = {
    "Memory.remember": (
        lambda w, s: w.ana.remember(f"Ana has {s}"),
        lambda w, s: w.ana.remember("Ana has a dog", entities=[f"person:{s}"]),
        lambda w, s: w.ana.remember("Ana has a cat", subject=f"person:{s}"),
        lambda w, s: w.ana.remember("Ana has a bird", attribute=s, value="x"),
        lambda w, s: w.ana.remember("Ana has a fish", attribute="pet", value=s),
        lambda w, s: w.ana.remember("Ana has a cow", source=s),
        lambda w, s: w.ana.remember("Ana has a pig", visible_to=s),
        lambda w, s: w.ana.remember("Ana has a hen", s),  # type: ignore[arg-type]
        lambda w, s: w.ana.remember("Ana has an ox", fact_type=s),  # type: ignore[arg-type]
    ),
    "Memory.remember_many": (lambda w, s: w.ana.remember_many([NewStatement("Ana has a goat"), NewStatement(f"Ana has {s}")]),),
    "Memories.seed": (lambda w, s: w.ana.memories.seed(f"My sister is called Rita. I work with {s}. I live in {s}."),),
    "Memories.extract": (lambda w, s: w.ana.memories.extract(s),),
    "Memory.import_": (lambda w, s: w.ana.import_(foreign(s)), lambda w, s: w.ana.import_(mem0(s)), vault),
    "Memory.after": (
        lambda w, s: w.ana.after(s, {"a": 1}, "remember it", mode="auto"),
        lambda w, s: w.ana.after("getProfile", {"bio": s, s: 1}, "remember my profile", mode="auto"),
        lambda w, s: w.ana.after("getProfile", {"name": "Ana"}, f"remember my profile {s}", mode="auto"),
        lambda w, s: w.ana.after("getProfile", f"text {s}", "remember my profile", mode="auto"),
        lambda w, s: w.ana.after("getProfile", {"name": "Ana"}, "remember it", mode="auto", allow=[s], deny=[s]),
    ),
    "Tools.accept": (accepted,),
    "Memory.run": (run,),
    "Memory.append": (
        lambda w, s: w.ana.append("user", f"A={s}\\n{s} %3D{s} MY_{s}"),
        lambda w, s: w.ana.append("user", "hello", metadata={"env": {s: s}}),
        lambda w, s: w.ana.append("user", "hello", id=s),
        lambda w, s: w.ana.append("user", "hello", session=s),
        lambda w, s: w.ana.append(s, "hello"),
        lambda w, s: w.ana.append("tool", "hello", tool_call_id=s),
        lambda w, s: called(w, s, "push", "x"),
        lambda w, s: called(w, "c1", s, "x"),
        lambda w, s: called(w, "c2", "push", s),
    ),
    "Memory.append_many": (lambda w, s: w.ana.append_many([perdure.NewMessage("user", f"it is {s}", id=f"x-{s}")]),),
    "Memory.forget": (
        lambda w, s: w.ana.forget(entity=s),
        lambda w, s: w.ana.forget(entity=f"person:{s}"),
        lambda w, s: w.ana.forget(memory=s),
        lambda w, s: w.ana.forget(messages=(s, s)),
    ),
    "Memory.recall": (lambda w, s: w.ana.recall(f"what is {s}"), lambda w, s: w.ana.recall("x", entities=[f"person:{s}"])),
    "Memory.before": (lambda w, s: w.ana.before(f"Deploy with {s}"),),
    "JournalHandle.decisions": (lambda w, s: w.ana.journal.decisions(before=s),),
    "Memory.context": (lambda w, s: w.ana.context(f"Deploy with {s}"),),
    "Memory.prompt": (lambda w, s: w.ana.prompt(f"Deploy with {s}"),),
    "Memory.messages": (lambda w, s: w.ana.messages(session=s), lambda w, s: w.ana.messages(before=s)),
    "Conversation.message": (lambda w, s: w.ana.conversation.message(s),),
    "Conversation.pop": (lambda w, s: w.ana.conversation.pop(s),),
    "Conversation.tally": (lambda w, s: w.ana.conversation.tally(s),),
    "Memories.audit": (lambda w, s: w.ana.memories.audit(foreign(s).getvalue().decode()),),
    "JournalHandle.accesses": (lambda w, s: w.ana.journal.accesses(before=s),),
    "AdminHandle.jobs": (lambda w, s: w.ana.admin.jobs(s),),  # type: ignore[arg-type]
    "State.save": (
        lambda w, s: w.ana.state.save("deploy", {"env": [s], s: 1, f"x {s}": {s: s}}),
        lambda w, s: w.ana.state.save(s, 1),
        lambda w, s: w.ana.state.save("k", 1, request=s),
    ),
    "State.append": (
        # What is added is kept verbatim, as `state.save(…, verbatim=True)` keeps it.
        lambda w, s: w.ana.state.append(s, [1]),
        lambda w, s: w.ana.state.append("walks", [1], request=s),
    ),
    "State.delete": (lambda w, s: w.ana.state.delete(s),),
    "State.restore": (lambda w, s: w.ana.state.restore(s, 1),),
    **{
        f"State.{name}": (lambda w, s, name=name: getattr(w.ana.state, name)(s),)  # type: ignore[misc]
        for name in ("load", "find", "history", "list", "search")
    },
    "SeriesHandle.configure": (
        lambda w, s: w.runs.configure(description=f"fetched with {s}"),
        lambda w, s: w.ana.series(s).configure(description="x"),
        lambda w, s: w.ana.series("other", id_field=s).merge([entry(1)]),
        lambda w, s: w.ana.series("third", timestamp_field=s).merge([entry(1)]),
        lambda w, s: w.ana.series("fourth", id_template=f"{s}_{{id}}").merge([entry(1)]),
        lambda w, s: w.ana.series("fifth", zone=s).merge([entry(1)]),
    ),
    "SeriesHandle.merge": (
        lambda w, s: w.runs.merge([entry(1, note=s), entry(2, more={s: s})]),
        lambda w, s: w.runs.merge([entry(s), entry(f"x {s}")]),
        lambda w, s: w.runs.merge([{"id": 3, "timestamp": s}]),
        lambda w, s: w.ana.series("sixth", id_template="a_{b}").merge([{"timestamp": AT, "b": s}]),
        lambda w, s: w.runs.merge([entry(4)], request=s),
        lambda w, s: w.runs.merge([entry(4)], window=(s, s)),
    ),
    "SeriesHandle.fetch": (
        lambda w, s: w.runs.fetch("2026-02-01", "2026-02-03", lambda _: [entry(s), entry(5, note=s)]),
        lambda w, s: w.runs.fetch("2026-02-04", "2026-02-05", lambda _: (_ for _ in ()).throw(RuntimeError(s))),
    ),
    "SeriesHandle.history": (lambda w, s: w.runs.history(s),),
    "SeriesHandle.group": (lambda w, s: w.runs.group(s),),
    "SeriesHandle.distinct": (lambda w, s: w.runs.distinct(s),),
    "Conversation.replace": (
        lambda w, s: w.ana.conversation.replace(f"in short: {s}"),
        lambda w, s: w.ana.conversation.replace("in short", s),
    ),
    "Conversation.search": (lambda w, s: w.ana.conversation.search(s),),
    **{
        f"Conversation.{name}": (lambda w, s, name=name: getattr(w.ana.conversation, name)(s),)  # type: ignore[misc]
        for name in ("close", "resume", "compact", "fold", "clear", "undo", "delete", "session", "list_sessions")
    },
    "Conversation.digest": (lambda w, s: w.ana.conversation.digest("fold", 1, session=s),),
    "Conversation.digests": (lambda w, s: w.ana.conversation.digests(session=s),),
    "Conversation.configure": (lambda w, s: w.ana.conversation.configure(profile=s),),
    "Turn.append": (in_turn,),
    "Turn.append_many": (many_in_turn,),
    **{
        f"Memories.{name}": (lambda w, s, name=name: getattr(w.ana.memories, name)(f"profile|person|{s}|fact"),)  # type: ignore[misc]
        for name in ("pin", "unpin", "archive", "restore", "get", "history", "changes", "accept", "reject")
    },
    "Memories.list": (lambda w, s: w.ana.memories.list(entity=f"person:{s}"),),
    "Memories.edit": (lambda w, s: w.ana.memories.edit(KEY, label=s), lambda w, s: w.ana.memories.edit(s, importance=1)),
    "Memories.correct": (
        lambda w, s: w.ana.memories.correct(KEY, f"Lives in {s}"),
        lambda w, s: w.ana.memories.correct(KEY, "Lives in Porto", value=s),
        lambda w, s: w.ana.memories.correct(KEY, "Lives in Porto", statement=s),
    ),
    "EntityHandle.get": (lambda w, s: w.ana.entities.get(f"person:{s}"),),
    "EntityHandle.alias": (
        lambda w, s: w.ana.entities.alias("place:austin", s),
        lambda w, s: w.ana.entities.alias("place:austin", f"my {s}"),
        lambda w, s: w.ana.entities.alias(f"place:{s}", "Home"),
    ),
    "EntityHandle.merge": (lambda w, s: w.ana.entities.merge(f"place:{s}", "place:austin"),),
    "EntityHandle.dismiss": (lambda w, s: w.ana.entities.dismiss(s),),
    "TodoHandle.add": (
        lambda w, s: w.ana.todos.add(f"Rotate {s}"),
        lambda w, s: w.ana.todos.add("Rotate keys", s),  # type: ignore[arg-type]
        lambda w, s: w.ana.todos.add("Rotate logs", recurrence=s),
    ),
    **{
        f"TodoHandle.{name}": (lambda w, s, name=name: getattr(w.ana.todos, name)(s),)  # type: ignore[misc]
        for name in ("complete", "skip", "reopen")
    },
    "TaskHandle.start": (lambda w, s: w.ana.todos.tasks.start(f"Rotate {s}"),),
    "TaskHandle.update": (
        lambda w, s: w.ana.todos.tasks.update(s, progress=0.5),
        lambda w, s: w.ana.todos.tasks.update(w.task, state=s),  # type: ignore[arg-type]
    ),
    "InstructionHandle.add": (lambda w, s: w.ana.instructions.add(f"Always say {s}"),),
    "InstructionHandle.withdraw": (lambda w, s: w.ana.instructions.withdraw(s),),
    "LessonHandle.add": (
        lambda w, s: w.ana.lessons.add(f"Always say {s}"),
        lambda w, s: w.ana.lessons.add("Always say please", agent=s),
        lambda w, s: w.ana.lessons.add("Never say no", s),  # type: ignore[arg-type]
    ),
    **{
        f"LessonHandle.{name}": (lambda w, s, name=name: getattr(w.ana.lessons, name)(s),)  # type: ignore[misc]
        for name in ("remove", "archive", "restore", "pin", "unpin")
    },
    "LessonHandle.take_from": (
        lambda w, s: w.ana.lessons.take_from(f"Done.\nMEMORY_APPEND: Use {s} always"),
        lambda w, s: w.ana.lessons.take_from("Done.\nMEMORY_APPEND: Use short words", message=s),
    ),
    "LessonHandle.edit": (
        lambda w, s: w.ana.lessons.edit(f"# Notes on {s}\n\nSee {s}.\n\n- use {s}\n- Use short words\n", "user"),
        lambda w, s: w.ana.lessons.edit("- Use short words\n", "user", was=f"- use {s}\n"),
    ),
    "DocumentHandle.load": (lambda w, s: w.ana.conversation.documents.load(s),),
    "DocumentHandle.versions": (lambda w, s: w.ana.conversation.documents.versions(s),),
    "DocumentHandle.compact": (lambda w, s: w.ana.conversation.documents.compact(s),),
    "DocumentHandle.delete": (lambda w, s: w.ana.conversation.documents.delete(s),),
    "DocumentHandle.save": (
        lambda w, s: w.ana.conversation.documents.save(ContextData(f"ana:helper:{s}", facts=["x"])),
        lambda w, s: w.ana.conversation.documents.save(ContextData("1", facts=[s], system_state={s: s})),
    ),
    "TranscriptHandle.read": (lambda w, s: w.ana.conversation.transcripts.read(s),),
    "AgentHandle.save": (
        lambda w, s: w.engine.agents.save("coach", soul=f"Soul {s}", mood=f"Mood {s}", skill=f"Skill {s}"),
        lambda w, s: w.engine.agents.save(s, soul="x"),
    ),
    "AgentHandle.get": (lambda w, s: w.engine.agents.get(s),),
    "AgentHandle.remove": (lambda w, s: w.engine.agents.remove(s),),
    "AgentHandle.map_channel": (
        lambda w, s: w.engine.agents.map_channel(s, "coach"),
        lambda w, s: w.engine.agents.map_channel("there", s),
    ),
    "AgentHandle.unmap_channel": (lambda w, s: w.engine.agents.unmap_channel(s),),
    "ApiKeyHandle.create": (
        lambda w, s: w.engine.api_keys.create(f"laptop {s}"),
        lambda w, s: w.engine.api_keys.create("laptop", users=[s]),
    ),
    "ApiKeyHandle.revoke": (lambda w, s: w.engine.api_keys.revoke(s),),
    "Engine.accesses": (lambda w, s: w.engine.accesses(before=s),),
    # What gives a handle, and what holds documents, by the names they are bound to.
    "Engine.memory": (
        lambda w, s: w.engine.memory(s).append("user", "hello"),
        lambda w, s: w.engine.memory("ana", agent=s).append("user", "hello"),
        lambda w, s: w.engine.memory("ana", channel=s).append("user", "hello"),
        lambda w, s: w.engine.memory("ana", space=s).append("user", "hello"),
    ),
    "ContextManager.save": (
        lambda w, s: ContextManager(storage="store", engine=w.engine).save(ContextData(f"ana:helper:{s}", facts=["x"])),
        lambda w, s: ContextManager(storage="store", engine=w.engine).save(
            ContextData("ana:helper:1", facts=[s], long_term_summary=s, system_state={s: s})
        ),
    ),
}
NO_TEXT = frozenset(
    (
        "UserSeries.list",
        "AdminHandle.overview",
        "JournalHandle.diff",
        "Memory.export",
        "Conversation.sessions",
        "JournalHandle.list",
        "Memories.curate",
        "Memory.undo",
        "AdminHandle.reindex",
        "AdminHandle.usage",
        "AdminHandle.retry_jobs",
        "State.keys",
        "State.clear",
        "SeriesHandle.about",
        "SeriesHandle.query",
        "SeriesHandle.gaps",
        "SeriesHandle.windows",
        "SeriesHandle.count",
        "SeriesHandle.first",
        "SeriesHandle.last",
        "SeriesHandle.per",
        "SeriesHandle.entries",
        "SeriesHandle.export",
        "SeriesHandle.rows",
        "SeriesHandle.to_pandas",
        "SeriesHandle.to_polars",
        "SeriesHandle.to_arrow",
        "SeriesHandle.remove",
        "SeriesHandle.cleanup",
        "Conversation.agent_state",
        "Conversation.expand",
        "Memories.foundation",
        "Memories.groups",
        "Memories.proposals",
        "Memories.rejections",
        "EntityHandle.list",
        "EntityHandle.links",
        "EntityHandle.suggestions",
        "TodoHandle.list",
        "TaskHandle.list",
        "InstructionHandle.list",
        "LessonHandle.list",
        "LessonHandle.text",
        "DocumentHandle.list",
        "TranscriptHandle.list",
        "TranscriptHandle.archive",
        "TranscriptHandle.prune",
        "AgentHandle.list",
        "AgentHandle.channels",
        "ApiKeyHandle.list",
        "Engine.users",
        "Engine.export",
        "Engine.backup",
        "Engine.import_",
        "Engine.purge",
        "Engine.reindex",
        "Engine.repair_clock",
        "Engine.distribute",
    )
)
"""Calls whose arguments are times, numbers, choices or files of ours. A file of ours is taken over as the other store held it."""
KINDS: dict[str, Callable[[str], tuple[str, str]]] = {
    "GitHub token": lambda drawn: (f"ghp_{drawn}", drawn),
    "API key": lambda drawn: (f"xai-{drawn}", drawn),
    "password": lambda drawn: (f"postgres://root:{drawn}@db.example.org/x", drawn),
}
"""What is passed, and what of it must not be found anywhere."""


class Telling:
    """A summariser that repeats a secret in all that it may say."""

    name = "telling"

    def __init__(self, secret: str) -> None:
        self.secret = secret

    def summarise(self, request: perdure.SummaryRequest) -> perdure.Summary:
        return perdure.Summary(
            f"They spoke of {self.secret}.",
            lessons=(f"Always use {self.secret}",),
            fields={"goals": [self.secret], self.secret: 1},
        )


def drawn(call: str) -> str:
    """Thirty-six letters and digits that stand for a call."""
    return "Zq7R" + hashlib.sha256(call.encode()).hexdigest()[:32]


def test_every_call_that_takes_texts_is_tried() -> None:
    calls = {
        f"{kind.__name__}.{name}"
        for kind in Handle.__subclasses__()
        if kind.__module__.startswith("perdure.")
        for name in operations(kind)
    }
    assert sorted(calls - WRITES.keys() - NO_TEXT) == []
    assert sorted((WRITES.keys() | NO_TEXT) - calls) == ["ContextManager.save", "Engine.memory"]


def on_disk(folder: Path, words: dict[str, str]) -> list[str]:
    found = []
    for path in (path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes().lower() + str(path).lower().encode()
        found += [f"{call} in {path.name}" for call, word in words.items() if word.lower().encode() in data]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_no_call_lets_a_secret_in(kind: str, tmp_path: Path) -> None:
    words: dict[str, str] = {"summariser": drawn("summariser")}
    settings = perdure.Settings(
        url=f"sqlite:///{tmp_path}/s.db", access_log="all", files_dir=str(tmp_path / "files"), transcript_messages_min=0
    )
    told: list[str] = []
    with perdure.open(settings=settings, summariser=Telling(KINDS[kind](words["summariser"])[0])) as engine:
        ana = engine.memory("ana")
        ana.remember("Lives in Austin", entities=["place:Austin"])
        lesson = ana.lessons.add("Be brief", "user").id
        world = World(engine, ana, lesson, ana.todos.add("Call the dentist").id, ana.todos.tasks.start("Plan").id, tmp_path)
        for call, steps in WRITES.items():
            for number, step in enumerate(steps):
                name = f"{call} {number}"
                given, words[name] = KINDS[kind](drawn(name))
                try:
                    step(world, given)
                except PerdureError as error:
                    told += [f"{name}: {error}"] if words[name] in str(error) else []
        for number in range(30):
            ana.append("user", f"We go on, {number}")
            ana.append("assistant", "Yes.")
        ana.conversation.compact(force=True)
        ana.conversation.close()
        for _ in range(4):
            engine.process(30)
        ana.export(tmp_path / "vault", "vault")
        ana.export(tmp_path / "all.jsonl")
        assert engine.verify().findings == ()
    assert told == [], "refusals that repeat it"
    assert on_disk(tmp_path, words) == []


def test_an_id_that_is_a_secret_is_refused_by_the_name_of_its_argument() -> None:
    secret = KINDS["GitHub token"](drawn("id"))[0]
    with perdure.open("memory:") as engine:
        ana = engine.memory("ana")
        with pytest.raises(InvalidInput, match=r"^`id` looks like a GitHub token; use an id that is none$"):
            ana.append("user", "hello", id=secret)
        with pytest.raises(InvalidInput, match="`key` looks like a GitHub token"):
            ana.state.save(f"MY_{secret}", 1)
        with pytest.raises(InvalidInput, match="`user` looks like a GitHub token"):
            engine.memory(secret)
        assert ana.messages() == []


def test_a_store_that_took_such_ids_before_they_were_refused_is_read_listed_and_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No handle is given for a user of such a name, but all others work on."""
    secret = KINDS["GitHub token"](drawn("old"))[0]
    with perdure.open("memory:") as engine:
        with monkeypatch.context() as before:
            before.setattr("perdure.domain.text.rules.secret_in", lambda _text: None)
            engine.memory(secret).append("user", "hello")
            engine.memory("ana", channel=secret).append("user", "I live in Austin", id=secret, session=secret)
            engine.memory("ana").state.save(secret, 1)
            engine.process(30)
        ana = engine.memory("ana")
        assert engine.users() == ["ana", secret]
        assert ana.state.keys() == [secret]
        assert [line.session.id for line in ana.conversation.list_sessions()] == [secret]
        assert ana.recall("Where do I live?").hits
        assert engine.verify().findings == ()
        assert ana.state.clear() == 1
        assert ana.forget(user=True).removed
        assert engine.users() == [secret]


def test_entries_whose_ids_are_secrets_are_rejected_and_not_taken_for_one() -> None:
    first, second = (f"ghp_{drawn(name)}" for name in "ab")
    with perdure.open("memory:") as engine:
        merged = engine.memory("ana").series("runs").merge([entry(first), entry(second), entry("c")])
        assert (merged.added, [one.index for one in merged.rejected]) == (1, [0, 1])
        assert all("looks like a GitHub token" in one.reason for one in merged.rejected)


def test_a_line_of_a_book_that_holds_a_secret_leaves_it_and_is_named(tmp_path: Path) -> None:
    secret = f"ghp_{drawn('book')}"
    settings = perdure.Settings(url=f"sqlite:///{tmp_path}/s.db", files_dir=str(tmp_path / "files"))
    with perdure.open(settings=settings) as engine:
        ana = engine.memory("ana")
        refused = ana.lessons.edit(f"My token is {secret}.\n\n- use {secret}\n- Use short words\n", "user")
        assert [(one.text, one.why) for one in refused] == [("use [secret removed: GitHub token]", "looks like a secret")]
        assert [one.text for one in ana.lessons.list("user")] == ["Use short words"]
        text = ana.lessons.text("user")
        assert "My token is [secret removed: GitHub token]." in text
        assert "- use" not in text


def test_series_rules_that_are_stated_again_agree_with_what_is_held() -> None:
    with perdure.open("memory:") as engine:
        runs = engine.memory("ana").series("runs", description=f"with ghp_{drawn('d')}")
        runs.merge([entry(1)])
        assert runs.merge([entry(1)]).duplicates == 1
        assert runs.about().spec.description == "with [secret removed: GitHub token]"
