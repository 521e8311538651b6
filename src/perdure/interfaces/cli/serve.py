"""`perdure serve`: the HTTP API, MCP and the page in one process, with the jobs running."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

import perdure
from perdure import settings as settings_module
from perdure.app import asked_by
from perdure.domain.accesses import COMMAND_LINE
from perdure.domain.errors import InvalidInput
from perdure.interfaces.cli.asking import taking
from perdure.interfaces.cli.output import Output, safe

PORT = 8765


@dataclass(frozen=True, slots=True)
class ServeOptions:
    host: Annotated[str, typer.Option(help="The address to listen at; one that others reach needs an API key.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = PORT
    demo: Annotated[bool, typer.Option("--demo", help="Show an invented life, in a store of its own.")] = False
    require_key: Annotated[bool, typer.Option("--require-key", help="Ask for an API key on this machine, too.")] = False
    open: Annotated[bool, typer.Option("--open", help="Ask for none on this machine, though the store had one.")] = False
    allow_host: Annotated[
        list[str] | None, typer.Option("--allow-host", help="A name that a proxy reaches it by; may be repeated.")
    ] = None
    rate: Annotated[
        float | None, typer.Option(help="Requests a second of one caller; default 5000, or 100 where others reach it.")
    ] = None
    body_max_mb: Annotated[float, typer.Option(help="How large a request may be; imports have a bound of their own.")] = 10.0
    tools: Annotated[str, typer.Option(help="Sets of tools that MCP offers; see `perdure mcp --help`.")] = "default"
    verbose: Annotated[bool, typer.Option("--verbose", help="Log every request; never what is in it.")] = False


@taking(ServeOptions)
def serve(ctx: typer.Context, options: ServeOptions) -> None:
    """Serve the HTTP API, MCP and the page, and run the jobs, until Ctrl-C or SIGTERM.

    It listens on this machine only. Without API keys, whoever is on this machine is let in; `perdure key create` ends that,
    for good: also when the last key has ended, one is asked for, unless `--open` says otherwise.

    Examples:

      perdure serve

      perdure serve --demo --port 0

      perdure serve --host 0.0.0.0 --allow-host memory.example.org
    """
    server = _server()
    out: Output = ctx.obj.out
    at = server.listen(options.host, options.port)
    try:
        settings, demo_user = _settings(ctx, options)
        user = ctx.obj.user or demo_user or settings.user or None
        wanted = server.Options(
            options.host, tuple(options.allow_host or ()), options.require_key, options.open, options.rate,
            options.body_max_mb, options.tools, user,
        )  # fmt: skip
        with _logging(verbose=options.verbose), perdure.open(settings=settings, background=True) as engine:
            asks = options.require_key or not wanted.on_loopback or (engine.api_keys.any_made() and not options.open)
            # The one whom the page shows first.
            whom = user or next(iter(asked_by(engine, COMMAND_LINE).users(limit=1)), "me")
            said = _said(at.url, whom, _store_words(settings.url), asks=asks)
            said["store"] = engine.health().store.location
            app = server.build(engine, wanted)
            server.run(app, at, lambda: out.value(said, _lines(said)))
    finally:
        at.socket.close()
    out.note("stopped")


def _server() -> ModuleType:
    try:
        from perdure.interfaces import server
    except ModuleNotFoundError as error:
        if (error.name or "perdure").startswith("perdure"):
            raise
        raise InvalidInput(f"`perdure serve` needs `{error.name}`; install it with: pip install 'perdure[server]'") from None
    return server


def _settings(ctx: typer.Context, options: ServeOptions) -> tuple[settings_module.Settings, str | None]:
    """The store that is meant; for the demo, one that is filled, and whose it is."""
    if not options.demo:
        return settings_module.load(url=ctx.obj.url, space=ctx.obj.space), None
    from perdure.interfaces import demo_data

    path = settings_module.default_store_path().with_name("demo.db")
    settings = settings_module.load(url=ctx.obj.url or f"sqlite:///{path}", space=ctx.obj.space)
    # Without a worker: the demo lives through its months on a clock of its own, jobs included.
    with perdure.open(settings=settings) as engine:
        if demo_data.USER not in engine.users():
            ctx.obj.out.note("filling the demo store")
            try:
                demo_data.fill(engine)
            except BaseException:
                # Half a life would be taken for a whole one the next time.
                engine.memory(demo_data.USER).forget(user=True)
                raise
    return settings, demo_data.USER


@contextmanager
def _logging(*, verbose: bool) -> Iterator[None]:
    """Troubles on stderr, one line each; requests too if they are wanted. Lines name templates of paths, never ids or text."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    loggers = [logging.getLogger(name) for name in ("perdure", "uvicorn.error")]
    held = [(one.level, one.propagate) for one in loggers]
    for one in loggers:
        one.addHandler(handler)
        one.propagate = False
        one.setLevel(logging.INFO if verbose and one.name == "perdure" else logging.WARNING)
    try:
        yield
    finally:
        for one, (level, propagate) in zip(loggers, held, strict=True):
            one.removeHandler(handler)
            one.setLevel(level)
            one.propagate = propagate


def _store_words(url: str) -> list[str]:
    """How another process is told of the same store. The URL of a server may hold a password: that is left to the settings."""
    # Always: whoever starts a process for an agent hands on little of its environment, which may name another store.
    start, scheme, file = (url or f"sqlite:///{settings_module.default_store_path()}").partition("sqlite:///")
    return ["--url", scheme + str(Path(file).resolve())] if not start and scheme and file else []


def _program() -> str:
    """What starts this program elsewhere: its name, if that finds it, or else where it lies."""
    here = Path(sys.argv[0]).resolve()
    found = shutil.which("perdure")
    return "perdure" if (found is None and not here.is_file()) or (found and Path(found).resolve() == here) else str(here)


def _said(url: str, user: str, store: list[str], *, asks: bool) -> dict[str, Any]:
    by_url: dict[str, Any] = {"type": "http", "url": f"{url}/mcp?user={user}"}
    if asks:
        by_url["headers"] = {"Authorization": "Bearer pdr_…"}
    return {
        "url": url,
        "page": f"{url}/",
        "api": f"{url}/v1",
        "openapi": f"{url}/openapi.json",
        "mcp": f"{url}/mcp",
        "port": int(url.rpartition(":")[2]),
        "pid": os.getpid(),
        "asks_for_key": asks,
        "connect": {
            "stdio": {"mcpServers": {"perdure": {"command": _program(), "args": ["mcp", "--user", user, *store]}}},
            "http": {"mcpServers": {"perdure": by_url}},
        },
    }


def _lines(said: dict[str, Any]) -> list[str]:
    connect = {name: safe(json.dumps(one, ensure_ascii=False)) for name, one in said["connect"].items()}
    access = (
        "an API key is asked for" if said["asks_for_key"] else "whoever is on this machine; `perdure key create NAME` ends that"
    )
    return [
        f"page:    {said['page']}",
        f"API:     {said['api']}  described at {said['openapi']}",
        f"MCP:     {said['mcp']}",
        f"store:   {safe(said['store'])}",
        f"let in:  {access}",
        "",
        "Connect an agent over HTTP:",
        f"  {connect['http']}",
        "or have it start a process of its own (stdio):",
        f"  {connect['stdio']}",
        "",
        "Stop with Ctrl-C.",
    ]
