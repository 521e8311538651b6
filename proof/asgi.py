"""Asks an application without a socket: any header, any address, thousands of times a second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import anyio.from_thread

Header = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Answered:
    status: int
    headers: tuple[Header, ...]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def header(self, name: str) -> str | None:
        return next((value for held, value in self.headers if held == name), None)


class Asgi:
    """An application that runs in a loop of its own until the stack ends."""

    def __init__(self, app: Any, stack: ExitStack) -> None:
        self._app = app
        self._portal = stack.enter_context(anyio.from_thread.start_blocking_portal())
        stack.enter_context(self._portal.wrap_async_context_manager(app.router.lifespan_context(app)))

    def ask(
        self,
        method: str,
        path: str,
        headers: Iterable[Header] | Mapping[str, str],
        *,
        query: str = "",
        body: bytes = b"",
        client: str = "127.0.0.1",
    ) -> Answered:
        """`path` is as it would be sent: percent-encoded. Headers are taken as they are, also twice the same."""
        given = [*(headers.items() if isinstance(headers, Mapping) else headers)]
        if body and "content-length" not in {name for name, _ in given}:
            given.append(("content-length", str(len(body))))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in given],
            "client": (client, 50_000),
            "server": ("127.0.0.1", 8765),
            "state": {},
        }
        return self._portal.call(self._answered, scope, body)

    async def _answered(self, scope: dict[str, Any], body: bytes) -> Answered:
        out: list[Any] = []
        waiting: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            return waiting.pop() if waiting else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            out.append(message)

        await self._app(scope, receive, send)
        headers = tuple((name.decode().lower(), value.decode("latin-1")) for name, value in out[0]["headers"])
        return Answered(out[0]["status"], headers, b"".join(one.get("body", b"") for one in out[1:]))
