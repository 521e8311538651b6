"""The guard: everything that is asked over the network passes here first, and every answer on its way out.

It decides for which name and from which page a request may come, who asks, how much and how often; it tells routes who
that is (`scope["state"]["access"]`) and puts the headers on answers that keep browsers out of trouble. What a caller may
do is decided later, by `Door`.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from starlette.requests import ClientDisconnect

from perdure.app import Engine
from perdure.domain.access import ApiKey
from perdure.domain.errors import InvalidInput, PerdureError
from perdure.domain.values import dataclass
from perdure.interfaces.access import LOCAL, CallerAccess, of_key
from perdure.interfaces.errors import http_status
from perdure.interfaces.metrics import Metrics
from perdure.interfaces.serving.keyring import Keyring, Visits, cookie_of
from perdure.interfaces.serving.limits import BoundedBody, Buckets, Message, Receive, Stopped, whole_seconds
from perdure.interfaces.serving.options import Options, host_of, is_address, is_loopback
from perdure.interfaces.serving.places import Places
from perdure.interfaces.serving.request import STATIC, GuardRefusal, IncomingRequest, form_of

LOG = logging.getLogger("perdure.server")
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]
Tell = Callable[[Any, int, str, str, Mapping[str, str]], App]
"""Makes an answer of a refusal: from a scope, a status, a code, words and headers."""

CONCURRENT_MAX = 512
"""Requests at a time. More would only wait for a thread, and hold memory meanwhile."""
STRANGERS_MAX = 64
"""Requests at a time of those who are not known, by their address: they must not take the places of the others."""
LOOKUPS_MAX = 512
"""Secrets at a time that are looked for in the store, by the address they come from."""
HEAD_BYTES_MAX = 64 * 1024
GUESSES_PER_S, GUESSES_BURST = 0.2, 10
"""Wrong keys from one address."""
KNOWN_HOSTS_MAX = 200
FORM = "application/x-www-form-urlencoded"
NOBODY = CallerAccess("nobody", frozenset(), frozenset())
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="perdure"'}
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)


@dataclass(frozen=True, slots=True)
class Caller:
    access: CallerAccess
    csrf: str
    signed_in: bool = False
    """By the page's cookie, which a browser sends along no matter who made it ask."""
    by_key: bool = False


