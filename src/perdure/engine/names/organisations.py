"""Names that are made of words: of organisations and of projects. `organisations.txt` has what is known of such words.

Of organisations, legal forms are dropped, acronyms are suggestions, and sister companies are two. Of projects, numbers matter:
`Phoenix 2` follows `Phoenix 1`; it is not the same work.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import cache, lru_cache

from perdure.domain.text.patterns import pattern
from perdure.domain.values import dataclass
from perdure.engine.names.spelling import (
    Likeness,
    LikenessEvidence,
    differ_in_a_vowel,
    differ_in_accents_only,
    differ_in_doubling,
    folded,
    is_latin,
    is_slip,
    numerals,
    plain,
    romanised,
)
from perdure.engine.words import sections, word_map, word_set

_BRITISH = tuple(
    (pattern(british), american)
    for british, american in (
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
    findings: LikenessEvidence,
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
    content_one, content_other = ([folded(word) for word in words if word not in small_words()] for words in (one, other))
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
    letters = "".join(word for word in short if word not in small_words())
    if len(letters) not in ACRONYM_CHARS or len(full) < 2 or not letters.isalpha():
        return False
    return letters in initials(full)


def initials(words: Sequence[str]) -> frozenset[str]:
    """First letters of the words, with and without the small ones."""
    return frozenset(("".join(word[0] for word in words), "".join(word[0] for word in words if word not in small_words())))


def _written_alike(one: Sequence[str], other: Sequence[str], findings: LikenessEvidence) -> bool:
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


def _compare_odd_words(one: str, other: str, findings: LikenessEvidence, *, sure: bool) -> None:
    """The only words that differ. `sure`: a doubled letter in a long word is a slip and nothing else."""
    if _singular(one) == _singular(other):
        findings.doubt("plural", 0.7)
    elif differ_in_a_vowel(one, other) and min(len(one), len(other)) < VOWEL_CHARS_MIN:
        findings.deny("other words")
    elif sure and min(len(one), len(other)) >= SURE_DOUBLING_CHARS_MIN and differ_in_doubling(one, other):
        findings.note("a letter doubled")
    elif min(len(one), len(other)) >= SLIP_CHARS_MIN and is_slip(one, other):
        findings.doubt("nearly the same spelling and sound", 0.6, weak=True)
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
    for british, american in _BRITISH:
        word = british.sub(american, word)
    return word


def _undotted(token: str) -> str:
    return token.strip(".") if re.search(r"\d\.\d", token) else token.replace(".", "")


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


class _Words:
    """`organisations.txt`, read."""

    def __init__(self) -> None:
        listed = sections(__package__, "organisations.txt")
        self.small = word_set(listed["small words"])
        self.forms = {
            tuple(folded(plain(spelling)).split()): entry.split(",")[0]
            for entry in listed["legal forms"]
            for spelling in entry.split(",")
        }
        self.form_words_max = max(map(len, self.forms))
        self.forms_in_front = word_set(listed["legal forms in front"])
        self.forms_without_spaces = re.compile(f"({'|'.join(listed['legal forms without spaces'])})")
        self.abbreviations = word_map(listed["abbreviations"])
        self.last_words = word_map(listed["last words"])
        self.regions = word_set(listed["regions"])
        self.kinds = word_set(listed["kinds"]) | self.regions
        self.project = word_set(listed["words for a project"])
        self.before_project = word_set(listed["words before a project"])
        self.project_kinds = word_set(listed["kinds of projects"])


@cache
def _words() -> _Words:
    return _Words()


def small_words() -> frozenset[str]:
    """Words between those that make a name: `of`, `the`."""
    return _words().small


@dataclass(frozen=True, slots=True)
class OrgName:
    """A name taken apart: the words that make it, its legal forms, and all words as they stand."""

    words: tuple[str, ...]
    forms: frozenset[str]
    whole: tuple[str, ...]


@lru_cache(maxsize=16_384)
def org(label: str) -> OrgName:
    """Take a bounded label apart."""
    known = _words()
    text = re.sub(r"\b(\w)/(\w)\b", r"\1\2", plain(label))
    forms = {match[0] for match in known.forms_without_spaces.finditer(text)}
    text = known.forms_without_spaces.sub(" ", text)
    # A domain's ending is set off, so that it is dropped like a legal form.
    words = words_of(re.sub(r"(?<=\w)\.(com|net|org|io|ai)\b", r" dot\1", text), known.abbreviations)
    if len(words) > 1 and words[0] == "the":
        words = words[1:]
    whole = tuple(words)
    if len(words) > 1 and words[0] in known.forms_in_front:
        forms.add(known.forms.get((words[0],), words[0]))
        words = words[1:]
    while (size := _form_at_end(words)) and len(words) > size:
        forms.add(known.forms[tuple(map(folded, words[-size:]))])
        words = words[:-size]
        if len(words) > 1 and words[-1] == "and":
            words = words[:-1]
    last = known.last_words.get(words[-1], words[-1]) if len(words) > 1 else ""
    return OrgName((*words[:-1], last) if last else tuple(words), frozenset(forms), whole)


def compare_orgs(one: str, other: str) -> Likeness:
    """The verdict on two labels of organisations."""
    a, b = org(one), org(other)
    findings = LikenessEvidence()
    if not a.words or not b.words:
        findings.deny("no words to compare")
    elif numbers_of(a.words) != numbers_of(b.words):
        findings.deny("numbers differ")
    else:
        if not (a.forms <= b.forms or b.forms <= a.forms):
            findings.doubt("legal forms differ", 0.7)
        elif a.forms != b.forms:
            findings.note("legal form dropped")
        elif a.forms:
            findings.note("legal form spelled out")
        regions_a, regions_b = (frozenset(who.words[1:]) & _words().regions for who in (a, b))
        if regions_a and regions_b and regions_a != regions_b:
            findings.deny("regions differ")
        else:
            acronym = is_acronym(a.words, b.whole) or is_acronym(b.words, a.whole)
            compare_terms(a.words, b.words, findings, kinds=_words().kinds, acronym=acronym, sure_slips=True)
    return findings.verdict()


def _form_at_end(words: list[str]) -> int:
    """How many of the last words are a legal form."""
    known = _words()
    for size in range(min(known.form_words_max, len(words) - 1), 0, -1):
        if tuple(map(folded, words[-size:])) in known.forms:
            return size
    return 0


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
class ProjectName:
    """A name taken apart: words without numbers that stand alone, and those numbers."""

    words: tuple[str, ...]
    numbers: tuple[str, ...]


@lru_cache(maxsize=16_384)
def project(label: str) -> ProjectName:
    """Take a bounded label apart."""
    known = _words()
    words = words_of(re.sub(r"\bv(?:er(?:sion)?)?\.?\s?(?=\d)", "", plain(label)), {})
    while len(words) > 1 and words[0] in known.before_project:
        words = words[1:]
    named = [word for word in words if word not in known.project]
    words = named or words
    counted = [_ROMAN.get(word, word) if place else word for place, word in enumerate(words)]
    numbers = tuple(_canonical(number) for number in numbers_of(counted))
    return ProjectName(tuple(word for word in counted if not re.fullmatch(r"[\d.]+", word)), numbers)


def compare_projects(one: str, other: str) -> Likeness:
    """The verdict on two labels of projects."""
    a, b = project(one), project(other)
    findings = LikenessEvidence()
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
        compare_terms(a.words, b.words, findings, kinds=_words().project_kinds)
    return findings.verdict()


def _canonical(number: str) -> str:
    return re.sub(r"(?:\.0+)+$", "", number)
