"""MCP for an agent that starts perdure itself: composes the engine and the server over this process's stdin and stdout."""

from __future__ import annotations

from perdure.app import Engine
from perdure.domain.errors import InvalidInput
from perdure.handles.memory import Memory


def check_installed() -> None:
    """`InvalidInput` if what MCP needs is not installed; before anything is opened."""
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise InvalidInput("the package `mcp` is not installed; run pip install 'perdure[mcp]'")


def serve(engine: Engine, memory: Memory, *, tools: str = "default", read_only: bool = False) -> None:
    """Answer about one user's memory until stdin ends."""
    from perdure.interfaces.mcp.callers import LocalCaller
    from perdure.interfaces.mcp.server import build
    from perdure.interfaces.mcp.sets import offers
    from perdure.interfaces.mcp.stdio import serve as serve_stdio

    owner = LocalCaller(engine, memory)
    offered = offers(memory.tools, tools, read_only=read_only)
    serve_stdio(build(lambda _: owner, offered, read_only=read_only))
