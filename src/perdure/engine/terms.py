"""Names that are made of words, of firms and of undertakings: what two lists of words have in common."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence

from perdure.engine.likeness import Findings
from perdure.engine.spelling import (
    differ_in_a_vowel,
    differ_in_accents_only,
    differ_in_doubling,
    folded,
    is_latin,
    is_slip,
    numerals,
    romanised,
    word_set,
)

FILLERS = word_set("of the and for at in de la le der die das und et y e du des di del")
_BRITISH = tuple(
    (re.compile(pattern), spelling)
    for pattern, spelling in (
        (r"(?<=\w{3})our(?=(?:s|ed|ing|ite|al|ist)?$)", "or"),
        (r"(?<=\w[an])tre(?=s?$)", "ter"),
        (r"is(?=ation|ations$|ing$)", "iz"),
        (r"(?<=\w{3})ogue$", "og"),
        ("^defence", "defense"),
        ("^grey$", "gray"),
        ("^programme", "program"),
    )
)
SLIP_CHARS_MIN = 5
SURE_DOUBLING_CHARS_MIN = 7
VOWEL_CHARS_MIN = 9
"""Shorter words that differ in a vowel are two words: `Nation` and `Notion`."""
ACRONYM_CHARS = range(2, 8)


def words_of(text: str, spelled: dict[str, str]) -> list[str]:
    """Words of a plain text, with abbreviations, numbers and British spellings made one; dots inside numbers stay."""
    text = re.sub(r"(?<=\w)\++", lambda pluses: "plus" * len(pluses[0]), text) if "&" not in text else text
    text = re.sub(r"(?<=\w)#(?!\w)", "sharp", text)
    text = re.sub(r"\s[&+]\s|&", " and ", text).replace("'", "")
    shown = "".join(char if char == "." or unicodedata.category(char)[0] in "LMN" else " " for char in text)
    tokens = filter(None, (_undotted(token) for token in shown.split()))
    return numerals(_american(spelled.get(token, token)) for token in tokens)


def numbers_of(words: Sequence[str]) -> list[str]:
    """All numbers in the words, in order of size."""
    return sorted(number for word in words for number in re.findall(r"\d+(?:\.\d+)*", word))


def compare_terms(
    one: Sequence[str],
    other: Sequence[str],
    findings: Findings,
    *,
    kinds: Collection[str],
    acronym: bool = False,
    sure_slips: bool = False,
) -> None:
    """What words say. `kinds` may be left out of a name at the cost of certainty: `Delta`, `Delta Airlines`.

    `acronym`: one side is known to be made of the other's first letters. `sure_slips`: where other words agree, a doubled
    letter in a long word does not matter.
    """
    if _written_alike(one, other, findings):
        return
    extra_one, extra_other = _beyond(one, other), _beyond(other, one)
    content_one, content_other = ([folded(word) for word in words if word not in FILLERS] for words in (one, other))
    if content_one == content_other and content_one:
        findings.doubt("small words differ", 0.8)
    elif sorted(content_one) == sorted(content_other) and content_one:
        findings.doubt("the same words in another order", 0.7)
    elif len(extra_one) == len(extra_other) == 1 and len(one) == len(other):
        _compare_odd_words(extra_one[0], extra_other[0], findings, sure=sure_slips and len(one) > 1)
    elif not (extra_one and extra_other) and set(extra_one + extra_other) <= set(kinds) and content_one and content_other:
        findings.doubt("kind left out", 0.6)
    elif acronym or is_acronym(one, other) or is_acronym(other, one):
        findings.doubt("acronym of the other", 0.6)
    elif _singular("".join(one)) == _singular("".join(other)):
        findings.doubt("plural", 0.7)
    else:
        findings.deny("other words")


def is_acronym(short: Sequence[str], full: Sequence[str]) -> bool:
    """Whether `short` is made of the first letters of `full`, with or without its small words."""
    letters = "".join(word for word in short if word not in FILLERS)
    if len(letters) not in ACRONYM_CHARS or len(full) < 2 or not letters.isalpha():
        return False
    return letters in initials(full)


def initials(words: Sequence[str]) -> frozenset[str]:
    """First letters of the words, with and without the small ones."""
    return frozenset(("".join(word[0] for word in words), "".join(word[0] for word in words if word not in FILLERS)))


def _written_alike(one: Sequence[str], other: Sequence[str], findings: Findings) -> bool:
    joined_one, joined_other = "".join(one), "".join(other)
    accents = differ_in_accents_only(joined_one, joined_other)
    if accents is None:
        if is_latin(joined_one) == is_latin(joined_other):
            return False
        rough = romanised(joined_one)
        if not rough or rough != romanised(joined_other):
            return False
        findings.note("the same letters in another script")
    elif not accents:
        findings.doubt("accents differ", 0.7)
    elif joined_one != joined_other:
        findings.note("accents dropped")
    elif list(one) != list(other):
        findings.note("spaces differ")
    return True


def _compare_odd_words(one: str, other: str, findings: Findings, *, sure: bool) -> None:
    """The only words that differ. `sure`: a doubled letter in a long word is a slip and nothing else."""
    if _singular(one) == _singular(other):
        findings.doubt("plural", 0.7)
    elif differ_in_a_vowel(one, other) and min(len(one), len(other)) < VOWEL_CHARS_MIN:
        findings.deny("other words")
    elif sure and min(len(one), len(other)) >= SURE_DOUBLING_CHARS_MIN and differ_in_doubling(one, other):
        findings.note("a letter doubled")
    elif min(len(one), len(other)) >= SLIP_CHARS_MIN and is_slip(one, other):
        findings.doubt("a slip apart and sound alike", 0.6, weak=True)
    else:
        findings.deny("other words")


def _beyond(words: Sequence[str], others: Sequence[str]) -> list[str]:
    """Words that the other side does not have; its spelling may lack accents."""
    left = [folded(word) for word in others]
    extra = []
    for word in words:
        if folded(word) in left:
            left.remove(folded(word))
        else:
            extra.append(word)
    return extra


def _american(word: str) -> str:
    for pattern, spelling in _BRITISH:
        word = pattern.sub(spelling, word)
    return word


def _undotted(token: str) -> str:
    return token.strip(".") if re.search(r"\d\.\d", token) else token.replace(".", "")


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
