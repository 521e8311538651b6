"""How many calls an agent makes to an API, without perdure and with it: `python examples/kudos.py`.

The agent is asked for kudos four times on one morning. The API runs here and now; only the clock is made up.
"""

# ruff: noqa: S310, T201 - the URL is our own, and printing is the point

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from activity_api import ActivityApi, four_weeks

import perdure
from perdure.testing import StoppedClock

TEN = datetime(2025, 10, 25, 10, 0, tzinfo=UTC)
QUESTIONS = (
    (0, "the last 24 hours", timedelta(hours=24)),
    (1, "the last 24 hours", timedelta(hours=24)),
    (0, "the last 7 days", timedelta(days=7)),
    (0, "the last 2 days", timedelta(days=2)),
    (1, "the last 7 days", timedelta(days=7)),
)


def one_page(api: ActivityApi, start: datetime, end: datetime, cursor: object = None) -> perdure.Page:
    query = {"after": start.isoformat(), "before": end.isoformat(), "cursor": cursor or 0}
    with urlopen(f"{api.url}/kudos?{urlencode(query)}", timeout=10) as response:
        answer = json.load(response)
    return perdure.Page(answer["kudos"], next_cursor=answer["next"])


def every_page(api: ActivityApi, start: datetime, end: datetime) -> list[Any]:
    """What an agent without a memory does, every time."""
    page = one_page(api, start, end)
    entries = [*page.entries]
    while page.next_cursor is not None:
        page = one_page(api, start, end, page.next_cursor)
        entries += page.entries
    return entries


def main() -> None:
    clock = StoppedClock(TEN)
    kudos = four_weeks(TEN)
    print(f"{'':7}{'kudos from':20}{'found':>6}{'calls without perdure':>24}{'calls with perdure':>20}")
    with (
        ActivityApi(clock.now, kudos) as asked_anew,
        ActivityApi(clock.now, kudos) as asked_once,
        perdure.open("memory:", clock=clock) as engine,
    ):
        series = engine.memory(user="ana").series(
            "kudos_timeseries", timestamp_field="created_at", id_template="kudos_{activity_id}_{athlete_id}"
        )

        def fetcher(window: perdure.Window, cursor: object = None) -> perdure.Page:
            return one_page(asked_once, window.start, window.end, cursor)

        for hours, words, length in QUESTIONS:
            now = clock.move(hours=hours)
            before = asked_anew.calls, asked_once.calls
            anew = every_page(asked_anew, now - length, now)
            answer = series.fetch(now - length, now, fetcher)
            if answer.coverage != "full" or [entry.body for entry in answer.entries] != anew:
                raise SystemExit(f"{words} at {now:%H:%M}: perdure and the API say different things")
            calls = f"{asked_anew.calls - before[0]:24}{asked_once.calls - before[1]:20}"
            print(f"{now:%H:%M}  {words:20}{len(anew):6}{calls}")
        print(f"{'in all':33}{asked_anew.calls:24}{asked_once.calls:20}")


if __name__ == "__main__":
    main()
