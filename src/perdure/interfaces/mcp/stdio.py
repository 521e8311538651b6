"""MCP over stdin and stdout: one message per line, each with an id answered, nothing else on stdout."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, suppress
from threading import Semaphore, Thread
from types import TracebackType
from typing import Any

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.lowlevel.server import Server
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from perdure.interfaces.mcp.wire import Refusal, examine, too_long

LINE_BYTES_MAX = 16 * 1024 * 1024
CHUNK_BYTES = 65_536
TAIL_BYTES = 4_096
LAST_ANSWERS_S = 30.0
"""How long requests may still run after the client has closed its end."""


def serve(server: Server[Any]) -> None:
    """Serve the process's stdin and stdout until stdin ends."""
    with claimed() as (reading, writing):
        anyio.run(serve_pipe, server, reading, writing)


async def serve_pipe(server: Server[Any], reading: int, writing: int) -> None:
    """Serve two file descriptors until the first one ends and what it asked is answered."""
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    waiting = PendingRequests(to_client.clone())

    async def read() -> None:
        async with to_server, aclosing(chunks(reading)) as arriving:
            lines = Lines()
            async for chunk in arriving:
                for line in lines.feed(chunk):
                    await take(line)
            for line in lines.end():
                await take(line)
            with anyio.move_on_after(LAST_ANSWERS_S):
                await waiting.none_left()
        await waiting.aclose()

    async def take(line: bytes | Refusal) -> None:
        message = line if isinstance(line, Refusal) else examine(line)
        if isinstance(message, Refusal):
            for answer in message.answers():
                await to_client.send(SessionMessage(answer))
        else:
            waiting.expect(message)
            await to_server.send(SessionMessage(message))

    async def write() -> None:
        async with from_server:
            async for item in from_server:
                line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                try:
                    await anyio.to_thread.run_sync(_write_all, writing, line)
                except BrokenPipeError:
                    tasks.cancel_scope.cancel()  # the client is gone: there is nobody left to answer

    async with anyio.create_task_group() as tasks, to_client:
        tasks.start_soon(read)
        tasks.start_soon(write)
        await server.run(from_client, waiting, server.create_initialization_options())


async def chunks(reading: int) -> AsyncGenerator[bytes, None]:
    """What can be read, piece by piece, to its end.

    A thread waits for it that the process need not wait for: nobody can wake it when the process is to stop. It reads one
    piece ahead.
    """
    loop, arrived, room = asyncio.get_running_loop(), asyncio.Queue[bytes](), Semaphore(2)
    listening = True

    def pump() -> None:
        with suppress(RuntimeError):  # the loop has ended, and nobody listens any more
            while room.acquire() and listening:
                loop.call_soon_threadsafe(arrived.put_nowait, chunk := _read_some(reading))
                if not chunk:
                    break

    Thread(target=pump, name="perdure-mcp-stdin", daemon=True).start()
    try:
        while chunk := await arrived.get():
            yield chunk
            room.release()
    finally:
        listening = False
        room.release()


class PendingRequests:
    """The way back to the client, which knows what is still to be answered."""

    def __init__(self, inner: MemoryObjectSendStream[SessionMessage]) -> None:
        self._inner = inner
        self._open: Counter[int | str] = Counter()
        self._changed = anyio.Event()

    def expect(self, message: JSONRPCMessage) -> None:
        """Note what came in: a request waits for its answer; one that is cancelled gets none."""
        if isinstance(message, JSONRPCRequest):
            self._open[message.id] += 1
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._settle((message.params or {}).get("requestId"))

    async def none_left(self) -> None:
        while self._open:
            await self._changed.wait()
            self._changed = anyio.Event()

    async def send(self, item: SessionMessage, /) -> None:
        await self._inner.send(item)
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._settle(item.message.id)

    def _settle(self, id: object) -> None:  # noqa: A002 - it is one
        if isinstance(id, int | str) and id in self._open:
            self._open[id] -= 1
            if self._open[id] < 1:
                del self._open[id]
        self._changed.set()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> PendingRequests:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Lines:
    """Bytes cut into lines. A line that is too long is dropped while it comes in, but for where its id may stand."""

    def __init__(self, bytes_max: int = LINE_BYTES_MAX) -> None:
        self._max = bytes_max
        self._held = bytearray()
        self._tail: bytearray | None = None
        """The end of a line that was too long to hold; None: it is not."""

    def feed(self, chunk: bytes) -> Iterator[bytes | Refusal]:
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            self._add(part)
            yield from self.end()
        self._add(rest)

    def end(self) -> Iterator[bytes | Refusal]:
        """The line that is over now, if it says anything."""
        if self._tail is not None:
            yield too_long(bytes(self._held), bytes(self._tail), self._max)
        elif line := bytes(self._held).strip():
            yield line
        self._held.clear()
        self._tail = None

    def _add(self, part: bytes) -> None:
        if self._tail is None and len(self._held) + len(part) <= self._max:
            self._held += part
            return
        if self._tail is None:
            self._tail = bytearray(self._held[-TAIL_BYTES:])
            del self._held[TAIL_BYTES:]
        self._tail += part
        del self._tail[:-TAIL_BYTES]


@contextmanager
def claimed() -> Iterator[tuple[int, int]]:
    """The process's stdin and stdout for the protocol alone: whatever else reads gets nothing, what prints goes to stderr."""
    sys.stdout.flush()
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        yield reading, writing
    finally:
        sys.stdout.flush()
        os.dup2(reading, 0)
        os.dup2(writing, 1)
        os.close(nothing)
        os.close(writing)  # not `reading`: a thread may still wait on it


def _read_some(reading: int) -> bytes:
    try:
        return os.read(reading, CHUNK_BYTES)
    except OSError:
        return b""  # what cannot be read any more is at its end


def _write_all(writing: int, line: bytes) -> None:
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(writing, rest) :]
