"""What tests of the server share: a guard before a small application, and a way to ask it byte by byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response

import perdure
from perdure.interfaces.metrics import Metrics
from perdure.interfaces.serving.guard import Guard
from perdure.interfaces.serving.options import Options

LOCAL_HOST = {"host": "localhost:8765"}


class Hands:
    """A clock that goes only when it is turned."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class World:
    """A guard, and behind it an application that reads the body and says who it thinks is asking."""

    engine: perdure.Engine
    options: Options = field(default_factory=lambda: Options(no_auth=True))
    clock: Hands = field(default_factory=Hands)

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.engine)
        self.guard = Guard(self.engine, self.options, self.metrics, tell, self.clock)
        self.app = self.guard.wrapping(echo)

    def ask(
        self,
        method: str = "GET",
        path: str = "/v1/anything",
        headers: Mapping[str, str] | None = None,
        body: Iterable[bytes] = (),
        client: str = "127.0.0.1",
    ) -> Answer:
        wanted = {**LOCAL_HOST, **(headers or {})}
        sent = [(name.lower().encode(), value.encode("latin-1")) for name, value in wanted.items() if value]
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": b"",
            "headers": sent,
            "client": (client, 1),
            "scheme": "http",
        }
        return asyncio.run(call(self.app, scope, list(body)))


def tell(scope: Any, status: int, code: str, detail: str, headers: Mapping[str, str]) -> Any:
    return Response(json.dumps({"code": code, "detail": detail}), status, dict(headers))


async def echo(scope: Any, receive: Any, send: Any) -> None:
    count, more = 0, True
    while more:
        message = await receive()
        count += len(message.get("body", b""))
        more = message.get("more_body", False)
    state = scope["state"]
    told = {"name": state["access"].name, "signed_in": state["signed_in"], "csrf": state["csrf"], "bytes": count}
    await Response(json.dumps(told))(scope, receive, send)


async def call(app: Any, scope: Any, chunks: list[bytes]) -> Answer:
    waiting = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    waiting.append({"type": "http.request", "body": b"", "more_body": False})
    out: list[Any] = []

    async def receive() -> Any:
        if waiting:
            return waiting.pop(0)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        out.append(message)

    await app(scope, receive, send)
    assert [message["type"] for message in out].count("http.response.start") == 1
    headers = {name.decode(): value.decode() for name, value in out[0]["headers"]}
    return Answer(out[0]["status"], headers, b"".join(message.get("body", b"") for message in out[1:]))
