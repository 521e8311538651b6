"""The command line reaches everything: each public call has a command, each command answers in JSON and shows an example."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

import perdure
from in_process import InProcess
from perdure.handles.admin import AdminHandle, AgentHandle, ApiKeyHandle, JournalHandle
from perdure.handles.conversation import EXAMPLE, Conversation, DocumentHandle, TranscriptHandle
from perdure.handles.knowledge import EntityHandle, InstructionHandle, Memories, TaskHandle, TodoHandle
from perdure.handles.lessons import LessonHandle
from perdure.handles.operation import Handle
from perdure.handles.series import SeriesHandle, UserSeries
from perdure.handles.state import State
from perdure.handles.tools import Tools
from perdure.interfaces.cli.commands import SECTIONS, app, name_of

HANDLES = {
    "engine": perdure.Engine,
    "memory": perdure.Memory,
    "state": State,
    "series": SeriesHandle,
    "conversation": Conversation,
    "transcripts": TranscriptHandle,
    "documents": DocumentHandle,
    "memories": Memories,
    "entities": EntityHandle,
    "todos": TodoHandle,
    "tasks": TaskHandle,
    "instructions": InstructionHandle,
    "lessons": LessonHandle,
    "agents": AgentHandle,
    "api_keys": ApiKeyHandle,
    "tools": Tools,
    "journal": JournalHandle,
    "admin": AdminHandle,
    "all_series": UserSeries,
}

# Each public call and the command that makes it. Those of one name are made by the command of that name.
COMMANDS = {
    "engine.process": "worker",
    "engine.worker": "worker",
    "engine.verify": "admin verify",
    "engine.backup": "admin backup",
    "engine.doctor": "doctor",
    "engine.health": "admin health",
    "engine.purge": "admin purge",
    "engine.repair_clock": "admin repair-clock",
    "engine.distribute": "admin distribute",
    "engine.reindex": "admin reindex",
    "engine.files": "admin files",
    "engine.users": "admin users",
    "engine.space": "admin config get",
    "engine.limits": "admin config list",
    "engine.zone": "admin config get",
    "engine.default_user": "admin config get",
    "engine.export": "admin export",
    "engine.import_": "admin import",
    "memory.export": "admin export",
    "memory.import_": "admin import",
    "all_series.list": "series list",
    "memory.remember": "remember",
    "memories.seed": "memory seed",
    "memories.extract": "memory extract",
    "memories.curate": "memory curate",
    "memory.undo": "undo",
    "journal.diff": "journal diff",
    "memory.forget": "forget",
    "memories.audit": "memory audit",
    "memory.recall": "recall",
    "admin.reindex": "admin reindex",
    "memory.before": "agent before",
    "memory.after": "agent after",
    "tools.accept": "agent after",
    "journal.decisions": "journal decisions",
    "admin.usage": "admin usage",
    "memory.context": "context",
    "memory.prompt": "agent prompt",
    "memory.as_agent": "agent tool call",
    "memory.append": "append",
    "memory.append_many": "append",
    "memory.messages": "messages",
    "conversation.message": "session message",
    "conversation.sessions": "session list",
    "conversation.tally": "session tally",
    "journal.list": "journal list",
    "journal.accesses": "journal accesses",
    "engine.accesses": "journal accesses",
    "admin.jobs": "admin jobs list",
    "admin.retry_jobs": "admin jobs retry",
    "admin.overview": "admin overview",
    "state.save": "state set",
    "state.append": "state append",
    "state.load": "state get",
    "state.find": "state get",
    "state.delete": "state delete",
    "state.keys": "state list",
    "state.list": "state list",
    "state.search": "state search",
    "state.history": "state history",
    "state.restore": "state restore",
    "state.clear": "state clear",
    "series.about": "series show",
    "series.configure": "series configure",
    "series.remove": "series remove",
    "series.merge": "series merge",
    "series.cleanup": "series cleanup",
    "series.query": "series query",
    "series.gaps": "series gaps",
    "series.windows": "series windows",
    "series.history": "series history",
    "series.count": "series count",
    "series.first": "series first",
    "series.last": "series last",
    "series.per": "series per",
    "series.group": "series group",
    "series.distinct": "series distinct",
    "series.entries": "series export",
    "series.export": "series export",
    "series.rows": "series export",
    "conversation.list_sessions": "session list",
    "conversation.close": "session close",
    "conversation.resume": "session resume",
    "conversation.delete": "session delete",
    "conversation.pop": "session pop",
    "conversation.search": "session search",
    "conversation.compact": "session compact",
    "conversation.fold": "session fold",
    "conversation.clear": "session clear",
    "conversation.replace": "session replace",
    "conversation.undo": "session undo",
    "conversation.digests": "session digests",
    "conversation.expand": "session expand",
    "conversation.agent_state": "session state",
    "conversation.configure": "session configure",
    "conversation.session": "session show",
    "conversation.digest": "session expand",
    "transcripts.list": "session transcript list",
    "transcripts.read": "session transcript read",
    "transcripts.archive": "session transcript archive",
    "transcripts.prune": "session transcript prune",
    **{f"documents.{name}": f"session document {name}" for name in ("list", "load", "save", "compact", "versions", "delete")},
    "memories.list": "memory list",
    "memories.groups": "memory groups",
    "memories.get": "memory show",
    "memories.history": "memory history",
    "memories.foundation": "memory foundation",
    "memories.pin": "memory pin",
    "memories.unpin": "memory unpin",
    "memories.archive": "memory archive",
    "memories.restore": "memory restore",
    "memories.edit": "memory edit",
    "memories.correct": "memory correct",
    "memories.proposals": "memory review",
    "memories.accept": "memory accept",
    "memories.reject": "memory reject",
    "memories.rejections": "memory rejections",
    "memories.changes": "memory changes",
    "entities.links": "entity links",
    "entities.list": "entity list",
    "entities.get": "entity show",
    "entities.alias": "entity alias",
    "entities.merge": "entity merge",
    "entities.suggestions": "entity suggestions",
    "entities.dismiss": "entity dismiss",
    "todos.add": "todo add",
    "todos.list": "todo list",
    "todos.complete": "todo done",
    "todos.skip": "todo skip",
    "todos.reopen": "todo reopen",
    "tasks.start": "todo task start",
    "tasks.update": "todo task update",
    "tasks.list": "todo task list",
    "instructions.list": "instruction list",
    "instructions.add": "instruction add",
    "instructions.withdraw": "instruction withdraw",
    "lessons.list": "lesson list",
    "lessons.add": "lesson add",
    "lessons.remove": "lesson remove",
    "lessons.archive": "lesson archive",
    "lessons.restore": "lesson restore",
    "lessons.pin": "lesson pin",
    "lessons.unpin": "lesson unpin",
    "lessons.take_from": "lesson take",
    "lessons.text": "lesson text",
    "lessons.edit": "lesson edit",
    "agents.get": "agent show",
    "agents.list": "agent list",
    "agents.save": "agent save",
    "agents.remove": "agent remove",
    "agents.map_channel": "agent map",
    "agents.unmap_channel": "agent unmap",
    "agents.channels": "agent channels",
    "api_keys.create": "admin key create",
    "api_keys.list": "admin key list",
    "api_keys.in_use": "admin key list",
    "api_keys.revoke": "admin key revoke",
    "tools.schemas": "agent tool list",
    "tools.names": "agent tool list",
    "tools.permissions": "agent tool list",
    "tools.read_only": "agent tool list",
    "tools.only": "agent tool list",
    "tools.sets": "agent tool list",
    "tools.call_tool": "agent tool call",
    "tools.merge_timeseries_state": "agent tool call",
    "tools.query_timeseries_state": "agent tool call",
    "tools.cleanup_old_timeseries": "agent tool call",
}

# What no command makes, and why. This list may only shrink.
WITHOUT = {
    "engine.memory": "it is `--user`, `--agent`, `--channel` and `--space`",
    "engine.add_tool": "it offers the caller's own function",
    "engine.close": "each command closes what it opened",
    "memory.remember_many": "`remember` is called once for each",
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
    "api_keys.find": "for the server; `admin key list` shows them all",
    "api_keys.recognise": "for the server, which is shown secrets",
}
WITHOUT_MAX = 16


def leaves(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield " ".join(words), command
        return
    for name, child in command.commands.items():
        yield from leaves(child, (*words, name))


ALL: dict[str, Any] = dict(leaves(typer.main.get_command(app)))


def public(handle: type) -> list[str]:
    """Calls and values; not what leads to other handles, nor what a handle is bound to."""
    members = [(name, value) for name, value in inspect.getmembers(handle) if not name.startswith("_")]
    return [name for name, value in members if name != "scope" and not leads_on(value)]


def leads_on(member: object) -> bool:
    if not isinstance(member, property) or member.fget is None:
        return False
    returns = inspect.get_annotations(member.fget, eval_str=True)["return"]
    return isinstance(returns, type) and issubclass(returns, Handle)


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


def groups(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if hasattr(command, "commands"):
        yield words
        for name, child in command.commands.items():
            yield from groups(child, (*words, name))


def test_the_help_fits_one_screen() -> None:
    shown = CliRunner(env={"COLUMNS": "100"}).invoke(app, ["--help"]).stdout.splitlines()
    assert len(shown) <= 46
    assert sum(len(entries) for entries in SECTIONS.values()) <= 24


@pytest.mark.parametrize("words", [*groups(typer.main.get_command(app))], ids=" ".join)
def test_the_help_of_a_group_says_of_each_command_what_it_is_for_in_one_line(words: tuple[str, ...]) -> None:
    shown = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*words, "--help"]).stdout
    listed = shown[shown.index("\nCommands:") if words else shown.index("\nBegin:") :]
    rows = [line for line in listed.splitlines() if line.startswith(" ")]
    assert rows
    assert [line for line in rows if not re.fullmatch(r"  [a-z-]+  .*[^.]\.", line)] == []


@pytest.mark.parametrize(("name", "told"), [("backup", "`perdure admin backup`"), ("list", "`perdure session list`, `perdure")])
def test_a_command_that_stands_under_a_noun_is_found_by_its_own_name(
    name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with perdure.open("memory:") as engine:
        done = InProcess(monkeypatch, engine).run(name, "x.perdure")
    assert (done.code, done.stdout) == (2, "")
    assert f"No such command '{name}'; there is {told}" in done.stderr


def test_a_mistyped_command_is_told_the_one_that_was_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    with perdure.open("memory:") as engine:
        done = InProcess(monkeypatch, engine).run("remeber", "x")
    assert done.stderr == "error: No such command 'remeber'. Did you mean 'remember'? See `perdure --help`.\n"


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
    ("append", ("--file", "talk.jsonl")),
    ("messages", ()),
    ("session message", ("m1",)),
    ("session list", ()),
    ("session tally", ()),
    ("admin overview", ("--days", "3")),
    ("admin usage", ()),
    ("session list", ()),
    ("session show", ()),
    ("session tail", ()),
    ("session search", ("Austin",)),
    ("session compact", ("--force",)),
    ("session fold", ()),
    ("session replace", ("They talked of Austin.",)),
    ("session digests", ()),
    ("session expand", ()),
    ("session undo", ()),
    ("session clear", ()),
    ("session state", ()),
    ("session configure", ("--profile", "complete")),
    ("session close", ()),
    ("session resume", ()),
    ("append", ("user", "Never mind")),
    ("session pop", ()),
    ("remember", ("Lives in Austin", "--entity", "place:Austin", "--attribute", "lives_in", "--value", "Austin")),
    ("remember", ("Maria is my sister", "--type", "PEOPLE", "--entity", "person:Maria")),
    ("remember", ("Marie runs", "--type", "PEOPLE", "--entity", "person:Marie")),
    ("memory list", ()),
    ("memory groups", ()),
    ("memory show", (KEY,)),
    ("memory history", (KEY,)),
    ("memory pin", (KEY,)),
    ("memory foundation", ()),
    ("memory unpin", (KEY,)),
    ("memory archive", (KEY,)),
    ("memory restore", (KEY,)),
    ("memory changes", (KEY,)),
    ("memory edit", (KEY, "--importance", "2")),
    ("memory correct", (KEY, "Lives in Boston", "--value", "Boston")),
    ("remember", ("Works at Acme", "--attribute", "works_at", "--value", "Acme")),
    ("remember", ("Works at Globex", "--attribute", "works_at", "--value", "Globex", "--source", "web")),
    ("memory review", ()),
    ("memory accept", ("{id}",)),
    ("remember", ("Works at Initech", "--attribute", "works_at", "--value", "Initech", "--source", "web")),
    ("memory reject", ("{id}",)),
    ("memory rejections", ()),
    ("entity list", ()),
    ("entity show", ("person:maria",)),
    ("entity alias", ("person:maria", "Mia")),
    ("entity suggestions", ()),
    ("entity links", ()),
    ("entity merge", ("person:marie", "person:maria")),
    ("undo", ("{id}",)),
    ("recall", ("Where do I live?",)),
    ("context", ("Where do I live?",)),
    ("memory extract", ("--dry-run",)),
    ("memory seed", ("profile.txt",)),
    ("memory curate", ("--dry-run",)),
    ("memory audit", ()),
    ("journal diff", (T1, T2)),
    ("journal list", ()),
    ("journal accesses", ()),
    ("state set", ("units", '"metric"')),
    ("state set", ("units", '"imperial"')),
    ("state append", ("walks", '["Monday"]')),
    ("state list", ()),
    ("state get", ("units",)),
    ("state search", ("u*",)),
    ("state history", ("units",)),
    ("state restore", ("units", "1")),
    ("state delete", ("units",)),
    ("state clear", ("--yes",)),
    ("series configure", ("runs", "--zone", "Europe/Berlin")),
    ("series merge", ("runs", '[{"id": 7, "timestamp": "2026-01-02T08:00:00Z", "sport": "run"}]', "--window", T1, T2)),
    ("series list", ()),
    ("series query", ("runs", T1, T2)),
    ("series gaps", ("runs", T1, T2)),
    ("series show", ("runs",)),
    ("series windows", ("runs", T1, T2)),
    ("series history", ("runs", "7")),
    ("series count", ("runs",)),
    ("series first", ("runs",)),
    ("series last", ("runs",)),
    ("series per", ("runs", "day")),
    ("series group", ("runs", "sport")),
    ("series distinct", ("runs", "sport")),
    ("series export", ("runs",)),
    ("series cleanup", ("runs", "--keep-days", "9000")),
    ("series remove", ("runs", "--yes")),
    ("series when", ("last week",)),
    ("agent before", ("Plan my week",)),
    ("agent after", ("get_profile", "result.json")),
    ("journal decisions", ()),
    ("todo add", ("Call the dentist",)),
    ("todo list", ()),
    ("todo done", ("{id}",)),
    ("todo reopen", ("{id}",)),
    ("todo skip", ("{id}",)),
    ("todo task start", ("Plan the trip",)),
    ("todo task list", ()),
    ("todo task update", ("{id}", "--progress", "0.5")),
    ("instruction add", ("Always answer in French",)),
    ("instruction list", ()),
    ("instruction withdraw", ("{id}",)),
    ("lesson add", ("Be brief",)),
    ("lesson list", ()),
    ("lesson pin", ("{id}",)),
    ("lesson unpin", ("{id}",)),
    ("lesson archive", ("{id}",)),
    ("lesson restore", ("{id}",)),
    ("lesson remove", ("{id}",)),
    ("lesson text", ()),
    ("lesson edit", ("lessons.md",)),
    ("lesson take", ("profile.txt",)),
    ("agent save", ("coach", "--soul", "You are a coach.")),
    ("agent list", ()),
    ("agent show", ("coach",)),
    ("agent map", ("discord:42", "coach")),
    ("agent channels", ()),
    ("agent unmap", ("discord:42",)),
    ("agent prompt", ()),
    ("agent remove", ("coach",)),
    ("agent connect", ("claude-code", "--folder", "plugin", "--no-install")),
    ("agent tool list", ()),
    ("agent tool call", ("listStateKeys",)),
    ("session transcript list", ()),
    ("session transcript read", ("monday",)),
    ("session transcript archive", ("--keep", "9")),
    ("session transcript prune", ("--keep", "9")),
    ("session document save", ("@plan.json",)),
    ("session document list", ()),
    ("session document load", ("ana:coach:plan",)),
    ("session document compact", ("ana:coach:plan", "--force")),
    ("session document versions", ("ana:coach:plan",)),
    ("session document delete", ("ana:coach:plan", "--yes")),
    ("admin jobs list", ()),
    ("admin jobs retry", ()),
    ("worker", ("--once",)),
    ("admin reindex", ()),
    ("admin verify", ()),
    ("admin files", ()),
    ("admin users", ()),
    ("admin token", ()),
    ("admin backup", ("all.perdure",)),
    ("admin restore", ("all.perdure", "--replace")),
    ("admin health", ()),
    ("doctor", ()),
    ("admin purge", ()),
    ("admin repair-clock", ()),
    ("chat", ("--no-jobs",)),
    ("session delete", ("monday", "--yes")),
    ("forget", ("--entity", "person:maria", "--yes")),
    ("admin export", ("ana.jsonl",)),
    ("admin import", ("ana.jsonl", "--as", "zoe")),
    ("admin key create", ("laptop",)),
    ("admin key list", ()),
    ("admin key revoke", ("{id}",)),
    ("admin config list", ()),
    ("admin config get", ("zone",)),
    ("admin config path", ()),
]
ELSEWHERE = {
    "serve": "runs until stopped; its JSON is in the tests of the server",
    "mcp": "speaks JSON-RPC on stdout, whatever is asked",
    "agent hook": "answers in the JSON of a hook, or with nothing; looked at in the tests of Claude Code",
    "demo": "a walk through a day, looked at in the tests of that day",
    "admin distribute": "needs a cluster; looked at in the tests of the cluster",
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
    Path("plan.json").write_text(json.dumps({**EXAMPLE, "session_id": "ana:coach:plan"}))
    for name, value in {"URL": "sqlite:///walk.db", "USER": "ana", "DURABILITY": "normal", "FILES_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(f"PERDURE_{name}", value)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    given = ""
    with perdure.open() as engine:
        cli = InProcess(monkeypatch, engine)
        for words, args in RUNS:
            line = [*words.split(), *(one.replace("{id}", given) for one in args), "--json"]
            done = cli.run(*line, stdin="hello\n")
            assert (done.code, done.stderr) in [(0, ""), *([(9, "")] if words in ("doctor", "admin health") else [])], (
                line,
                done,
            )
            assert done.stdout, line
            given = next((str(one[name]) for one in _objects(done.json) for name in ("id", "action") if name in one), given)


def _objects(answer: Any) -> Iterator[dict[str, Any]]:
    """The answer itself, and what it is about."""
    if isinstance(answer, dict):
        yield answer
        yield from (one for one in answer.values() if isinstance(one, dict))


def test_a_wrong_word_names_what_there_is() -> None:
    done = CliRunner().invoke(app, ["admin", "config", "get", "colour", "--json"])
    assert done.exit_code != 0
    assert "`perdure admin config list` names them all" in str(done.exception)


def test_a_prompt_has_the_lessons_unless_they_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with perdure.open("memory:") as engine:
        engine.memory("ana").lessons.add("Be brief")
        cli = InProcess(monkeypatch, engine)
        assert "Be brief" in cli.run("agent", "prompt", "--user", "ana").stdout
        assert "Be brief" not in cli.run("agent", "prompt", "--no-lessons", "--user", "ana").stdout


def test_tools_are_listed_with_their_set_and_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with perdure.open("memory:") as engine:
        cli = InProcess(monkeypatch, engine)
        assert "recall  read  knowledge\n" in cli.run("agent", "tool", "list", "--user", "ana").stdout
        shown = cli.run("agent", "tool", "list", "--set", "todos", "--set", "lessons", "--user", "ana").stdout.splitlines()
        assert {line.split()[-1] for line in shown} == {"todos", "lessons"}
        assert cli.run("agent", "tool", "list", "--set", "colours", "--user", "ana").code == 2


def test_the_package_runs_as_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "perdure", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("perdure 0.")
