"""The names of keys, series and tools, taken apart into words."""

from __future__ import annotations

import re
from functools import lru_cache

WORDS_MAX = 40
"""Of a name, a goal, a description or a preview: more says nothing new."""
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^\W\d_]+|\d+")


@lru_cache(maxsize=20_000)
def name_words(name: str) -> tuple[str, ...]:
    """The words of a key: `raceCalendar-2026` has `race`, `calendar` and `2026`."""
    return tuple(dict.fromkeys(part.lower() for part in _PARTS.findall(name)[:WORDS_MAX]))
