"""Spans of OpenTelemetry around what a handle does, by the names that its conventions have for memory.

Only if the host program uses OpenTelemetry, which shows in the modules that are loaded. A span says which kind of
operation, in which space, on how many records; it never has a user's name or words, nor the text of an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sized
from typing import Any, TypeVar

from perdure.domain.context.context import Context
from perdure.domain.context.recall import Recall
from perdure.domain.conversation.messages import Message
from perdure.domain.errors import PerdureError
from perdure.domain.oversight import Injection
from perdure.domain.scope import Scope
from perdure.domain.series import MergeResult
from perdure.engine.knowledge.outcomes import Outcome

T = TypeVar("T")

SEARCH, CREATE, UPDATE = "search_memory", "create_memory", "update_memory"
UPSERT, DELETE = "upsert_memory", "delete_memory"
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
SYSTEM = "gen_ai.system"
"""What the provider was called before; some readers still look for it."""
STORE_ID = "gen_ai.memory.store.id"
RECORD_ID = "gen_ai.memory.record.id"
RECORD_COUNT = "gen_ai.memory.record.count"
ERROR_TYPE = "error.type"
NAME = "perdure"
TRACE = "opentelemetry.trace"
"""The module that is loaded where there is anybody to see a span."""


def in_span(operation: str, scope: Scope, call: Callable[[], T]) -> T:
    """Make a call of a handle in a span of this kind."""
    trace: Any = sys.modules[TRACE]
    tracer = trace.get_tracer(NAME)
    told = {OPERATION: operation, PROVIDER: NAME, SYSTEM: NAME, STORE_ID: str(scope.owner.space)}
    # Not recorded by the library: it would keep the message of an error, which names values.
    with tracer.start_as_current_span(
        operation, attributes=told, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            answer = call()
        except BaseException as error:
            code = error.code if isinstance(error, PerdureError) else type(error).__name__
            span.set_attribute(ERROR_TYPE, code)
            span.set_status(trace.Status(trace.StatusCode.ERROR, code))
            raise
        if span.is_recording():
            span.set_attributes(_about(answer))
        return answer


def _about(answer: object) -> dict[str, str | int]:
    """How many records an answer is about, and which, if it is one whose id says nothing."""
    if isinstance(answer, Message):
        return {RECORD_ID: answer.id, RECORD_COUNT: 1}
    if isinstance(answer, Outcome):
        held = answer.statement
        return {RECORD_COUNT: 0} if held is None else {RECORD_ID: held.id, RECORD_COUNT: 1}
    if isinstance(answer, Recall):
        return {RECORD_COUNT: len(answer.hits)}
    if isinstance(answer, Context):
        return {RECORD_COUNT: len(answer.blocks) + len(answer.messages)}
    if isinstance(answer, Injection):
        return {RECORD_COUNT: len(answer.blocks)}
    if isinstance(answer, MergeResult):
        return {RECORD_COUNT: answer.added + answer.updated}
    removed = getattr(answer, "removed", None)
    if isinstance(removed, dict):
        return {RECORD_COUNT: sum(removed.values())}
    if isinstance(answer, bool):
        return {RECORD_COUNT: int(answer)}
    return {RECORD_COUNT: len(answer)} if isinstance(answer, Sized) and not isinstance(answer, str) else {RECORD_COUNT: 1}
