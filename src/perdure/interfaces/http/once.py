"""`Idempotency-Key`: a request that is repeated with the same one is carried out once.

Answers are kept in this process's memory only, for a while: when they are gone, a repeat is told that its request was
carried out. Routes whose call itself takes a request id (append, save, merge) hand the header on instead.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from perdure.app import requests_of
from perdure.domain.errors import Conflict
from perdure.domain.scope import Owner, shared_owner
from perdure.interfaces.access import Denied
from perdure.services.once import Claim

HEADER = "Idempotency-Key"
ANSWERS_KEPT = 1_000
ANSWER_BYTES_MAX = 64 * 1024


class Answers:
    """The last answers, bounded in number and size."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[Owner, str], Response] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, owner: Owner, key: str) -> Response | None:
        with self._lock:
            return self._held.get((owner, key))

    def keep(self, owner: Owner, key: str, response: Response) -> None:
        if len(response.body) > ANSWER_BYTES_MAX:
            return
        with self._lock:
            self._held[(owner, key)] = response
            while len(self._held) > ANSWERS_KEPT:
                self._held.popitem(last=False)

    def forget(self, owner: Owner) -> None:
        """Drop what was answered to a user, some of whose data is to be forgotten."""
        with self._lock:
            for held in [held for held in self._held if held[0] == owner]:
                del self._held[held]


class OnceRoute(APIRoute):
    """A route whose writes are carried out once for each `Idempotency-Key`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def once(request: Request) -> Response:
            key = request.headers.get(HEADER)
            if key is None or request.method in ("GET", "HEAD"):
                return await handle(request)
            engine, answers = request.app.state.engine, request.app.state.answers
            done = requests_of(engine)
            user = request.path_params.get("user")
            # Who may not write is not told what was written.
            request.state.access.allow("write", user)
            owner = shared_owner(engine.space) if user is None else engine.memory(user).scope.owner
            body = await request.body()
            asked = f"{request.state.access.name} {request.method} {request.url.path}?{request.url.query}\n".encode()
            claim: Claim = await run_in_threadpool(done.claim, owner, key, hashlib.sha256(asked + body).hexdigest())
            if claim.state != "new":
                return _repeated(claim, answers.find(owner, claim.key))
            try:
                response = await handle(request)
            except (Exception, Denied):
                await run_in_threadpool(done.release, owner, claim)
                raise
            await run_in_threadpool(done.finish, owner, claim, response.status_code)
            answers.keep(owner, claim.key, response)
            return response

        return once


def _repeated(claim: Claim, held: Response | None) -> Response:
    if claim.state == "begun":
        raise Conflict("a request with this `Idempotency-Key` was begun and its end is not known; look before you repeat it")
    if held is None:
        raise Conflict(f"this request was carried out and answered with {claim.status}; the answer is no longer held")
    return Response(held.body, held.status_code, {**dict(held.headers), "Idempotent-Replay": "true"})
