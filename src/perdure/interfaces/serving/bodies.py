"""What a request brings: no more than it may, and within its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.exceptions import HTTPException

from perdure.interfaces.serving.asked import Asked, Refused

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
BODY_S, IMPORT_S = 30.0, 3_600.0
STALL_S = 30.0
"""Also a long body must go on arriving."""
STRANGER_S, STRANGER_BYTES_MAX = 5.0, 16 * 1024
"""Whoever is not known yet has only a key to show."""
LENGTH_DIGITS_MAX = 15


class Stopped(HTTPException):
    """Raised where the body is read, in the middle of a route. Frameworks let this kind of error through; the guard answers."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.status, refused.detail)
        self.refused = refused


class Body:
    """Counts what comes in. Once something is wrong with it, `refusal` says what."""

    def __init__(
        self, asked: Asked, receive: Receive, bytes_max: int, import_bytes_max: int, *, stranger: bool = False
    ) -> None:
        self._receive = receive
        self._max = max(import_bytes_max, bytes_max) if asked.importing else bytes_max
        self._seconds = IMPORT_S if asked.importing else BODY_S
        if stranger:
            self._max, self._seconds = min(bytes_max, STRANGER_BYTES_MAX), STRANGER_S
        self._until: float | None = None
        self._count = 0
        self._complete = False
        self._held: bytes | None = None
        self.refusal: Refused | None = None
        self._check_length(asked)

    def _check_length(self, asked: Asked) -> None:
        length = asked.headers.get(b"content-length")
        if length is None:
            return
        if not length.isdigit() or len(length) > LENGTH_DIGITS_MAX:
            raise Refused(400, "invalid_input", "`Content-Length` must be a number of bytes", "length")
        if int(length) > self._max:
            raise self._too_large()

    def _too_large(self) -> Refused:
        detail = f"the body is larger than the {self._max:,} bytes that are taken here; send less at a time"
        return Refused(413, "limit_exceeded", detail, "too_large")

    async def receive(self) -> Message:
        if self._held is not None:
            held, self._held = self._held, None
            return {"type": "http.request", "body": held, "more_body": False}
        if self._complete:
            return await self._receive()  # which waits for the caller to go away
        loop = asyncio.get_running_loop()
        if self._until is None:
            self._until = loop.time() + self._seconds
        try:
            async with asyncio.timeout_at(min(self._until, loop.time() + STALL_S)):
                message = await self._receive()
        except TimeoutError:
            detail = f"the body did not arrive within {min(self._seconds, STALL_S):.0f} s; send it again, faster or in parts"
            self.refusal = Refused(408, "unavailable", detail, "slow", {"Connection": "close"})
            raise Stopped(self.refusal) from None
        self._count += len(message.get("body", b""))
        self._complete = not message.get("more_body", False)
        if self._count > self._max:
            self.refusal = self._too_large()
            raise Stopped(self.refusal)
        return message

    async def read(self) -> bytes:
        """All of it; a route will be given it again."""
        parts = []
        while not self._complete:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                break
            parts.append(message.get("body", b""))
        self._held = b"".join(parts)
        return self._held
