"""The server: the HTTP API, the web page and MCP in one application, behind one guard."""

from __future__ import annotations

from fastapi import FastAPI

from perdure.app import Engine
from perdure.interfaces.access import LOCAL
from perdure.interfaces.http import problems
from perdure.interfaces.http.once import Answers
from perdure.interfaces.http.paths import IdPaths
from perdure.interfaces.http.routes import ROUTERS


def build(engine: Engine) -> FastAPI:
    """An application over an open engine. Whoever serves it closes the engine afterwards."""
    app = FastAPI(title="perdure", version="1", docs_url=None, redoc_url=None, openapi_url="/openapi.json")
    app.state.engine = engine
    app.state.answers = Answers()
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router)

    @app.middleware("http")
    async def local(request, call_next):  # type: ignore[no-untyped-def]  # the guard takes its place
        request.state.access = LOCAL
        return await call_next(request)

    app.add_middleware(IdPaths)
    return app
