"""What the async classes are made of: a call of a handle becomes the same call, made in a thread.

    class AsyncState(Awaited[State]):
        save = awaited(State.save)

Type checkers and editors see the parameters of the handle's method, which are written there alone.

A call is one hop to a thread of a bounded pool.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, suppress
from contextvars import copy_context
from functools import partial, update_wrapper
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from perdure.domain.scope import Scope
from perdure.domain.text.rules import Json
from perdure.handles.operation import Handle

if TYPE_CHECKING:
    from typing import Self


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


T_co = TypeVar("T_co", covariant=True)
H = TypeVar("H", bound=Handle)


class HandleAttribute(Generic[T]):
    """An attribute of a handle, as it is."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, face: None, kind: type) -> Self: ...
    @overload
    def __get__(self, face: object, kind: type) -> T: ...
    def __get__(self, face: Any, kind: type) -> Any:
        return self if face is None else self._of(face)

    def _of(self, face: Any) -> Any:
        return getattr(face._sync, self._name)


class Twin(HandleAttribute[T]):
    """A namespace of a handle, awaited."""

    def __init__(self, kind: Callable[[Any, Threads], T]) -> None:
        self._kind = kind

    def _of(self, face: Any) -> Any:
        return self._kind(super()._of(face), face._threads)


class Awaited(Generic[H]):
    """A handle whose calls are sent to threads."""

    __slots__ = ("_sync", "_threads")
    scope = HandleAttribute[Scope]()

    def __init__(self, sync: H, threads: Threads) -> None:
        self._sync = sync
        self._threads = threads


class Method(Protocol[P, T_co]):
    """A method with the parameters of another one: what the functions below return is one, for a type checker."""

    @overload
    def __get__(self, face: None, kind: type, /) -> Callable[Concatenate[Any, P], T_co]: ...
    @overload
    def __get__(self, face: object, kind: type, /) -> Callable[P, T_co]: ...


Call = Callable[Concatenate[Any, P], T]
"""A method of a handle."""


def awaited(call: Call[P, T]) -> Method[P, Coroutine[Any, Any, T]]:
    """The call, made in a thread."""

    async def run(face: Any, *args: Any, **named: Any) -> Any:
        return await face._threads.run(getattr(face._sync, call.__name__), *args, **named)

    return _like(call, run)


def direct(call: Call[P, T]) -> Method[P, T]:
    """The call itself, which touches no store and so needs no thread."""
    return _made(call, lambda answer, _: answer)


def opened(call: Call[P, Any], kind: Callable[[Any, Threads], T]) -> Method[P, T]:
    """A call that opens another handle; awaited, that is a `kind`."""
    return _made(call, kind)


def entered(
    call: Call[P, AbstractContextManager[Any]], kind: Callable[[Any, Threads], T]
) -> Method[P, AbstractAsyncContextManager[T]]:
    """A call for a `with` block, for an `async with` block."""
    return _made(call, lambda opening, threads: threads.entered(opening, kind))


def streamed(call: Call[P, Iterator[T]]) -> Method[P, AsyncIterator[T]]:
    """A call for a `for` loop, for an `async for` loop."""
    return _made(call, lambda items, threads: threads.each(items))


def fetched(call: Call[P, T]) -> Method[P, Coroutine[Any, Any, T]]:
    """A call with a fetcher, which runs in the caller's loop, made in a thread for those that wait."""

    async def run(face: Any, start: Any, end: Any, fetcher: Any, **named: Any) -> Any:
        bridge = Bridge(fetcher, asyncio.get_running_loop())
        whole = functools.partial(getattr(face._sync, call.__name__), start, end, bridge, **named)
        return await face._threads.run_fetch(whole, bridge)

    return _like(call, run)


Fetching = Callable[[Callable[..., Any]], Callable[..., Awaitable[dict[str, Json]]]]


def fetching(call: Call[P, Callable[..., Any]]) -> Method[P, Fetching]:
    """A call that decorates a fetcher: what it makes is awaited, and fetches as `fetched` does."""

    def made(decorate: Callable[..., Any], threads: Threads) -> Fetching:
        def wrap(fetcher: Callable[..., Any]) -> Callable[..., Awaitable[dict[str, Json]]]:
            @functools.wraps(fetcher)
            async def cached(start: object, end: object) -> dict[str, Json]:
                bridge = Bridge(fetcher, asyncio.get_running_loop())
                return await threads.run_fetch(functools.partial(decorate(bridge), start, end), bridge)

            return cached

        return wrap

    return _made(call, made)


def _made(call: Call[P, Any], kind: Callable[[Any, Threads], Any]) -> Method[P, Any]:
    def run(face: Any, *args: Any, **named: Any) -> Any:
        return kind(getattr(face._sync, call.__name__)(*args, **named), face._threads)

    return _like(call, run)


def _like(call: Call[P, Any], run: Callable[..., Any]) -> Method[P, Any]:
    return functools.update_wrapper(run, call)  # type: ignore[return-value]  # a function in a class is a method
