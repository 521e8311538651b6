"""`Idempotency-Key`: a request that is repeated with the same one is carried out once.

Answers are kept in this process's memory only, for a while, and until something of the user's is forgotten: when they
are gone, a repeat is told that its request was carried out. Routes whose call itself takes a request id (append, save,
merge) hand the header on instead.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool

from perdure.app import log_repeat, requests_of
from perdure.domain.errors import Conflict, InvalidInput
from perdure.domain.scope import Owner, shared_owner
from perdure.interfaces.access import AccessDenied
from perdure.interfaces.http.requests import StrictRoute, door, strict_request
from perdure.services.jobs.idempotency import RequestState

HEADER = "Idempotency-Key"
KEY = re.compile("[!-~]{1,400}")
PARAMETER: dict[str, Any] = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Your own id of the request: repeated with it, the request is carried out once.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 400, "pattern": r"^[!-~]+$"},
}
ANSWERS_KEPT = 1_000
ANSWER_BYTES_MAX = 64 * 1024


class Answers:
    """The last answers, bounded in number and size."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[Owner, str, int], Response] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, owner: Owner, claim: RequestState) -> Response | None:
        with self._lock:
            return self._held.get((owner, claim.key, claim.erasures))

    def keep(self, owner: Owner, claim: RequestState, response: Response) -> None:
        if len(response.body) > ANSWER_BYTES_MAX:
            return
        with self._lock:
            self._held[(owner, claim.key, claim.erasures)] = response
            while len(self._held) > ANSWERS_KEPT:
                self._held.popitem(last=False)


class OnceRoute(StrictRoute):
    """A route whose writes are carried out once for each `Idempotency-Key`."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:
        if set(more.get("methods") or ()) - {"GET", "HEAD"}:
            more["openapi_extra"] = {"parameters": [PARAMETER]}
        super().__init__(path, endpoint, **more)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def once(request: Request) -> Response:
            key = request.headers.get(HEADER)
            if key is None or request.method in ("GET", "HEAD"):
                return await handle(request)
            engine, answers = request.app.state.engine, request.app.state.answers
            done = requests_of(engine)
            user = request.path_params.get("user")
            if not KEY.fullmatch(key):
                raise InvalidInput(f"`{HEADER}` = {key!r:.60} must be 1 to 400 visible ASCII characters")
            # Who may not write is not told what was written.
            request.state.access.allow("write", user)
            owner = shared_owner(engine.space) if user is None else engine.memory(user).scope.owner
            request = strict_request(request)
            body = await request.body()
            made = f"{request.state.access.name} {request.method} ".encode() + _place(request)
            claim: RequestState = await run_in_threadpool(done.claim, owner, key, hashlib.sha256(made + body).hexdigest())
            if claim.state != "new":
                again = _repeated(claim, answers.find(owner, claim))
                # It tells what it told the first time, to anyone who asks now.
                await run_in_threadpool(log_repeat, door(request).seen, user, self.operation_id or self.name)
                return again
            try:
                response = await handle(request)
            except (Exception, AccessDenied):
                await run_in_threadpool(done.release, owner, claim)
                raise
            await run_in_threadpool(done.finish, owner, claim, response.status_code)
            answers.keep(owner, claim, response)
            return response

        return once


def _place(request: Request) -> bytes:
    # As it came: a path need not be text.
    scope = request.scope
    raw: bytes = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogateescape")
    query: bytes = scope["query_string"]
    return raw.partition(b"?")[0] + b"?" + query + b"\n"


def _repeated(claim: RequestState, held: Response | None) -> Response:
    if claim.state == "begun":
        raise Conflict("a request with this `Idempotency-Key` was begun and its end is not known; look before you repeat it")
    if held is None:
        raise Conflict(f"this request was carried out and answered with {claim.status}; the answer is no longer held")
    return Response(held.body, held.status_code, {**dict(held.headers), "Idempotent-Replay": "true"})
