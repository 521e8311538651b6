"""What a model is shown to choose what bears on a goal: a few examples, then what is saved, by name, and the goal last.

Examples as turns of their own: a small model that reads them inside one prompt chooses everything. What is saved stands before
the goal and is ordered by name, so that it stays the beginning of the prompt from goal to goal, which a server may keep.
"""

from __future__ import annotations

from collections.abc import Sequence

from perdure.domain.models import ChatMessage
from perdure.domain.text import Json
from perdure.engine.bearing import Candidate
from perdure.engine.prompts import as_data

BEGINS_CHARS, ABOUT_CHARS, GOAL_CHARS = 80, 200, 4_000
SCHEMA_KEYS_MAX = 30
SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "relevant_keys": {"type": "array", "items": {"type": "string"}, "maxItems": SCHEMA_KEYS_MAX},
        "time_range": {"type": "string"},
    },
    "required": ["relevant_keys", "time_range"],
    "additionalProperties": False,
}
_SHOWN = (
    Candidate("state", "book_wishes", "", '["Dune"]'),
    Candidate("series", "doctor_visits", "Appointments with doctors"),
    Candidate("state", "shopping_list", "", '["milk"]'),
)
_EXAMPLES: tuple[tuple[str, list[str], str], ...] = (
    ("Add bread to what I have to buy", ["shopping_list"], ""),
    ("How tall is Mount Everest?", [], ""),
    ("Which book should I read before my check-up next week?", ["book_wishes", "doctor_visits"], "next week"),
    ("Write a poem about rain", [], ""),
)


def relevance_messages(system: str, candidates: Sequence[Candidate], goal: str, *, left_out: int) -> tuple[ChatMessage, ...]:
    """The conversation that ends with the question."""
    turns = [ChatMessage("system", system)]
    for wanted, keys, words in _EXAMPLES:
        turns.append(ChatMessage("user", _asked(_SHOWN, wanted, 0)))
        turns.append(ChatMessage("assistant", as_data({"relevant_keys": keys, "time_range": words})))
    by_name = sorted(candidates, key=lambda one: one.id)
    return (*turns, ChatMessage("user", _asked(by_name, goal[:GOAL_CHARS], left_out)))


def _asked(candidates: Sequence[Candidate], goal: str, left_out: int) -> str:
    lines = [f"- {_name(one.id)}: {as_data(_told(one))}" for one in candidates]
    more = [f"({left_out} more are left out)"] if left_out else []
    return "\n".join(["Available memory:", *lines, *more, f"Goal: {as_data(goal)}"])


def _name(name: str) -> str:
    """As it is, or in quotes where it could pass for more than a name."""
    return name if name.isprintable() and name.isascii() and not set(name) & set("<>&`:\"'") else as_data(name)


def _told(one: Candidate) -> str:
    return one.preview[:BEGINS_CHARS] if one.kind == "state" else f"series. {one.description}"[:ABOUT_CHARS].strip()
