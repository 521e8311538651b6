"""The day that `perdure demo` shows, and what it has to come to.

Counts follow from the requirements and the script, and where they are sums, the sum is shown; words are as the engine puts them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from perdure.interfaces.demo.day import StepOutcome, walk
from perdure.interfaces.demo.day_world import World

PARTS = ["soul", "mood", "memory", "skill", "time"]
PDF = "Next time, send the invoice as a PDF."
EARLIER = "State only goes back to 2026-06-14T09:00:00+00:00, need API for older data"

PREDICTED: dict[str, dict[str, object]] = {
    # Seed 1, before anything else is known: the two goals with the kudos (S1-31, S1-33, T-17), and one that needs nothing.
    "What lasts of a tool's result is saved": {
        "given": 0,
        "action": "saved",
        "key": "kudos_givers",
        "why": "the goal asks to keep it",
    },
    "A later goal is given it, and nothing else": {
        "answer": "athlete_123, athlete_456",
        "injected": ["kudos_givers"],
        "exactly_that": True,
        "tool_calls": 0,
        "model_calls": 0,
    },
    "A goal that needs nothing gets nothing": {"nothing": True, "goal_unchanged": True, "looked_at": 0},
    # Seed 4: T-50, T-52.
    "An agent is a folder of texts, and its prompt knows the hour": {
        "parts": PARTS,
        "lessons": 1,
        "period": "night",
        "files": ["agent-coach/mood.md", "agent-coach/skill.md", "agent-coach/soul.md", "memory.md"],
    },
    "An edit by hand in memory.md is in the next prompt": {"parts": PARTS, "lessons": 2, "period": "morning"},
    # The log: one message, two refused repeats of it, a call with its result and an answer.
    "A message is logged durably": {"id": "m1", "session": 1, "seq": 1, "tokens": 12},
    "The same id again stores nothing": {"repeated": True, "messages": 1},
    "The same id with another body is refused": {"code": "conflict", "messages": 1},
    "A tool result is paired with its call": {"answers": "c1", "seq": 3},
    "Jobs were queued in the same transactions, now they run": {"waiting": 1, "failed": 0, "left_for_later": 1},
    "They derived counts from the log": {
        "messages": 4,
        "by_role": {"user": 1, "assistant": 2, "tool": 1},
        "by_tool": {"get_weather": 1},
    },
    "Every derived change is in the journal": {"by": ["rules/1", "tally/1"], "why": "extracted from messages"},
    # Seed 3: T-35, T-36, T-37. Four turns; the first had four messages, the others two each.
    "Every fourth turn a digest says where we are": {
        "turns": 4,
        "messages": 10,
        "rolling": 1,
        "within_600": True,
        "wishes": ["From now on, be brief."],
    },
    "What was said is learned, with its sources": {
        "profile": ["Lives in Lisbon", "My knee hurts when I run downhill."],
        "people": ["Maria is my sister", "Maria lives in Faro"],
        "because": "Actually, I moved to Lisbon.",
        "entities": ["person:maria", "place:faro", "place:lisbon", "place:porto"],
    },
    "What is no longer true is closed, not lost": {
        "history": ["Lives in Porto", "Lives in Lisbon"],
        "superseded": ["Lives in Porto"],
        "todos": ["Call Maria by Friday"],
    },
    "Silence of more than 30 minutes ends a session, and its digest goes on": {
        "ended_at": "07:07",
        "commitments": ["user: I'll call Maria by Friday."],
        "people": ["Maria"],
        "session": 2,
        "seq": 1,
        "context": ["instructions", "lessons", "session_digest", "left_off"],
    },
    # T-40, T-46, T-42. Six observations over five kinds of fact are five memories.
    "What matters of a person is on a card": {
        "card": "[person:john]: Works at Google; Lives in London",
        "told_once": True,
        "foundation": 1,
    },
    "The curator folds scattered memories, and can be undone": {
        "memories": 5,
        "folded": 1,
        "statements": 6,
        "importance": 2,
        "undone": 5,
    },
    "Facts are for all agents, promises for the one they were made to": {
        "coach_knows_home": True,
        "friend_knows_home": True,
        "todos": [2, 0],
        "private_seen_by": ["coach"],
    },
    # T-23.
    "Clocks and secrets are never kept, the rest is for you to say": {
        "getCurrentDate": "none",
        "a_secret": "refused",
        "getUserProfile": "suggested",
        "accepted": "saved as revision 2",
        "before_it": {"name": "Ana"},
        "keys": ["favorite_routes", "kudos_givers", "user_profile"],
    },
    # Seed 0: T-3 word for word, then T-6 and T-7: two days at 11:00 miss 23 hours, and those are asked for once.
    "Kudos of the last 24 hours are fetched once": {"added": 3, "duplicates": 0, "total": 3},
    "The same question an hour later adds only what is new": {
        "added": 1,
        "duplicates": 3,
        "total": 4,
        "newest_first": ["Diana", "Alice", "Bob", "Charlie"],
        "books": {"api_calls": 2, "fetched": 7, "duplicates": 3},
    },
    "For the last 2 days the ledger names the gap": {"coverage": "partial", "entries": 4, "gaps": ["23 h"], "reason": EARLIER},
    "and only that gap is fetched, once": {
        "coverage": "full",
        "entries": 6,
        "asked_for": ["23 h"],
        "second_ask": 0,
        "api_calls": 3,
    },
    # T-5, T-21.
    "A goal about a covered time needs no call at all": {
        "answer": "Diana, Alice, Bob, Charlie, Erik, Fay",
        "coverage": "full",
        "entries": 6,
        "chosen": ["kudos_timeseries", "kudos_givers"],
        "calls_saved": 1,
        "told_to_fetch_nothing": True,
    },
    "The prompt knows that it is noon": {
        "period": "afternoon",
        "told": "afternoon. The day is in full swing: be practical and keep things moving.",
    },
    "A list with ids and times is offered as a series": {
        "offered": "suggested",
        "accepted": "merged",
        "again": "merged",
        "entries": 3,
        "duplicates": 3,
        "series": ["comments", "kudos_timeseries"],
    },
    "State keeps every revision": {"units": "metric", "before": "imperial", "tools": 8 + 8},  # state and series; what is known
    # Seed 2: T-25, T-27.
    "A context document of 51 entries is compacted to 30": {
        "compacted": True,
        "again": False,
        "kept": 30,
        "first_kept": "Message 22",
        "summary_lines": 21,
        "facts": ["Has a cat", "Prefers tea", "Uses Rust"],
        "tasks": ["t1", "t2"],
        "revision": 1,
    },
    "The same document as a view over the store": {
        "copied": ["ana:clerk:100"],
        "again": [],
        "kept": 30,
        "whole_history": 51,
        "messages_in_log": 51,
    },
    # T-32, T-33: 80 messages are over the bound of 50, so 30 stay.
    "A long conversation is folded: what the agent sees stays small": {"messages": 80, "shown": 30, "working": 30},
    "Rules and ids are kept word for word, and nothing is lost": {"kept": True, "folds": 1, "expandable": 50},
    # T-47, T-48, T-50, T-52 and B-54 of seed 4.
    "Eight messages become one, and a lesson for the channel's agent": {
        "messages": 8,
        "before_the_eighth": 7,
        "given": ["system"],
        "folds": 1,
        "lessons": [f"agent: {PDF}"],
        "memory_md": [f"- {PDF}"],
    },
    "What a model wants remembered never reaches the user": {
        "user_sees": "Your run is planned.",
        "kept": 2,
        "refused": ["is an order to a model"],
        "clerk_told": True,
        "coach_told": False,
        "global_lessons": 2,
    },
    "Every half hour the lively are shortened and the silent cleared": {
        "lively": "goes on, working set 0",
        "lively_sees": ["summary"],
        "silent": "ended, working set 0",
        "in_the_log": [4, 4],
        "folds": 2,
    },
    "The prompt knows that it is evening": {
        "period": "evening",
        "told": "evening. The day winds down: be relaxed, round things off, and begin nothing large unasked.",
    },
    "From small talk nothing is learned": {"messages": 8, "memories_learned": 0, "lessons_drawn": 0, "period": "evening"},
    "After more than 20 turns a spine tells the whole": {
        "versions": 1,
        "sections": ["PROFILE", "PROJECTS", "PEOPLE", "OPEN_LOOPS"],
        "in_context": True,
    },
    "A question finds what was said, by words and by meaning": {
        "found": "My knee hurts when I run downhill. From now on, be brief.",
        "by": "user",
    },
    "A goal brings what is known of it into the context": {
        "blocks": ["foundation", "instructions", "lessons", "session_digest", "memories", "todos"],
        "within_budget": True,
        "home_found": True,
        "old_home_told": False,
    },
    "What was promised is done when it is said to be": {"open_before": 2, "open": 1, "completed": ["Call Maria"]},
    "The day in numbers": {
        "messages": 15 + 51 + 80 + 8 + 4 + 4 + 8,  # coach, document, builder, discord:42, :1, :2, small talk
        "sessions": 4 + 6,  # the coach's four, one at each other place
        "fold_digests": 6,  # everywhere but with the coach
        "rolling_digests": 3,  # coach, document, builder: the others keep none
        "session_digests": 5,  # three of the coach's, document, builder
        "spines": 1,
        "series_entries": 6 + 3,
        "api_calls": 3 + 2,
        "duplicates_avoided": 3 + 3,
        "state_keys": 4,
        "decisions_before": 4,
        "decisions_after": 1 + 4 + 3,
        "memories": 10,  # home, the knee, two of Maria, John, Rui's fold, the private one, the three facts of the document
        "superseded": 1,
        "todos_open": 1,
        "todos_done": 1,
        "lessons": 4,  # two global, two of the clerk
        "model_calls": 0,
    },
    # Three messages name Maria; the last thing said is also kept with the counters of the address.
    "Forgetting takes a name out of everything": {
        "redacted": {"messages": 3, "agent_states": 1},
        "message": "I live in Porto. ██ ██████ █████ █████ ██ ████.",
        "found_again": 0,
        "memories": 0,
        "decisions_gone": 4 + 8,
    },
    "The prompt knows that it is night": {
        "period": "night",
        "told": "night. Be quiet and brief; what can wait until morning can wait.",
    },
    "A restart changes nothing": {"same": True, "transcripts": 7},  # of the sessions with more than three messages
    "Another user sees nothing of it": {"messages": 0, "sessions": 0, "keys": 0, "series": 0, "memories": 0, "found": 0},
    "Every invariant is checked": {"sound": True, "findings": 0, "jobs_dead": 0},
    "A backup restores into a new store, here or on PostgreSQL": {"sound": True, "messages": 15},
    "The doctor proves a round trip": {"healthy": True, "degraded": [], "model": "none", "jobs_dead": 0},
}
EXPLAINED = "and every hit can be explained"


def live(backend: Any, folder: Path, **settings: Any) -> dict[str, StepOutcome]:
    """The day on a store, by the titles of its steps."""
    world = World(folder, replace(backend.settings, **settings))
    day: dict[str, StepOutcome] = {}
    ended = world.clock.now()
    try:
        for taken in walk(world):
            assert ended <= taken.at <= world.clock.now(), f"{taken.step.title}: the clock went back"
            ended = world.clock.now()
            day[taken.step.title] = taken
    finally:
        world.close()
    return day


def told(day: dict[str, StepOutcome]) -> dict[str, dict[str, object]]:
    """What each step showed, without what differs between backends."""
    return {title: {name: fact for name, fact in one.facts.items() if name != "backend"} for title, one in day.items()}
