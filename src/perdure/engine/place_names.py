"""Names of places: what is named, and where that lies. The same name in another state is another place.

Nothing is looked up on a map: what is not in the gazetteer is compared letter by letter.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

from perdure.engine.gazetteer import CITIES, COUNTRIES, KNOWN, OPEN, QUALIFIERS, STATE_NAMES, Where
from perdure.engine.likeness import Findings, Likeness
from perdure.engine.spelling import (
    differ_in_a_vowel,
    differ_in_accents_only,
    folded,
    is_latin,
    is_slip,
    plain,
    romanised,
    word_map,
    word_set,
)
from perdure.engine.terms import FILLERS, VOWEL_CHARS_MIN, numbers_of, words_of

_PARTS_OF_COUNTRIES = frozenset({"england", "scotland", "wales", "northern ireland"})
_SPELLED = word_map(
    "mt=mount mtn=mountain ft=fort ave=avenue av=avenue blvd=boulevard rd=road ln=lane hwy=highway sq=square pkwy=parkway "
    "dr=drive ctr=center str=straße strasse=straße bldg=building apt=apartment univ=university intl=international"
)
_NOT_BEFORE_A_STATE = word_set("lake mount fort gulf port north south east west new university of bay river little upper lower")
_DIRECTIONS = {"n": "north", "s": "south", "e": "east", "w": "west"}
_KINDS = word_set(
    "airport bridge station restaurant cafe café hotel museum stadium office mall beach tower hall university library"
)
SLIP_CHARS_MIN = 6


@dataclass(frozen=True, slots=True)
class Place:
    """A name taken apart: what is named, where that may lie, and what else stands behind commas."""

    head: tuple[str, ...]
    where: frozenset[Where]
    """Several where a code has several meanings; empty where nothing is said."""
    within: tuple[str, ...]
    """Parts behind commas that are neither state nor country: a district's city."""

    @property
    def name(self) -> str:
        """The head under its first spelling."""
        text = " ".join(map(folded, self.head))
        return CITIES.get(text) or (COUNTRIES.get(text) if len(text) > 2 or text in ("us", "uk") else None) or text


@lru_cache(maxsize=16_384)
def place(label: str) -> Place:
    """Take a bounded label apart."""
    first, *rest = plain(label).split(",")
    head = _head_words(first)
    if not rest and len(head) > 1 and folded(" ".join(head)) not in (CITIES.keys() | COUNTRIES.keys() | STATE_NAMES):
        head, rest = _set_off(head, label)
    elif rest and folded(f"{' '.join(head)} {''.join(rest).strip()}") in CITIES:
        return Place((*head, *words_of(rest[0], {})), frozenset(), ())
    behind = [folded(" ".join(words_of(part, {}))) for part in rest if part.strip()]
    readings = [QUALIFIERS[part] for part in behind if part in QUALIFIERS]
    within = tuple(CITIES.get(part, part) for part in behind if part not in QUALIFIERS)
    return Place(tuple(head), _agreed(readings), within)


def compare_places(one: str, other: str) -> Likeness:
    """The verdict on two labels of places."""
    a, b = place(one), place(other)
    findings = Findings()
    if not a.head or not b.head:
        findings.deny("no words to compare")
    elif numbers_of(a.head) != numbers_of(b.head):
        findings.deny("numbers differ")
    else:
        _compare_heads(a, b, findings)
        if not findings.denied:
            _compare_whereabouts(a, b, findings)
    return findings.verdict()


def open_partners(name: str) -> frozenset[str]:
    """`name` and the names that it may stand for."""
    return frozenset({name}).union(*(pair for pair in OPEN if name in pair))


def _head_words(text: str) -> list[str]:
    words = words_of(text, _SPELLED)
    if len(words) > 1 and words[0] == "the":
        words = words[1:]
    if len(words) > 1:
        # `St.` is a saint in front and a street at the end.
        words = [
            ("saint" if number < len(words) - 1 else "street") if word == "st" else word for number, word in enumerate(words)
        ]
        words = [_DIRECTIONS.get(word, word) if number == 0 else word for number, word in enumerate(words)]
    return words


