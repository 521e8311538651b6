"""Which of what was found is relevant to a goal, and the words that say why: by rules, or by what a model is shown and answers;
and what a goal is given of the user themselves: a short profile if it asks about them, and what limits it, as a diet does.

The words for that are in `about.txt`. Pure: rankings and statements in, choices out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
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
from perdure.engine.oversight.relevance import GOAL_CHARS_MAX, SavedItem, find_any, goal_words, names_in, needs_min
from perdure.engine.oversight.statements import ABOUT, Told, asks_about_the_user, told_scores
from perdure.engine.search.lexicon import folded, lexemes, words_with_terms

if TYPE_CHECKING:
    from perdure.engine.oversight.relevance import Floats
    from perdure.engine.oversight.topics import Vectors


SHOWN_MAX = 4
SCORE_MIN, SHARE_MIN = 0.02, 0.1
"""What is shown has at least this score, and so much of the best one's."""
SURE_MIN = 0.25
"""From this score on a value is loaded; below, what is known without it is shown."""
RECENCY_DAYS = 14.0
RECENCY_WORTH, USE_WORTH, USES_MAX = 0.2, 0.1, 5
COVER_MIN, NEARNESS_MIN = 0.3, 0.45
"""Where a saved key or series answers the goal already, what was found besides must have so many of its words, or mean it."""
HIT_SHARE_MIN, HIT_MIN = 0.2, 0.2
"""Of what was found for a goal, what comes so near the best, and has this score."""
HITS_MAX = 10
TOLD_SHARE_MIN, TOLD_MIN, TOLD_MAX = 0.1, 0.04, 10
"""The same for what was told."""
PROFILE_MAX, PROFILE_MIN = 16, 0.02
"""A profile is short, and has what may well belong into it."""
LIMITED_MIN, LIMIT_SURE_MIN = 0.2, 0.2
"""A goal that seems this likely to need something is held against what limits it, if that is so sure to."""
SAFETY = ("food", "body")
"""What limits goals of these kinds is looked up in any case: a diet, an allergy, an injury."""
OWN_COVER_MIN = 0.5
"""What was told answers a goal in which the user speaks of themselves if it has so many of its words; others, if it has all."""
PROFILE_KEY_MIN = 0.5
"""A goal that asks about the user is answered by what was told; a saved thing must be this sure to be what it asks for."""
_OWN = pattern(
    r"\b(?:i|i['’]\w+|me|my|we|us|our|ich|mir|mich|mein\w{0,2}|wir|uns|unser\w{0,2}"
    r"|je|j['’]\w+|moi|mon|ma|mes|nous|notre|nos|yo|m[ií]|mis|conmigo|nuestr[oa]s?)\b",
    re.IGNORECASE,
)
_OWNED = pattern(r"\b(?:my|our)\b", re.IGNORECASE)
_IDENTIFIER = pattern(r"\b[a-z0-9]+(?:[-_./][a-z0-9]+)+\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RankedItem:
    """A candidate with its score, and its place among all candidates."""

    candidate: SavedItem
    score: float
    place: int


def ranked(candidates: Sequence[SavedItem], scores: Floats, ages_days: Floats, uses: Floats, *, limit: int) -> list[RankedItem]:
    """The best, best first; of two that are equally relevant, the one saved lately, or given to an agent lately."""
    recency = np.exp2(-np.maximum(ages_days, 0) / RECENCY_DAYS)
    use = np.minimum(uses, USES_MAX) / USES_MAX
    weighed = scores * (1 + RECENCY_WORTH * recency + USE_WORTH * use)
    order = np.argsort(-weighed, kind="stable")[:limit]
    return [RankedItem(candidates[place], float(scores[place]), int(place)) for place in order]


def chosen_by_rules(order: Sequence[RankedItem], needs: float, *, about_user: bool = False) -> list[Choice]:
    """A choice for each of the ranked: the goal must need something, and a thing must come near the best.

    `about_user`: the goal asks about the user, whom no saved thing tells of unless it surely does.
    """
    needed = needs_min()
    best = max((one.score for one in order), default=0.0)
    least = max(best * SHARE_MIN, PROFILE_KEY_MIN if about_user else SCORE_MIN)
    choices = []
    for place, one in enumerate(order):
        score, candidate = one.score, one.candidate
        if needs < needed:
            reason, included = f"the goal seems to need nothing of the user's ({needs:.2f} < {needed})", False
        elif place >= SHOWN_MAX or score < least:
            reason, included = f"hardly relevant to the goal (place {place + 1}, {score:.3f})", False
        else:
            sure = "relevant to the goal" if score >= SURE_MIN or place == 0 else "may be relevant to the goal"
            reason, included = f"{sure} (place {place + 1}, {score:.2f})", True
        choices.append(Choice(candidate.kind, candidate.id, included, reason, round(score, 4)))
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


def is_sure(choice: Choice, *, best: bool) -> bool:
    """Whether its value is to be loaded."""
    return best or choice.score >= SURE_MIN


def is_open(goal: str, hits: Sequence[Hit], *, needs: float, named: Collection[str]) -> bool:
    """Whether the goal needs something of the user's, asks about them, or names somebody or something that is told of.

    `named`: the entities that the goal names.
    """
    if is_whole(goal):
        return False
    if needs >= needs_min() or named or asks_about_the_user(goal):
        return True
    names, things = set(names_in(goal)), identifiers_in(goal)
    if any(names & _words_of(hit) or any(one in hit.text.lower() for one in things) for hit in hits):
        return True
    return bool(in_its_words(goal, hits))


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
    """Takes, of what was told lately and of the memories that were found, what is relevant to a goal.

    `opens`: as `is_open` says; else only what surely limits the goal is taken. Called with the statements, it returns those
    that are listed by themselves: who the user is, if the goal asks that, or what limits it. Then `kept` has the ids of all.
    """

    def __init__(self, goal: str, hits: Sequence[Hit], vectors: Vectors | None, *, opens: bool) -> None:
        self.goal, self.opens, self.vectors = goal, opens, vectors
        memories = [hit for hit in hits if hit.kind == "memory"]
        self.found = {hit.id: hit.text for hit in memories}
        self.answering = {hit.id for hit in in_its_words(goal, memories)} if opens else set()
        self.kept: dict[str, float] = {}

    def __call__(self, statements: Sequence[Statement]) -> list[Statement]:
        by_id = {one.id: one for one in statements}
        texts = {one.id: one.content for one in statements} | self.found
        told = _texts_taken_apart(tuple(texts.values()), self.vectors)
        scores = told_scores(self.goal, told)
        limiting = {one for one, limits in zip(texts, told.limiting(self.goal), strict=True) if limits}
        about = asks_about_the_user(self.goal)
        least = max(TOLD_SHARE_MIN * float(scores.max(initial=0)), TOLD_MIN if self.opens else LIMIT_SURE_MIN)
        least = PROFILE_MIN if about else least
        ranked_ids = sorted(zip(scores.tolist(), texts, strict=True), key=lambda pair: -pair[0])
        sure = {one for one, score in zip(texts, scores.tolist(), strict=True) if score >= least} | self.answering
        taken = {one: score for score, one in ranked_ids if one in sure and (self.opens or one in limiting)}
        self.kept = dict(list(taken.items())[: PROFILE_MAX if about else TOLD_MAX])
        listed = [by_id[one] for one in self.kept if one in by_id and (about or one in limiting)]
        if about:
            listed = [one for one in listed if one.trust not in UNTRUSTED]
        return sorted(listed, key=lambda one: -one.importance)


@lru_cache(maxsize=16)
def _texts_taken_apart(texts: tuple[str, ...], vectors: Vectors | None) -> Told:
    return Told(texts, vectors)


def hits_that_bear(
    goal: str, hits: Sequence[Hit], *, opens: bool, named: Collection[str], told: Mapping[str, float], answered: bool
) -> tuple[list[Hit], list[Choice]]:
    """The best of the hits, if the goal `opens`, and a choice for each: of memories those in `told`.

    `answered`: something saved is surely relevant, so that of what was merely said less will do.
    """
    asked = {term for word in goal_words(goal) for term in lexemes(word)} if answered else set()
    best = max((hit.score for hit in hits), default=0.0)
    kept: list[Hit] = []
    choices: list[Choice] = []
    for place, hit in enumerate(hits):
        is_memory = hit.kind == "memory"
        near = hit.score >= max(HIT_SHARE_MIN * best, HIT_MIN) and (not answered or _is_near(asked, hit, named))
        relevant = opens and len(kept) < HITS_MAX and (hit.id in told if is_memory else near)
        score = told.get(hit.id, 0.0) if is_memory else hit.score
        if relevant:
            kept.append(hit)
            reason = f"found for the goal (place {place + 1}, {score:.2f})"
        elif not opens:
            reason = "the goal seems to need nothing of the user's"
        else:
            reason = f"hardly relevant to the goal (place {place + 1})"
        choices.append(Choice(hit.kind, hit.id, relevant, reason, round(score, 4)))
    return kept, choices


def _is_near(asked: set[str], hit: Hit, named: Collection[str]) -> bool:
    meaning = hit.trace.arms.get("meaning")
    near = meaning is not None and meaning.raw >= NEARNESS_MIN
    about = any(ref in named for ref in hit.entities)
    return near or about or len(asked & set(lexemes(hit.text))) >= COVER_MIN * max(len(asked), 1)


def _words_of(hit: Hit) -> set[str]:
    return set(folded(f"{hit.speaker} {hit.text[:2_000]}").replace("'", " ").split())


def uses_of(bodies: Iterable[Mapping[str, object]]) -> dict[tuple[str, str], int]:
    """How often each thing was given to an agent, by the records of earlier decisions."""
    found: dict[tuple[str, str], int] = {}
    for body in bodies:
        included = body.get("included")
        for one in included if isinstance(included, list) else ():
            if isinstance(one, list) and len(one) >= 2:
                name = (str(one[0]), str(one[1]))
                found[name] = found.get(name, 0) + 1
    return found


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


# -- of the user themselves


def is_whole(goal: str) -> bool:
    """Whether it says all that it needs: a greeting, a sum, a text to translate."""
    return find_any(ABOUT, "whole", goal) and _OWNED.search(goal[:GOAL_CHARS_MAX].partition(":")[0]) is None


def may_be_limited(goal: str, needs: float) -> bool:
    """Whether what limits it is looked up, though it seems to need nothing."""
    return not is_whole(goal) and (
        needs >= LIMITED_MIN or speaks_of_oneself(goal) or any(find_any(ABOUT, f"goal {area}", goal) for area in SAFETY)
    )


def speaks_of_oneself(goal: str) -> bool:
    """Whether the user is in it: what everybody could ask is limited by nothing of theirs."""
    return _OWN.search(goal[:GOAL_CHARS_MAX]) is not None


def identifiers_in(goal: str) -> set[str]:
    """Names such as `billing-core`, in small letters: who has one in a goal means that very thing."""
    found = (match[0].lower() for match in _IDENTIFIER.finditer(goal[:GOAL_CHARS_MAX]))
    return {one for one in found if one.strip("0123456789-_./")}
