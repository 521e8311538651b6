"""The demo data set: some months of one invented person's life with three agents, so that each page has something to show.

`fill` lives through them on a clock of its own, by public calls only: what is learned, folded and summarised was done by the
rules, at the time it is dated. Given the same now, it is always the same life.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from datetime import datetime, timedelta
from importlib import resources
from typing import Any

from perdure.app import Engine
from perdure.domain.messages import NewMessage, ToolCall
from perdure.domain.scope import ToolCallId
from perdure.domain.times import to_us
from perdure.interfaces import demo_known, demo_series
from perdure.interfaces.demo_past import PLACES, USER, Event, Past

__all__ = ["PLACES", "USER", "fill"]
PROFILES = {"coach": "companion", "clerk": "channel_bot", "planner": "complete"}
IDLE = timedelta(minutes=31)
"""Longer than a session lasts in silence, with the default settings."""
CHUNKS = {"clerk": 4, "planner": 8}
"""After so many turns the agent is asked for its context, which folds what was said."""


def fill(engine: Engine) -> None:
    """Put the demo data into the store of an open engine, as the user `demo`; nothing happens if that user is there."""
    if engine.memory(USER).conversation.list_sessions(limit=1):
        return
    past = Past(engine)
    events = [*_talk(past), *demo_known.events(past), *demo_series.events(past)]
    for at, do in sorted(events, key=lambda event: event[0]):
        past.clock.set(at)
        do()
    past.clock.set(past.now)
    past.work()
    demo_known.finish(past)


def _talk(past: Past) -> Iterator[Event]:
    """The sessions: each is said, then the jobs run, once after the last word and once after the silence."""
    text = resources.files("perdure.interfaces").joinpath("demo_talk.toml").read_text(encoding="utf-8")
    start = past.ago(113)
    for place, profile in PROFILES.items():
        yield start, lambda place=place, profile=profile: past.memory(place).conversation.configure(profile=profile)  # type: ignore[misc]
    for session in tomllib.loads(text)["session"]:
        if "at" in session:
            at = past.ago(session["days"], session["at"])
        else:
            at = past.now - timedelta(hours=session.get("hours", 0), minutes=session.get("minutes", 0))
        yield at, lambda session=session, at=at: _say(past, session, at)  # type: ignore[misc]


def _say(past: Past, session: dict[str, Any], at: datetime) -> None:
    memory = past.memory(session["place"])
    turns = list(_turns(session, at))
    size = CHUNKS.get(session["place"], len(turns))
    for start in range(0, len(turns), size):
        said = [message for turn in turns[start : start + size] for message in turn]
        memory.append_many(said)
        past.clock.set(said[-1].at or at)
        past.work(troubled=session.get("troubled", False))
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
