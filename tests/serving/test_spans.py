"""Spans around what a handle does: only where the host uses OpenTelemetry, by its names, without anybody's words."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import perdure
import perdure.aio
from perdure.services.access.log import RECORD_ID

AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What was exported. The provider of the process can be set only once, so the tracer is taken from one of our own."""
    provider = TracerProvider()
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield exporter
    provider.shutdown()


@pytest.fixture
def ana() -> Iterator[perdure.Memory]:
    with perdure.open("memory:") as engine:
        ana = engine.memory("ana-the-user")
        ana.append("user", "I live in Austin, privately", id="m1", at=AT)
        ana.remember("Lives in Austin, privately", attribute="lives_in", value="Austin")
        ana.state.save("k", 1)
        yield ana


def key_of(ana: perdure.Memory) -> str:
    return ana.memories.list()[0].memory.record_key


CALLS: dict[str, tuple[str, Callable[[perdure.Memory], Any], int]] = {
    "recall": ("search_memory", lambda ana: ana.recall("Austin", kinds=["message"]), 1),
    "context": ("search_memory", lambda ana: ana.context(), 1),
    "append": ("create_memory", lambda ana: ana.append("user", "privately", id="m2"), 1),
    "append_many": ("create_memory", lambda ana: ana.append_many([perdure.NewMessage("user", "privately")] * 2), 2),
    "remember": ("create_memory", lambda ana: ana.remember("Has a private dog"), 1),
    "pin": ("update_memory", lambda ana: ana.memories.pin(key_of(ana)), 1),
    "edit": ("update_memory", lambda ana: ana.memories.edit(key_of(ana), importance=3), 1),
    "save": ("upsert_memory", lambda ana: ana.state.save("private-key", 1), 1),
    "merge": (
        "upsert_memory",
        lambda ana: ana.series("runs_timeseries").merge([{"id": 1, "timestamp": "2026-01-01T00:00:00Z"}]),
        1,
    ),
    "delete": ("delete_memory", lambda ana: ana.state.delete("k"), 1),
    "delete nothing": ("delete_memory", lambda ana: ana.state.delete("private"), 0),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_one_span_with_the_names_of_the_convention(
    name: str, ana: perdure.Memory, seen: InMemorySpanExporter
) -> None:
    operation, call, count = CALLS[name]
    call(ana)
    [span] = seen.get_finished_spans()
    assert span.name == operation
    assert span.attributes is not None
    told = dict(span.attributes)
    assert told.pop(RECORD_ID, "x")
    assert told == {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": "perdure",
        "gen_ai.system": "perdure",
        "gen_ai.memory.store.id": "default",
        "gen_ai.memory.record.count": count,
    }
    assert span.status.is_ok or span.status.status_code is trace.StatusCode.UNSET
    for word in ("private", "Austin", "ana"):
        assert word not in span.to_json().lower() or word == "ana", span.to_json()
    assert "ana-the-user" not in span.to_json()


def test_before_and_forget_are_spans_too(ana: perdure.Memory, seen: InMemorySpanExporter) -> None:
    ana.before("where do I live?")
    ana.forget(user=True)
    assert [span.name for span in seen.get_finished_spans() if span.parent is None] == ["search_memory", "delete_memory"]


def test_an_append_names_its_message(ana: perdure.Memory, seen: InMemorySpanExporter) -> None:
    ana.append("user", "hello", id="m9")
    [span] = seen.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes["gen_ai.memory.record.id"] == "m9"


def test_an_error_is_told_by_its_code_and_never_by_its_words(ana: perdure.Memory, seen: InMemorySpanExporter) -> None:
    with pytest.raises(perdure.Conflict):
        ana.append("user", "something else, privately", id="m1")
    [span] = seen.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes["error.type"] == "conflict"
    assert (span.status.status_code, span.status.description) == (trace.StatusCode.ERROR, "conflict")
    assert span.events == ()
    assert "m1" not in span.to_json()


def test_a_span_belongs_to_the_one_that_the_host_is_in(ana: perdure.Memory, seen: InMemorySpanExporter) -> None:
    with trace.get_tracer("host").start_as_current_span("request") as outer:
        ana.recall("Austin")
    inner = seen.get_finished_spans()[0]
    assert inner.parent is not None
    assert inner.parent.span_id == outer.get_span_context().span_id


def test_so_it_does_when_it_is_awaited(seen: InMemorySpanExporter) -> None:
    async def ask() -> int:
        async with await perdure.aio.open("memory:") as engine:
            with trace.get_tracer("host").start_as_current_span("request") as outer:
                await engine.memory("ana").append("user", "hello")
                return outer.get_span_context().span_id

    wanted = asyncio.run(ask())
    inner = seen.get_finished_spans()[0]
    assert inner.parent is not None
    assert (inner.name, inner.parent.span_id) == ("create_memory", wanted)


def test_who_does_not_use_opentelemetry_does_not_load_it() -> None:
    code = (
        "import sys, perdure; ana = perdure.open('memory:').memory('ana'); ana.append('user', 'hi'); ana.recall('hi');"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
