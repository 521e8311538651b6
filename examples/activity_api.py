"""A small HTTP server that plays the API of an activity platform. It listens on this machine only.

It behaves as such APIs do: answers come in pages, newest first; one request may span seven days at most; a quarter of an
hour has only so many calls; some kudos turn up long after their time; and now and then a call fails.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

NAMES = ("Alice", "Bob", "Charlie", "Diana", "Eve", "Zoë")
QUARTER_S = 900


@dataclass(frozen=True)
class Kudo:
    activity_id: int
    athlete_id: int
    created_at: datetime
    visible_from: datetime
    """When the API tells of it: mostly at once, sometimes hours later."""

    def body(self) -> dict[str, Any]:
        name, at = NAMES[self.athlete_id % len(NAMES)], self.created_at.isoformat()
        return {"activity_id": self.activity_id, "athlete_id": self.athlete_id, "athlete_name": name, "created_at": at}


def four_weeks(now: datetime) -> list[Kudo]:
    """Kudos around `now`: 15 in the 24 hours before it, 2 in the hour to come, 45 in the six days before, 3 a day before that.

    One more was given 14 hours before `now`, and is not told until 4 hours after it.
    """
    hour, day = timedelta(hours=1), timedelta(days=1)
    times = [now + hour * part for part in (0.25, 0.5)]
    times += [now - day + hour * part for part in (0.25, 0.5)]
    times += [now - day + hour * (2 + number * 1.6) for number in range(13)]
    times += [now - day - (6 * day - hour) * (number + 0.5) / 45 for number in range(45)]
    times += [now - 7 * day - day * (number + 0.5) / 3 for number in range(63)]
    kudos = [Kudo(1_000 + number // 4, 7 + number * 5, at, at) for number, at in enumerate(sorted(times))]
    return [*kudos, Kudo(1_030, 9_999, now - 14 * hour, now + 4 * hour)]


class ActivityApi:
    """`GET /kudos?after=…&before=…[&cursor=…]`, on a free port, until `close`.

    `now` is asked for the time, so that an example can let hours pass at once. `calls` counts every request.
    """

    def __init__(self, now: Callable[[], datetime], kudos: Sequence[Kudo], *, page_size: int = 10, limit: int = 100) -> None:
        self.calls = 0
        self.limit = limit
        """Calls answered in one quarter of an hour; more get 429."""
        self._now, self._page_size = now, page_size
        self._kudos = sorted(kudos, key=lambda kudo: kudo.created_at, reverse=True)
        self._quarter, self._answered = 0, 0
        self._broken: dict[int, int] = {}
        self._server = HTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def break_call(self, after: int = 0, status: int = 500) -> None:
        """Let one call fail: the next one, or the one `after` so many others."""
        self._broken[self.calls + after + 1] = status

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> ActivityApi:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def answer(self, query: dict[str, list[str]]) -> tuple[int, dict[str, Any], dict[str, str]]:
        """Status, body and headers; called by the server's only thread."""
        self.calls += 1
        now = self._now()
        if now.timestamp() // QUARTER_S != self._quarter:
            self._quarter, self._answered = int(now.timestamp() // QUARTER_S), 0
        if (status := self._broken.pop(self.calls, None)) is not None:
            return status, {"error": "something went wrong"}, {}
        if self._answered >= self.limit:
            wait = QUARTER_S - int(now.timestamp() % QUARTER_S)
            return 429, {"error": "too many calls"}, {"Retry-After": str(wait)}
        self._answered += 1
        try:
            after, before = (datetime.fromisoformat(query[name][0]) for name in ("after", "before"))
            skip = int(query.get("cursor", ["0"])[0])
        except (KeyError, ValueError):
            return 400, {"error": "give `after` and `before` as ISO 8601"}, {}
        if before - after > timedelta(days=7):
            return 400, {"error": "ask for seven days at most"}, {}
        found = [kudo for kudo in self._kudos if after <= kudo.created_at < before and kudo.visible_from <= now]
        following = skip + self._page_size
        page = [kudo.body() for kudo in found[skip:following]]
        return 200, {"kudos": page, "next": str(following) if following < len(found) else None}, {}


def _handler_of(api: ActivityApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/kudos":
                status, body, headers = api.answer(parse_qs(parts.query))
            else:
                status, body, headers = 404, {"error": "there is only /kudos"}, {}
            content = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Quiet: the examples count the calls themselves."""

    return Handler
