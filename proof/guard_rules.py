"""What the documentation says of who is let in, as a small oracle: from a request, the refusals that are due.

Written from `docs/how-to/serve.md`, not from the guard. A request that breaks several rules may be refused for any of them; one
that breaks none is answered.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

PERMISSIONS = ("read", "write", "admin")
SAFE = ("GET", "HEAD", "OPTIONS")
PROXY_NAME = "memory.example.org"


@dataclass(frozen=True, slots=True)
class Server:
    """How one was started."""

    name: str
    host: str = "127.0.0.1"
    keys: bool = True
    """Whether the store has API keys."""
    no_auth: bool = False
    allow_hosts: tuple[str, ...] = ()

    @property
    def on_loopback(self) -> bool:
        return self.host == "127.0.0.1"


SERVERS = (
    Server("as it comes", keys=False),
    Server("with keys"),
    Server("without authentication", no_auth=True),
    Server("behind a proxy", allow_hosts=(PROXY_NAME,)),
    Server("that others reach", host="0.0.0.0"),
)

HOSTS: Mapping[str, str] = {
    "127.0.0.1:8765": "loopback",
    "localhost": "loopback",
    "localhost:8765": "loopback",
    "[::1]:8765": "loopback",
    "LOCALHOST.": "loopback",
    PROXY_NAME: "proxy",
    f"{PROXY_NAME}:443": "proxy",
    "evil.example": "foreign",
    "127.0.0.1.evil.example": "foreign",
    "localhost.evil.example:8765": "foreign",
    "localhostevil": "foreign",
    "192.168.7.7:8765": "address",
    "[fe80::1]": "address",
    "": "none",
    "localhost, evil.example": "none",
    "localhost:8765@evil.example": "none",
    "localhost/": "none",
    "two": "two",
}
"""What a `Host` says, and what that is."""

ORIGINS = ("absent", "own", "own by https", "this machine", "elsewhere", "null", "own with another port", "unreadable")
FOREIGN_TYPES = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
SITES = ("absent", "same-origin", "none", "same-site", "cross-site")
CLIENTS = ("here", "elsewhere", "forwarded")


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str
    kind: str
    """`api`, `mcp`, `page`, or `open`: for everybody."""
    need: str | None = None
    """The permission; None: none."""
    user: str | None = None
    """Whose data it is about."""
    whole: bool = False
    """Whether it is about the whole store."""
    body: str = ""
    """`json`, `form`, `login`, `rpc`, or nothing."""
    answers: tuple[int, ...] = (200,)

    @property
    def changes(self) -> bool:
        return self.method not in SAFE


ROUTES = (
    Route("GET", "/v1/users/ana/state/units", "api", "read", "ana"),
    Route("HEAD", "/v1/users/ana/state/units", "api", "read", "ana"),
    Route("PUT", "/v1/users/ana/state/units", "api", "write", "ana", body="json"),
    Route("POST", "/v1/users/ana/prompt", "api", "write", "ana", body="json"),
    Route("DELETE", "/v1/users/ana/state/nothing", "api", "write", "ana"),
    Route("DELETE", "/v1/users/cho", "api", "admin", "cho"),
    Route("GET", "/v1/users", "api", "read", whole=True),
    Route("GET", "/v1/keys", "api", "admin", whole=True),
    Route("PUT", "/v1/agents/coach", "api", "admin", whole=True, body="json"),
    Route("GET", "/metrics", "api", "read", whole=True),
    Route("POST", "/mcp", "mcp", "read", "ana", body="rpc"),
    Route("PUT", "/mcp", "mcp", answers=(405,)),
    Route("GET", "/mcp", "mcp", answers=(405,)),
    Route("POST", "/mcp", "mcp", "write", "ana", body="rpc"),
    Route("GET", "/u/ana/state", "page", "read", "ana"),
    Route("POST", "/u/ana/state/units", "page", "write", "ana", body="form", answers=(303,)),
    Route("GET", "/", "page", answers=(200, 303)),
    Route("POST", "/logout", "page", body="form", answers=(303,)),
    Route("GET", "/nowhere", "page", answers=(404,)),
    Route("GET", "/v1/nowhere", "api", answers=(404,)),
    Route("GET", "/v1/../healthz", "api", answers=(404,)),
    Route("GET", "/login", "open", answers=(200, 303)),
    Route("POST", "/login", "open", body="login", answers=(303,)),
    Route("GET", "/healthz", "open"),
    Route("GET", "/readyz", "open"),
    Route("GET", "/openapi.json", "open"),
    Route("GET", "/static/perdure.css", "open"),
    Route("OPTIONS", "/v1/users/ana/state/units", "api", answers=(405,)),
    Route("OPTIONS", "/u/ana/state", "page", answers=(405,)),
)


@dataclass(frozen=True, slots=True)
class Shown:
    """How somebody says who they are."""

    how: str
    """`nothing`, `header`, `cookie`, `query`, or `header twice`."""
    key: str = ""
    """`right`, `revoked`, `ended`, `wrong`, `unreadable`, or `token`: the one of this machine."""
    permission: str = "write"
    users: tuple[str, ...] | None = None

    @property
    def is_right(self) -> bool:
        return self.key in ("right", "token") and self.how in ("header", "cookie")


@dataclass(frozen=True, slots=True)
class Request:
    server: Server
    route: Route
    host: str
    origin: str
    site: str
    client: str
    shown: Shown
    token: str
    """Of the form: `absent`, `right in a field`, `right in a header`, `wrong`, or `of another`."""
    content_type: str
    """`right`, or one that any page may send."""

    def __repr__(self) -> str:
        route, shown = self.route, self.shown
        return (
            f"{route.method} {route.path} ({route.need}) at the server {self.server.name!r}, Host {self.host!r}, "
            f"Origin {self.origin}, site {self.site}, from {self.client}, showing {shown.how} {shown.key} {shown.permission} "
            f"for {shown.users}, token {self.token}, type {self.content_type}"
        )


def drawn(chance: random.Random, server: Server) -> Request:
    """A request that breaks none, one or several rules; each with the chance that it should have."""

    def rather(usual: tuple[str, ...], others: tuple[str, ...], share: float = 0.12) -> str:
        return chance.choice(others if chance.random() < share else usual)

    route = chance.choice([one for one in ROUTES if server.keys or one.body != "login"])
    good_hosts = ("127.0.0.1:8765", "localhost", "[::1]:8765")
    return Request(
        server,
        route,
        rather(good_hosts, tuple(HOSTS), 0.3),
        rather(("absent", "own"), ORIGINS),
        rather(("absent", "same-origin"), SITES, 0.08),
        rather(("here",), CLIENTS, 0.1),
        _shown(chance, server),
        rather(("right in a field", "right in a header"), ("absent", "wrong", "of another"), 0.25),
        rather(("right",), FOREIGN_TYPES, 0.15) if route.body == "json" else "right",
    )


def _shown(chance: random.Random, server: Server) -> Shown:
    how = chance.choices(("nothing", "header", "cookie", "query", "header twice"), (3, 5, 4, 1, 0.4))[0]
    if how == "nothing":
        return Shown("nothing")
    # Where there are no keys, none is right.
    key = chance.choices(
        ("right", "token", "revoked", "ended", "wrong", "unreadable"), (8 if server.keys else 0, 4, 1, 1, 1, 1)
    )[0]
    if key == "token":
        return Shown(how, "token", "admin")
    return Shown(how, key, chance.choice(PERMISSIONS), chance.choice((None, None, ("ana",), ("ben",), ("ben", "ana", "cho"))))


# -- the rules


def due(request: Request) -> set[int]:
    """The statuses with which it may be refused; none: it is to be answered."""
    refusals: set[int] = set()
    refusals |= _by_host(request)
    refusals |= _by_origin(request)
    refusals |= _by_key(request)
    refusals |= _by_type(request)
    refusals |= _by_parameters(request)
    refusals |= _by_token(request)
    refusals |= _by_permission(request)
    return refusals


def _by_host(request: Request) -> set[int]:
    """A name of this server, and one of them; an address that was not looked up also does where others reach it."""
    kind = HOSTS[request.host]
    if kind in ("none", "two"):
        return {400}
    known = kind == "loopback" or (kind == "proxy" and PROXY_NAME in request.server.allow_hosts)
    return set() if known or (kind == "address" and not request.server.on_loopback) else {421}


def _by_origin(request: Request) -> set[int]:
    """A page of another origin may change nothing, and not ask for MCP; MCP may be asked for by pages on this machine."""
    mcp = request.route.kind == "mcp"
    if not request.route.changes and not mcp:
        return set()
    fine = ("absent", "own", "own by https") + (("this machine",) if mcp else ())
    if mcp and HOSTS[request.host] == "loopback" and not request.host.endswith("."):
        fine += ("own with another port",)
    site = ("absent", "same-origin", "none") + (("same-site",) if mcp else ())
    return set() if request.origin in fine and request.site in site else {403}


def is_here(request: Request) -> bool:
    """Only there the token of the machine is worth something, and only there may authentication be left out."""
    return request.client == "here" and HOSTS[request.host] == "loopback" and request.server.on_loopback


def caller(request: Request) -> str:
    """`key`, `visitor` (by the cookie), `local`, `nobody`, or `refused`."""
    shown = request.shown
    if shown.how == "header twice":
        return "refused"
    right = shown.is_right and (shown.key != "token" or (is_here(request) and not request.server.no_auth))
    if shown.how == "header":
        return "key" if right else "refused"
    if shown.how == "cookie" and right:
        return "visitor"
    if request.server.no_auth and is_here(request):
        return "local"
    return "nobody" if request.route.kind == "open" else "refused"


def _by_key(request: Request) -> set[int]:
    if caller(request) != "refused":
        return set()
    if request.shown.how == "header twice":
        return {400}
    if request.shown.how != "header" and request.route.kind == "page" and not request.route.changes:
        return {303}  # to the sign-in
    return {401}


def _by_type(request: Request) -> set[int]:
    """Under `/v1` a body is JSON: pages elsewhere may send other types without asking."""
    wrong = request.content_type != "right" and request.route.body == "json"
    return {415} if wrong else set()


def _by_parameters(request: Request) -> set[int]:
    """The API refuses what it does not know, such as a key in an address."""
    api = request.route.path.startswith("/v1/users") or request.route.path in ("/v1/keys", "/v1/agents/coach")
    return {422} if request.shown.how == "query" and api and request.route.method != "OPTIONS" else set()


def _by_token(request: Request) -> set[int]:
    """What a browser might have been made to send needs the token of the page. Whoever shows a key is no browser."""
    if not request.route.changes or request.shown.how in ("header", "header twice"):
        return set()
    by_cookie = caller(request) == "visitor"
    if request.route.kind in ("api", "mcp") and not by_cookie:
        return set()
    in_a_field = request.route.body in ("form", "login") and request.content_type == "right"
    right = request.token == "right in a header" or (request.token == "right in a field" and in_a_field)
    return set() if right else {403}


def _by_permission(request: Request) -> set[int]:
    route, who = request.route, caller(request)
    if route.need is None or who not in ("key", "visitor"):
        return set()
    shown = request.shown
    enough = PERMISSIONS.index(shown.permission) >= PERMISSIONS.index(route.need)
    bound = shown.users is not None and (route.whole or (route.user is not None and route.user not in shown.users))
    return {403} if bound or not enough else set()
