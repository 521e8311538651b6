"""`perdure serve` and `perdure mcp`: the page, the HTTP API and MCP in one process; MCP for one agent. Jobs run meanwhile."""

from __future__ import annotations

import json
import logging
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

import perdure
from perdure import settings as settings_module
from perdure.app import asked_by, machine_token
from perdure.domain.access import COMMAND_LINE, Asker
from perdure.domain.errors import InvalidInput
from perdure.domain.values import dataclass
from perdure.interfaces import stdio
from perdure.interfaces.cli.input import taking
from perdure.interfaces.cli.output import Output, safe
from perdure.interfaces.connect import program, store_words

PORT = 8765
ACCESS = {
    "token": "the token, which is in the link and",
    "key": "API keys; `perdure admin key create NAME` makes one",
    "none": "every account of this machine; leave out `--no-auth` to ask for a token",
}


@dataclass(frozen=True, slots=True)
class ServeOptions:
    host: Annotated[str, typer.Option(help="The address to listen at; one that others reach needs an API key.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = PORT
    demo: Annotated[bool, typer.Option("--demo", help="Show demo data, in a store of its own.")] = False
    socket: Annotated[Path | None, typer.Option(help="Listen at a Unix socket of this account instead of a port.")] = None
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Ask for no token: every account of this machine may read and delete everything.")
    ] = False
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
    """Serve the web page, the HTTP API and MCP, and run jobs.

    It runs until Ctrl-C or SIGTERM, and listens on this machine only. Open the link it prints: it carries the token of
    this store, which is also the Bearer for the API and MCP. `perdure admin token` prints it again.

    Examples:

      perdure serve

      perdure serve --demo --port 0

      perdure serve --socket perdure.sock

      perdure serve --host 0.0.0.0 --allow-host memory.example.org
    """
    server = _server()
    out: Output = ctx.obj.out
    at = server.listen(options.host, options.port) if options.socket is None else server.listen_at(options.socket)
    try:
        settings, demo_user = _settings(ctx, options)
        user = ctx.obj.user or demo_user or settings.user or None
        # Where others reach it, the token of this machine would travel in the clear: only API keys do there.
        kept = None if options.no_auth or not server.is_loopback(options.host) else machine_token(settings)
        wanted = server.Options(
            host=options.host,
            allow_hosts=tuple(options.allow_host or ()),
            token=None if kept is None else kept.secret,
            no_auth=options.no_auth,
            rate=options.rate,
            body_max_mb=options.body_max_mb,
            tools=options.tools,
            user=user,
        )
        with _logging(verbose=options.verbose), perdure.open(settings=settings, background=True) as engine:
            # The one whom the page shows first.
            whom = user or next(iter(asked_by(engine, COMMAND_LINE).users(limit=1)), "me")
            said = _server_facts(at, wanted, whom, store_words(settings.url))
            said["store"] = engine.health().store.location
            said["token_file"] = None if kept is None or kept.file is None else str(kept.file)
            app = server.build(engine, wanted)
            server.run(app, at, lambda: out.value(said, _lines(said)))
    finally:
        at.close()
    out.note("stopped")


def token(
    ctx: typer.Context,
    renew: Annotated[bool, typer.Option("--renew", help="Make another one; servers take it when they start again.")] = False,
) -> None:
    """Print the token that `perdure serve` asks for on this machine. It is made once, and kept beside the store.

    Example: perdure admin token
    """
    found = machine_token(settings_module.load(url=ctx.obj.url), renew=renew)
    if found.file is None:
        raise InvalidInput("a store in memory has no token of its own; `perdure serve` makes one for as long as it runs")
    ctx.obj.out.value({"token": found.secret, "file": str(found.file)}, [found.secret])


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
    from perdure.interfaces.demo import data

    path = settings_module.default_store_path().with_name("demo.db")
    settings = settings_module.load(url=ctx.obj.url or f"sqlite:///{path}", space=ctx.obj.space)
    # Without a worker: the demo lives through its months on a clock of its own, jobs included.
    with perdure.open(settings=settings) as engine:
        if data.USER not in engine.users():
            ctx.obj.out.note("filling the demo store")
            try:
                data.fill(engine)
            except BaseException:
                # Half a life would be taken for a whole one the next time.
                engine.memory(data.USER).forget(user=True)
                raise
    return settings, data.USER


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


def _server_facts(at: Any, options: Any, user: str, store: list[str]) -> dict[str, Any]:
    url = at.url
    by_url: dict[str, Any] = {"type": "http", "url": f"{url}/mcp?user={user}"}
    if not options.no_auth:
        by_url["headers"] = {"Authorization": f"Bearer {options.token or 'pdr_…'}"}
    return {
        "url": url,
        "page": f"{url}/" if options.token is None else f"{url}/login?token={options.token}",
        "socket": None if at.path is None else str(at.path),
        "api": f"{url}/v1",
        "openapi": f"{url}/openapi.json",
        "mcp": f"{url}/mcp",
        "port": at.port,
        "pid": os.getpid(),
        "access": "none" if options.no_auth else "key" if options.token is None else "token",
        "connect": {
            "stdio": {"mcpServers": {"perdure": {"command": program(), "args": ["mcp", "--user", user, *store]}}},
            "http": {"mcpServers": {"perdure": by_url}},
        },
    }


def _lines(said: dict[str, Any]) -> list[str]:
    connect = {name: safe(json.dumps(one, ensure_ascii=False)) for name, one in said["connect"].items()}
    socket = said["socket"]
    # No browser reaches a Unix socket.
    where = [f"page:    {said['page']}"] if socket is None else [f"socket:  {safe(socket)}"]
    over_http = ["Connect an agent over HTTP:", f"  {connect['http']}", "or have it"] if socket is None else ["Have an agent"]
    return [
        *where,
        f"API:     {said['api']}  described at {said['openapi']}",
        f"MCP:     {said['mcp']}",
        f"store:   {safe(said['store'])}",
        f"access:  {ACCESS[said['access']]}" + (f" in {safe(said['token_file'])}" if said["token_file"] else ""),
        "",
        *over_http[:-1],
        f"{over_http[-1]} start a process of its own (stdio):",
        f"  {connect['stdio']}",
        "",
        *_curl(said),
        "Stop with Ctrl-C.",
    ]


def _curl(said: dict[str, Any]) -> list[str]:
    """A first request, without the secret itself: commands are kept in a history."""
    if said["token_file"] is None:
        return []
    socket = "" if said["socket"] is None else f" --unix-socket {shlex.quote(said['socket'])}"
    words = f'curl{socket} -H "Authorization: Bearer $(cat {shlex.quote(said["token_file"])})" {said["api"]}/users'
    return ["Ask the API:", f"  {safe(words)}", ""]


def mcp(
    ctx: typer.Context,
    tools: Annotated[
        str,
        typer.Option(
            help="Sets of tools, separated by commas: state, series, knowledge, todos, lessons, host, conversation, documents, "
            "overseer, upkeep; or default, or all."
        ),
    ] = "default",
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer no tool that writes.")] = False,
) -> None:
    """Serve MCP on stdin and stdout, for an agent that starts it. Jobs run meanwhile.

    Example: perdure mcp --user ana --tools knowledge,todos
    """
    stdio.check_installed()
    user = ctx.obj.named_user()
    with perdure.open(ctx.obj.url, background=True) as engine:
        engine = asked_by(engine, Asker("local", "mcp"))  # noqa: PLW2901 - the same engine
        memory = engine.memory(user, agent=ctx.obj.agent, channel=ctx.obj.channel, space=ctx.obj.space)
        stdio.serve(engine, memory, tools=tools, read_only=read_only)
