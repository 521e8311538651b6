"""Names of projects: words, and numbers that matter. `Phoenix 2` follows `Phoenix 1`; it is not the same work."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from perdure.engine.likeness import Findings, Likeness
from perdure.engine.spelling import plain, word_set
from perdure.engine.terms import compare_terms, numbers_of, words_of

_CALLED = word_set("project projekt proyecto projet progetto projeto")
_LEADING = word_set("the my our their his her your a an der die das mein meine unser unsere le la el mi nuestro nuestra")
_KINDS = word_set(
    "app application website site web page tool platform system service api module repo repository initiative program "
    "effort plan work task prototype mvp draft launch "
)
_ROMAN = {
    "ii": "2",
    "iii": "3",
    "iv": "4",
    "vi": "6",
    "vii": "7",
    "viii": "8",
    "ix": "9",
    "xi": "11",
    "xii": "12",
    "xiii": "13",
}


@dataclass(frozen=True, slots=True)
class Project:
    """A name taken apart: words without numbers that stand alone, and those numbers."""

    words: tuple[str, ...]
    numbers: tuple[str, ...]


@lru_cache(maxsize=16_384)
def project(label: str) -> Project:
    """Take a bounded label apart."""
    words = words_of(re.sub(r"\bv(?:er(?:sion)?)?\.?\s?(?=\d)", "", plain(label)), {})
    while len(words) > 1 and words[0] in _LEADING:
        words = words[1:]
    named = [word for word in words if word not in _CALLED]
    words = named or words
    counted = [_ROMAN.get(word, word) if place else word for place, word in enumerate(words)]
    numbers = tuple(_canonical(number) for number in numbers_of(counted))
    return Project(tuple(word for word in counted if not re.fullmatch(r"[\d.]+", word)), numbers)


def compare_projects(one: str, other: str) -> Likeness:
    """The verdict on two labels of projects."""
    a, b = project(one), project(other)
    findings = Findings()
    if a.numbers and b.numbers and a.numbers != b.numbers:
        findings.deny("numbers or versions differ")
    elif not a.words and not b.words:
        findings.note("the same number")
        if a.numbers != b.numbers:
            findings.deny("numbers or versions differ")
    elif not a.words or not b.words:
        findings.deny("other words")
    else:
        if a.numbers != b.numbers:
            findings.doubt("number or version left out", 0.6, weak=True)
        compare_terms(a.words, b.words, findings, kinds=_KINDS)
    return findings.verdict()


def _canonical(number: str) -> str:
    return re.sub(r"(?:\.0+)+$", "", number)
