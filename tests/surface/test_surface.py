"""What users can rely on by name."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import get_type_hints

import pytest

import perdure
import perdure.aio
import perdure.app
import perdure.testing
import perdure.types
from perdure.app import Engine
from perdure.handles.admin import AdminHandle, AgentHandle, ApiKeyHandle, JournalHandle
from perdure.handles.conversation import Conversation, DocumentHandle, TranscriptHandle, Turn
from perdure.handles.knowledge import EntityHandle, InstructionHandle, Memories, TaskHandle, TodoHandle
from perdure.handles.lessons import LessonHandle
from perdure.handles.memory import Memory
from perdure.handles.operation import operations
from perdure.handles.series import SeriesHandle, UserSeries
from perdure.handles.state import State
from perdure.handles.tools import Tools

NAMES = [
    "Conflict",
    "Context",
    "Corrupt",
    "Digest",
    "Engine",
    "InvalidInput",
    "Layers",
    "LimitExceeded",
    "Limits",
    "Memory",
    "Message",
    "NewMessage",
    "NotFound",
    "Page",
    "PerdureError",
    "Session",
    "Settings",
    "Summary",
    "SummaryRequest",
    "TimeRange",
    "ToolCall",
    "Unavailable",
    "Unsupported",
    "Window",
    "extract_time_range",
    "open",
    "restore",
    "tool",
]


def test_the_public_names_are_these() -> None:
    assert perdure.__all__ == NAMES
    assert dir(perdure) == NAMES
    for name in NAMES:
        assert getattr(perdure, name) is not None
    with pytest.raises(AttributeError):
        perdure.nonsense  # noqa: B018


def test_its_modules_need_no_import_of_their_own() -> None:
    """As `Settings(switches=perdure.types.Switches(…))` in the settings and in docs/seeds/4.md is written."""
    code = "import perdure; perdure.types.Switches, perdure.testing.StoppedClock, perdure.documents.ContextManager, perdure.aio.open"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_the_testing_names_are_these() -> None:
    assert perdure.testing.__all__ == [
        "FAULTS",
        "PROBES",
        "REPORT",
        "TUNE",
        "FailingStore",
        "Plant",
        "Probe",
        "ProbeReport",
        "ProbeScore",
        "ScriptedModelServer",
        "StoppedClock",
        "StoreContract",
        "chat_problems",
        "run_probes",
        "score_probe",
    ]
    for name in perdure.testing.__all__:
        assert getattr(perdure.testing, name) is not None
    with pytest.raises(AttributeError):
        perdure.testing.nonsense  # noqa: B018


def test_the_values_that_callers_import_are_these() -> None:
    assert sorted(perdure.types.__all__) == perdure.types.__all__
    assert perdure.types.__all__ == [
        "Agent",
        "AgentTask",
        "Arm",
        "AuditReport",
        "Blend",
        "Block",
        "ChannelAgent",
        "ChatMessage",
        "ChatModel",
        "ChatReply",
        "ChatRequest",
        "Choice",
        "Consultation",
        "Curation",
        "Decision",
        "Embedder",
        "Entity",
        "EntityName",
        "EntryKind",
        "Evidence",
        "Extraction",
        "ExtractionReport",
        "ExtractionRequest",
        "ForgetReport",
        "GoalRun",
        "Hit",
        "Injection",
        "Instruction",
        "KeptResult",
        "LeftOut",
        "Lesson",
        "LessonOrigin",
        "Link",
        "MemoryGroup",
        "MemoryRecord",
        "MemoryWithStatements",
        "ModelRefused",
        "ModelTimeout",
        "Neighbour",
        "NewStatement",
        "Outcome",
        "PendingProposal",
        "Prompt",
        "PromptPart",
        "PromptedExtractor",
        "Proposal",
        "Recall",
        "RefusedLesson",
        "Rejection",
        "ReplyReport",
        "Reranker",
        "SaveMode",
        "SeriesGap",
        "SeriesOffer",
        "Statement",
        "Suggestion",
        "Switches",
        "Target",
        "Todo",
        "TodoProposal",
        "Trace",
        "Uncovered",
        "Understood",
        "Usage",
    ]
    assert [name for name in perdure.types.__all__ if not hasattr(perdure.types, name)] == []


def public(kind: type) -> dict[str, object]:
    """Names and parameters: how each may be given, its type, its default."""
    found: dict[str, object] = {}
    for name, member in inspect.getmembers(kind):
        if name.startswith("_"):
            continue
        if callable(member):
            hints = get_type_hints(inspect.unwrap(member))
            given = inspect.signature(member).parameters.values()
            found[name] = [(one.name, one.kind, hints.get(one.name), one.default) for one in given]
        else:
            found[name] = "attribute"
    return found


TWINS = [
    Memory,
    Engine,
    State,
    SeriesHandle,
    Tools,
    Conversation,
    Turn,
    TranscriptHandle,
    DocumentHandle,
    Memories,
    EntityHandle,
    TodoHandle,
    TaskHandle,
    InstructionHandle,
    LessonHandle,
    AgentHandle,
    ApiKeyHandle,
    JournalHandle,
    AdminHandle,
    UserSeries,
]


@pytest.mark.parametrize("sync", TWINS)
def test_the_async_face_has_the_same_calls(sync: type) -> None:
    assert public(getattr(perdure.aio, f"Async{sync.__name__}")) == public(sync)


def test_every_call_of_the_async_face_is_the_one_of_its_name() -> None:
    for sync in TWINS:
        twin = getattr(perdure.aio, f"Async{sync.__name__}")
        calls = {name for name, what in public(sync).items() if what != "attribute"}
        assert {name: getattr(twin, name).__name__ for name in calls} == {name: name for name in calls}


def test_the_async_face_awaits_whatever_touches_the_store() -> None:
    for sync in TWINS:
        twin = getattr(perdure.aio, f"Async{sync.__name__}")
        for name in operations(sync):
            call = getattr(twin, name)
            lazy = str(inspect.signature(call).return_annotation).startswith("Iterator[")
            assert inspect.iscoroutinefunction(call) or lazy, f"{sync.__name__}.{name}"


def test_opening_takes_the_same_arguments_in_both_colours() -> None:
    ours = str(inspect.signature(perdure.app.open))
    assert str(inspect.signature(perdure.aio.open)).replace("AsyncEngine", "Engine") == ours


def test_a_memory_has_few_members() -> None:
    assert public(Memory).keys() == {
        "scope",
        "append",
        "append_many",
        "as_agent",
        "messages",
        "recall",
        "context",
        "before",
        "after",
        "run",
        "remember",
        "remember_many",
        "forget",
        "export",
        "import_",
        "turn",
        "prompt",
        "undo",
        "state",
        "series",
        "conversation",
        "memories",
        "entities",
        "todos",
        "instructions",
        "lessons",
        "journal",
        "tools",
        "admin",
    }


def test_every_data_call_needs_a_scope() -> None:
    """The engine itself has only what concerns the store, and the agents that all users of a space share."""
    assert public(Engine).keys() == {
        "accesses",
        "add_tool",
        "agents",
        "api_keys",
        "backup",
        "close",
        "default_user",
        "distribute",
        "doctor",
        "export",
        "files",
        "health",
        "import_",
        "limits",
        "memory",
        "process",
        "purge",
        "reindex",
        "repair_clock",
        "scope",
        "space",
        "users",
        "verify",
        "worker",
        "zone",
    }