class Guard:
    """Shared by all requests of a server. `wrapping` puts it before an application."""

    def __init__(
        self, engine: Engine, options: Options, metrics: Metrics, tell: Tell, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.options = options
        self.keyring = Keyring(engine.api_keys, clock)
        self.visits = Visits(clock)
        self.csrf_local, self.csrf_login = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self.metrics = metrics
        self.tell = tell
        self._names = options.names()
        self._import_bytes_max = engine.limits.import_bytes_max
        self._hosts: dict[bytes, bool] = {}
        """Values of `Host` that are answered, and whether each names this machine."""
        self._rates = Buckets(options.rate_per_s, options.rate_per_s, clock)
        self._guesses = Buckets(GUESSES_PER_S, GUESSES_BURST, clock)
        self._places = Places(CONCURRENT_MAX)
        self._strangers = Places(STRANGERS_MAX)
        self._lookups = Places(LOOKUPS_MAX)
        if not options.on_loopback and not engine.api_keys.in_use():
            raise InvalidInput(
                f"`host` = {options.host!r:.60} can be reached from elsewhere and the store has no API key in use; "
                "make one with `perdure admin key create NAME`, or serve on 127.0.0.1"
            )

    def wrapping(self, app: App) -> App:
        async def guarded(scope: Any, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and scope["method"] == "HEAD":
                # What a GET would answer, without its body: routes need not know.
                await self._serve(app, {**scope, "method": "GET"}, receive, _bodiless(send))
            elif scope["type"] == "http":
                await self._serve(app, scope, receive, send)
            elif scope["type"] == "lifespan":
                await app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008, "reason": "no websockets here"})

        return guarded

    # -- one request

    async def _serve(self, app: App, scope: Any, receive: Receive, send: Send) -> None:
        asked = IncomingRequest.of(scope)
        state = scope.setdefault("state", {})
        # Whatever is refused before it is known who asks is refused to nobody in particular.
        state.update(request_id=asked.request_id(), access=NOBODY, csrf=self.csrf_login, signed_in=False)
        out = Outgoing(asked, send, state["request_id"])
        began = time.perf_counter()
        self.metrics.begun()
        try:
            await self._answer(app, asked, receive, out)
        finally:
            if asked.place is not None:
                places, caller = asked.place
                places.leave(caller)
            self._note(asked, out, time.perf_counter() - began)

    async def _answer(self, app: App, asked: IncomingRequest, receive: Receive, out: Outgoing) -> None:
        try:
            body = await self._admit(asked, receive)
            out.body = body
            await app(asked.scope, body.receive, out.send)
            refused = body.refusal
        except GuardRefusal as error:
            refused = error
        except Stopped as error:
            refused = error.refused
        except ClientDisconnect:
            self.metrics.refused("gone")
            return  # the client has left
        except PerdureError as error:
            headers = {"Retry-After": "1"} if error.retriable else {}
            refused = GuardRefusal(http_status(error), error.code, str(error), "store", headers)
        except Exception as error:  # noqa: BLE001 - the interface edge: no stack trace leaves the server
            if out.body is not None and out.body.refusal is not None:
                refused = out.body.refusal
            else:
                # Its words may quote what somebody wrote: the log has the kind and the place.
                LOG.error("request %s failed: %s", out.request_id, _place(error))
                refused = GuardRefusal(500, "error", "this is a bug in perdure; the server's log names it", "bug")
        if refused is None:
            return
        self.metrics.refused(refused.reason)
        if out.started:
            return  # too late to say anything else; the server ends the connection of an answer that is not complete
        out.body = None
        await self._refusal(asked, refused, out)(asked.scope, receive, out.send)

    def _refusal(self, asked: IncomingRequest, refused: GuardRefusal, out: Outgoing) -> App:
        try:
            return self.tell(asked.scope, refused.status, refused.code, refused.detail, refused.headers)
        except Exception as error:  # noqa: BLE001 - the interface edge: not even the page that tells of errors may break
            LOG.error("request %s: its error cannot be shown: %s", out.request_id, _place(error))
            return _bare(refused.status)

    async def _admit(self, asked: IncomingRequest, receive: Receive) -> BoundedBody:
        """What comes before every route; the body that the route may read."""
        self._check_host(asked)
        if asked.head_bytes > HEAD_BYTES_MAX:
            raise GuardRefusal(
                431, "limit_exceeded", f"the headers are larger than {HEAD_BYTES_MAX:,} bytes; send fewer", "head"
            )
        if asked.authorizations > 1:
            raise GuardRefusal(
                400, "invalid_input", "the request has several `Authorization` headers; send one", "authorization"
            )
        _check_origin(asked)
        caller = await self._who(asked)
        if not asked.checks_health:
            self._take_place(asked, caller.access)
        asked.scope["state"].update(access=caller.access, csrf=caller.csrf, signed_in=caller.signed_in)
        if asked.path != "/healthz":
            self._check_rate(asked, caller.access)
        bytes_max, import_max = self.options.body_bytes_max, self._import_bytes_max
        body = BoundedBody(asked, receive, bytes_max, import_max, stranger=caller.access is NOBODY)
        if asked.unsafe:
            _check_content_type(asked)
            await self._check_csrf(asked, caller, body)
        return body

    def _take_place(self, asked: IncomingRequest, access: CallerAccess) -> None:
        """Anyone who has many requests going on leaves places for the others."""
        places, name = (self._strangers, asked.client) if access is NOBODY else (self._places, access.name)
        if not places.take(name):
            detail = "this caller has too many requests going on at once; wait for some to end, then try again"
            raise GuardRefusal(503, "unavailable", detail, "busy", {"Retry-After": "1"})
        asked.place = places, name

    def _check_host(self, asked: IncomingRequest) -> None:
        """The name that the request is for. A page elsewhere can have a name of its own point here, but not ask for ours."""
        raw = asked.headers.get(b"host", b"")
        if raw in self._hosts and asked.hosts == 1:
            return
        host = host_of(raw) if asked.hosts == 1 else None
        if host is None:
            raise GuardRefusal(400, "invalid_input", "the request needs one `Host` header with a host name", "host")
        # An address was not looked up, so nobody can have pointed a name of theirs at this server.
        if host not in self._names and not (is_address(host) and not self.options.on_loopback):
            detail = f"this server is not known as {host!r:.80}; to allow the name, start it with `--allow-host {host:.80}`"
            raise GuardRefusal(421, "invalid_input", detail, "host")
        if len(self._hosts) < KNOWN_HOSTS_MAX:
            self._hosts[raw] = is_loopback(host)

    async def _who(self, asked: IncomingRequest) -> Caller:
        given = asked.headers.get(b"authorization")
        if given is not None:
            return Caller(await self.admit_secret(_bearer(given), asked), self.csrf_local, by_key=True)
        visit_id = cookie_of(asked.headers[b"cookie"]) if b"cookie" in asked.headers else None
        visit = None if visit_id is None else self.visits.find(visit_id)
        if visit is not None and visit_id is not None:
            access = await self._visitor(visit.name, visit_id)
            if access is not None and (access is not LOCAL or self._is_here(asked)):
                return Caller(access, visit.csrf, signed_in=True)
        if self.options.no_auth and self._is_here(asked):
            return Caller(LOCAL, self.csrf_local)
        if asked.open:
            return Caller(NOBODY, self.csrf_login)
        raise self._unknown(asked)

    async def _visitor(self, name: str, visit_id: str) -> CallerAccess | None:
        if name == LOCAL.name:
            return LOCAL
        key = await self.keyring.find(name)
        if key is None:
            self.visits.end(visit_id)  # its key was revoked
        return None if key is None else of_key(key)

    def _is_here(self, asked: IncomingRequest) -> bool:
        """Whether it comes from this machine, as far as can be told: not passed on, and for a name of loopback."""
        if not self.options.on_loopback or asked.from_elsewhere:
            return False
        raw = asked.headers.get(b"host", b"")
        if raw in self._hosts:
            return self._hosts[raw]
        host = host_of(raw)
        return host is not None and is_loopback(host)

    def _unknown(self, asked: IncomingRequest) -> GuardRefusal:
        detail = (
            "this server asks for a token or an API key: send `Authorization: Bearer pdr_…`; "
            "`perdure admin token` prints this machine's token, `perdure admin key create` makes a key"
        )
        if not asked.web:
            return GuardRefusal(401, "unauthenticated", detail, "unauthenticated", CHALLENGE)
        if b"hx-request" in asked.headers:
            return GuardRefusal(401, "unauthenticated", detail, "unauthenticated", {"HX-Redirect": "/login"})
        if asked.unsafe:
            return GuardRefusal(
                401, "unauthenticated", "you are no longer signed in; open /login", "unauthenticated", CHALLENGE
            )
        query = asked.scope.get("query_string", b"").decode("latin-1")
        there = quote(asked.path, safe="/") + (f"?{query}" if query else "")
        return GuardRefusal(303, "unauthenticated", detail, "login", {"Location": f"/login?next={quote(there, safe='')}"})

    async def admit_secret(self, secret: str, asked: IncomingRequest, *, token_only: bool = False) -> CallerAccess:
        """Who shows this secret; `GuardRefusal` if it is none. Who shows many wrong ones has to wait.

        A right one is let in whatever else came from its address: it cannot be guessed, and others may be behind the same one.
        """
        if self._is_token(secret) and self._is_here(asked):
            return LOCAL
        key = None if token_only else await self._find_key(secret, asked.client)
        if key is not None:
            return of_key(key)
        wait_s = self._guesses.take(asked.client)
        if wait_s:
            detail = "too many wrong API keys came from this address; wait, then send the right one"
            raise GuardRefusal(429, "limit_exceeded", detail, "guessing", {"Retry-After": whole_seconds(wait_s)})
        detail = (
            "this token or API key is not known, or no longer in use; `perdure admin token` prints this machine's token, "
            "`perdure admin key list` shows the keys there are"
        )
        raise GuardRefusal(401, "unauthenticated", detail, "wrong_key", CHALLENGE)

    async def _find_key(self, secret: str, client: str) -> ApiKey | None:
        if (key := self.keyring.recent(secret)) is not None:
            return key
        if not self._lookups.take(client):
            detail = "too many keys are looked for at once from this address; try again"
            raise GuardRefusal(503, "unavailable", detail, "busy", {"Retry-After": "1"})
        try:
            return await self.keyring.recognise(secret)
        finally:
            self._lookups.leave(client)

    def _is_token(self, secret: str) -> bool:
        token = self.options.token
        return token is not None and hmac.compare_digest(secret.encode(errors="replace"), token.encode())

    def _check_rate(self, asked: IncomingRequest, access: CallerAccess) -> None:
        wait_s = self._rates.take(asked.client if access is NOBODY else access.name)
        if wait_s:
            detail = f"more than {self.options.rate_per_s:g} requests a second came from this caller; wait a moment"
            raise GuardRefusal(429, "limit_exceeded", detail, "rate", {"Retry-After": whole_seconds(wait_s)})

    async def _check_csrf(self, asked: IncomingRequest, caller: Caller, body: BoundedBody) -> None:
        """A browser sends a cookie along, and reaches this machine, whichever page made it: ours knows the token."""
        if caller.by_key or (not asked.web and not caller.signed_in):
            return
        token = asked.headers.get(b"x-csrf-token")
        if token is None and asked.web and asked.content_type == FORM:
            token = form_of(await body.read()).get("_csrf", "").encode()
        if token is None or not hmac.compare_digest(token, caller.csrf.encode()):
            raise GuardRefusal(403, "forbidden", "this form is too old, or not from this page; load the page again", "csrf")

    def _note(self, asked: IncomingRequest, out: Outgoing, took_s: float) -> None:
        # The template, never the path: ids of users and what they are about stay out of logs and metrics.
        route = template(asked.scope)
        self.metrics.ended(route, asked.method, out.status, took_s)
        if LOG.isEnabledFor(logging.INFO):
            name = asked.scope["state"]["access"].name
            LOG.info("%s %s %s %d %.1f ms by %s", out.request_id, asked.method, route, out.status, took_s * 1000, name)


