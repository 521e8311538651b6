"""What adapters share: a call of the synchronous core from an event loop, and the beginning of a session."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar

from perdure.domain.errors import Conflict, NotFound
from perdure.handles.memory import Memory

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What the call answers, from a thread. A write that has begun is over when this ends, even if the caller is cancelled."""
    import asyncio  # code that awaits this has it; the command line has not, and wants only what is below

    work: asyncio.Future[Any] = asyncio.ensure_future(asyncio.to_thread(partial(call, *args, **kwargs)))
    try:
        answer: T = await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({work})
        if not work.cancelled():
            work.exception()  # retrieved, so that nobody warns of it
        raise
    return answer


def begin_session(memory: Memory, session: str) -> None:
    """End the session before this one. What is said in a session that goes on is not recalled: the model has it before it."""
    with suppress(NotFound, Conflict):  # there is none, or somebody else has ended it
        held = memory.conversation.session()
        if held.ended_at is None and held.id != session:
            memory.conversation.close(held.id)
