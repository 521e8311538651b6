"""Durable memory for AI agents.

>>> import perdure
>>> with perdure.open("memory:") as engine:
...     ana = engine.memory(user="ana", agent="coach")
...     ana.append("user", "I moved to Seattle").seq
1
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perdure.app import Engine, open, restore  # noqa: A004
    from perdure.domain.context.context import Context
    from perdure.domain.conversation.digests import Digest, Layers, Summary, SummaryRequest
    from perdure.domain.conversation.messages import Message, NewMessage, Session, ToolCall
    from perdure.domain.errors import (
        Conflict,
        Corrupt,
        InvalidInput,
        LimitExceeded,
        NotFound,
        PerdureError,
        Unavailable,
        Unsupported,
    )
    from perdure.domain.limits import Limits
    from perdure.engine.times.question import TimeRange, extract_time_range
    from perdure.handles.memory import Memory
    from perdure.handles.registry.toolset import tool
    from perdure.services.series.fetch import Page, Window
    from perdure.settings import Settings

__all__ = [
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

# Importing perdure does nothing: each name is loaded when it is first asked for.
_HOMES = {
    **dict.fromkeys(("Engine", "open", "restore"), "perdure.app"),
    **dict.fromkeys(
        ("Conflict", "Corrupt", "InvalidInput", "LimitExceeded", "NotFound", "PerdureError", "Unavailable", "Unsupported"),
        "perdure.domain.errors",
    ),
    "Context": "perdure.domain.context.context",
    **dict.fromkeys(("Digest", "Summary", "SummaryRequest"), "perdure.domain.conversation.digests"),
    "Layers": "perdure.domain.conversation.digests",
    "Limits": "perdure.domain.limits",
    **dict.fromkeys(("Message", "NewMessage", "Session", "ToolCall"), "perdure.domain.conversation.messages"),
    **dict.fromkeys(("TimeRange", "extract_time_range"), "perdure.engine.times.question"),
    "Memory": "perdure.handles.memory",
    "tool": "perdure.handles.registry.toolset",
    **dict.fromkeys(("Page", "Window"), "perdure.services.series.fetch"),
    "Settings": "perdure.settings",
}


_MODULES = ("aio", "documents", "testing", "types")
"""What stands beside these names: `perdure.types.Switches` needs no import of its own."""


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"perdure.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'perdure' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
