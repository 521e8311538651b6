"""MCP on loopback, behind a guard that knows API keys, and `perdure mcp` as a process; with clients for both."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette
from starlette.routing import Route

import perdure
from perdure.interfaces.access import LOCAL, of_key
from perdure.interfaces.mcp.http import mount

T = TypeVar("T")
HOSTS = ("127.0.0.1:*", "localhost:*")
ORIGINS = ("http://127.0.0.1:*", "http://localhost:*")
PERDURE = str(Path(sys.executable).parent / "perdure")
ERAS = ("legacy", "2026-07-28")


@dataclass(frozen=True, slots=True)
class Live:
    """A server that runs while the fixture does."""

    engine: perdure.Engine
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def key(self, permission: str = "write", users: list[str] | None = None) -> dict[str, str]:
        """The header of a new API key."""
        secret = self.engine.api_keys.create("test", users=users, permission=permission).secret
        return {"Authorization": f"Bearer {secret}"}

    def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> httpx2.Response:
        """What the server answers to these very bytes."""
        given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **(headers or {})}
        return httpx2.post(self.url, content=body, headers=given, timeout=30)

    @asynccontextmanager
    async def client(self, headers: Mapping[str, str] | None = None, era: str = "legacy") -> AsyncIterator[Client]:
        async with (
            httpx2.AsyncClient(headers=dict(headers or {}), timeout=30) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=era) as client,
        ):
            yield client


@contextmanager
def running(engine: perdure.Engine, **how: Any) -> Iterator[Live]:
    """The engine served on a free port. Whoever sends no key is the person at this machine."""
    mounted = mount(engine, hosts=HOSTS, origins=ORIGINS, **how)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with mounted.lifespan():
            yield

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            secret = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
            key = engine.api_keys.recognise(secret) if secret else None
            access = LOCAL if not secret else None if key is None else of_key(key)
            scope.setdefault("state", {})["access"] = access
        await app(scope, receive, send)

    app = Starlette(routes=[Route("/mcp", endpoint=mounted.app)], lifespan=lifespan)
    ready = threading.Event()

    class Told(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            ready.set()

    server = Told(uvicorn.Config(guarded, host="127.0.0.1", port=0, log_level="warning", lifespan="on"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield Live(engine, server.servers[0].sockets[0].getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(30)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end; a client that waits for ever fails the test."""
    return asyncio.run(asyncio.wait_for(work, 60))
