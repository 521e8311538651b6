"""Ids in paths may hold any character, a slash too: `%2F` in a path stays inside its segment.

The framework decodes a path before it looks for the route. `IdPaths` hands it one in which the slashes and per cent
signs of ids are still encoded; the convertor `id`, as in `/v1/users/{user:id}`, decodes them.
"""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send


class IdConvertor(Convertor[str]):
    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return value.replace("%2F", "/").replace("%25", "%")

    def to_string(self, value: str) -> str:
        return value.replace("%", "%25").replace("/", "%2F")


register_url_convertor("id", IdConvertor())


class IdPaths:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw: bytes | None = scope.get("raw_path")
        if scope["type"] == "http" and raw is not None and b"%" in raw:
            path = raw.partition(b"?")[0]
            scope = {**scope, "path": "/".join(_segment(part) for part in path.split(b"/"))}
        await self._app(scope, receive, send)


def _segment(raw: bytes) -> str:
    # What is no UTF-8 becomes characters that no id may hold, and so an error that names the id.
    return unquote_to_bytes(raw).decode(errors="surrogateescape").replace("%", "%25").replace("/", "%2F")
