"""What of the user themselves a goal is given: a short profile if it asks about them, and what limits it, as a diet does.

The words for that are in `about.txt`. Pure: texts in, answers out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache

from perdure.domain.text.patterns import pattern
from perdure.engine.words import sections

GOAL_CHARS_MAX, TEXT_CHARS_MAX = 2_000, 1_000
SAFETY = ("food", "body")
"""What limits goals of these kinds is looked up in any case: a diet, an allergy, an injury."""
_ABOUT = "about.txt"
_OWNED = pattern(r"\b(?:my|our)\b", re.IGNORECASE)


def asks_about_the_user(goal: str) -> bool:
    """Whether it wants to know who the user is, or what would please them."""
    return _has("profile", goal[:GOAL_CHARS_MAX])


def asks_for_ones_own(goal: str) -> bool:
    """Whether it asks for one thing of the user's: their job, their partner's name, where they live."""
    return _has("own", goal[:GOAL_CHARS_MAX])


def is_whole(goal: str) -> bool:
    """Whether it says all that it needs: a greeting, a sum, a text to translate."""
    return _has("whole", goal[:GOAL_CHARS_MAX]) and _OWNED.search(goal[:GOAL_CHARS_MAX].partition(":")[0]) is None


def looks_at_statements(goal: str, *, likely: bool) -> bool:
    """Whether what was told lately may say who the user is, or limit the goal; `likely`: it seems to need something."""
    areas = areas_of(goal)
    return asks_about_the_user(goal) or (bool(areas) and (likely or not set(SAFETY).isdisjoint(areas)))


def areas_of(goal: str) -> list[str]:
    """In what a goal may be bounded: in food, in what a body can bear."""
    return [area for area in limit_areas() if _has(f"goal {area}", goal[:GOAL_CHARS_MAX])]


def limiting(goal: str, texts: Sequence[str]) -> list[bool]:
    """Of each text, whether it bounds something that the goal is about."""
    areas = set(areas_of(goal))
    return [bool(areas) and not areas.isdisjoint(_limits(text[:TEXT_CHARS_MAX])) for text in texts]


@lru_cache(maxsize=20_000)
def _limits(text: str) -> tuple[str, ...]:
    return tuple(area for area in limit_areas() if _has(f"limit {area}", text))


@cache
def limit_areas() -> tuple[str, ...]:
    """What goals can be bounded in."""
    return tuple(name.removeprefix("limit ") for name in sections(__package__, _ABOUT) if name.startswith("limit "))


def _has(heading: str, text: str) -> bool:
    return any_of(heading).search(text) is not None


@cache
def any_of(heading: str) -> re.Pattern[str]:
    """What finds an entry of a section of `about.txt`."""
    found = sections(__package__, _ABOUT)[heading]
    return re.compile("|".join(one if one[0] == "^" else rf"\b(?:{one})\b" for one in found), re.IGNORECASE)