class Outgoing:
    """An answer on its way out: its headers are completed, and one that came of a broken body is held back."""

    def __init__(self, asked: IncomingRequest, send: Send, request_id: str) -> None:
        self._asked = asked
        self._send = send
        self.request_id = request_id
        self.body: BoundedBody | None = None
        self.status = 0
        self.started = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if self.body is not None and self.body.refusal is not None:
                return
            self.status = message["status"]
            self.started = True
            message["headers"] = [*message.get("headers", ()), *self._missing(message.get("headers", ()))]
        elif not self.started:
            return
        await self._send(message)

    def _missing(self, given: Any) -> list[tuple[bytes, bytes]]:
        names = {name.lower() for name, _ in given}
        wanted = (*HEADERS, (b"cache-control", self._caching()), (b"x-request-id", self.request_id.encode()))
        return [pair for pair in wanted if pair[0] not in names]

    def _caching(self) -> bytes:
        if not self._asked.path.startswith(STATIC) or self.status >= 400:
            return b"no-store"
        # A name with a version stands for the same bytes for ever; any other is asked for again.
        return b"public, max-age=86400" if b"v=" in self._asked.scope.get("query_string", b"") else b"no-cache"


def _bodiless(send: Send) -> Send:
    async def sent(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return sent


def _bare(status: int) -> App:
    async def answer(_scope: Any, _receive: Receive, send: Send) -> None:
        body = b"something went wrong"
        headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return answer


def template(scope: Any) -> str:
    """The pattern of the path that was asked for, of which there are only so many."""
    route = scope.get("route")
    found = getattr(route, "path", None)
    if isinstance(found, str) and found:
        return found
    path: str = scope["path"]
    return STATIC if path.startswith(STATIC) else path if path == "/mcp" else "other"


def _check_origin(asked: IncomingRequest) -> None:
    """A page may ask us to change something only if it is ours; for MCP, also if it is on this machine.

    Whatever asks for MCP sends JSON, which a browser lets no page do elsewhere. Many changes need no body at all.
    """
    mcp = asked.under("/mcp")
    if not asked.unsafe and not mcp:
        return
    origin = asked.headers.get(b"origin")
    if origin is not None and not _may_ask(origin, asked.headers.get(b"host", b""), on_this_machine=mcp):
        raise GuardRefusal(403, "forbidden", "requests from pages of other origins are refused", "origin")
    site = asked.headers.get(b"sec-fetch-site", b"none")
    if site == b"cross-site" or (site == b"same-site" and not mcp):
        raise GuardRefusal(403, "forbidden", "requests from pages of other sites are refused", "origin")


def _may_ask(origin: bytes, host: bytes, *, on_this_machine: bool) -> bool:
    try:
        parts = urlsplit(origin.decode("ascii"))
        name = parts.hostname
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or name is None:
        return False
    # Not the scheme: a proxy may have taken the encryption off.
    return parts.netloc.lower() == host.decode("latin-1").lower() or (on_this_machine and is_loopback(name))


def _check_content_type(asked: IncomingRequest) -> None:
    """Types that a page elsewhere may send without asking first are refused: this keeps it from writing."""
    if not asked.under("/v1") or not asked.has_body:
        return
    kind = asked.content_type
    if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
        return
    if asked.at_import and kind in IMPORTED_TYPES:
        return
    wanted = "`application/json`" + (" or `application/x-ndjson`" if asked.at_import else "")
    detail = f"`Content-Type` = {kind!r:.60} is not taken here; send {wanted}"
    raise GuardRefusal(415, "invalid_input", detail, "content_type")


IMPORTED_TYPES = frozenset(
    {"application/x-ndjson", "application/ndjson", "application/jsonl", "application/octet-stream", "application/zip"}
)


def _bearer(header: bytes) -> str:
    scheme, _, secret = header.decode("latin-1").strip().partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise GuardRefusal(401, "unauthenticated", "`Authorization` must be `Bearer pdr_…`", "wrong_key", CHALLENGE)
    return secret.strip()


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f" at {trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}"
    return f"{type(error).__name__}{where}"
