"""The demo data that somebody told directly: memories, lessons, todos, state and its revisions, and what the overseer did."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from importlib import resources
from typing import Any

from perdure.domain.models import Usage
from perdure.interfaces.demo_past import Event, Past

Told = dict[str, Any]
MEMORY_FIELDS = ("entities", "fact_type", "importance", "pinned", "visible_to")
AGENTS = {
    "coach": ("You are Coach, a patient running coach with a dry sense of humour.", "Cheerful.", "You read kudos and sleep."),
    "clerk": ("You are Clerk. You keep calendars, rooms and invoices in order.", "Brisk.", "You book rooms."),
    "planner": ("You are Planner. You turn wishes into lists with prices.", "Calm.", "You compare offers."),
}


def events(past: Past) -> Iterator[Event]:
    """What happens when, in any order."""
    told = tomllib.loads(resources.files("perdure.interfaces").joinpath("demo_known.toml").read_text(encoding="utf-8"))
    steps: dict[str, Callable[[Past, Told], object]] = {
        "memory": _remember, "refused": _remember, "lesson": _lesson, "todo": _todo, "ended": _ended, "task": _task,
        "before": _before, "usage": _usage,
    }  # fmt: skip
    for name, step in steps.items():
        for number, one in enumerate(told[name]):
            at = past.ago(one.get("days", 0), f"{9 + number % 9:02}:{17 + number % 31:02}")
            yield at, lambda step=step, one=one: step(past, one)  # type: ignore[misc]
    yield from _states(past)
    yield from _second_thoughts(past)
    yield from _tools(past)
    yield past.ago(113), lambda: _agents(past)


def finish(past: Past) -> None:
    """What only shows when all the rest is there: a fold that was taken back."""
    planner = past.memory("planner").conversation
    planner.undo("race-trip")


def _agents(past: Past) -> None:
    for name, (soul, mood, skill) in AGENTS.items():
        past.engine.agents.save(name, soul=soul, mood=mood, skill=skill)


def _remember(past: Past, one: Told) -> None:
    fields = {name: one[name] for name in MEMORY_FIELDS if name in one}
    past.memory().remember(one["content"], one.get("type", "PROFILE"), **fields)


def _lesson(past: Past, one: Told) -> None:
    lessons = past.memory(one["place"]).lessons
    agent = one["place"] if one["scope"] == "agent" else None
    held = lessons.add(one["text"], None if agent else one["scope"], agent=agent)
    if one.get("pinned"):
        lessons.pin(held.id)
    if one.get("archived"):
        lessons.archive(held.id)


def _todo(past: Past, one: Told) -> None:
    todos = past.memory(one["place"]).todos
    # Due by the end of that day, so that what is due today still is whenever the demo is looked at.
    due = None if "due" not in one else past.now.replace(hour=23, minute=59, second=0, microsecond=0)
    if due is not None:
        due += timedelta(days=one["due"])
    held = todos.add(one["content"], one.get("kind", "commitment"), due_at=due, recurrence=one.get("recurrence"))
    if one.get("state") == "completed":
        todos.complete(held.id)
    if one.get("state") == "skipped":
        todos.skip(held.id)


def _ended(past: Past, one: Told) -> None:
    todos = past.memory(one["place"]).todos
    for held in todos.list():
        if held.content == one["content"]:
            (todos.skip if one.get("skipped") else todos.complete)(held.id)


def _task(past: Past, one: Told) -> None:
    tasks = past.memory(one["place"]).tasks
    tasks.update(tasks.start(one["description"]).id, state=one.get("state"), progress=one.get("progress"))


def _before(past: Past, one: Told) -> None:
    past.memory(one["place"]).before(one["goal"])


def _usage(past: Past, one: Told) -> None:
    used = Usage(last_at=past.clock.now(), **{name: value for name, value in one.items() if name != "days"})
    past.engine._store.write(past.memory().scope.owner, lambda tx: tx.oversight.add_usage(used))


def _second_thoughts(past: Past) -> Iterator[Event]:
    """What was pinned, put away, merged, and taken back."""
    yield past.ago(40, "17:00"), lambda: _wrong_home(past)
    yield past.ago(39, "17:00"), lambda: past.memory().entities.alias("person:Senhora Alves", "Dona Alves")
    yield past.ago(35, "17:00"), lambda: _put_away(past)
    yield past.ago(29, "17:00"), lambda: _merged_and_back(past)


def _wrong_home(past: Past) -> None:
    ana = past.memory()
    ana.remember("Lives in Madrid", attribute="lives_in", value="Madrid", entities=["place:Madrid"])
    past.clock.set(past.clock.now() + timedelta(minutes=4))
    ana.undo(ana.journal(1)[0].seq)


def _put_away(past: Past) -> None:
    memories = past.memory().memories
    for held in memories.list("PROJECT", entity="project:Kitchen", limit=10):
        if not held.memory.pinned:
            memories.archive(held.memory.record_key)


def _merged_and_back(past: Past) -> None:
    ana = past.memory()
    number = ana.entities.merge("person:Robert", "person:Bob")
    past.clock.set(past.clock.now() + timedelta(hours=1))
    ana.undo(number)


# -- key-value state


def _states(past: Past) -> Iterator[Event]:
    for days, key, value in _revisions():
        yield past.ago(days, "13:10"), lambda key=key, value=value: past.memory().state.save(key, value)  # type: ignore[misc]
    yield past.ago(50, "13:30"), lambda: past.memory().state.delete("office/door_code_hint")


def _revisions() -> Iterator[tuple[float, str, Any]]:
    plan: Told = {
        "race": "Harbour Half",
        "goal": "1:59",
        "weeks": 16,
        "runs_per_week": 3,
        "long_run_km": 12,
        "rest": ["Monday"],
    }
    yield 110, "training/plan", plan
    plan = {**plan, "long_run_km": 14, "strength": ["hips", "calves"]}
    yield 90, "training/plan", plan
    plan = {**plan, "runs_per_week": 4, "long_run_km": 16, "rest": ["Monday", "Friday"]}
    yield 61, "training/plan", plan
    plan = {**plan, "long_run_km": 19, "hills": True, "goal": "1:58:30"}
    yield 34, "training/plan", plan
    yield 9, "training/plan", {**plan, "goal": "1:59", "taper": {"days": 10, "long_run_km": 8}, "hills": False}
    yield 108, "units", "imperial"
    yield 107, "units", "metric"
    yield 105, "training/shoes", [{"model": "Otter 3", "km": 412}]
    yield 51, "training/shoes", [{"model": "Otter 3", "km": 655, "retired": True}, {"model": "Heron 2", "km": 0}]
    yield 5, "training/shoes", [{"model": "Otter 3", "km": 655, "retired": True}, {"model": "Heron 2", "km": 143}]
    yield 104, "office/door_code_hint", "The year the bridge was built"
    yield 100, "office/rooms", {"blue": 6, "green": 4, "attic": 12}
    yield 44, "office/rooms", {"blue": 6, "pilot": 10, "attic": 12}
    yield 92, "kitchen/offers", {"electrics": {"Lume": 940, "Faísca & Daughters": 870}, "floor": {"Corkwell": 1150}}
    yield (
        91,
        "kitchen/offers",
        {
            "electrics": {"Lume": 940, "Faísca & Daughters": 870},
            "floor": {"Corkwell": 1150, "Under Foot": 990},
            "chosen": ["Faísca & Daughters", "Under Foot"],
        },
    )
    yield 46, "profile/address", {"city": "Lisbon", "floor": 3, "lift": False, "near": "Campo park"}
    yield 20, "lighthouse/colours", {"night": {"ground": "#0b1220", "text": "#dbe7ff"}, "day": {"ground": "#ffffff"}}
    yield (
        13,
        "lighthouse/colours",
        {
            "night": {"ground": "#0b1220", "text": "#dbe7ff", "warning": "#ffb454"},
            "day": {"ground": "#ffffff", "text": "#101828"},
        },
    )
    yield 8, "race/weekend", {"nights": 2, "dogs": True, "beds": 3, "start_number": 1184}


# -- what the overseer made of tools' results


def _tools(past: Past) -> Iterator[Event]:
    yield past.ago(37, "10:02"), lambda: _profile(past)
    yield past.ago(21, "10:02"), lambda: _comments(past)
    yield past.ago(11, "10:02"), lambda: past.memory().after("getCurrentDate", "2026-06-15", "what day is it?", mode="auto")
    yield past.ago(3, "10:02"), lambda: _secret(past)


def _profile(past: Past) -> None:
    ana = past.memory()
    found = {"name": "Ana", "shoe": 39, "club": "Harbour Runners"}
    ana.accept(ana.after("getUserProfile", found, "greet me by name", mode="suggest"), found)


def _comments(past: Past) -> None:
    at: datetime = past.clock.now()
    rows = [
        {"comment_id": number, "created_at": (at - timedelta(hours=5 * number)).isoformat(), "text": text}
        for number, text in enumerate(("Those hills!", "Wait for me next time", "Pixel looks fast", "18? Respect."))
    ]
    past.memory().after("getComments", rows, "what do people say about my run?", mode="suggest")


def _secret(past: Past) -> None:
    past.memory("clerk").after("getAccount", {"api_key": "sk-0123456789abcdef"}, "remember the account", mode="auto")
