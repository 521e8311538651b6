"""What users can rely on by name."""

from __future__ import annotations

import inspect
import re
from types import ModuleType

import pytest

import perdure
import perdure.aio
import perdure.app
import perdure.knowledge
import perdure.models
import perdure.oversight
import perdure.recalling
import perdure.testing
from perdure.aio import (
    AsyncConversation,
    AsyncEngine,
    AsyncMemory,
    AsyncSeries,
    AsyncState,
    AsyncTools,
    AsyncTranscripts,
    AsyncTurn,
)
from perdure.aio.api_keys import AsyncApiKeyHandle
from perdure.aio.instructions import AsyncInstructions
from perdure.aio.knowledge import AsyncEntities, AsyncMemories, AsyncTasks, AsyncTodos
from perdure.aio.lessons import AsyncAgentHandle, AsyncLessons
from perdure.app import Engine
from perdure.handles.agents import AgentHandle
from perdure.handles.api_keys import ApiKeyHandle
from perdure.handles.conversation import Conversation, Turn
from perdure.handles.instructions import InstructionHandle
from perdure.handles.knowledge import EntityHandle, Memories, TaskHandle, TodoHandle
from perdure.handles.lessons import LessonHandle
from perdure.handles.memory import Memory
from perdure.handles.series import SeriesHandle
from perdure.handles.state import State
from perdure.handles.tools import Tools
from perdure.handles.transcripts import TranscriptHandle

NAMES = [
    "Conflict", "Context", "Corrupt", "Digest", "Engine", "InvalidInput", "Layers", "LimitExceeded", "Limits", "Memory", "Message",
    "NewMessage", "NotFound", "Page", "PerdureError", "QueryOptions", "Session", "Settings", "Summary", "SummaryRequest",
    "TimeRange", "ToolCall", "Unavailable", "Unsupported", "Window", "extract_time_range", "open", "restore",
]  # fmt: skip


def test_the_public_names_are_these() -> None:
    assert perdure.__all__ == NAMES
    assert dir(perdure) == NAMES
    for name in NAMES:
        assert getattr(perdure, name) is not None
    with pytest.raises(AttributeError):
        perdure.nonsense  # noqa: B018


def test_the_testing_names_are_these() -> None:
    assert perdure.testing.__all__ == [
        "FAULTS", "PROBES", "REPORT", "TUNE", "FailingStore", "Plant", "Probe", "ProbeReport", "ProbeScore",
        "ScriptedModelServer", "StoppedClock", "StoreContract", "run_probes", "score_probe",
    ]  # fmt: skip
    for name in perdure.testing.__all__:
        assert getattr(perdure.testing, name) is not None
    with pytest.raises(AttributeError):
        perdure.testing.nonsense  # noqa: B018


def test_the_names_of_the_overseer_and_of_models_are_these() -> None:
    assert perdure.oversight.__all__ == [
        "AfterFields", "BeforeFields", "Block", "Choice", "Decision", "Injection", "Kept", "Ran", "RunFields", "SaveMode",
        "SeriesOffer", "Target",
    ]  # fmt: skip
    assert perdure.models.__all__ == [
        "ChatMessage", "ChatModel", "ChatReply", "ChatRequest", "Consulted", "ModelRefused", "ModelTimeout", "Usage",
    ]  # fmt: skip


def test_the_names_of_recall_are_these() -> None:
    assert perdure.recalling.__all__ == [
        "Arm", "Blend", "Embedder", "EntryKind", "Hit", "Instruction", "LeftOut", "Neighbour", "Recall", "RecallFields", "Reranker",
        "SeriesGap", "Trace", "Uncovered", "Understood",
    ]  # fmt: skip


@pytest.mark.parametrize("module", [perdure.knowledge, perdure.recalling])
def test_a_module_of_values_has_what_it_lists(module: ModuleType) -> None:
    assert sorted(module.__all__) == module.__all__
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def public(kind: type) -> dict[str, object]:
    """Names and signatures, with the words that differ between the faces taken out."""
    found: dict[str, object] = {}
    for name, member in inspect.getmembers(kind):
        if name.startswith("_"):
            continue
        if callable(member):
            text = str(inspect.signature(member)).replace("AsyncSeries", "SeriesHandle").replace("Async", "")
            found[name] = re.sub(r"Awaitable\[(.*)\]\]\]", r"\1]]", text)
        else:
            found[name] = "attribute"
    return found


@pytest.mark.parametrize(
    ("sync", "asynchronous"),
    [
        (Memory, AsyncMemory),
        (Engine, AsyncEngine),
        (State, AsyncState),
        (SeriesHandle, AsyncSeries),
        (Tools, AsyncTools),
        (Conversation, AsyncConversation),
        (Turn, AsyncTurn),
        (TranscriptHandle, AsyncTranscripts),
        (Memories, AsyncMemories),
        (EntityHandle, AsyncEntities),
        (TodoHandle, AsyncTodos),
        (TaskHandle, AsyncTasks),
        (InstructionHandle, AsyncInstructions),
        (LessonHandle, AsyncLessons),
        (AgentHandle, AsyncAgentHandle),
        (ApiKeyHandle, AsyncApiKeyHandle),
    ],
)
def test_the_async_face_has_the_same_calls(sync: type, asynchronous: type) -> None:
    assert public(asynchronous) == public(sync)


def test_opening_takes_the_same_arguments_in_both_colours() -> None:
    ours = str(inspect.signature(perdure.app.open))
    assert str(inspect.signature(perdure.aio.open)).replace("AsyncEngine", "Engine") == ours


def test_every_data_call_needs_a_scope() -> None:
    """The engine itself has only what concerns the store, and the agents that all users of a space share."""
    assert public(Engine).keys() == {
        "accesses", "agents", "api_keys", "backup", "close", "default_user", "doctor", "export", "files", "health", "import_", "limits",
        "memory", "process", "purge", "reindex", "space", "users", "verify", "worker", "zone",
    }  # fmt: skip
