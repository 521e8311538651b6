"""A year of talk, offline: 100 sessions and 10,000 messages leave a prompt that does not grow, and nothing out of reach."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import perdure
from perdure import Layers, Memory, NewMessage, ToolCall
from perdure.engine.context.assemble import fold_text
from perdure.engine.text.tokens import estimate_tokens
from perdure.testing import StoppedClock

SESSIONS = 100
MESSAGES = 100
BATCH = 20
START = datetime(2026, 1, 1, 8, 0, tzinfo=UTC)
FIRST = "The first thing I want you to know: my boat is called Skidbladnir."
PROMPT_TOKENS_MAX = 5_000
"""Fifty messages of about forty tokens, fifty standing wishes, a spine, a session's digest, a rolling digest and a fold: each has
its own bound."""

TOPICS = (
    "the invoice INV-{n}",
    "the flight to Bergen on 2026-0{d}-1{d}",
    "the file /srv/data/{n}.csv",
    "Erik Berg's offer of {n} EUR",
)
SAID = (
    "You must always check {topic} before noon.",
    "What is the state of {topic}?",
    "I decided to keep {topic}.",
    "Thanks, that is fine.",
    "Never send {topic} to anybody outside the team.",
    "We should go on with {topic} tomorrow.",
)
ANSWERED = ("I have noted {topic}.", "{topic} is done.", "I will look at {topic} and come back to you.", "You are welcome.")


def a_session(chance: random.Random, number: int) -> list[NewMessage]:
    """A hundred messages: most turns are a question and an answer, some ask a tool in between."""
    messages: list[NewMessage] = []
    while len(messages) < MESSAGES:
        topic = chance.choice(TOPICS).format(n=chance.randrange(10_000), d=chance.randrange(1, 9))
        messages.append(NewMessage("user", chance.choice(SAID).format(topic=topic)))
        if chance.random() < 0.2 and len(messages) < MESSAGES - 3:
            name = f"c{number}.{len(messages)}"
            messages.append(NewMessage("assistant", "", tool_calls=[ToolCall(name, "look", {"topic": topic})]))  # type: ignore[arg-type]
            messages.append(NewMessage("tool", f"found {topic}: {chance.randrange(100)} entries", tool_call_id=name))
        if len(messages) < MESSAGES:
            messages.append(NewMessage("assistant", chance.choice(ANSWERED).format(topic=topic)))
    return messages


def live_a_year(engine: perdure.Engine, ana: Memory, clock: StoppedClock, chance: random.Random) -> list[int]:
    """What the prompt costs at the end of each session."""
    costs = []
    for number in range(SESSIONS):
        clock.set(START + timedelta(days=365 * number / SESSIONS))
        messages = a_session(chance, number)
        if number == 0:
            messages[0] = NewMessage("user", FIRST)
        for begin in range(0, MESSAGES, BATCH):
            ana.append_many(messages[begin : begin + BATCH])
            engine.process(60)
            clock.move(minutes=4)
        context = ana.context()
        costs.append(context.tokens)
        clock.move(minutes=31)
        engine.process(60)
    return costs


@pytest.mark.slow
def test_a_year_of_talk_leaves_a_bounded_prompt_and_everything_within_reach(sqlite: Any) -> None:
    clock = StoppedClock(START)
    engine = sqlite.open(clock=clock, profile="complete", durability="normal")
    ana = engine.memory("ana", agent="coach")
    costs = live_a_year(engine, ana, clock, random.Random(10_000))
    assert len(costs) == SESSIONS
    assert max(costs) <= PROMPT_TOKENS_MAX
    quarter = SESSIONS // 4
    assert max(costs[-quarter:]) <= 1.1 * max(costs[quarter : 2 * quarter]), "it does not grow any more"
    assert ana.context().tokens <= PROMPT_TOKENS_MAX

    sessions = ana.conversation.sessions(1_000)
    assert (len(sessions), sum(session.messages for session in sessions)) == (SESSIONS, SESSIONS * MESSAGES)
    assert all(session.ended_at is not None and session.working == 0 for session in sessions)
    [found] = ana.conversation.search("Skidbladnir")
    assert (found.content, found.session_number, found.seq) == (FIRST, 1, 1)
    check_digests(ana)
    assert ana.admin.jobs("dead") == []
    assert engine.verify().clean


def check_digests(ana: Memory) -> None:
    """Every message of the year is told by a fold, by the digest of its session and by the spine, once by each."""
    digests = ana.conversation.digests(limit=10_000)
    standing = {}
    for digest in digests:
        standing.setdefault((digest.kind, digest.session_number), digest)
        if digest.kind == "fold":
            assert estimate_tokens(fold_text(digest)) <= Layers().summary_tokens_max
        if digest.kind == "rolling":
            assert len(digest.text) <= Layers().rolling_chars_max
    told: Counter[str] = Counter()
    for (kind, number), digest in standing.items():
        found = list(ana.conversation.expand(digest, whole=True))
        assert {message.session_number for message in found} == {number}
        told[kind] += len({message.seq for message in found})
        assert len({message.seq for message in found}) == len(found)
    assert (told["fold"], told["session"]) == (SESSIONS * MESSAGES, SESSIONS * MESSAGES)
    spines = ana.conversation.digests("spine", limit=10_000)
    assert all(len(spine.text) <= Layers().spine_chars_max for spine in spines)
    assert [spine.version for spine in spines] == list(range(len(spines), 0, -1))
    reached = [(message.session_number, message.seq) for message in ana.conversation.expand(spines[0], whole=True)]
    assert len(reached) == len(set(reached)) >= SESSIONS * MESSAGES - 2 * Layers().spine_turns * 4
    assert (1, 1) in reached
