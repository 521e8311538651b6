"""Taking names and spans out of text, in plain form and as they stand in stored JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence

FORGOTTEN = "[forgotten]"
MASK = "█"
"""One for each character, so that what else is known to stand in a text still stands at its place."""
NAME_CHARS_MIN = 2


def name_redactor(names: Iterable[str]) -> Callable[[str], str]:
    """A function that masks `names` wherever they stand as words, in any case, also inside JSON text."""
    forms: set[str] = set()
    for name in names:
        if len(name.strip()) >= NAME_CHARS_MIN:
            plain = name.strip()
            forms |= {plain, json.dumps(plain, ensure_ascii=False)[1:-1], json.dumps(plain)[1:-1]}
            forms |= {plain.replace(" ", "_"), plain.replace(" ", "-")}
    if not forms:
        return lambda text: text
    longest_first = sorted(forms, key=lambda form: (-len(form), form))
    pattern = re.compile(r"(?<![^\W_])(?:" + "|".join(map(re.escape, longest_first)) + r")(?![^\W_])", re.IGNORECASE)
    return lambda text: pattern.sub(lambda match: MASK * len(match[0]), text)


def without_spans(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """`text` with the characters of each span masked; spans may overlap and reach beyond the text."""
    chars = list(text)
    for start, end in spans:
        for index in range(max(0, start), min(end, len(chars))):
            if not chars[index].isspace():
                chars[index] = MASK
    return "".join(chars)


def first_name(label: str) -> str | None:
    """The word by which a person of several names is called."""
    words = label.split()
    return words[0] if len(words) > 1 else None
