"""The day's steps about series and the overseer: what need not be fetched again, what a goal is given, what is kept of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import perdure
from perdure.domain.times.spans import Span
from perdure.handles.series import SeriesHandle
from perdure.interfaces.demo.day_world import Facts, World

GIVERS = ["athlete_123", "athlete_456"]
SAVE_GOAL = "Get last week activities and save kudos givers to memory"
LIST_GOAL = "Who from my kudos list was active recently?"
HOUR = timedelta(hours=1)


def _kudos(world: World) -> SeriesHandle:
    """What Ana is given for her runs, each told apart by activity and athlete."""
    template, about = "kudos_{activity_id}_{athlete_id}", "Kudos received on my activities"
    return world.ana().series("kudos_timeseries", id_template=template, description=about)


def _api(world: World) -> Callable[[perdure.Window], list[dict[str, object]]]:
    """Plays the API: it knows six kudos, tells those of the window that exist by now, and notes what it was asked for."""
    given: Mapping[str, tuple[int, datetime]] = {
        "Diana": (125, world.at(10, 30)),
        "Alice": (123, world.at(9, 30)),
        "Bob": (124, world.at(8)),
        "Charlie": (122, world.at(11, days_ago=1)),
        "Erik": (121, world.at(7, days_ago=1)),
        "Fay": (120, world.at(20, days_ago=2)),
    }

    def api(window: perdure.Window) -> list[dict[str, object]]:
        world.asked.append(window)
        return [
            {"activity_id": activity, "athlete_id": name.lower(), "athlete_name": name, "timestamp": at.isoformat()}
            for name, (activity, at) in given.items()
            if window.start <= at < window.end and at <= world.clock.now()
        ]

    return api


def fetched_once(world: World) -> Facts:
    """10:00, the seed's first run: Alice, Bob and Charlie."""
    return _merged(world)


def an_hour_later(world: World) -> Facts:
    """11:00, the same instruction: Charlie, exactly 24 hours ago, is still in the window."""
    facts = _merged(world)
    kudos = _kudos(world)
    held = kudos.query(world.clock.now() - 24 * HOUR, world.clock.now())
    books = kudos.about()
    return {
        **facts,
        "newest_first": [entry.body["athlete_name"] for entry in held.entries],
        "books": {"api_calls": books.api_calls, "fetched": books.fetched, "duplicates": books.duplicates},
    }


def _merged(world: World) -> Facts:
    """What an agent does that was told to get the kudos of the last 24 hours: ask for all of them, and merge."""
    now = world.clock.now()
    window = perdure.Window(now - 24 * HOUR, now)
    done = _kudos(world).merge(_api(world)(window), window=(window.start, window.end))
    return {"added": done.added, "duplicates": done.duplicates, "total": done.total_count}


def gap_named(world: World) -> Facts:
    known = _kudos(world).query(*_two_days(world))
    gaps = [_hours(gap) for gap in known.gaps]
    return {"coverage": known.coverage, "entries": known.count, "gaps": gaps, "reason": known.reason}


def gap_fetched(world: World) -> Facts:
    api, kudos = _api(world), _kudos(world)
    before = len(world.asked)
    filled = kudos.fetch(*_two_days(world), api)
    asked = [_hours(window) for window in world.asked[before:]]
    again = kudos.fetch(*_two_days(world), api)
    return {
        "coverage": filled.coverage,
        "entries": filled.count,
        "asked_for": asked,
        "second_ask": again.fetches,
        "api_calls": len(world.asked),
    }


def _hours(stretch: perdure.Window | Span) -> str:
    return f"{(stretch.end - stretch.start) / HOUR:g} h"


def _two_days(world: World) -> tuple[datetime, datetime]:
    eleven = world.at(11)
    return eleven - 48 * HOUR, eleven


