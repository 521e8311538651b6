"""How much a request may bring, and how often a caller may ask."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.exceptions import HTTPException

from perdure.interfaces.serving.request import GuardRefusal, IncomingRequest

CALLERS_MAX = 10_000


class Buckets:
    """`burst` at once, then `per_s` each second. A caller who was forgotten begins with a full bucket."""

    def __init__(self, per_s: float, burst: float, clock: Callable[[], float]) -> None:
        self._per_s = per_s
        self._burst = max(1.0, burst)
        self._clock = clock
        self._held: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> float:
        """Take a token: 0, or after how many seconds there will be one."""
        now = self._clock()
        left = self._left(caller, now)
        if left < 1:
            return (1 - left) / self._per_s
        self._keep(caller, left - 1, now)
        return 0.0

    def wait_s(self, caller: str) -> float:
        """After how many seconds there will be a token; 0: there is one. None is taken."""
        left = self._left(caller, self._clock())
        return 0.0 if left >= 1 else (1 - left) / self._per_s

    def _left(self, caller: str, now: float) -> float:
        left, at = self._held.get(caller, (self._burst, now))
        return min(self._burst, left + (now - at) * self._per_s)

    def _keep(self, caller: str, left: float, now: float) -> None:
        self._held[caller] = (left, now)
        self._held.move_to_end(caller)
        if len(self._held) > CALLERS_MAX:
            self._held.popitem(last=False)


def whole_seconds(wait_s: float) -> str:
    """For `Retry-After`, which knows no parts of a second."""
    return str(max(1, math.ceil(wait_s)))


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
BODY_S, IMPORT_S = 30.0, 3_600.0
STALL_S, IMPORT_STALL_S = 5.0, 30.0
"""A body must go on arriving: nothing for so long, and it is given up."""
BYTES_PER_S_MIN = 1_024
"""After so long, it must have come so fast on average. Slower ones hold a place and bring nothing."""
STRANGER_S, STRANGER_BYTES_MAX = 5.0, 16 * 1024
"""Anyone who is not known yet has only a key to show."""
LENGTH_DIGITS_MAX = 15


class Stopped(HTTPException):
    """Raised where the body is read, in the middle of a route. Frameworks let this kind of error through; the guard answers."""

    def __init__(self, refused: GuardRefusal) -> None:
        super().__init__(refused.status, refused.detail)
        self.refused = refused


class BoundedBody:
    """Counts what comes in. Once something is wrong with it, `refusal` says what."""

    def __init__(
        self, asked: IncomingRequest, receive: Receive, bytes_max: int, import_bytes_max: int, *, stranger: bool = False
    ) -> None:
        self._receive = receive
        self._max = max(import_bytes_max, bytes_max) if asked.importing else bytes_max
        self._seconds, self._stall_s = (IMPORT_S, IMPORT_STALL_S) if asked.importing else (BODY_S, STALL_S)
        if stranger:
            self._max, self._seconds = min(bytes_max, STRANGER_BYTES_MAX), STRANGER_S
        self._began: float | None = None
        self._count = 0
        self._complete = False
        self._held: bytes | None = None
        self.refusal: GuardRefusal | None = None
        self._check_length(asked)

    def _check_length(self, asked: IncomingRequest) -> None:
        length = asked.headers.get(b"content-length")
        if length is None:
            return
        if not length.isdigit() or len(length) > LENGTH_DIGITS_MAX:
            raise GuardRefusal(400, "invalid_input", "`Content-Length` must be a number of bytes", "length")
        if int(length) > self._max:
            raise self._too_large()

    def _too_large(self) -> GuardRefusal:
        detail = f"the body is larger than the {self._max:,} bytes that are taken here; send less at a time"
        return GuardRefusal(413, "limit_exceeded", detail, "too_large")

    async def receive(self) -> Message:
        if self._held is not None:
            held, self._held = self._held, None
            return {"type": "http.request", "body": held, "more_body": False}
        if self._complete:
            return await self._receive()  # which waits for the caller to go away
        loop = asyncio.get_running_loop()
        if self._began is None:
            self._began = loop.time()
        fast_enough_until = self._began + self._stall_s + self._count / BYTES_PER_S_MIN
        try:
            async with asyncio.timeout_at(min(self._began + self._seconds, loop.time() + self._stall_s, fast_enough_until)):
                message = await self._receive()
        except TimeoutError:
            detail = (
                f"the body did not arrive in time ({self._seconds:.0f} s in all, no pause over {self._stall_s:.0f} s, "
                f"{BYTES_PER_S_MIN:,} bytes a second); send it again, faster or in parts"
            )
            self.refusal = GuardRefusal(408, "unavailable", detail, "slow", {"Connection": "close"})
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
