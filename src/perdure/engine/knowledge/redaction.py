"""Taking names and spans out of text, and telling from the journal where a record has been."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from perdure.domain.knowledge.journal import Operation
from perdure.domain.knowledge.proposals import Evidence
from perdure.domain.text.patterns import pattern
from perdure.domain.text.rules import Json
from perdure.domain.times.instants import from_us
from perdure.domain.values import dataclass, field

FORGOTTEN = "[forgotten]"
MASK = "█"
"""One for each character, so that what else is known to stand in a text still stands at its place."""
NAME_CHARS_MIN = 2
_UNSPACED = pattern(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")


def name_redactor(names: Iterable[str]) -> Callable[[str], str]:
    """A function that masks `names` wherever they stand as words, in any case and form, also inside JSON text."""
    forms: set[str] = set()
    for name in names:
        if len(name.strip()) >= NAME_CHARS_MIN:
            forms |= _forms(name.strip())
    if not forms:
        return lambda text: text
    longest_first = sorted(forms, key=lambda form: (-len(form), form))
    pattern = re.compile("|".join(map(_as_word, longest_first)), re.IGNORECASE)
    return lambda text: pattern.sub(lambda match: MASK * len(match[0]), text)


def _forms(name: str) -> set[str]:
    """A name composed and decomposed, joined as addresses and handles do it, plain and as JSON writes it."""
    spelled = {unicodedata.normalize(form, name) for form in ("NFC", "NFD")}
    joined = {one.replace(" ", sign) for one in spelled for sign in (" ", "_", "-", ".", "")}
    return joined | {text for one in joined for text in (json.dumps(one, ensure_ascii=False)[1:-1], json.dumps(one)[1:-1])}


def _as_word(form: str) -> str:
    """The form as a word of its own; scripts that are written without spaces have no such thing."""
    before = "" if _UNSPACED.match(form[0]) else r"(?<![^\W_])"
    after = "" if _UNSPACED.match(form[-1]) else r"(?![^\W_])"
    return f"{before}{re.escape(form)}{after}"


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


def exact_redactor(words: Iterable[str]) -> Callable[[str], str]:
    """A function that masks texts that are one of `words` and nothing else."""
    known = frozenset(words)
    return lambda text: MASK * len(text) if text in known else text


@dataclass(slots=True)
class RecordHistory:
    """What the journal tells of one record. What was undone does not count."""

    newest: int = 0
    """The number of its newest operation."""
    body: Mapping[str, Any] | None = None
    """As it was last."""
    homes: set[str] = field(default_factory=set)
    """The memories that a statement has been in."""
    evidence: set[Evidence] = field(default_factory=set)
    """All of it: a statement itself holds the newest only."""
    _restored: Json = None

    def tell(self, operation: Operation) -> None:
        """Take in the next older operation."""
        self.newest = max(self.newest, operation.seq)
        after = operation.after
        if not isinstance(after, Mapping):
            return  # removed; what it was is told by the operation before
        if self._restored is not None and after != self._restored:
            return  # undone later
        self._restored = after if operation.action == "undo" else None
        if self.body is None:
            self.body = after
        if isinstance(after.get("memory"), str):
            self.homes.add(after["memory"])
        self.evidence |= evidence_of(after)


def evidence_of(body: Mapping[str, Any]) -> set[Evidence]:
    """What the body of a record names as its sources."""
    return {Evidence(one["message"], one["start"], one["end"], from_us(one["at"])) for one in body.get("evidence", ())}
