"""Keys and tokens are refused on write and leave a marker, whichever public call brings them; nothing of them is on the disk."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

import perdure
from perdure.documents import ContextData, ContextManager, HistoryEntry
from perdure.domain.errors import PerdureError

SECRET = "ghp_Zq7" + "Rw2Ty9Ui4Op1As6Df3Gh8Jk5Lz0Xc7Vb2Nm"
MARKER = "[secret removed: GitHub token]"
AT = datetime(2026, 3, 1, tzinfo=UTC)
TEXT = f"my token is {SECRET} ok"


def _kept_result(ana: perdure.Memory) -> None:
    kept = ana.after("get_profile", {"note": "Ana", "city": "Austin"}, goal=TEXT)
    assert kept.action in ("none", "suggested", "saved")
    ana.after("get_profile", {"bio": TEXT}, goal="keep it", mode="auto")


def _task(ana: perdure.Memory) -> None:
    ana.todos.tasks.start(TEXT)


WRITES: dict[str, Callable[[perdure.Memory], object]] = {
    "append": lambda ana: ana.append("user", TEXT),
    "append_many": lambda ana: ana.append_many([perdure.NewMessage("user", TEXT, metadata={"env": {TEXT: TEXT}})]),
    "tool call": lambda ana: ana.append_many(
        [perdure.NewMessage("assistant", "", tool_calls=[perdure.ToolCall("c1", "push", {"token": TEXT})])]
    ),
    "tool result": lambda ana: ana.append("tool", TEXT, tool_call_id="c1"),
    "remember": lambda ana: ana.remember(TEXT),
    "seed": lambda ana: ana.memories.seed(TEXT),
    "lesson": lambda ana: ana.lessons.add(f"Always say {TEXT}"),
    "lesson book": lambda ana: ana.lessons.edit(f"- Always say {TEXT}\n"),
    "instruction": lambda ana: ana.instructions.add(f"Always say {TEXT}"),
    "todo": lambda ana: ana.todos.add(f"Rotate {TEXT}"),
    "task": _task,
    "state": lambda ana: ana.state.save("deploy", {"env": [TEXT], TEXT: 1}),
    "series": lambda ana: ana.series("runs").merge([{"id": "1", "timestamp": AT.isoformat(), "note": TEXT}]),
    "goal": lambda ana: ana.before(f"Deploy with {TEXT}"),
    "result": _kept_result,
}


@pytest.mark.parametrize("call", WRITES)
def test_no_call_stores_a_secret(call: str, tmp_path: Path) -> None:
    """A call may refuse it outright, with an error that does not repeat it, or keep the rest with a marker."""
    with perdure.open(f"sqlite:///{tmp_path}/s.db", settings=None) as engine:
        ana = engine.memory("ana")
        refusal = ""
        try:
            WRITES[call](ana)
        except PerdureError as error:
            refusal = str(error)
        assert SECRET not in refusal
        engine.process(30)
        assert SECRET not in repr(engine.memory("ana").messages())
        assert engine.verify().findings == ()
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path.name
            assert SECRET.lower().encode() not in path.read_bytes(), path.name


def test_the_rest_of_a_message_is_kept_with_a_marker_and_repeating_it_changes_nothing() -> None:
    with perdure.open("memory:") as engine:
        ana = engine.memory("ana")
        first = ana.append("user", TEXT, id="m1")
        assert first.content == f"my token is {MARKER} ok"
        assert ana.append("user", TEXT, id="m1").repeated
        assert ana.messages() == [first]


def test_state_and_series_keep_the_rest_too() -> None:
    with perdure.open("memory:") as engine:
        ana = engine.memory("ana")
        ana.state.save("deploy", {"env": TEXT, "port": 8080})
        assert ana.state.load("deploy") == {"env": f"my token is {MARKER} ok", "port": 8080}
        merged = ana.series("runs").merge([{"id": "1", "timestamp": AT.isoformat(), "note": TEXT}])
        assert merged.added == 1
        assert ana.series("runs").merge([{"id": "1", "timestamp": AT.isoformat(), "note": TEXT}]).updated == 0


@pytest.mark.parametrize("storage", ["json_files", "store"])
def test_a_context_document_is_saved_without_secrets_and_its_owner_holds_what_is_stored(tmp_path: Path, storage: str) -> None:
    with perdure.open(f"sqlite:///{tmp_path}/s.db") as engine:
        manager = ContextManager(storage="store", engine=engine) if storage == "store" else ContextManager(tmp_path / "files")
        context = ContextData(
            "ana:helper:1", facts=[TEXT], recent_history=[HistoryEntry(1, "user", TEXT)], system_state={"k": TEXT}
        )
        manager.save(context)
        assert context.facts == [f"my token is {MARKER} ok"]
        held = manager.load("ana:helper:1")
        assert held == context
        assert manager.save(held) == 2
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path.name


def test_an_agents_texts_are_saved_without_secrets(tmp_path: Path) -> None:
    with perdure.open("memory:") as engine:
        saved = engine.agents.save("helper", soul=TEXT)
        assert saved.soul == f"my token is {MARKER} ok"
