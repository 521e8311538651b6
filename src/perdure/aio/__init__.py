"""The async face: the same calls, each sent whole to a thread of a bounded pool.

There is one core and no second implementation. A thread cannot be interrupted, so a cancelled call waits for its work
to end before the cancellation goes on: no write outlives the task that asked for it.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from perdure import app
from perdure.aio.calls import Threads
from perdure.aio.faces import (
    AsyncAdminHandle,
    AsyncAgentHandle,
    AsyncApiKeyHandle,
    AsyncConversation,
    AsyncDocumentHandle,
    AsyncEngine,
    AsyncEntityHandle,
    AsyncInstructionHandle,
    AsyncJournalHandle,
    AsyncLessonHandle,
    AsyncMemories,
    AsyncMemory,
    AsyncSeriesHandle,
    AsyncState,
    AsyncTaskHandle,
    AsyncTodoHandle,
    AsyncTools,
    AsyncTranscriptHandle,
    AsyncTurn,
    AsyncUserSeries,
)
from perdure.compose.models import HostModels
from perdure.ports.clock import Clock
from perdure.settings import Settings

if TYPE_CHECKING:
    from typing import Unpack

__all__ = [
    "AsyncAdminHandle",
    "AsyncAgentHandle",
    "AsyncApiKeyHandle",
    "AsyncConversation",
    "AsyncDocumentHandle",
    "AsyncEngine",
    "AsyncEntityHandle",
    "AsyncInstructionHandle",
    "AsyncJournalHandle",
    "AsyncLessonHandle",
    "AsyncMemories",
    "AsyncMemory",
    "AsyncSeriesHandle",
    "AsyncState",
    "AsyncTaskHandle",
    "AsyncTodoHandle",
    "AsyncTools",
    "AsyncTranscriptHandle",
    "AsyncTurn",
    "AsyncUserSeries",
    "Threads",
    "open",
]


async def open(
    url: str | os.PathLike[str] | None = None,
    *,
    background: bool = False,
    settings: Settings | None = None,
    clock: Clock | None = None,
    **models: Unpack[HostModels],
) -> AsyncEngine:
    """As `perdure.open`; use the result with `async with`, or `await engine.close()`."""
    threads = Threads()
    opened: list[app.Engine] = []
    call = partial(app.open, url, background=background, settings=settings, clock=clock)
    try:
        await threads.run(lambda: opened.append(call(**models)))
    except BaseException:
        # Also a cancellation, which came while it was being opened.
        for engine in opened:
            await threads.run(engine.close)
        threads.close()
        raise
    return AsyncEngine(opened[0], threads)
