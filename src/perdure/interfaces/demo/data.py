"""The demo data set: some months of one invented person's life with three agents, so that each page has something to show.

`fill` lives through them on a clock of its own, by public calls only: what is learned, folded and summarised was done by the
rules, at the time it is dated. Given the same now, it is always the same life.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from importlib import resources
from tempfile import TemporaryFile
from typing import Any

from perdure.app import Engine, parts_of
from perdure.app import open as open_engine
from perdure.domain.conversation.messages import NewMessage, ToolCall
from perdure.domain.errors import NotFound
from perdure.domain.scope import ToolCallId
from perdure.domain.times.instants import to_us
from perdure.interfaces.demo import series
from perdure.interfaces.demo.past import PLACES, USER, DemoPast, Event
from perdure.settings import Settings

Told = dict[str, Any]
SESSION = "race-trip"
"""A conversation with the planner, which tells the demo data from others'."""
MEMORY_FIELDS = ("entities", "fact_type", "importance", "pinned", "visible_to")


def _knowledge(past: DemoPast) -> Iterator[Event]:
    """What happens when, in any order."""
    told = tomllib.loads(resources.files("perdure.interfaces.demo").joinpath("knowledge.toml").read_text(encoding="utf-8"))
    steps: dict[str, Callable[[DemoPast, Told], object]] = {
        "memory": _remember,
        "refused": _remember,
        "lesson": _lesson,
        "todo": _todo,
        "ended": _ended,
        "task": _task,
        "before": _before,
        "usage": _usage,
    }
    for name, step in steps.items():
        for number, one in enumerate(told[name]):
            at = past.ago(one.get("days", 0), f"{9 + number % 9:02}:{17 + number % 31:02}")
            yield at, lambda step=step, one=one: step(past, one)  # type: ignore[misc]
    yield from _states(past, told)
    yield from _second_thoughts(past)
    yield from _tools(past)
    yield past.ago(113), lambda: _agents(past, told)


def _finish(past: DemoPast) -> None:
    """What only shows when all the rest is there: a fold that was taken back."""
    planner = past.memory("planner").conversation
    planner.undo(SESSION)


def _agents(past: DemoPast, told: Told) -> None:
    for one in told["agent"]:
        past.engine.agents.save(one["name"], soul=one["soul"], mood=one["mood"], skill=one["skill"])


def _remember(past: DemoPast, one: Told) -> None:
    fields = {name: one[name] for name in MEMORY_FIELDS if name in one}
    past.memory().remember(one["content"], one.get("type", "PROFILE"), **fields)


def _lesson(past: DemoPast, one: Told) -> None:
    lessons = past.memory(one["place"]).lessons
    agent = one["place"] if one["scope"] == "agent" else None
    held = lessons.add(one["text"], None if agent else one["scope"], agent=agent)
    if one.get("pinned"):
        lessons.pin(held.id)
    if one.get("archived"):
        lessons.archive(held.id)


def _todo(past: DemoPast, one: Told) -> None:
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


def _ended(past: DemoPast, one: Told) -> None:
    todos = past.memory(one["place"]).todos
    for held in todos.list():
        if held.content == one["content"]:
            (todos.skip if one.get("skipped") else todos.complete)(held.id)


def _task(past: DemoPast, one: Told) -> None:
    tasks = past.memory(one["place"]).todos.tasks
    tasks.update(tasks.start(one["description"]).id, state=one.get("state"), progress=one.get("progress"))


def _before(past: DemoPast, one: Told) -> None:
    past.memory(one["place"]).before(one["goal"])


def _usage(past: DemoPast, one: Told) -> None:
    past.ask_model(**{name: value for name, value in one.items() if name != "days"})


def _second_thoughts(past: DemoPast) -> Iterator[Event]:
    """What was pinned, archived, merged, and taken back."""
    yield past.ago(40, "17:00"), lambda: _wrong_home(past)
    yield past.ago(39, "17:00"), lambda: past.memory().entities.alias("person:Senhora Alves", "Dona Alves")
    yield past.ago(35, "17:00"), lambda: _put_away(past)
    yield past.ago(29, "17:00"), lambda: _merged_and_back(past)


def _wrong_home(past: DemoPast) -> None:
    ana = past.memory()
    ana.remember("Lives in Madrid", attribute="lives_in", value="Madrid", entities=["place:Madrid"])
    past.clock.set(past.clock.now() + timedelta(minutes=4))
    ana.undo(ana.journal.list(1)[0].seq)


def _put_away(past: DemoPast) -> None:
    memories = past.memory().memories
    for held in memories.list("PROJECT", entity="project:Kitchen", limit=10):
        if not held.memory.pinned:
            memories.archive(held.memory.record_key)


def _merged_and_back(past: DemoPast) -> None:
    ana = past.memory()
    number = ana.entities.merge("person:Robert", "person:Bob")
    past.clock.set(past.clock.now() + timedelta(hours=1))
    ana.undo(number)


# -- key-value state


def _states(past: DemoPast, told: Told) -> Iterator[Event]:
    """A revision of a plain table may name only what changed: the rest is as in the revision before it."""
    values: Told = {}
    for one in told["state"]:
        key, value = one["key"], one["value"]
        values[key] = {**values.get(key, {}), **value} if one.get("changes") else value
        yield past.ago(one["days"], "13:10"), partial(past.memory().state.save, key, values[key])
    yield past.ago(50, "13:30"), lambda: past.memory().state.delete("office/door_code_hint")


# -- what the overseer made of tools' results


