"""Which of what was told is relevant to a goal: what answers it, what bounds it, and, if it asks about the user, who they are.

Measured as saved things are, and by what kind of thing it is (`about.txt`); the weights are in `weights.json`. What comes out
is as likely as the score of a saved thing says, so that both can be held against one another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from perdure.engine.oversight.relevance import (
    FEATURES,
    Catalogue,
    SavedItem,
    find_any,
    goal_words,
    measure,
    names_in,
    squashed,
)
from perdure.engine.oversight.topics import topic_places, topics_of
from perdure.engine.words import fitted, sections

if TYPE_CHECKING:
    from perdure.engine.oversight.relevance import Floats
    from perdure.engine.oversight.topics import Vectors

SHARED = ("told_cover", "meaning", "meaning_over", "goal_cover", "said", "said_same", "said_share", "topic", "topic_top")
"""Of the features of saved things, those of what was told."""
OWN = (
    "order",
    "health",
    "who",
    "likes",
    "order_on_topic",
    "order_on_doing",
    "limits",
    "limits_food",
    "limits_body",
    "health_on_body",
    "named",
    "profile",
    "profile_who",
    "profile_likes",
    "profile_health",
    "profile_order",
    "gift",
    "gift_likes",
    "gift_who",
)
TOLD_FEATURES = (*SHARED, *OWN)
BODILY = ("food", "diet", "illness", "drug", "strain", "exercise", "hazard", "party")
ABOUT = "about.txt"
AREAS_MAX = 2
TEXT_CHARS_MAX = 1_000
_WORD = re.compile(r"\w+")


class Told:
    """Texts taken apart once, for many goals."""

    def __init__(self, texts: Sequence[str], vectors: Vectors | None) -> None:
        cut = [text[:TEXT_CHARS_MAX] for text in texts]
        self.catalogue = Catalogue([SavedItem("memory", "", text) for text in cut], vectors)
        self.traits = np.array([_traits(text) for text in cut], np.float32).reshape(len(cut), 4)
        self.areas = np.array([_limits(text) for text in cut], np.float32).reshape(len(cut), len(limit_areas()))
        self.words = [frozenset(_WORD.findall(text.lower())) for text in cut]

    def limiting(self, goal: str) -> list[bool]:
        """Of each text, whether it bounds something that the goal is about."""
        asked = [_is_in_goal(f"goal {area}", goal) for area in limit_areas()]
        return [bool(one) for one in (self.areas @ np.array(asked, np.float32)) > 0]


def measure_told(goal: str, told: Told) -> Floats:
    """A row per text, a column per name in `TOLD_FEATURES`."""
    rows = measure(goal, told.catalogue, timed=False)[:, [FEATURES.index(name) for name in SHARED]]
    order, health, who, likes = told.traits.T
    body = topics_of([goal_words(goal)], told.catalogue.vectors)[0][topic_places(BODILY)].max()
    doing = _is_in_goal("goal doing", goal)
    gift = asks_about_the_user(goal) and _is_in_goal("goal gift", goal)
    profile = asks_about_the_user(goal) and not gift
    names = set(names_in(goal))
    named = np.array([bool(names & words) for words in told.words], np.float32)
    on_topic = rows[:, SHARED.index("topic_top")]
    areas = [_is_in_goal(f"goal {area}", goal) for area in limit_areas()]
    limits = np.minimum(told.areas @ np.array(areas, np.float32), AREAS_MAX)
    food, bodily = (told.areas[:, limit_areas().index(area)] * _is_in_goal(f"goal {area}", goal) for area in ("food", "body"))
    kinds = [order, health, who, likes, order * on_topic, order * doing, limits, food, bodily, health * body, named]
    asked = [profile + 0 * who, profile * who, profile * likes, profile * health, profile * order]
    pleasing = [gift + 0 * who, gift * likes, gift * who]
    return np.hstack([rows, np.stack([*kinds, *asked, *pleasing], axis=1)]).astype(np.float32)


def told_scores(goal: str, told: Told) -> Floats:
    """How likely the goal needs each of the texts, given that it needs anything."""
    weights, bias = _weights()
    return squashed(measure_told(goal, told) @ weights + bias)


def asks_about_the_user(goal: str) -> bool:
    """Whether it wants to know who the user is, or what would please them."""
    return _is_in_goal("profile", goal)


@lru_cache(maxsize=20_000)
def _traits(text: str) -> tuple[bool, bool, bool, bool]:
    order, health, who, likes = (find_any(ABOUT, f"told {kind}", text) for kind in ("order", "health", "who", "likes"))
    return order, health, who, likes


@lru_cache(maxsize=20_000)
def _limits(text: str) -> tuple[bool, ...]:
    return tuple(find_any(ABOUT, f"limit {area}", text) for area in limit_areas())


@cache
def limit_areas() -> tuple[str, ...]:
    """What goals can be bounded in."""
    return tuple(name.removeprefix("limit ") for name in sections(__package__, ABOUT) if name.startswith("limit "))


def _is_in_goal(heading: str, goal: str) -> bool:
    return find_any(ABOUT, heading, goal)


@cache
def _weights() -> tuple[Floats, float]:
    found = fitted(__package__, "weights.json")
    return np.array([found["told_weights"].get(name, 0.0) for name in TOLD_FEATURES], np.float32), found["told_bias"]
