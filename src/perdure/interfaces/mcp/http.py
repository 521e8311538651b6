"""MCP over HTTP: an ASGI application for one path, without sessions, that answers each POST with plain JSON."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perdure.app import Engine
from perdure.domain.scope import DEFAULT
from perdure.domain.values import dataclass, field
from perdure.interfaces.access import CallerAccess, Door
from perdure.interfaces.mcp.callers import ToolCaller, Visitor
from perdure.interfaces.mcp.server import Ctx, build
from perdure.interfaces.mcp.sets import offers
from perdure.interfaces.mcp.wire import Refusal, examine

BODY_BYTES_MAX = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class McpHttpOptions:
    """How MCP is served over HTTP."""

    hosts: Sequence[str] | None = None
    """Values of `Host` that are answered, `:*` for any port; None: the proxy in front has looked."""
    origins: Sequence[str] | None = None
    """Values of `Origin` that are answered; None: the proxy in front has looked."""
    tools: str = "default"
    """Names of the sets of tools, separated by commas."""
    read_only: bool = False
    user: str | None = None
    """Whose memory, if neither key nor request tells."""
    body_bytes_max: int = BODY_BYTES_MAX


@dataclass(frozen=True, slots=True)
class Mounted:
    """What a server takes in: the application for the path, and what has to be running while it is called."""

    app: ASGIApp
    lifespan: Callable[[], AbstractAsyncContextManager[None]]


def mount(engine: Engine, **how: Any) -> Mounted:
    """MCP over an open engine; `how` as `McpHttpOptions` has it. The guard in front sets `scope["state"]["access"]`.

    The lifespan can be entered once: make another for another run of the server.
    """
    serving = McpHttpOptions(**how)

    def who(ctx: Ctx) -> ToolCaller:
        request: Any = ctx.request
        access = request.scope["state"]["access"]
        return Visitor(Door(engine, access, "mcp"), request.headers, request.query_params, serving.user)

    seeds = engine.memory(DEFAULT).tools
    server = build(who, offers(seeds, serving.tools, read_only=serving.read_only), read_only=serving.read_only)
    manager = StreamableHTTPSessionManager(
        server,
        json_response=True,
        stateless=True,
        # Said in so many words: left out, the SDK looks at neither.
        security_settings=_security(serving),
        max_request_body_size=serving.body_bytes_max,
    )
    edge = McpGateway(manager.handle_request, serving.body_bytes_max)

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        async with manager.run():
            edge.is_open = True
            try:
                yield
            finally:
                edge.is_open = False

    return Mounted(edge, lifespan)


@dataclass(slots=True)
class McpGateway:
    """Lets through what the SDK can answer, and answers the rest itself."""

    inner: ASGIApp
    body_bytes_max: int
    is_open: bool = field(default=False, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refused(scope)
        body = b""
        if refused is None:
            read = await self._body(receive)
            if read is None:
                words = f"the body is longer than {self.body_bytes_max} bytes; send less at once"
                refused = refusal_response(413, Refusal(INVALID_REQUEST, words))
            elif isinstance(found := examine(read), Refusal):
                refused = refusal_response(400, found)
            else:
                body = read
        if refused is not None:
            await refused(scope, receive, send)
            return
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        # Servers hand on the blanks around a value, which mean nothing but would not match the body.
        headers = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        await self.inner({**scope, "headers": headers}, replay, send)

    def _refused(self, scope: Scope) -> Response | None:
        if scope["method"] != "POST":
            # There are no sessions to end, and nothing is sent unasked.
            words = f"{scope['method']:.20} is not served here; POST one message"
            return refusal_response(405, Refusal(INVALID_REQUEST, words), {"Allow": "POST"})
        if not isinstance(scope.get("state", {}).get("access"), CallerAccess):
            return refusal_response(401, Refusal(INVALID_REQUEST, "the caller is unknown; send an API key as a bearer token"))
        if not self.is_open:
            return refusal_response(503, Refusal(INTERNAL_ERROR, "the server is starting or stopping; try again"))
        return None

    async def _body(self, receive: Receive) -> bytes | None:
        """The body; None if it is longer than it may be."""
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                break
            part = message.get("body", b"")
            size += len(part)
            if size > self.body_bytes_max:
                return None
            parts.append(part)
            if not message.get("more_body", False):
                break
        return b"".join(parts)


def refusal_response(status: int, refusal: Refusal, headers: dict[str, str] | None = None) -> Response:
    """A refusal as JSON-RPC: one error, or one for each of several ids."""
    answers = [one.model_dump(mode="json", by_alias=True, exclude_unset=True) for one in refusal.answers()]
    return Response(json.dumps(answers if len(answers) > 1 else answers[0]), status, headers, "application/json")


def _security(serving: McpHttpOptions) -> TransportSecuritySettings:
    if serving.hosts is None and serving.origins is None:
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=list(serving.hosts or ()),
        allowed_origins=list(serving.origins or ()),
    )
