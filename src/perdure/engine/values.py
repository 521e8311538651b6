"""Whether two values of one attribute are the same thing in other words. What is likely the same does not retire the other."""

from __future__ import annotations

from perdure.domain.entities import slug
from perdure.domain.knowledge import EntityName, EntityType
from perdure.engine.likeness import Different
from perdure.engine.sameness import meaning, plain_parts
from perdure.engine.variants import compare

# What kind of name stands as the value of an attribute.
_NAMES: dict[str, EntityType] = {
    **dict.fromkeys(("lives_in", "from", "hometown", "born_in"), "place"),
    **dict.fromkeys(("works_at", "studies_at", "employer", "member_of"), "org"),
    **dict.fromkeys(("partner", "manager", "has_child", "name"), "person"),
}
# Values of which a longer one only says more: `Mandarin` and `Mandarin Chinese`.
_NARROWING = frozenset({"speaks", "works_on", "relation", "handles", "learning", "plays"})
# Words for how a thing stands, by what they come to.
_STANDING = {
    word: standing
    for standing, words in {
        "waiting": ("on hold", "paused", "suspended", "on ice", "parked", "stalled"),
        "done": ("done", "finished", "complete", "completed", "shipped", "launched", "live", "released"),
        "going": ("in progress", "ongoing", "active", "underway", "under way", "started", "running"),
        "ended": ("cancelled", "canceled", "dropped", "abandoned", "killed", "scrapped"),
        "planned": ("planned", "not started", "upcoming", "planning"),
    }.items()
    for word in words
}
OPPOSITES = {"likes": "dislikes", "dislikes": "likes"}
"""Attributes of which the same value cannot stand under both."""


def same_value(attribute: str, one: str, other: str, *, exactly: bool = False) -> bool:
    """Whether two values mean the same. `exactly`: the words say that one of them is wrong, so likeness proves nothing."""
    if _key(one) == _key(other):
        return True
    if exactly:
        return False
    if attribute == "phone":
        return _same_digits(one, other)
    if meaning(one) and meaning(one) == meaning(other):
        return True
    if attribute == "status" and _STANDING.get(one.strip().casefold(), one) == _STANDING.get(other.strip().casefold(), other):
        return True
    if _is_short_for(one, other) or _is_short_for(other, one):
        return True
    kind = _NAMES.get(attribute)
    if kind is not None:
        return not isinstance(compare(EntityName(kind, one), EntityName(kind, other)), Different)
    first, second = plain_parts(one), plain_parts(other)
    if first and second and (first[: len(second)] == second or second[: len(first)] == first):
        return True
    words, others = {word for word, _ in meaning(one)}, {word for word, _ in meaning(other)}
    return attribute in _NARROWING and bool(words) and bool(others) and (words <= others or others <= words)


def _same_digits(one: str, other: str) -> bool:
    """Whether two telephone numbers are one, with and without the prefix of the country."""
    first, second = ("".join(char for char in text if char.isdigit()).lstrip("0") for text in (one, other))
    shorter, longer = sorted((first, second), key=len)
    return len(shorter) >= 7 and longer.endswith(shorter)


def _is_short_for(short: str, whole: str) -> bool:
    """Whether capitals such as `GP` are the initials of several words."""
    letters = short.replace(".", "").strip()
    words = [word for word in whole.replace("-", " ").split() if word[0].isalnum()]
    initials = "".join(word[0] for word in words).upper()
    return len(words) >= 2 and 2 <= len(letters) <= 5 and letters.isupper() and letters == initials


def _key(value: str) -> str:
    text = value.strip().casefold()
    return slug(text) if text else text
