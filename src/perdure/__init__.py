"""Durable memory for AI agents.

>>> import perdure
>>> with perdure.open("memory:") as engine:
...     ana = engine.memory(user="ana", agent="coach")
...     ana.append("user", "I moved to Seattle").seq
1
"""

from perdure.app import Engine, open, restore  # noqa: A004
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
from perdure.domain.messages import Message, NewMessage, Session, ToolCall
from perdure.handle import Memory
from perdure.settings import Settings

__all__ = [
    "Conflict",
    "Corrupt",
    "Engine",
    "InvalidInput",
    "LimitExceeded",
    "Limits",
    "Memory",
    "Message",
    "NewMessage",
    "NotFound",
    "PerdureError",
    "Session",
    "Settings",
    "ToolCall",
    "Unavailable",
    "Unsupported",
    "open",
    "restore",
]
