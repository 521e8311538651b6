"""Names of places: what is named, and where that lies. The same name in another state is another place.

Nothing is looked up on a map: what is not in `places.txt` is compared letter by letter.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from functools import cache, lru_cache

from perdure.domain.values import dataclass
from perdure.engine.names.organisations import VOWEL_CHARS_MIN, numbers_of, small_words, words_of
from perdure.engine.names.spelling import (
    Likeness,
    LikenessEvidence,
    differ_in_a_vowel,
    differ_in_accents_only,
    folded,
    is_latin,
    is_slip,
    plain,
    romanised,
)
from perdure.engine.words import sections, word_map, word_set

Where = tuple[str, str]
"""Country and state; the state may be empty."""

SLIP_CHARS_MIN = 6


class _Gazetteer:
    """`places.txt`, read. Names are folded."""

    def __init__(self) -> None:
        listed = sections(__package__, "places.txt")
        self.cities = _spellings(listed["cities"])
        self.countries = _spellings(listed["countries"])
        self.states: set[str] = set()
        self.qualifiers: dict[str, set[Where]] = {}
        """What a word behind a comma may mean."""
        for heading, entries in listed.items():
            kind, _, country = heading.partition(": ")
            for state, code in word_map(entries).items() if kind == "states" else ():
                self.states |= {name for name in (state, code) if len(name) > 3}
                for name in (state, code):
                    self.qualifiers.setdefault(name, set()).add((country, state))
        for name, country in self.countries.items():
            self.qualifiers.setdefault(name, set()).add((country, ""))
        self.known = {*self.cities.values(), *self.countries.values(), *self.states}
        self.parts_of_countries = frozenset(listed["parts of countries"])
        self.open = tuple(frozenset(entry.split(", ")) for entry in listed["open"])
        self.abbreviations = word_map(listed["abbreviations"])
        self.directions = word_map(listed["directions"])
        self.not_before_a_state = word_set(listed["not before a state"])
        self.kinds = word_set(listed["kinds"])


def _spellings(entries: Iterable[str]) -> dict[str, str]:
    """Each spelling with the first one of its line."""
    lines = ([folded(plain(spelling)) for spelling in entry.split(",")] for entry in entries)
    return {spelling: line[0] for line in lines for spelling in line}


@cache
def _gazetteer() -> _Gazetteer:
    return _Gazetteer()


@dataclass(frozen=True, slots=True)
class PlaceName:
    """A name taken apart: what is named, where that may lie, and what else stands behind commas."""

    head: tuple[str, ...]
    where: frozenset[Where]
    """Several where a code has several meanings; empty where nothing is said."""
    within: tuple[str, ...]
    """Parts behind commas that are neither state nor country: a district's city."""

    @property
    def name(self) -> str:
        """The head under its first spelling."""
        known, text = _gazetteer(), " ".join(map(folded, self.head))
        return known.cities.get(text) or (known.countries.get(text) if len(text) > 2 or text in ("us", "uk") else None) or text


@lru_cache(maxsize=16_384)
def place(label: str) -> PlaceName:
    """Take a bounded label apart."""
    known = _gazetteer()
    first, *rest = plain(label).split(",")
    head = _head_words(first)
    if not rest and len(head) > 1 and not _is_known(folded(" ".join(head))):
        head, rest = _set_off(head, label)
    elif rest and folded(f"{' '.join(head)} {''.join(rest).strip()}") in known.cities:
        return PlaceName((*head, *words_of(rest[0], {})), frozenset(), ())
    behind = [folded(" ".join(words_of(part, {}))) for part in rest if part.strip()]
    readings = [known.qualifiers[part] for part in behind if part in known.qualifiers]
    within = tuple(known.cities.get(part, part) for part in behind if part not in known.qualifiers)
    return PlaceName(tuple(head), _agreed(readings), within)


def compare_places(one: str, other: str) -> Likeness:
    """The verdict on two labels of places."""
    a, b = place(one), place(other)
    findings = LikenessEvidence()
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
    return frozenset({name}).union(*(pair for pair in _gazetteer().open if name in pair))


def _is_known(text: str) -> bool:
    known = _gazetteer()
    return text in known.cities or text in known.countries or text in known.states


def _head_words(text: str) -> list[str]:
    known = _gazetteer()
    words = words_of(text, known.abbreviations)
    if len(words) > 1 and words[0] == "the":
        words = words[1:]
    if len(words) > 1:
        # `St.` is a saint in front and a street at the end.
        words = [
            ("saint" if number < len(words) - 1 else "street") if word == "st" else word for number, word in enumerate(words)
        ]
        words = [known.directions.get(word, word) if number == 0 else word for number, word in enumerate(words)]
    return words


def _set_off(head: list[str], label: str) -> tuple[list[str], list[str]]:
    """Part a state from the place before it, if no comma does: `Austin TX`, `Austin Texas`."""
    known = _gazetteer()
    last = label.split()[-1].replace(".", "")
    if head[0] not in known.not_before_a_state or len(head) > 2:
        if len(last) == 2 and last.isupper() and any(state for _, state in known.qualifiers.get(head[-1], ())):
            return head[:-1], [head[-1]]
        for size in (2, 1):
            if len(head) > size and " ".join(head[-size:]) in known.states:
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


def _compare_heads(a: PlaceName, b: PlaceName, findings: LikenessEvidence) -> None:
    known = _gazetteer().known
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
    elif a.name in known and b.name in known:
        findings.deny("two places")
    else:
        _expect_likeness(a, b, findings)


def _is_open(a: PlaceName, b: PlaceName) -> bool:
    known = _gazetteer()
    spelled = {" ".join(map(folded, who.head)) for who in (a, b)}
    if spelled & known.parts_of_countries:
        return a.name == b.name
    return {a.name, b.name} in known.open or spelled in known.open


def _expect_likeness(a: PlaceName, b: PlaceName, findings: LikenessEvidence) -> None:
    known = _gazetteer()
    odd = [(x, y) for x, y in zip(a.head, b.head, strict=False) if not differ_in_accents_only(x, y)]
    if len(a.head) == len(b.head) and len(odd) == 1:
        one, other = odd[0]
        enough = VOWEL_CHARS_MIN if differ_in_a_vowel(one, other) else SLIP_CHARS_MIN
        if min(len(one), len(other)) >= enough and is_slip(one, other):
            findings.doubt("nearly the same spelling and sound", 0.6, weak=True)
            return
    content_a, content_b = (sorted(map(folded, set(who.head) - small_words())) for who in (a, b))
    shorter, longer = sorted((a.head, b.head), key=len)
    if content_a == content_b and content_a:
        findings.doubt("the same words in another order", 0.7)
    elif longer[:-1] == shorter and longer[-1] in known.kinds and " ".join(shorter) not in known.known:
        findings.doubt("kind left out", 0.6)
    else:
        findings.deny("other words")


def _compare_whereabouts(a: PlaceName, b: PlaceName, findings: LikenessEvidence) -> None:
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
