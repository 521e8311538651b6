"""P18: the faces are closed by default. A matrix of requests against what the documentation promises of each."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import perdure
from perdure import InvalidInput
from perdure.interfaces.server import Options, build
from perdure.testing import StoppedClock
from proof.asgi import Answered, Asgi, Header
from proof.guard_rules import SERVERS, Request, Server, Shown, caller, drawn, due, is_here
from proof.harness import Promise, Round

ROOT = Path(__file__).parents[2]
HOME = "127.0.0.1:8765"
HERE = (("host", HOME), ("accept", "text/html"))
TOKEN = re.compile(r'name="_csrf" value="([^"]+)"')
WANTED_HEADERS = {
    "content-security-policy": re.compile(r"default-src 'none'.*frame-ancestors 'none'"),
    "x-content-type-options": re.compile("nosniff"),
    "x-frame-options": re.compile("DENY"),
    "referrer-policy": re.compile("no-referrer"),
    "cross-origin-resource-policy": re.compile("same-origin"),
}
TOKEN_OF_THIS_MACHINE = "pdr_machine_" + "m" * 43
START_S = 30.0
PERDURE = (sys.executable, "-c", "from perdure.interfaces.cli import main; main()")


def run(round: Round) -> None:
    for server in SERVERS:
        _starts_only_with_a_key(round, server)
    with ExitStack() as stack:
        running = [Running(round, server, stack) for server in SERVERS]
        for case in round.cases(quick=800, full=20_000, name="requests"):
            running[case.number % len(running)].try_one(drawn(case.chance, running[case.number % len(running)].server))
    if round.begins:
        _the_process_itself(round)


def _starts_only_with_a_key(round: Round, server: Server) -> None:
    """Where others reach it, a store without a key in use is not served; nor one whose keys have all ended."""
    if server.on_loopback:
        return
    for made in (False, True):
        for host in (server.host, "::", "192.168.7.7", "memory.example.org"):
            with perdure.open("memory:") as engine:
                if made:
                    engine.api_keys.revoke(engine.api_keys.create("gone").key.id)
                with round.guarded("started without a key"), pytest.raises(InvalidInput):
                    build(engine, Options(host=host))
                round.count("starts")
    round.met("a start without a key was refused")


@dataclass(frozen=True, slots=True)
class Visit:
    """What a browser has after a sign-in."""

    cookie: str
    token: str


@dataclass
class Running:
    """A server with a store of its own, its keys, and those who are signed in."""

    round: Round
    server: Server
    stack: ExitStack
    secrets: dict[Shown, str] = field(default_factory=dict)
    visits: dict[Shown, Visit] = field(default_factory=dict)

    def __post_init__(self) -> None:
        clock = StoppedClock()
        self.engine = self.stack.enter_context(perdure.open("memory:", clock=clock))
        self.engine.memory("ana").state.save("units", "metric")
        self.numbers = count(1)
        if self.server.keys:
            self._make_keys(clock)
        made = Options(
            host=self.server.host,
            allow_hosts=self.server.allow_hosts,
            token=None if self.server.no_auth else TOKEN_OF_THIS_MACHINE,
            no_auth=self.server.no_auth,
            rate=1_000_000,
            tools="all",
        )
        self.asgi = Asgi(build(self.engine, made), self.stack)
        self.tokens = {"nobody": self._token("/login", (), "203.0.113.9"), "local": self._token("/u/ana/state", ())}

    def _make_keys(self, clock: StoppedClock) -> None:
        keys = self.engine.api_keys
        for permission in ("read", "write", "admin"):
            for users in (None, ("ana",), ("ben",), ("ben", "ana", "cho")):
                for state in ("right", "revoked", "ended"):
                    made = keys.create("k", users=users, permission=permission, days=1 if state == "ended" else None)
                    self.secrets[Shown("", state, permission, users)] = made.secret
                    if state == "revoked":
                        keys.revoke(made.key.id)
        clock.move(days=2)

    def _token(self, path: str, more: tuple[Header, ...], client: str = "127.0.0.1") -> str:
        found = TOKEN.search(self.asgi.ask("GET", path, (*HERE, *more), client=client).text)
        return "" if found is None else found[1]

    def _secret(self, shown: Shown) -> str:
        if shown.key == "unreadable":
            return "\u00e4 pdr_"
        if shown.key == "token":
            return TOKEN_OF_THIS_MACHINE
        return self.secrets.get(Shown("", shown.key, shown.permission, shown.users), "pdr_0123456789ab_" + "x" * 43)

    # -- one request

    def try_one(self, request: Request) -> None:
        number = next(self.numbers)
        refusals = due(request)
        answer = self._ask(request, number)
        if request.route.path in ("/login", "/logout"):
            self.visits.pop(request.shown, None)
        self.round.met("a request was to be refused" if refusals else "a request was to be answered")
        if request.shown.key == "token" and request.shown.is_right:
            self.round.met("the token was shown here" if is_here(request) else "the token was shown elsewhere")
        self.round.count("to be refused" if refusals else "to be answered")
        fine = answer.status in (refusals or request.route.answers) or (refusals == {403} and _refused_by_rpc(request, answer))
        if not refusals and request.route.body == "rpc":
            fine = fine and not _refused_by_rpc(request, answer)
        due_one = sorted(refusals) if refusals else list(request.route.answers)
        self.round.check(fine, "wrong answer", f"{request!r}: {answer.status} {answer.text[:300]!r} instead of {due_one}")
        self._look_at(request, answer)
        self._see_effect(request, number, refusals)

    def _ask(self, request: Request, number: int) -> Answered:
        route, shown = request.route, request.shown
        headers = [*_hosts(request), *_origins(request)]
        if request.client == "forwarded":
            headers.append(("x-forwarded-for", "203.0.113.9"))
        query = ""
        visit = None
        if shown.how.startswith("header"):
            said = ("authorization", f"Bearer {self._secret(shown)}" if shown.key != "unreadable" else "Basic YW5hOmFuYQ==")
            headers += [said] * (2 if shown.how == "header twice" else 1)
        elif shown.how == "cookie":
            visit = self._visit(shown)
            headers.append(("cookie", f"theme=dark; perdure_session={visit.cookie}"))
        elif shown.how == "query":
            query = urlencode(dict.fromkeys(("key", "api_key", "access_token", "authorization"), self._secret(shown)))
            if route.kind in ("api", "page") and not _needs_no_key(request):
                self.round.met("a key came in an address")
        body, kind = self._body(request, number, token := self._said_token(request, visit))
        if body:
            headers.append(("content-type", kind if request.content_type == "right" else request.content_type))
        if token and request.token != "right in a field":
            headers.append(("x-csrf-token", token))
        if route.kind == "mcp":
            headers += [("accept", "application/json, text/event-stream"), ("perdure-user", "ana")]
        elif route.kind in ("page", "open"):
            headers.append(("accept", "text/html"))
        # Wrong keys from one address are refused for a while: everybody here has an address of their own.
        place = f"{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        return self.asgi.ask(
            route.method,
            route.path,
            headers,
            query=query if route.kind != "open" else "",
            body=body,
            client=f"{203 if request.client == 'elsewhere' else 127}.{place}",
        )

    def _visit(self, shown: Shown) -> Visit:
        """Signed in as a browser does it: by the form, with its token."""
        known = shown.key != "token" or (self.server.on_loopback and not self.server.no_auth)
        if not shown.is_right or not known:
            return Visit("x" * 43, "y" * 43)
        if shown not in self.visits:
            form = urlencode(
                {"key": self._secret(shown), "_csrf": self._token("/login", ()) or self.tokens["local"], "next": "/"}
            )
            kind = ("content-type", "application/x-www-form-urlencoded")
            told = self.asgi.ask("POST", "/login", (*HERE, kind), body=form.encode())
            cookie = told.header("set-cookie") or ""
            self._see_cookie(cookie, secure=False)
            name = re.match(r"perdure_session=([^;]+)", cookie)
            self.round.check(name is not None, "no sign-in", f"{self.server.name}: {told.status} {told.text[:200]}")
            value = name[1] if name else ""
            user = shown.users[0] if shown.users else "ana"
            self.visits[shown] = Visit(value, self._token(f"/u/{user}/state", (("cookie", f"perdure_session={value}"),)))
        return self.visits[shown]

    def _see_cookie(self, cookie: str, *, secure: bool) -> None:
        parts = {part.strip() for part in cookie.split(";")[1:]}
        wanted = {"HttpOnly", "SameSite=Strict", "Path=/"} | ({"Secure"} if secure else set())
        self.round.check(wanted <= parts and not any(part.startswith("Domain") for part in parts), "cookie", cookie)
        self.round.met("a cookie was set")

    def _said_token(self, request: Request, visit: Visit | None) -> str:
        if request.token == "absent" or not request.route.changes:
            return ""
        if request.token == "wrong":
            return "x" * 43
        who = caller(request)
        own = visit.token if visit is not None and who == "visitor" else self.tokens["nobody" if who == "nobody" else "local"]
        if request.token == "of another":
            others = [self.tokens["local"], self.tokens["nobody"], *(held.token for held in self.visits.values())]
            return next((one for one in others if one and one != own), "z" * 43)
        return own

    def _body(self, request: Request, number: int, token: str) -> tuple[bytes, str]:
        route = request.route
        form = {"_csrf": token} if request.token == "right in a field" else {}
        match route.body:
            case "json" if route.path.endswith("units"):
                return json.dumps({"value": f"v{number}"}).encode(), "application/json"
            case "json" if route.path.endswith("prompt"):
                return b'{"request": "Book a table for two"}', "application/json"
            case "json":
                return json.dumps({"soul": "calm"}).encode(), "application/json"
            case "form":
                return urlencode(
                    {**form, "value": f'"v{number}"', "expected": self.engine.memory("ana").state.find("units").revision}
                ).encode(), "application/x-www-form-urlencoded"
            case "login":
                right = Shown("", "right", "admin", None)
                return urlencode({**form, "key": self.secrets[right]}).encode(), "application/x-www-form-urlencoded"
            case "rpc":
                reads = route.need == "read"
                arguments = {"key": "units"} if reads else {"key": "units", "value": f"v{number}"}
                params = {"name": "loadState" if reads else "saveState", "arguments": arguments}
                return json.dumps(
                    {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
                ).encode(), "application/json"
        return b"", ""

    # -- what came of it

    def _see_effect(self, request: Request, number: int, refusals: set[int]) -> None:
        """What was refused did nothing, whatever was answered; what was answered was done."""
        route = request.route
        if route.need != "write" or route.path.endswith(("prompt", "nothing")):
            return
        stored = self.engine.memory("ana").state.load("units") == f"v{number}"
        self.round.check(stored is not bool(refusals), "wrong effect", f"{request!r}: stored {stored}, refusals due {refusals}")

    def _look_at(self, request: Request, answer: Answered) -> None:
        for name, pattern in WANTED_HEADERS.items():
            held = answer.header(name)
            self.round.check(held is not None and bool(pattern.search(held)), "header", f"{request!r}: {name} = {held!r}")
        foreign = [
            name for name, _ in answer.headers if name.startswith("access-control-") or name in ("server", "x-powered-by")
        ]
        self.round.check(not foreign, "header", f"{request!r}: {foreign}")
        static = request.route.path.startswith("/static/") and answer.status < 400
        self.round.check(static or answer.header("cache-control") == "no-store", "header", f"{request!r}: may be cached")
        if answer.status == 401 and request.route.kind in ("api", "mcp"):
            self.round.check(answer.header("www-authenticate") is not None, "header", f"{request!r}: no challenge")
        if request.shown.how != "query":
            told = answer.text + repr([value for name, value in answer.headers if name != "set-cookie"])
            secret = next((one for one in self.secrets.values() if one in told), None)
            self.round.check(secret is None, "secret", f"{request!r}: the answer has a key in it")
        if (cookie := answer.header("set-cookie")) is not None and cookie.startswith("perdure_session"):
            self._see_cookie(cookie, secure=False)
        self.round.check(answer.status < 500, "wrong answer", f"{request!r}: {answer.status}")


def _needs_no_key(request: Request) -> bool:
    return caller(request) in ("local", "nobody")


def _refused_by_rpc(request: Request, answer: Answered) -> bool:
    """MCP tells in its own way what the key does not permit."""
    return (
        request.route.body == "rpc" and answer.status == 200 and ('"error":{' in answer.text or '"isError":true' in answer.text)
    )


def _hosts(request: Request) -> list[Header]:
    if request.host == "":
        return []
    return [("host", HOME), ("host", "evil.example")] if request.host == "two" else [("host", request.host)]


def _origins(request: Request) -> list[Header]:
    host = request.host if request.host not in ("", "two") else HOME
    bare = host if host.endswith("]") else host.rpartition(":")[0] or host
    origins = {
        "own": f"http://{host}",
        "own by https": f"https://{host}",
        "this machine": "http://localhost:3000",
        "elsewhere": "http://evil.example",
        "null": "null",
        "own with another port": f"http://{bare}:9999",
        "unreadable": "http://[x",
    }
    found = [("origin", origins[request.origin])] if request.origin in origins else []
    if request.site != "absent":
        found.append(("sec-fetch-site", request.site))
    if request.route.method == "OPTIONS":
        found.append(("access-control-request-method", "PUT"))
    return found


# -- the process, as it is started


def _the_process_itself(round: Round) -> None:
    """`perdure serve`, with a socket: it does not start where others reach it, and answers on loopback as it should."""
    url = f"sqlite:///{round.folder / 'served.db'}"
    refused = subprocess.run(
        [*PERDURE, "serve", "--host", "0.0.0.0", "--port", "0", "--url", url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=START_S,
        check=False,
    )
    round.check(refused.returncode == 2 and "API key" in refused.stderr, "started without a key", refused)
    round.met("a process was started where others reach it")
    with _served(url) as said:
        port = int(said["port"])
        token = _token_of(round, said)
        for raw, status in _RAW.items():
            told = _said(port, raw.replace("PORT", str(port)).replace("TOKEN", token))
            round.check(told.startswith(f"HTTP/1.1 {status} "), "wrong answer", f"{raw!r}: {told[:200]!r} instead of {status}")
            round.count("requests over a socket")
        with contextlib.suppress(OSError), socket.create_connection((_own_address(), port), timeout=2):
            round.wrong("listens elsewhere", f"port {port} can be reached at {_own_address()}")
        round.met("a process was asked over a socket")
    with _served(url) as said:
        round.check(_token_of(round, said) == token, "another token", "the token changed when the server was started again")
    at = round.folder / "s"
    with _served(url, "--socket", str(at)):
        mode = stat.S_IMODE(at.stat().st_mode)
        round.check(mode == 0o600, "open to others", f"the Unix socket has mode {mode:o}")
        round.met("a process listened at a Unix socket")


def _token_of(round: Round, said: dict[str, Any]) -> str:
    """The token as its file has it. Other accounts cannot read that."""
    file = Path(said["token_file"])
    mode = stat.S_IMODE(file.stat().st_mode)
    round.check(mode == 0o600, "open to others", f"the file of the token has mode {mode:o}")
    return file.read_text().strip()


_RAW = {
    "GET /healthz HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n": 200,
    "GET /v1/users HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n": 401,
    "GET /v1/users HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAuthorization: Bearer TOKEN\r\n\r\n": 200,
    "DELETE /v1/users/ana HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n": 401,
    "GET /u/ana HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n": 303,
    "GET /login?token=TOKEN HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n": 303,
    "GET /login?token=TOKE HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n": 401,
    "GET /v1/users?token=TOKEN HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n": 401,
    "GET /v1/users HTTP/1.1\r\nHost: evil.example\r\n\r\n": 421,
    "GET /v1/users HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n": 400,
    "GET /v1/users HTTP/1.1\r\n\r\n": 400,
    "GET /v1/users HTTP/1.0\r\n\r\n": 400,
    "GET /v1/users HTTP/1.1\r\nHost: localhost:PORT\r\nX-Forwarded-For: 203.0.113.9\r\nAuthorization: Bearer TOKEN\r\n\r\n": 401,
    "POST /login HTTP/1.1\r\nHost: localhost:PORT\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    "Content-Length: 7\r\n\r\nkey=a&b": 403,
    "DELETE /v1/users/ana HTTP/1.1\r\nHost: localhost:PORT\r\nOrigin: http://evil.example\r\n\r\n": 403,
    "GET /u/ana HTTP/1.1\r\nHost: attacker.localhost\r\n\r\n": 421,
}
"""What is sent, byte by byte, and the status that is due."""


@contextmanager
def _served(url: str, *options: str) -> Iterator[dict[str, Any]]:
    command = [*PERDURE, "serve", "--port", "0", "--json", "--url", url, *options]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ}
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        try:
            process.wait(START_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _said(port: int, raw: str) -> str:
    until = time.monotonic() + START_S
    with socket.create_connection(("127.0.0.1", port), timeout=START_S) as connection:
        connection.sendall(raw.encode())
        told = b""
        while b"\r\n\r\n" not in told and time.monotonic() < until:
            part = connection.recv(65_536)
            if not part:
                break
            told += part
    return told.decode("latin-1")


def _own_address() -> str:
    """An address of this machine that others reach, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("203.0.113.1", 9))  # sends nothing
        return str(probe.getsockname()[0])


PROMISE = Promise(
    id="P18",
    says="the faces are closed by default",
    tried_by="requests drawn from Host × Origin × site × address × key (none, wrong, revoked, ended, right, the machine's token; header, cookie, "
    "address) × permission × bound users × token of the form × type × route on five servers, against an oracle written from the documentation; the "
    "process itself over a socket, and started where others reach it",
    run=run,
    evidence=(
        "a start without a key was refused",
        "a request was to be refused",
        "a request was to be answered",
        "a key came in an address",
        "a cookie was set",
        "a process was started where others reach it",
        "a process was asked over a socket",
        "a process listened at a Unix socket",
        "the token was shown here",
        "the token was shown elsewhere",
    ),
    figure="{wrong} wrong of {requests} combinations, {to be answered} of them to be answered",
)