def answered_from_state(world: World) -> Facts:
    """Half past eleven: what is missing is less than an hour old, so the agent is told to fetch nothing."""
    api = _api(world)
    before = len(world.asked)

    def agent(text: str, tools: Mapping[str, Callable[..., Any]]) -> str:
        known = json.loads(text.split("[Relevant Memory]\n")[1])["kudos_timeseries"]
        if known["coverage"] != "full":
            tools["getActivityKudos"](perdure.Window(*_two_days(world)))
        return ", ".join(entry["athlete_name"] for entry in known["entries"])

    done = world.ana().run("Who gave me kudos in the last 2 days?", agent, {"getActivityKudos": api})
    known = done.injection.values["kudos_timeseries"]
    return {
        "answer": done.answer,
        "coverage": known["coverage"],
        "entries": known["count"],
        "chosen": [choice.id for choice in done.injection.choices if choice.included and choice.kind in ("state", "series")],
        "calls_saved": 1 - (len(world.asked) - before),
        "told_to_fetch_nothing": "nothing of it needs fetching" in known["note"],
    }


# -- before a goal, after a tool


def _kudos_agent(text: str, tools: Mapping[str, Callable[..., Any]]) -> str:
    """The seed's agent: it answers from what it is given, and fetches what it is not."""
    given = json.loads(text.partition("[Relevant Memory]\n")[2] or "{}")
    return ", ".join(given.get("kudos_givers") or tools["getActivityKudos"]())


def goal_saves(world: World) -> Facts:
    ana = world.ana()
    ana.state.save("favorite_routes", ["river loop", "castle hill"])
    done = ana.run(SAVE_GOAL, _kudos_agent, {"getActivityKudos": lambda: list(GIVERS)}, mode="auto")
    [kept] = done.kept
    return {"given": len(done.injection.blocks), "action": kept.action, "key": kept.key, "why": kept.reason}


def goal_uses(world: World) -> Facts:
    calls: list[str] = []

    def get_kudos() -> list[str]:
        calls.append("called")
        return GIVERS

    done = world.ana().run(LIST_GOAL, _kudos_agent, {"getActivityKudos": get_kudos})
    saved = json.dumps({"kudos_givers": GIVERS}, indent=2)
    return {
        "answer": done.answer,
        "injected": list(done.injection.values),
        "exactly_that": done.injection.text == f"{LIST_GOAL}\n\n[Relevant Memory]\n{saved}",
        "tool_calls": len(calls),
        "model_calls": done.injection.model_calls,
    }


def needs_nothing(world: World) -> Facts:
    goal = "What is 17% of 340?"
    given = world.ana().before(goal, target="goal")
    return {"nothing": given.nothing, "goal_unchanged": given.text == goal, "looked_at": len(given.choices)}


def kept_or_not(world: World) -> Facts:
    """Clocks are never kept, secrets are refused, what lasts is suggested, and what is accepted keeps its earlier value."""
    ana = world.ana()
    profile = {"name": "Ana", "shoe": 39}
    ana.state.save("user_profile", {"name": "Ana"})
    suggested = ana.after("getUserProfile", profile, "greet me by name", mode="suggest")
    accepted = ana.tools.accept(suggested, profile)
    return {
        "getCurrentDate": ana.after("getCurrentDate", "2026-06-15", "what day is it?", mode="auto").action,
        "a_secret": ana.after("getAccount", {"api_key": "sk-0123456789abcdef"}, "remember it", mode="auto").action,
        "getUserProfile": suggested.action,
        "accepted": f"{accepted.action} as revision {accepted.revision}",
        "before_it": ana.state.load("user_profile", revision=1),
        "keys": ana.state.keys(),
    }


def offered_as_series(world: World) -> Facts:
    ana = world.ana()
    rows = [{"comment_id": n, "created_at": world.at(9 + n).isoformat(), "text": f"Well done {n}"} for n in range(3)]
    offered = ana.after("getComments", rows, "what do people say?", mode="suggest")
    merged = ana.tools.accept(offered, rows)
    again = ana.after("getComments", rows, "save the comments", mode="auto")
    held = ana.series("comments").about()
    return {
        "offered": offered.action,
        "accepted": merged.action,
        "again": again.action,
        "entries": held.count,
        "duplicates": held.duplicates,
        "series": [series.name for series in ana.series.list()],
    }


def revisions(world: World) -> Facts:
    ana = world.ana()
    ana.state.save("units", "imperial")
    ana.state.save("units", "metric")
    past = ana.state.load("units", revision=1)
    return {"units": ana.state.load("units"), "before": past, "tools": len(ana.tools.names())}
