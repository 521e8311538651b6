"""Sends requests to a server over connections that stay open, and times each. A process of its own: the server keeps its core.

Reads one JSON object per line: `host`, `port`, `clients`, `deadline_s` and `requests` (each the whole text of one request).
Each client sends one, waits for the answer, and takes the next from the list. Answers with one JSON object per line:
`seconds` from the first byte out to the last one in, `calls_s`, the `size` of a typical body, and what `failed`.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
END = b"\r\n\r\n"


class Client(asyncio.Protocol):
    """One connection with one request on its way at a time."""

    def __init__(self, requests: Iterator[bytes], until: float) -> None:
        self._requests = requests
        self._until = until
        self._transport: Any = None
        self._buffer = b""
        self._needed = 0
        self._started = 0.0
        self.calls_s: list[float] = []
        self.failed: list[str] = []
        self.size = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def send(self) -> None:
        request = next(self._requests, None) if time.perf_counter() < self._until else None
        if request is None:
            self._transport.close()
            return
        self._started = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._needed:
            head = self._buffer.find(END)
            if head < 0:
                return
            length = LENGTH.search(self._buffer, 0, head)
            self._needed = head + len(END) + (int(length[1]) if length else 0)
            self.size = self._needed - head - len(END)
        if len(self._buffer) < self._needed:
            return
        self.calls_s.append(time.perf_counter() - self._started)
        if self._buffer[9:10] != b"2":
            self.failed.append(self._buffer[:500].decode("latin-1"))
        self._buffer, self._needed = b"", 0
        self.send()

    def connection_lost(self, error: Exception | None) -> None:
        if self._buffer or error is not None:
            self.failed.append(f"the connection was lost: {error}")
        if not self.ended.done():
            self.ended.set_result(None)


async def load(order: dict[str, Any]) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    requests = iter([text.encode() for text in order["requests"]])
    until = time.perf_counter() + order["deadline_s"]
    clients = [Client(requests, until) for _ in range(order["clients"])]
    for client in clients:
        await loop.create_connection(lambda client=client: client, order["host"], order["port"])  # type: ignore[misc]
    started = time.perf_counter()
    for client in clients:
        client.send()
    await asyncio.wait_for(asyncio.gather(*(client.ended for client in clients)), order["deadline_s"] + 60)
    seconds = time.perf_counter() - started
    failed = [text for client in clients for text in client.failed]
    sizes = sorted(client.size for client in clients if client.calls_s)
    calls_s = [call_s for client in clients for call_s in client.calls_s]
    return {"seconds": seconds, "calls_s": calls_s, "size": sizes[len(sizes) // 2], "failed": len(failed), "first": failed[:1]}


def main() -> None:
    try:
        from uvloop import run
    except ImportError:
        from asyncio import run
    for line in sys.stdin:
        print(json.dumps(run(load(json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