def _set_off(head: list[str], label: str) -> tuple[list[str], list[str]]:
    """Part a state from the place before it, if no comma does: `Austin TX`, `Austin Texas`."""
    last = label.split()[-1].replace(".", "")
    if head[0] not in _NOT_BEFORE_A_STATE or len(head) > 2:
        if len(last) == 2 and last.isupper() and any(state for _, state in QUALIFIERS.get(head[-1], ())):
            return head[:-1], [head[-1]]
        for size in (2, 1):
            if len(head) > size and " ".join(head[-size:]) in STATE_NAMES:
                return head[:-size], [" ".join(head[-size:])]
    return head, []


def _agreed(readings: list[set[Where]]) -> frozenset[Where]:
    """What several parts mean together: a state and its country are that state."""
    meant: set[Where] = set()
    for combination in itertools.islice(itertools.product(*readings), 64):
        if len({country for country, _ in combination}) == 1:
            states = {state for _, state in combination if state}
            meant.update({(combination[0][0], state) for state in states} or {combination[0]})
    return frozenset(meant) or frozenset(where for reading in readings for where in reading)


def _compare_heads(a: Place, b: Place, findings: Findings) -> None:
    joined_a, joined_b = "".join(a.head), "".join(b.head)
    accents = differ_in_accents_only(joined_a, joined_b)
    if accents is not None:
        if not accents:
            findings.doubt("accents differ", 0.7)
        elif joined_a != joined_b:
            findings.note("accents dropped")
    elif _is_open(a, b):
        findings.doubt("a name that may mean something else", 0.6)
    elif a.name == b.name:
        findings.note("another name of the same place")
    elif is_latin(joined_a) != is_latin(joined_b) and (rough := romanised(joined_a)) and rough == romanised(joined_b):
        findings.note("the same letters in another script")
    elif a.name in KNOWN and b.name in KNOWN:
        findings.deny("two places")
    else:
        _expect_likeness(a, b, findings)


def _is_open(a: Place, b: Place) -> bool:
    spelled = {" ".join(map(folded, who.head)) for who in (a, b)}
    if spelled & _PARTS_OF_COUNTRIES:
        return a.name == b.name
    return any({a.name, b.name} == set(pair) or spelled == set(pair) for pair in OPEN)


def _expect_likeness(a: Place, b: Place, findings: Findings) -> None:
    odd = [(x, y) for x, y in zip(a.head, b.head, strict=False) if not differ_in_accents_only(x, y)]
    if len(a.head) == len(b.head) and len(odd) == 1:
        one, other = odd[0]
        enough = VOWEL_CHARS_MIN if differ_in_a_vowel(one, other) else SLIP_CHARS_MIN
        if min(len(one), len(other)) >= enough and is_slip(one, other):
            findings.doubt("a slip apart and sound alike", 0.6, weak=True)
            return
    content_a, content_b = (sorted(map(folded, set(who.head) - FILLERS)) for who in (a, b))
    shorter, longer = sorted((a.head, b.head), key=len)
    if content_a == content_b and content_a:
        findings.doubt("the same words in another order", 0.7)
    elif longer[:-1] == shorter and longer[-1] in _KINDS and " ".join(shorter) not in KNOWN:
        findings.doubt("kind left out", 0.6)
    else:
        findings.deny("other words")


def _compare_whereabouts(a: Place, b: Place, findings: Findings) -> None:
    if a.within and b.within and not set(a.within) & set(b.within):
        findings.deny("they lie in different places")
    elif a.where and b.where:
        if a.where & b.where:
            findings.note("the same state or country")
        elif any(x[0] == y[0] and not (x[1] and y[1]) for x in a.where for y in b.where):
            findings.doubt("state left out", 0.7)
        else:
            findings.deny("states or countries differ")
    elif a.where != b.where:
        findings.doubt("state or country left out", 0.7)
    elif bool(a.within) != bool(b.within):
        findings.doubt("what it lies in is left out", 0.7)
