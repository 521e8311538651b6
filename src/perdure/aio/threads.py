"""One whole call per hop: the pool that the async face sends its calls to."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from contextvars import copy_context
from functools import partial, update_wrapper
from itertools import islice
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")
THREADS = 16
PER_HOP = 500
# Fetches wait, and may ask for others in turn; a waiting thread costs little.
FETCH_THREADS = 256


class Threads:
    """A bounded pool that runs one whole call per hop."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="perdure-aio")
        # A fetch may wait for another one whose fetcher calls us in turn: it must not hold the threads that call needs.
        self._waiting = ThreadPoolExecutor(FETCH_THREADS, thread_name_prefix="perdure-aio-fetch")

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._hop(self._pool, partial(call, *args, **kwargs))

    async def run_fetch(self, call: Callable[[], T], bridge: Bridge) -> T:
        """As `run`, for a call that waits for others of its kind; a cancellation ends what its fetcher waits for."""
        return await self._hop(self._waiting, call, bridge.cancel)

    async def _hop(self, pool: ThreadPoolExecutor, call: Callable[[], T], on_cancel: Callable[[], None] | None = None) -> T:
        work = asyncio.get_running_loop().run_in_executor(pool, partial(copy_context().run, call))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            # However often we are cancelled: wait, then let the cancellation go on.
            while not work.done():
                if on_cancel is not None:
                    on_cancel()
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({work})
            if not work.cancelled():
                work.exception()  # retrieved, so that nobody warns of it
            raise

    async def each(self, items: Iterator[T]) -> AsyncIterator[T]:
        """The items of an iterator that reads from the store, taken a few hundred per hop."""
        while chunk := await self.run(lambda: list(islice(items, PER_HOP))):
            for item in chunk:
                yield item

    @asynccontextmanager
    async def entered(self, opening: AbstractContextManager[T], awaited: Callable[[T, Threads], A]) -> AsyncIterator[A]:
        """What a `with` block holds, for the length of an `async with` block."""
        held: list[T] = []
        try:
            await self.run(lambda: held.append(opening.__enter__()))
            yield awaited(held[0], self)
        finally:
            # Also after a cancellation that came while it was being entered.
            if held:
                await self.run(opening.__exit__, None, None, None)

    def close(self) -> None:
        self._pool.shutdown(wait=False)
        self._waiting.shutdown(wait=False)


class Bridge:
    """A function for use from a thread: what it leaves to be awaited is awaited on the caller's loop."""

    def __init__(self, call: Callable[..., Any], loop: asyncio.AbstractEventLoop) -> None:
        update_wrapper(self, call)
        self._call = call
        self._loop = loop
        self._awaited: Future[Any] | None = None
        self._cancelled = False

    def __call__(self, *args: object) -> Any:
        async def whole(answer: Awaitable[Any]) -> Any:
            return await answer

        if self._cancelled:
            raise CancelledError("the caller was cancelled")
        answer = self._call(*args)
        if not inspect.isawaitable(answer):
            return answer
        self._awaited = asyncio.run_coroutine_threadsafe(whole(answer), self._loop)
        return self._awaited.result()

    def cancel(self) -> None:
        """End what is being awaited, and let nothing new begin."""
        self._cancelled = True
        if self._awaited is not None:
            self._awaited.cancel()
