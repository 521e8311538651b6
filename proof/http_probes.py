"""Requests that no client of ours would send, byte by byte, to a server on this machine: it answers, and never with 5xx."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from proof.harness import Round
from proof.hostile import TEXTS, Hostile
from proof.parsers import as_json
from proof.served import Served, serving
from proof.shaped import plausible

ANSWER_S = 60.0
DETAIL_CHARS_MAX = 1_500
METHODS = (
    "GET",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "PROPFIND",
    "get",
    "G\0T",
    "",
    "A" * 300,
)
PATHS = (
    "/",
    "//",
    "/../../etc/passwd",
    "/static/../../pyproject.toml",
    "/static/%2e%2e/%2e%2e/secret",
    "/v1/users/%00/messages",
    "/v1/users/%FF/messages",
    "/v1/users/%/state",
    "/v1/users/%zz/state",
    "/v1/users/" + "a" * 5_000 + "/state",
    "/v1/users/ana/state/%2F..%2F",
    "/v1/users/ana/state/a%0d%0ab",
    "*",
    "http://elsewhere/",
    "/mcp",
    "/mcp/..",
    "/openapi.json?x=%",
    "/?" + "a=b&" * 3_000,
    "/v1/users/ana/messages?limit=%00",
    "/v1/users/\u00e9/state",
    "/a b",
    "/\x7f",
    "/metrics",
    "/login?next=//evil.example",
    "/login?next=" + "%0d%0a" * 5,
    "/users/ana",
    "/v1/healthz",
    "/healthz",
    "/v1/users/ana/messages?cursor=AAAA",
)
TYPES = (
    "application/json",
    "application/json",
    "application/json; charset=utf-16",
    "text/plain",
    "",
    "multipart/form-data",
    "a/b/c",
    "application/x-ndjson",
)


@dataclass(frozen=True)
class Probe:
    """Bytes to send, and whether they are a request at all: then an answer is due."""

    raw: bytes
    is_request: bool
    about: str
    mcp_id: object = None


REFUSED_INSIDE = (
    ("PUT", "/v1/users/ana/state/k", b'{"value": "\\ud800"}'),
    ("PUT", "/v1/users/ana/state/k", b'{"value": 1, "expected": 99}'),
    ("GET", "/v1/users/ana/state/nothing", None),
    ("POST", "/v1/users/ana/messages", b'{"role": "user", "content": "\\ud800"}'),
    ("POST", "/v1/users/ana/memories", b'{"statement": "\\ud800"}'),
)
"""Requests that the description allows and the engine refuses, one for each kind of refusal."""


def run(round: Round) -> None:
    folder = round.folder / "http"
    folder.mkdir()
    chance = random.Random(f"{round.seed}/{round.promise}/http")
    hostile = Hostile(chance)
    with serving(folder, "--tools", "all", "--body-max-mb", "2", "--no-auth") as server:
        whole = _described(server)
        count = round.sized(quick=220, full=10_000)
        with _Line(server) as line:
            for method, path, body in REFUSED_INSIDE:
                raw = _request(method, path, server.port, body, "application/json")
                _judge(round, Probe(raw, True, f"{method} {path}, refused behind the description"), line)
            for number in range(count):
                probe = _probe(number, hostile, whole, server.port)
                _judge(round, probe, line)
        status, _, _ = _asked(server, _request("GET", "/openapi.json", server.port))
        round.check(status == 200, "does not heal", f"after the probes a plain request is answered with {status}")
        troubles = server.troubles()
        round.check(not troubles, "unhandled", f"the server's log tells of errors: {troubles[-1_500:]}")
    log = (folder / "serve.log").read_text(errors="replace")
    round.facts["server log lines"] = log.count("\n")


def _judge(round: Round, probe: Probe, line: _Line) -> None:
    status, body = line.ask(probe.raw, last=not probe.is_request)
    round.count("http requests")
    if status is None:
        if not probe.is_request:
            round.met("http cut off")
            return
        round.wrong("not answered", f"{probe.about}: {probe.raw[:300]!r}")
    elif status >= 500:
        round.wrong("5xx", f"{status} to {probe.about}: {probe.raw[:600]!r}: {body[:300]!r}")
    elif status >= 400:
        round.met("http refused")
        _check_problem(round, probe, body)
    else:
        round.met("http answered")
    if probe.mcp_id is not None and status is not None:
        _check_id(round, probe, body)


def _check_problem(round: Round, probe: Probe, body: bytes) -> None:
    if not body.startswith(b"{"):
        return
    try:
        told = json.loads(body)
    except ValueError:
        round.wrong("badly said", f"a refusal is no JSON: {body[:300]!r}")
        return
    detail = str(told.get("detail", ""))
    round.check(
        len(detail) <= DETAIL_CHARS_MAX,
        "badly said",
        f"{probe.about}: the detail has {len(detail)} characters: {detail[:200]!r}",
    )


def _check_id(round: Round, probe: Probe, body: bytes) -> None:
    round.count("mcp ids")
    try:
        told = json.loads(body)
    except ValueError:
        told = None
    round.check(
        isinstance(told, dict) and told.get("id") == probe.mcp_id,
        "not answered",
        f"id {probe.mcp_id} of {probe.raw[-300:]!r} got {body[:300]!r}",
    )


# -- making probes


def _described(server: Served) -> list[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]]:
    """Every operation of the API: path, method, what it takes, and the whole description."""
    status, _, body = _asked(server, _request("GET", "/openapi.json", server.port))
    if status != 200:
        raise RuntimeError(f"the description is answered with {status}")
    told = json.loads(body)
    return [
        (path, method, one, told)
        for path, methods in told["paths"].items()
        for method, one in methods.items()
        if method != "parameters"
    ]


def _probe(number: int, hostile: Hostile, described: Any, port: int) -> Probe:
    chance = hostile.chance
    kind = chance.random()
    if kind < 0.6:
        return _operation(hostile, described[number % len(described)], port)
    if kind < 0.7:
        return _mcp(number, hostile, port)
    if kind < 0.8:
        path, method = chance.choice(PATHS), chance.choice(METHODS[:7])
        return Probe(_request(method, path, port), " " not in path and "\x7f" not in path and path.isascii(), "an odd path")
    return _odd_framing(hostile, port)


def _operation(hostile: Hostile, operation: Any, port: int) -> Probe:
    path, method, takes, whole = operation
    chance = hostile.chance
    query = []
    for one in takes.get("parameters", ()):
        value: Any = plausible(one.get("schema", {}), chance, whole)
        if chance.random() < 0.4:
            value = hostile.any() if chance.random() < 0.3 else hostile.text()
        text = _as_text(value)[:3_000]
        if one["in"] == "path":
            path = path.replace(f"{{{one['name']}}}", quote(text.encode(errors="surrogatepass"), safe="") or "-")
        elif one["in"] == "query" and (one.get("required") or chance.random() < 0.4):
            query.append(f"{one['name']}={quote(text.encode(errors='surrogatepass'), safe='')}")
    target = path + (f"?{'&'.join(query)}" if query else "")
    body, kind = None, "application/json"
    if "requestBody" in takes:
        content = next(iter(takes["requestBody"]["content"].values()))
        value = plausible(content.get("schema", {}), chance, whole)
        body = _body(hostile, value)
        kind = chance.choice(TYPES) if chance.random() < 0.1 else kind
    return Probe(_request(method.upper(), target, port, body, kind), True, f"{method.upper()} {operation[0]}")


def _body(hostile: Hostile, value: Any) -> bytes:
    chance = hostile.chance
    kind = chance.random()
    if kind < 0.2:
        return as_json(value).encode()
    if kind < 0.75:
        return as_json(hostile.spoilt_value(value)).encode(errors="surrogatepass")[:1_900_000]
    if kind < 0.9:
        return hostile.spoilt_bytes(as_json(value).encode())[:1_900_000]
    return chance.choice(
        (
            b"",
            b"\0",
            b"[" * 100_000,
            b'{"a":' * 30_000,
            b'"\\ud800"',
            b"nul",
            b"\xff\xfe",
            b"9" * 6_000,
            b"-",
            b"NaN",
            b"[1e999]",
            b"{}",
            b"[]",
            b'{"a":1,"a":2}',
            b'{"content":"\\u0000"}',
            b'"' + b"x" * 1_500_000 + b'"',
        )
    )


def _mcp(number: int, hostile: Hostile, port: int) -> Probe:
    chance = hostile.chance
    method = chance.choice(("tools/call", "tools/list", "resources/read", "prompts/get", "ping", "nothing", "initialize"))
    params: Any = {
        "name": chance.choice(("recall", "saveState", "remember", "no such tool")),
        "arguments": {"query": "x", "key": "k", "value": 1},
    }
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": number + 1_000, "method": method, "params": params}
    if chance.random() < 0.7:
        message["params"] = hostile.spoilt_value(params)
    text = as_json(message)
    due = _due_id(text)
    raw = _request(
        "POST",
        "/mcp?user=ana",
        port,
        text.encode(errors="surrogatepass")[:1_900_000],
        "application/json",
        (("Accept", "application/json, text/event-stream"),),
    )
    return Probe(raw, True, f"MCP {method}", due)


def _due_id(text: str) -> object:
    """The id that an answer must have: of a message that is one."""
    try:
        told = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return told.get("id") if isinstance(told, dict) and len(text) < 1_900_000 else None


def _odd_framing(hostile: Hostile, port: int) -> Probe:
    chance = hostile.chance
    host = f"Host: 127.0.0.1:{port}\r\n".encode()
    head = b"POST /v1/users/ana/messages HTTP/1.1\r\n" + host + b"Content-Type: application/json\r\n"
    odd = chance.choice(
        (
            head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nnonsense\r\n0\r\n\r\n",
            head + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
            head + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            head + b"Content-Length: -5\r\n\r\n{}",
            head + b"Content-Length: 99999999999999999999\r\n\r\n{}",
            head + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
            head + b"Content-Length: 2x\r\n\r\n{}",
            b"GET / HTTP/9.9\r\n" + host + b"\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost:\r\n\r\n",
            b"GET /\r\n\r\n",
            b"\r\n\r\n\r\n",
            b"\0" * 400,
            b"GET / HTTP/1.1\r\n" + host + b"X: " + b"a" * 70_000 + b"\r\n\r\n",
            b"GET / HTTP/1.1\r\n" + host + b"X: y\r\n" * 3_000 + b"\r\n",
            b"GET / HTTP/1.1\r\n" + host + b"Bad Header\r\n\r\n",
            b"GET / HTTP/1.1\r\n" + host + b"A: b\r\n c: d\r\n\r\n",
            b"GET " + b"/a" * 40_000 + b" HTTP/1.1\r\n" + host + b"\r\n",
            b"GET / HTTP/1.1\r\n" + host + b"Authorization: Bearer \xff\xfe\r\n\r\n",
            b"GET / HTTP/1.1\r\n" + host + b"Cookie: " + b"a=b; " * 2_000 + b"\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00",
            b"GET / HTTP/1.1\r\n" + host + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\n\r\n",
            head + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
            head + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00",
            chance.choice(METHODS).encode() + b" / HTTP/1.1\r\n" + host + b"\r\n",
            b"GET / HTTP/1.1\r\nHost: " + chance.choice(TEXTS)[:100].encode(errors="replace").replace(b"\n", b"") + b"\r\n\r\n",
        )
    )
    if chance.random() < 0.3:
        odd = hostile.spoilt_bytes(odd[:2_000])
    return Probe(odd, False, "odd framing")


def _request(
    method: str, target: str, port: int, body: bytes | None = None, kind: str = "", more: tuple[tuple[str, str], ...] = ()
) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{port}", *(f"{name}: {value}" for name, value in more)]
    if body is not None:
        lines += [f"Content-Length: {len(body)}"] + ([f"Content-Type: {kind}"] if kind else [])
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + (body or b"")


def _as_text(value: Any) -> str:
    return (
        value
        if type(value) is str
        else as_json(value)
        if isinstance(value, bool | dict | list | int | float | None)
        else type(value).__name__
    )


# -- asking


class _Line:
    """One connection, made anew when the server or a probe ended it."""

    def __init__(self, server: Served) -> None:
        self._server = server
        self._socket: socket.socket | None = None

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *_: object) -> None:
        self._drop()

    def ask(self, raw: bytes, *, last: bool) -> tuple[int | None, bytes]:
        """Status and body of the answer; None if the connection was ended without one. What is no request is the last on it."""
        for fresh in (self._socket is None, True):
            if fresh:
                self._drop()
            try:
                status, headers, body = _spoken(self._connected(), raw, last=last)
            except OSError:
                status, headers, body = None, {}, b""
            if last or status is None or headers.get("connection", "") == "close" or status == 400:
                self._drop()
            if status is not None or fresh:
                # A connection that was kept may have been ended by the server meanwhile: then once more on a new one.
                return status, body
        return None, b""

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._server.port), timeout=ANSWER_S)
        return self._socket

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _asked(server: Served, raw: bytes) -> tuple[int | None, dict[str, str], bytes]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_S) as line:
        return _spoken(line, raw, last=True)


def _spoken(line: socket.socket, raw: bytes, *, last: bool) -> tuple[int | None, dict[str, str], bytes]:
    """Send the bytes, and read one answer."""
    try:
        line.sendall(raw)
        if last:
            line.shutdown(socket.SHUT_WR)  # nothing more will come
    except (BrokenPipeError, ConnectionResetError):
        pass  # it was refused before it was whole; the answer may have come all the same
    held = b""
    try:
        while b"\r\n\r\n" not in held:
            some = line.recv(65_536)
            if not some:
                return None, {}, b""
            held += some
        head, _, body = held.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip().lower() for name, _, value in (one.partition(":") for one in rest)}
        status = int(first.split()[1])
        if status == 100:
            return _rest(line, body)
        is_head = raw.startswith(b"HEAD ") or status in (204, 304)
        for part in _pieces(line, headers, body) if not is_head else ():
            body = part
    except ConnectionResetError:
        return None, {}, b""
    return status, headers, body


def _rest(line: socket.socket, held: bytes) -> tuple[int | None, dict[str, str], bytes]:
    """The answer behind a `100 Continue`."""
    while b"\r\n\r\n" not in held:
        some = line.recv(65_536)
        if not some:
            return None, {}, b""
        held += some
    return int(held.split()[1]), {"connection": "close"}, held


def _pieces(line: socket.socket, headers: Mapping[str, str], body: bytes) -> Iterator[bytes]:
    chunked = headers.get("transfer-encoding") == "chunked"
    size = None if chunked else int(headers.get("content-length", 0))
    while not (body.endswith(b"0\r\n\r\n") if chunked else len(body) >= (size or 0)):
        some = line.recv(65_536)
        if not some:
            break
        body += some
    yield body
