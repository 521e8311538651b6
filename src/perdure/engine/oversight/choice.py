"""Which of what was found is relevant to a goal, and the words that say why: by rules, or by what a model is shown and answers.

Pure: rankings and statements in, choices out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from perdure.domain.context.recall import Hit
from perdure.domain.conversation.messages import Message, Session
from perdure.domain.knowledge.memories import UNTRUSTED, Statement
from perdure.domain.models import ChatMessage
from perdure.domain.oversight import Choice
from perdure.domain.text.patterns import pattern
from perdure.domain.text.rules import Json
from perdure.domain.values import dataclass
from perdure.engine.models.prompts import as_data
from perdure.engine.oversight.needs import MAYBE_MIN, NEEDS_MIN, speaks_of_oneself
from perdure.engine.oversight.relevance import GOAL_CHARS_MAX, Naming, SavedItem, names_in
from perdure.engine.oversight.statements import asks_about_the_user, asks_for_ones_own, is_whole, limiting
from perdure.engine.search.lexicon import folded, words_with_terms
from perdure.engine.text.cues import is_small_talk

if TYPE_CHECKING:
    from perdure.engine.oversight.relevance import Floats


SHOWN_MAX = 4
SCORE_MIN = 0.4
"""What is shown is at least so likely to be needed."""
SERIES_IN_TIME_MIN = 0.3
"""A series is, for a goal that names a time, if it is this likely: what it covers need not be fetched."""
HIT_SHARE_MIN, HITS_MAX = 0.1, 12
"""Of what was found for a goal, what comes so near the best, and no more."""
LIMIT_WORTH = 0.3
"""What limits a goal counts for so much more than recall says."""
PROFILE_MAX = 16
"""A profile is short."""
PROFILE_KEY_MIN = 0.5
"""A goal that asks about the user is answered by what was told; a saved thing must be this sure to be what it asks for."""
OWN_COVER_MIN = 0.5
"""What was told answers a goal in which the user speaks of themselves if it has so many of its words; others, if it has all."""
_IDENTIFIER = pattern(r"\b[a-z0-9]+(?:[-_./][a-z0-9]+)+\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RankedItem:
    """A candidate with its score, and its place among all candidates."""

    candidate: SavedItem
    score: float
    place: int
    naming: Naming = Naming.NOT


def ranked(
    candidates: Sequence[SavedItem],
    scores: Floats,
    naming: Sequence[Naming],
    saved_at: Callable[[int], datetime],
    *,
    limit: int,
) -> list[RankedItem]:
    """The best, best first; of two that are as likely to the hundredth, the one saved last."""
    best = np.argsort(-scores, kind="stable")[:limit].tolist()
    order = sorted(best, key=lambda place: (round(float(scores[place]), 2), saved_at(place)), reverse=True)
    return [RankedItem(candidates[place], float(scores[place]), place, naming[place]) for place in order]


def chosen_by_rules(order: Sequence[RankedItem], *, opens: bool, timed: bool = False, about_user: bool = False) -> list[Choice]:
    """A choice for each of the ranked: the goal must need something, and name a thing or make it likely to be that.

    `timed`: it names a time; `about_user`: it asks about the user, of whom no saved thing tells unless it surely does.
    """
    choices = []
    for place, one in enumerate(order, 1):
        least = SERIES_IN_TIME_MIN if timed and one.candidate.kind == "series" else SCORE_MIN
        least = PROFILE_KEY_MIN if about_user else least
        included = opens and place <= SHOWN_MAX and (one.score >= least or one.naming >= Naming.NAME)
        fits = "relevant to the goal" if included else "hardly relevant to the goal"
        reason = f"{fits} (place {place}, {one.score:.2f})" if opens else "the goal seems to need nothing of the user's"
        choices.append(Choice(one.candidate.kind, one.candidate.id, included, reason, round(one.score, 4)))
    return choices


def chosen_by_model(order: Sequence[RankedItem], names: Iterable[str], model: str) -> list[Choice]:
    """The same by the answer of a model, as far as it names what there is."""
    wanted = set(names)
    return [
        Choice(
            one.candidate.kind,
            one.candidate.id,
            one.candidate.id in wanted,
            f"{'chosen' if one.candidate.id in wanted else 'not chosen'} by {model} (place {place + 1} of those offered)",
            round(one.score, 4),
        )
        for place, one in enumerate(order)
    ]


def is_open(goal: str, hits: Sequence[Hit], *, needed: float, entities: Collection[str], naming: Naming) -> bool:
    """Whether the goal needs something of the user's, asks about them, or names somebody or something that is told of.

    `needed`: how likely it is by its words; `entities`: those that it names; `naming`: how it names what is saved, at the most.
    """
    if is_whole(goal):
        return False
    if needed >= NEEDS_MIN or asks_about_the_user(goal) or asks_for_ones_own(goal) or naming is Naming.GOAL:
        return True
    if naming and (needed >= MAYBE_MIN or speaks_of_oneself(goal)):
        return True
    things, names = identifiers_in(goal), set(names_in(goal))
    if any(one.startswith("person:") and names & set(one[7:].split("_")) for one in entities):
        return True
    if in_its_words(goal, hits) or any(one in hit.text.lower() for hit in hits for one in things):
        return True
    return needed >= MAYBE_MIN and (bool(entities) or any(names & _words_of(hit) for hit in hits))


def was_said_last(goal: str, session: Session, latest: Sequence[Message]) -> bool:
    """Whether the user said the goal last in this session. Else the agent may know nothing of what was said there."""
    said = [message.content for message in latest if message.role == "user" and message.session_number == session.number]
    return bool(said) and said[-1].strip() == goal.strip()


def in_its_words(goal: str, hits: Iterable[Hit]) -> list[Hit]:
    """Of what the user told, what has so many words of the goal that it is surely relevant."""
    least = OWN_COVER_MIN if speaks_of_oneself(goal) else 1.0
    asked = [{word, *terms} for word, terms in words_with_terms(goal[:GOAL_CHARS_MAX])]
    return [hit for hit in hits if asked and _is_own(hit) and _covered(asked, hit.text) >= least]


def _covered(asked: Sequence[set[str]], text: str) -> float:
    """How many of the words, each given with its stems, a text has."""
    held = {one for word, terms in words_with_terms(text) for one in (word, *terms)}
    return sum(not held.isdisjoint(one) for one in asked) / len(asked)


def _is_own(hit: Hit) -> bool:
    """Whether it is a memory, or what the user said."""
    return hit.kind == "memory" or (hit.kind == "message" and hit.trust == "user")


class ToldChooser:
    """Takes, of what was told lately and of the memories that were found, what a goal is given of the user themselves.

    Called with the statements, it returns those that are listed by themselves: who the user is, if the goal asks that, or what
    limits it. Then `limits` has the ids of all that limits it.
    """

    def __init__(self, goal: str, hits: Sequence[Hit]) -> None:
        self.goal = goal
        self.found = {hit.id: hit.text for hit in hits if hit.kind == "memory"}
        self.limits: frozenset[str] = frozenset()

    def __call__(self, statements: Sequence[Statement]) -> list[Statement]:
        texts = self.found | {one.id: one.content for one in statements}
        self.limits = frozenset(
            one for one, limits in zip(texts, limiting(self.goal, [*texts.values()]), strict=True) if limits
        )
        about = asks_about_the_user(self.goal)
        listed = [one for one in statements if (one.trust not in UNTRUSTED if about else one.id in self.limits)]
        return sorted(listed, key=lambda one: -one.importance)[: PROFILE_MAX if about else HITS_MAX]


def hits_that_bear(hits: Sequence[Hit], *, opens: bool, limits: Collection[str]) -> tuple[list[Hit], list[Choice]]:
    """The best of the hits, if the goal `opens`, else what limits it; and a choice for each."""
    worth = [hit.score + LIMIT_WORTH * (hit.id in limits) for hit in hits]
    least = HIT_SHARE_MIN * max(worth, default=0.0)
    order = sorted(range(len(hits)), key=lambda place: -worth[place])
    kept: list[Hit] = []
    choices: list[Choice] = []
    for place in order:
        hit = hits[place]
        tells = hit.kind != "message" or not is_small_talk(hit.text)
        relevant = opens and tells and len(kept) < HITS_MAX and worth[place] >= least
        if relevant:
            kept.append(hit)
            reason = f"found for the goal (place {place + 1}, {hit.score:.2f})"
        elif opens:
            reason = f"hardly relevant to the goal (place {place + 1})"
        else:
            reason = "the goal seems to need nothing of the user's"
        choices.append(Choice(hit.kind, hit.id, relevant, reason, round(hit.score, 4)))
    return kept, choices


def _words_of(hit: Hit) -> set[str]:
    return set(folded(f"{hit.speaker} {hit.text[:2_000]}").replace("'", " ").split())


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
    SavedItem("state", "book_wishes", "", '["Dune"]'),
    SavedItem("series", "doctor_visits", "Appointments with doctors"),
    SavedItem("state", "shopping_list", "", '["milk"]'),
)
_EXAMPLES: tuple[tuple[str, list[str], str], ...] = (
    ("Add bread to what I have to buy", ["shopping_list"], ""),
    ("How tall is Mount Everest?", [], ""),
    ("Which book should I read before my check-up next week?", ["book_wishes", "doctor_visits"], "next week"),
    ("Write a poem about rain", [], ""),
)


def relevance_messages(system: str, candidates: Sequence[SavedItem], goal: str, *, left_out: int) -> tuple[ChatMessage, ...]:
    """The conversation that ends with the question: a few examples, then what is saved, by name, and the goal last.

    Examples are turns of their own: a small model that reads them inside one prompt chooses everything. What is saved stands
    before the goal and is ordered by name, so that the prompt begins alike from goal to goal, which a server may keep.
    """
    turns = [ChatMessage("system", system)]
    for wanted, keys, words in _EXAMPLES:
        turns.append(ChatMessage("user", _question_text(_SHOWN, wanted, 0)))
        turns.append(ChatMessage("assistant", as_data({"relevant_keys": keys, "time_range": words})))
    by_name = sorted(candidates, key=lambda one: one.id)
    return (*turns, ChatMessage("user", _question_text(by_name, goal[:GOAL_CHARS], left_out)))


def _question_text(candidates: Sequence[SavedItem], goal: str, left_out: int) -> str:
    lines = [f"- {_name(one.id)}: {as_data(_item_text(one))}" for one in candidates]
    more = [f"({left_out} more are left out)"] if left_out else []
    return "\n".join(["Available memory:", *lines, *more, f"Goal: {as_data(goal)}"])


def _name(name: str) -> str:
    """As it is, or in quotes where it could pass for more than a name."""
    return name if name.isprintable() and name.isascii() and not set(name) & set("<>&`:\"'") else as_data(name)


def _item_text(one: SavedItem) -> str:
    return one.preview[:BEGINS_CHARS] if one.kind == "state" else f"series. {one.description}"[:ABOUT_CHARS].strip()


def identifiers_in(goal: str) -> set[str]:
    """Names such as `billing-core`, in small letters: who has one in a goal means that very thing."""
    found = (match[0].lower() for match in _IDENTIFIER.finditer(goal[:GOAL_CHARS_MAX]))
    return {one for one in found if one.strip("0123456789-_./")}
