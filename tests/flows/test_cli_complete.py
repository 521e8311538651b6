"""The command line reaches everything: each public call has a command, each command answers in JSON and shows an example."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

import perdure
from in_process import InProcess
from perdure.handles.agents import AgentHandle
from perdure.handles.api_keys import ApiKeyHandle
from perdure.handles.conversation import Conversation
from perdure.handles.instructions import InstructionHandle
from perdure.handles.knowledge import EntityHandle, Memories, TaskHandle, TodoHandle
from perdure.handles.lessons import LessonHandle
from perdure.handles.series import SeriesHandle
from perdure.handles.state import State
from perdure.handles.tools import Tools
from perdure.handles.transcripts import TranscriptHandle
from perdure.interfaces.cli.commands import SECTIONS, app, name_of

HANDLES = {
    "engine": perdure.Engine, "memory": perdure.Memory, "state": State, "series": SeriesHandle, "conversation": Conversation,
    "transcripts": TranscriptHandle, "memories": Memories, "entities": EntityHandle, "todos": TodoHandle, "tasks": TaskHandle,
    "instructions": InstructionHandle, "lessons": LessonHandle, "agents": AgentHandle, "api_keys": ApiKeyHandle, "tools": Tools,
}  # fmt: skip

# Each public call and the command that makes it. Those of one name are made by the command of that name.
COMMANDS = {
    "engine.process": "worker", "engine.worker": "worker", "engine.verify": "verify", "engine.backup": "backup",
    "engine.doctor": "doctor", "engine.health": "health", "engine.purge": "purge", "engine.reindex": "reindex",
    "engine.files": "files", "engine.users": "users", "engine.space": "config get", "engine.limits": "config list",
    "engine.zone": "config get", "engine.default_user": "config get",
    "engine.export": "export", "engine.import_": "import", "memory.export": "export", "memory.import_": "import",
    "memory.list_series": "series list", "memory.remember": "memory add", "memory.seed": "seed", "memory.extract": "extract",
    "memory.curate": "curate", "memory.undo": "undo", "memory.diff": "diff", "memory.forget": "forget", "memory.audit": "audit",
    "memory.recall": "recall", "memory.reindex": "reindex", "memory.before": "before", "memory.after": "after",
    "memory.accept": "after", "memory.decisions": "decisions", "memory.usage": "usage", "memory.context": "context",
    "memory.prompt": "prompt", "memory.append": "append", "memory.append_many": "append-many", "memory.messages": "messages",
    "memory.message": "message", "memory.sessions": "sessions", "memory.tally": "tally", "memory.journal": "journal",
    "memory.accesses": "accesses", "engine.accesses": "accesses", "memory.jobs": "jobs list", "memory.retry_jobs": "jobs retry", "memory.overview": "overview",
    "state.save": "state set", "state.load": "state get", "state.find": "state get", "state.delete": "state delete",
    "state.keys": "state list", "state.list": "state list", "state.search": "state search", "state.history": "state history",
    "state.restore": "state restore", "state.clear": "state clear",
    "series.about": "series show", "series.configure": "series configure", "series.remove": "series remove",
    "series.merge": "series merge", "series.cleanup": "series cleanup", "series.query": "series query",
    "series.gaps": "series gaps", "series.windows": "series windows", "series.history": "series history",
    "series.count": "series count", "series.first": "series first", "series.last": "series last", "series.per": "series per",
    "series.group": "series group", "series.distinct": "series distinct", "series.entries": "series export",
    "series.export": "series export", "series.rows": "series export",
    "conversation.list_sessions": "session list", "conversation.close": "session close",
    "conversation.resume": "session resume", "conversation.delete": "session delete", "conversation.search": "session search",
    "conversation.compact": "session compact", "conversation.fold": "session fold", "conversation.clear": "session clear",
    "conversation.replace": "session replace", "conversation.undo": "session undo", "conversation.digests": "session digests",
    "conversation.expand": "session expand", "conversation.agent_state": "session state",
    "conversation.configure": "session configure", "conversation.session": "session show", "conversation.digest": "session expand",
    "transcripts.list": "transcript list", "transcripts.read": "transcript read", "transcripts.archive": "transcript archive",
    "transcripts.prune": "transcript prune",
    "memories.list": "memory list", "memories.get": "memory show", "memories.history": "memory history",
    "memories.foundation": "memory foundation", "memories.pin": "memory pin", "memories.unpin": "memory unpin",
    "memories.archive": "memory archive", "memories.restore": "memory restore", "memories.edit": "memory edit",
    "memories.rejections": "memory rejections", "memories.changes": "memory changes", "entities.links": "entity links",
    "entities.list": "entity list", "entities.get": "entity show", "entities.alias": "entity alias",
    "entities.merge": "entity merge", "entities.suggestions": "entity suggestions", "entities.dismiss": "entity dismiss",
    "todos.add": "todo add", "todos.list": "todo list", "todos.complete": "todo done", "todos.skip": "todo skip",
    "todos.reopen": "todo reopen", "tasks.start": "task start", "tasks.update": "task update", "tasks.list": "task list",
    "instructions.list": "instruction list", "instructions.add": "instruction add",
    "instructions.withdraw": "instruction withdraw",
    "lessons.list": "lesson list", "lessons.add": "lesson add", "lessons.remove": "lesson remove",
    "lessons.archive": "lesson archive", "lessons.restore": "lesson restore", "lessons.pin": "lesson pin",
    "lessons.unpin": "lesson unpin", "lessons.take_from": "lesson take", "lessons.text": "lesson text",
    "lessons.edit": "lesson edit",
    "agents.get": "agent show", "agents.list": "agent list", "agents.save": "agent save", "agents.remove": "agent remove",
    "agents.map_channel": "agent map", "agents.unmap_channel": "agent unmap", "agents.channels": "agent channels",
    "api_keys.create": "key create", "api_keys.list": "key list", "api_keys.revoke": "key revoke",
    "tools.schemas": "tool list", "tools.names": "tool list", "tools.permissions": "tool list", "tools.read_only": "tool list",
    "tools.call_tool": "tool call", "tools.merge_timeseries_state": "tool call", "tools.query_timeseries_state": "tool call",
    "tools.cleanup_old_timeseries": "tool call",
}  # fmt: skip

# What no command makes, and why. This list may only shrink.
WITHOUT = {
    "engine.memory": "it is `--user`, `--agent`, `--channel` and `--space`",
    "engine.close": "each command closes what it opened",
    "engine.agents": "a property that leads to `agent …`",
    "engine.api_keys": "a property that leads to `key …`",
    "memory.state": "a property that leads to `state …`",
    "memory.series": "it leads to `series …`",
    "memory.tools": "a property that leads to `tool …`",
    "memory.conversation": "a property that leads to `session …`",
    "memory.transcripts": "a property that leads to `transcript …`",
    "memory.memories": "a property that leads to `memory …`",
    "memory.entities": "a property that leads to `entity …`",
    "memory.todos": "a property that leads to `todo …`",
    "memory.tasks": "a property that leads to `task …`",
    "memory.instructions": "a property that leads to `instruction …`",
    "memory.lessons": "a property that leads to `lesson …`",
    "memory.scope": "what the options said, to look at",
    "series.name": "what the command was told, to look at",
    "memory.run": "it calls the caller's own agent, a function",
    "memory.turn": "it holds a channel for the length of a block of code",
    "series.fetch": "it calls the caller's own fetcher, a function",
    "series.tool": "it wraps the caller's own function",
    "series.to_pandas": "a table in the memory of a process; `series export` writes a file that pandas reads",
    "series.to_polars": "the same for polars",
    "series.to_arrow": "the same for pyarrow",
    "agents.of": "it is `--space`",
    "agents.space": "it is `--space`",
    "api_keys.any_made": "for the server; `key list` shows them all",
    "api_keys.find": "for the server; `key list` shows them all",
    "api_keys.recognise": "for the server, which is shown secrets",
    "api_keys.in_use": "for the server; `key list` shows whether there is one",
}
WITHOUT_MAX = 30


def leaves(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield " ".join(words), command
        return
    for name, child in command.commands.items():
        yield from leaves(child, (*words, name))


ALL: dict[str, Any] = dict(leaves(typer.main.get_command(app)))


def public(handle: type) -> list[str]:
    return [name for name, value in inspect.getmembers(handle) if not name.startswith("_") and not isinstance(value, type)]


def test_every_public_call_has_a_command() -> None:
    calls = {f"{name}.{call}" for name, handle in HANDLES.items() for call in public(handle)}
    assert sorted(calls - COMMANDS.keys() - WITHOUT.keys()) == []
    assert sorted((COMMANDS.keys() | WITHOUT.keys()) - calls) == []
    assert COMMANDS.keys() & WITHOUT.keys() == set()
    assert sorted(set(COMMANDS.values()) - ALL.keys()) == []
    assert len(WITHOUT) <= WITHOUT_MAX


def test_every_command_shows_an_example_of_itself() -> None:
    wrong = []
    for words, command in ALL.items():
        found = re.search(r"^Examples?:\s+perdure (.+)$", inspect.cleandoc(command.help or ""), re.MULTILINE)
        if found is None or not found[1].startswith(words):
            wrong.append(words)
    assert wrong == []


def test_the_help_lists_every_command_under_its_heading_in_the_order_of_the_table() -> None:
    shown = CliRunner(env={"COLUMNS": "100"}).invoke(app, ["--help"]).stdout
    places = [shown.index(f"\n{heading}:\n") for heading in SECTIONS]
    assert places == sorted(places)
    for (heading, entries), start in zip(SECTIONS.items(), places, strict=True):
        names = re.findall(r"^  ([a-z-]+) ", shown[start:].split("\n\n")[0], re.MULTILINE)
        assert names == [name_of(one) for one in entries], heading


def test_perdure_alone_says_how_to_begin() -> None:
    done = CliRunner().invoke(app, [])
    assert done.exit_code == 0
    assert "perdure demo" in done.stdout
    assert "perdure --help" in done.stdout
    for step in json.loads(CliRunner().invoke(app, ["--json"]).stdout)["begin"]:
        assert step.split()[1] in {"--help", *(words.split()[0] for words in ALL)}, step


# -- JSON from every command

T1, T2 = "2026-01-01T00:00:00+00:00", "2030-01-01T00:00:00+00:00"
KEY = "profile|place|austin|fact"
RUNS: list[tuple[str, tuple[str, ...]]] = [
    ("append", ("user", "I moved to Austin", "--id", "m1", "--session", "monday", "--metadata", '{"a": 1}')),
    ("append-many", ("talk.jsonl",)),
    ("messages", ()), ("message", ("m1",)), ("sessions", ()), ("tally", ()), ("overview", ("--days", "3")), ("usage", ()),
    ("session list", ()), ("session show", ()), ("session tail", ()), ("session search", ("Austin",)),
    ("session compact", ("--force",)), ("session fold", ()), ("session replace", ("They talked of Austin.",)),
    ("session digests", ()), ("session expand", ()), ("session undo", ()), ("session clear", ()), ("session context", ()),
    ("session state", ()), ("session configure", ("--profile", "complete")), ("session close", ()), ("session resume", ()),
    ("memory add", ("Lives in Austin", "--entity", "place:Austin", "--attribute", "lives_in", "--value", "Austin")),
    ("memory add", ("Maria is my sister", "--type", "PEOPLE", "--entity", "person:Maria")),
    ("memory add", ("Marie runs", "--type", "PEOPLE", "--entity", "person:Marie")),
    ("memory list", ()), ("memory show", (KEY,)), ("memory history", (KEY,)), ("memory pin", (KEY,)),
    ("memory foundation", ()), ("memory unpin", (KEY,)), ("memory archive", (KEY,)), ("memory restore", (KEY,)),
    ("memory changes", (KEY,)), ("memory edit", (KEY, "--importance", "2")), ("memory rejections", ()),
    ("entity list", ()), ("entity show", ("person:maria",)), ("entity alias", ("person:maria", "Mia")),
    ("entity suggestions", ()), ("entity links", ()), ("entity merge", ("person:marie", "person:maria")), ("undo", ("{id}",)),
    ("recall", ("Where do I live?",)), ("context", ("Where do I live?",)), ("extract", ("--dry-run",)),
    ("seed", ("profile.txt",)), ("curate", ("--dry-run",)), ("audit", ()), ("diff", (T1, T2)), ("journal", ()), ("accesses", ()),
    ("state set", ("units", '"metric"')), ("state set", ("units", '"imperial"')), ("state list", ()), ("state get", ("units",)),
    ("state search", ("u*",)), ("state history", ("units",)), ("state restore", ("units", "1")), ("state delete", ("units",)),
    ("state clear", ("--yes",)),
    ("series configure", ("runs", "--zone", "Europe/Berlin")),
    ("series merge", ("runs", '[{"id": 7, "timestamp": "2026-01-02T08:00:00Z", "sport": "run"}]', "--window", T1, T2)),
    ("series list", ()), ("series query", ("runs", T1, T2)), ("series gaps", ("runs", T1, T2)), ("series show", ("runs",)),
    ("series windows", ("runs", T1, T2)), ("series history", ("runs", "7")), ("series count", ("runs",)),
    ("series first", ("runs",)), ("series last", ("runs",)), ("series per", ("runs", "day")),
    ("series group", ("runs", "sport")), ("series distinct", ("runs", "sport")), ("series export", ("runs",)),
    ("series cleanup", ("runs", "--keep-days", "9000")), ("series remove", ("runs", "--yes")),
    ("when", ("last week",)), ("before", ("Plan my week",)), ("after", ("get_profile", "result.json")), ("decisions", ()),
    ("todo add", ("Call the dentist",)), ("todo list", ()), ("todo done", ("{id}",)), ("todo reopen", ("{id}",)),
    ("todo skip", ("{id}",)),
    ("task start", ("Plan the trip",)), ("task list", ()), ("task update", ("{id}", "--progress", "0.5")),
    ("instruction add", ("Always answer in French",)), ("instruction list", ()), ("instruction withdraw", ("{id}",)),
    ("lesson add", ("Be brief",)), ("lesson list", ()), ("lesson pin", ("{id}",)), ("lesson unpin", ("{id}",)),
    ("lesson archive", ("{id}",)), ("lesson restore", ("{id}",)), ("lesson remove", ("{id}",)), ("lesson text", ()),
    ("lesson edit", ("lessons.md",)), ("lesson take", ("profile.txt",)),
    ("agent save", ("coach", "--soul", "You are a coach.")), ("agent list", ()), ("agent show", ("coach",)),
    ("agent map", ("discord:42", "coach")), ("agent channels", ()), ("agent unmap", ("discord:42",)), ("prompt", ()),
    ("agent remove", ("coach",)),
    ("tool list", ()), ("tool call", ("listStateKeys",)),
    ("transcript list", ()), ("transcript read", ("monday",)), ("transcript archive", ("--keep", "9")),
    ("transcript prune", ("--keep", "9")),
    ("jobs list", ()), ("jobs retry", ()), ("worker", ("--once",)), ("reindex", ()), ("verify", ()),
    ("files", ()), ("users", ()), ("backup", ("all.perdure",)), ("restore", ("all.perdure", "--replace")), ("health", ()),
    ("doctor", ()), ("purge", ()), ("chat", ("--no-jobs",)),
    ("session delete", ("monday", "--yes")), ("forget", ("--entity", "person:maria", "--yes")),
    ("export", ("ana.jsonl",)), ("import", ("ana.jsonl", "--as", "zoe")),
    ("key create", ("laptop",)), ("key list", ()), ("key revoke", ("{id}",)),
    ("config list", ()), ("config get", ("zone",)), ("config path", ()), ("config", ()),
]  # fmt: skip
ELSEWHERE = {
    "serve": "runs until stopped; its JSON is in the tests of the server",
    "mcp": "speaks JSON-RPC on stdout, whatever is asked",
    "demo": "a walk through a day, looked at in the tests of that day",
    "entity dismiss": "needs a suggestion, which only a curator makes; looked at in the tests of knowledge",
}


def test_every_command_answers_in_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One store, one command after the other; `{id}` is the id that the command before gave or was given."""
    assert sorted(ALL.keys() - {words for words, _ in RUNS} - ELSEWHERE.keys()) == []
    monkeypatch.chdir(tmp_path)
    Path("talk.jsonl").write_text('{"role": "assistant", "content": "Nice."}\n\n{"role": "user", "content": "It is hot"}\n')
    Path("profile.txt").write_text("Ana lives in Austin.")
    Path("lessons.md").write_text("- Be brief\n")
    Path("result.json").write_text("[1, 2]")
    for name, value in {"URL": "sqlite:///walk.db", "USER": "ana", "DURABILITY": "normal", "FILES_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(f"PERDURE_{name}", value)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    given = ""
    with perdure.open() as engine:
        cli = InProcess(monkeypatch, engine)
        for words, args in RUNS:
            line = [*words.split(), *(one.replace("{id}", given) for one in args), "--json"]
            done = cli.run(*line, stdin="hello\n")
            assert (done.code, done.stderr) in [(0, ""), *([(9, "")] if words in ("doctor", "health") else [])], (line, done)
            assert done.stdout, line
            given = next((str(one[name]) for one in _objects(done.json) for name in ("id", "action") if name in one), given)


def _objects(answer: Any) -> Iterator[dict[str, Any]]:
    """The answer itself, and what it is about."""
    if isinstance(answer, dict):
        yield answer
        yield from (one for one in answer.values() if isinstance(one, dict))


def test_a_wrong_word_names_what_there_is() -> None:
    done = CliRunner().invoke(app, ["config", "get", "colour", "--json"])
    assert done.exit_code != 0
    assert "`perdure config list` names them all" in str(done.exception)