def _tools(past: DemoPast) -> Iterator[Event]:
    yield past.ago(37, "10:02"), lambda: _profile(past)
    yield past.ago(21, "10:02"), lambda: _comments(past)
    yield past.ago(11, "10:02"), lambda: past.memory().after("getCurrentDate", "2026-06-15", "what day is it?", mode="auto")
    yield past.ago(3, "10:02"), lambda: _secret(past)


def _profile(past: DemoPast) -> None:
    ana = past.memory()
    found = {"name": "Ana", "shoe": 39, "club": "Harbour Runners"}
    ana.tools.accept(ana.after("getUserProfile", found, "greet me by name", mode="suggest"), found)


def _comments(past: DemoPast) -> None:
    at: datetime = past.clock.now()
    rows = [
        {"comment_id": number, "created_at": (at - timedelta(hours=5 * number)).isoformat(), "text": text}
        for number, text in enumerate(("Those hills!", "Wait for me next time", "Pixel looks fast", "18? Respect."))
    ]
    past.memory().after("getComments", rows, "what do people say about my run?", mode="suggest")


def _secret(past: DemoPast) -> None:
    past.memory("clerk").after("getAccount", {"api_key": "sk-0123456789abcdef"}, "remember the account", mode="auto")


__all__ = ["PLACES", "USER", "add", "fill", "is_there", "remove"]
PROFILES = {"coach": "companion", "clerk": "channel_bot", "planner": "complete"}
IDLE = timedelta(minutes=31)
"""Longer than a session lasts in silence, with the default settings."""
CHUNKS = {"clerk": 4, "planner": 8}
"""After so many turns the agent is asked for its context, which folds what was said."""


def fill(engine: Engine) -> None:
    """Put the demo data into the store of an open engine, as the user `demo`; nothing happens if that user is there."""
    if engine.memory(USER).conversation.list_sessions(limit=1):
        return
    past = DemoPast(engine)
    events = [*_talk(past), *_knowledge(past), *series.events(past)]
    for at, do in sorted(events, key=lambda event: event[0]):
        past.clock.set(at)
        do()
    past.clock.set(past.now)
    past.work()
    _finish(past)


def add(engine: Engine) -> bool:
    """Put the demo data, as the user `demo`, into a store that is in use; False if that user is there.

    It is lived through in a store of its own, where no worker meddles, and comes over as a whole or not at all.
    """
    if engine.memory(USER).conversation.list_sessions(limit=1):
        return False
    _, clock, settings = parts_of(engine)
    with open_engine(settings=Settings(url="memory:", zone=settings.zone), clock=clock) as apart, TemporaryFile() as file:
        fill(apart)
        apart.memory(USER).export(file)
        file.seek(0)
        engine.memory(USER).import_(file, "jsonl")
    return True


def is_there(engine: Engine) -> bool:
    """Whether what the user `demo` has is the demo data."""
    agent, channel = PLACES["planner"]
    try:
        engine.memory(USER, agent=agent, channel=channel).conversation.session(SESSION)
    except NotFound:
        return False
    return True


def remove(engine: Engine) -> None:
    """Forget the demo data; `NotFound` if what the user `demo` has is something else."""
    if not is_there(engine):
        raise NotFound(f"the user {USER!r} holds no demo data; nothing was removed")
    engine.memory(USER).forget(user=True)


def _talk(past: DemoPast) -> Iterator[Event]:
    """The sessions: each is said, then the jobs run, once after the last word and once after the silence."""
    text = resources.files("perdure.interfaces.demo").joinpath("talk.toml").read_text(encoding="utf-8")
    start = past.ago(113)
    for place, profile in PROFILES.items():
        yield start, lambda place=place, profile=profile: past.memory(place).conversation.configure(profile=profile)  # type: ignore[misc]
    for session in tomllib.loads(text)["session"]:
        if "at" in session:
            at = past.ago(session["days"], session["at"])
        else:
            at = past.now - timedelta(hours=session.get("hours", 0), minutes=session.get("minutes", 0))
        yield at, lambda session=session, at=at: _say(past, session, at)  # type: ignore[misc]


def _say(past: DemoPast, session: dict[str, Any], at: datetime) -> None:
    memory = past.memory(session["place"])
    turns = list(_turns(session, at))
    size = CHUNKS.get(session["place"], len(turns))
    for start in range(0, len(turns), size):
        said = [message for turn in turns[start : start + size] for message in turn]
        memory.append_many(said)
        past.clock.set(said[-1].at or at)
        past.work()
        if session["place"] in CHUNKS and len(said) >= 2 * size:
            memory.context()  # an agent that is asked has its working set folded first
    end = past.clock.now() + IDLE
    if end < past.now:
        past.clock.set(end)
        past.work()


def _turns(session: dict[str, Any], at: datetime) -> Iterator[list[NewMessage]]:
    name = session.get("id")
    for number, (said, answered, *tool) in enumerate(session["turns"]):
        spoken = at + timedelta(seconds=70 * number)
        later = spoken + timedelta(seconds=9 + len(answered) % 20)
        messages = [NewMessage("user", said, at=spoken, session=name)]
        if tool:
            call = ToolCall(ToolCallId(f"call-{to_us(spoken) // 1_000_000}"), tool[0], {"days": 1})
            asked, got = spoken + timedelta(seconds=2), spoken + timedelta(seconds=5)
            messages.append(NewMessage("assistant", "", at=asked, session=name, tool_calls=(call,)))
            messages.append(NewMessage("tool", tool[1], at=got, session=name, tool_call_id=call.id))
        yield [*messages, NewMessage("assistant", answered, at=later, session=name)]
