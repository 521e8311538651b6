"""The users of a store and their jobs; `/healthz`, `/readyz` and `/metrics` for those who look after a server."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Request, Response

from perdure.app import Engine
from perdure.domain.errors import PerdureError
from perdure.domain.reports import Health
from perdure.interfaces.http.answers import answer, problem
from perdure.interfaces.http.derived import ANSWER, Route, listed, table
from perdure.interfaces.http.description import described
from perdure.interfaces.http.requests import Whole
from perdure.interfaces.metrics import MEDIA_TYPE

router = table(
    "store",
    Route("GET /users", "listUsers", "users", on=Engine, page=listed()),
    Route(
        "DELETE ",
        "forgetUser",
        "forget",
        doc="Delete all data of the user, for good. It cannot be undone, and needs the permission `admin`.",
        only=(),
        given={"user": True},
        permission="admin",
    ),
    Route("GET /jobs", "listJobs", "admin.jobs", page=listed("kind", "key")),
    Route("POST /jobs/retry", "retryJobs", "admin.retry_jobs", tells={"retried": ANSWER}),
)
READY_S = 5.0
BELIEVED_S = 1.0
LOOKS_MAX = 4
"""How many may wait for a store that does not answer."""


class HealthProbe:
    """Looks at the store, not more often than somebody needs, and not longer than they wait."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._seen: tuple[Health, float] | None = None
        self._looking = 0
        self._limiter: CapacityLimiter | None = None

    async def look(self) -> Health:
        """How things are; `TimeoutError` if the store does not say so in time."""
        if self._seen is not None and time.monotonic() < self._seen[1]:
            return self._seen[0]
        if self._looking >= LOOKS_MAX:
            raise TimeoutError
        async with asyncio.timeout(READY_S):
            found = await run_sync(self._look, abandon_on_cancel=True, limiter=self._threads())
        self._seen = (found, time.monotonic() + BELIEVED_S)
        return found

    def _threads(self) -> CapacityLimiter:
        """Of its own: how the store is must be told also when requests hold all the others."""
        if self._limiter is None:
            self._limiter = CapacityLimiter(LOOKS_MAX)
        return self._limiter

    def _look(self) -> Health:
        self._looking += 1
        try:
            return self._engine.health()
        finally:
            self._looking -= 1


@router.get("/healthz", operation_id="isAlive", summary="Is the process alive?")
async def alive() -> Response:
    """Always the same: nothing is looked at."""
    return answer({"status": "alive"})


@router.get(
    "/readyz", operation_id="isReady", summary="Can requests be answered?", responses={503: {"description": "Not now."}}
)
async def ready(request: Request) -> Response:
    """Whether the store answers. What is degraded, and how many jobs wait, is told to those who may read everything."""
    try:
        seen = await request.app.state.probe.look()
    except TimeoutError:
        return _not_ready(f"the store did not answer within {READY_S:g} s")
    except PerdureError as error:
        return _not_ready(str(error) if _may_see(request) else "the store cannot answer")
    told: dict[str, Any] = {"status": "ready" if seen.healthy else "degraded"}
    if _may_see(request):
        told |= {"degraded": seen.degraded, "jobs": seen.queue, "store": {"backend": seen.store.backend}}
    return answer(told)


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    **described("getMetrics", None, media={"text/plain": "In Prometheus's text format."}),
)
def metrics(request: Request, door: Whole) -> Response:
    """Counts of requests, jobs, questions to models and more; nothing about single users."""
    door.whole("read")
    return Response(request.app.state.metrics.text(), headers={"Content-Type": MEDIA_TYPE})


def _may_see(request: Request) -> bool:
    access = request.state.access
    return "read" in access.permissions and access.users is None


def _not_ready(why: str) -> Response:
    return problem(503, "unavailable", why, {"Retry-After": "5"}, retriable=True)
