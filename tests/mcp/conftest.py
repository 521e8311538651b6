"""Fixtures of the MCP tests: a live server, and `perdure mcp` as a process of its own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

import perdure
from tests.mcp.live_mcp import PERDURE, Live, running


@pytest.fixture
def live() -> Iterator[Live]:
    """All tools, for user `ana` unless a request or its key says otherwise."""
    with perdure.open("memory:") as engine, running(engine, user="ana", tools="all") as served:
        yield served


@pytest.fixture
def over_stdio(tmp_path: Path) -> Callable[..., AbstractAsyncContextManager[Client]]:
    """A client of `perdure mcp` as a process of its own, on a store in `tmp_path`."""

    @asynccontextmanager
    async def opened(*more: str, user: str = "ana", era: str = "legacy") -> AsyncIterator[Client]:
        args = ["mcp", "--user", user, "--url", f"sqlite:///{tmp_path / 'perdure.db'}", *more]
        async with Client(
            stdio_client(StdioServerParameters(command=PERDURE, args=args, env=dict(os.environ))), mode=era
        ) as client:
            yield client

    return opened
