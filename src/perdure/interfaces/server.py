"""The server: the HTTP API, the web page and MCP in one application, behind one guard."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

from fastapi import FastAPI, Request, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from perdure.app import Engine
from perdure.app import open as open_engine
from perdure.domain.scope import DEFAULT
from perdure.interfaces.http import answers, description
from perdure.interfaces.http.derived import SHORT_ROUTES
from perdure.interfaces.http.idempotency import Answers
from perdure.interfaces.http.routes import ROUTERS, store
from perdure.interfaces.http.shortcut import Shortcut
from perdure.interfaces.mcp.http import Mounted, mount
from perdure.interfaces.metrics import Metrics
from perdure.interfaces.paths import IdPaths
from perdure.interfaces.serving import login
from perdure.interfaces.serving.guard import App, Guard
from perdure.interfaces.serving.options import Options, is_loopback
from perdure.interfaces.serving.request import IncomingRequest
from perdure.interfaces.serving.runner import BoundSocket, listen, listen_at, run
from perdure.interfaces.web import pages
from perdure.settings import Settings

__all__ = ["BoundSocket", "Options", "build", "is_loopback", "listen", "listen_at", "run"]

Handler = Callable[[Request, Exception], Awaitable[Response]]


def build(engine: Engine, options: Options | None = None) -> FastAPI:
    """An application over an open engine. Anyone who serves it closes the engine afterwards.

    `InvalidInput` if it is to be reached from elsewhere and the store has no key that would let anybody in.
    """
    chosen = Options() if options is None else options
    metrics = Metrics(engine)
    guard = Guard(engine, chosen, metrics, _problem_app)
    mounted = _mcp(engine, chosen)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with mounted.lifespan(), _prepared(app):
            yield

    app = FastAPI(
        title="perdure",
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        lifespan=lifespan,
        description="Durable memory for AI agents. Errors are `application/problem+json`; lists have a cursor.",
    )
    app.state.engine, app.state.answers, app.state.metrics, app.state.guard = engine, Answers(), metrics, guard
    app.state.probe = store.HealthProbe(engine)
    answers.install(app)
    _tell_people(app)
    for router in ROUTERS:
        app.include_router(router)
    description.install(app)
    app.router.routes.append(Route("/mcp", endpoint=mounted.app, include_in_schema=False))
    _pages(app, guard)
    app.add_middleware(Shortcut, routes=SHORT_ROUTES)
    app.add_middleware(guard.wrapping)
    app.add_middleware(IdPaths)
    return app


@asynccontextmanager
async def _prepared(app: FastAPI) -> AsyncIterator[None]:
    """Do at the start what the first request of each kind would have to do; what takes longer, beside the first requests."""
    for route in app.router.routes:
        route.matches({"type": "http", "method": "GET", "path": "", "root_path": "", "headers": []})
    app.state.preparing = work = asyncio.create_task(_load())
    try:
        yield
    finally:
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work


async def _load() -> None:
    for name in pages.template_names():
        await asyncio.to_thread(pages.compile_template, name)
    await asyncio.to_thread(_ask_once)


def _ask_once() -> None:
    """A question to an empty store loads the lists of words, the patterns and the libraries of a search."""
    with open_engine(settings=Settings(url="memory:")) as empty:
        empty.memory(DEFAULT).recall("What was said last week?")


def _mcp(engine: Engine, options: Options) -> Mounted:
    """MCP at `/mcp`. Its own checks of names and origins are off: the guard has made them."""
    return mount(
        engine, hosts=None, origins=None, tools=options.tools, user=options.user, body_bytes_max=options.body_bytes_max
    )


def _pages(app: FastAPI, guard: Guard) -> None:
    app.include_router(login.router(guard, pages.login_page))
    app.router.routes.append(Mount("/static", StaticFiles(directory=Path(__file__).parent / "web" / "static"), name="static"))
    app.include_router(pages.router)


# -- errors: problems for programs, a page for people


def _problem_app(scope: Any, status: int, code: str, detail: str, headers: Mapping[str, str]) -> App:
    return cast(
        App, _as_page(Request(scope), answers.problem(status, code, detail, headers, retriable=status in (408, 429, 503)))
    )


def _tell_people(app: FastAPI) -> None:
    """Have errors on pages told as pages."""
    for kind, handler in list(app.exception_handlers.items()):
        app.add_exception_handler(kind, _shower(cast(Handler, handler)))


def _shower(handler: Handler) -> Handler:
    async def error_page(request: Request, error: Exception) -> Response:
        return _as_page(request, await handler(request, error))

    return error_page


def _as_page(request: Request, problem: Response) -> Response:
    asked = IncomingRequest.of(request.scope)
    if problem.status_code < 400 or not asked.web or not asked.wants_page:
        return problem
    told = json.loads(bytes(problem.body))
    answer = pages.error_page(request, status=problem.status_code, title=told["title"], detail=told["detail"])
    answer.status_code = problem.status_code
    answer.headers.update({name: problem.headers[name] for name in ("retry-after", "hx-redirect") if name in problem.headers})
    return answer
