"""A call of the synchronous core from an event loop: in a thread, and waited for even if the caller is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What the call answers. A write that has begun is over when this ends."""
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
