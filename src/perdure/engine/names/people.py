"""Names of persons: taken apart into titles, given names and surnames, and compared.

The surname must agree or be missing. A bare first name is never enough for certainty: two friends may share it.
`people.txt` has the words around names; `given_names.txt` says which given names are one, and which are short for which.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from functools import cache, lru_cache

from perdure.domain.text.patterns import pattern
from perdure.domain.values import dataclass
from perdure.engine.names.spelling import (
    Likeness,
    LikenessEvidence,
    differ_in_accents_only,
    differ_in_doubling,
    folded,
    is_latin,
    is_short_form,
    is_slip,
    plain,
    respelled,
    romanised,
)
from perdure.engine.words import sections, word_map, word_set

_QUOTED = pattern(r'"([^"]{1,60})"|\(([^()]{1,60})\)')
_ADDRESS = pattern(r"([^@\s]{1,64})@[^@\s]+\.[^@\s]+")
_INITIALS = pattern(r"(?:\w\.){2,}\w?\.?|\w\.")
SURNAME_DOUBLING_CHARS_MIN = 8


@dataclass(frozen=True, slots=True)
class PersonName:
    """A name taken apart. Words are plain and in the order given name, middle names, surname."""

    words: tuple[str, ...]
    title: bool = False
    gender: str = ""
    """Told by the title."""
    kin: str = ""
    """Relation or role: `mom`, `coach`."""
    kin_is_one: bool = False
    owner: str = ""
    """Whose relation: `john's wife` is owned by `john`."""
    generation: str = ""
    nickname: str = ""
    maiden: str = ""
    remark: str = ""
    """What stands in brackets and is no name: `gym`."""
    address: bool = False

    @property
    def joined(self) -> str:
        return "".join(self.words)

    @property
    def numbers(self) -> list[str]:
        return sorted(re.findall(r"\d+", " ".join(self.words)))


@lru_cache(maxsize=16_384)
def person(label: str) -> PersonName:
    """Take a bounded label apart."""
    words = _words()
    text, address = plain(label), False
    if match := _ADDRESS.fullmatch(text):
        text, address = " ".join(re.split(r"[._+\-]|\d+", match[1])), True
    maiden = match[1].strip() if (match := words.maiden.search(text)) else ""
    text = words.maiden.sub(" ", text)
    nickname, remark = _asides(text)
    text = _QUOTED.sub(" ", text).lstrip("@ ")
    owner, of_whom, text = text.rpartition("'s ")
    tokens, generation = _ordered(words.polite_ending.sub("", text))
    title, told, kin = False, "", ("", False)
    while tokens:
        word = folded(tokens[0])
        if len(tokens) > 1 and word in (words.possessives_of_kin if folded(tokens[1]) in words.kin else words.possessives):
            pass
        elif word in words.kin and (len(tokens) == 1 or not kin[0]) and not (word in words.titles and len(tokens) > 1):
            kin = words.kin[word]
        elif word in words.titles and len(tokens) > 1:
            title, told = True, told or words.titles[word]
        elif word == "sr" and len(tokens) > 1:
            title, told = True, "m"
        else:
            break
        tokens = tokens[1:]
    return PersonName(
        words=tuple(tokens),
        title=title,
        gender=told,
        kin=kin[0],
        kin_is_one=kin[1],
        owner=owner.strip() + of_whom.strip(),
        generation=generation,
        nickname=nickname,
        maiden=maiden,
        remark=remark,
        address=address,
    )


def compare_persons(one: str, other: str) -> Likeness:
    """The verdict on two labels of persons."""
    a, b = person(one), person(other)
    findings = LikenessEvidence()
    _compare_circumstances(a, b, findings)
    if not findings.denied:
        if not a.words or not b.words:
            _compare_relations(a, b, findings)
        elif not _written_alike(a, b, findings):
            if min(len(a.words), len(b.words)) > 1 or (is_latin(a.joined) and is_latin(b.joined)):
                _compare_words(a, b, findings)
            else:
                _compare_unspaced(a, b, findings)
    return findings.verdict()


def _asides(text: str) -> tuple[str, str]:
    """Nickname and remark: `robert "bob" smith`, `anna (gym)`."""
    nickname = remark = ""
    for quoted, bracketed in _QUOTED.findall(text):
        words = (quoted or bracketed).split()
        if len(words) == 1 and (quoted or folded(words[0]) in _given_names().known):
            nickname = words[0]
        else:
            remark = " ".join(words)
    return nickname, remark


def _ordered(text: str) -> tuple[list[str], str]:
    """Words in the order given name to surname, and the generation."""
    parts = [_tokens(part) for part in text.split(",")]
    words, generation = _words(), ""
    kept: list[list[str]] = []
    for part in parts:
        while part and (ending := part[-1]) and (len(part) + len(kept) > 1):
            if ending in (words.degrees_after_comma if kept and len(part) == 1 else words.degrees):
                part.pop()
            elif ending in words.generations and (len(part) > 1 or kept):
                generation = words.generations[part.pop()]
            else:
                break
        if part:
            kept.append(part)
    if len(kept) == 2:
        kept.reverse()
    return [word for part in kept for word in part], generation


def _tokens(text: str) -> list[str]:
    words = _words()
    tokens: list[str] = []
    for token in text.split():
        bare = re.sub(r"[^\w\s\-]|_", "", token)
        if bare in words.degrees or bare in words.generations:
            tokens.append(bare)
        elif _INITIALS.fullmatch(token) and bare not in words.titles:
            tokens.extend(bare)
        else:
            tokens.extend(filter(None, bare.split("-")))
    return tokens


def _compare_circumstances(a: PersonName, b: PersonName, findings: LikenessEvidence) -> None:
    """Everything around the name proper."""
    if a.owner != b.owner:
        findings.deny("somebody of one of them")
    elif a.numbers != b.numbers:
        findings.deny("numbers differ")
    elif a.kin and b.kin and a.kin != b.kin:
        findings.deny("relations differ")
    elif (gender_a := _gender(a)) and (gender_b := _gender(b)) and gender_a != gender_b and (a.title or b.title):
        findings.deny("title of a woman and of a man")
    elif a.generation and b.generation and a.generation != b.generation:
        findings.deny("generations differ")
    elif a.remark and b.remark and a.remark != b.remark:
        findings.deny("remarks in brackets differ")
    else:
        if a.generation != b.generation:
            findings.doubt("generation on one side only", 0.6, weak=True)
        if a.remark != b.remark:
            findings.doubt("remark in brackets on one side only", 0.7)
        if a.kin != b.kin and a.words and b.words:
            findings.doubt("relation or role on one side only", 0.7)
        if a.address != b.address:
            findings.doubt("name of an address", 0.7)
        if a.title != b.title:
            findings.note("title dropped")


def _gender(who: PersonName) -> str | None:
    if who.gender or len(who.words) < 2:
        return who.gender or None
    return gender(folded(who.words[0]))


def _compare_relations(a: PersonName, b: PersonName, findings: LikenessEvidence) -> None:
    if not a.kin or a.kin != b.kin or a.words or b.words:
        findings.deny("a relation and a name")
    elif a.kin_is_one:
        findings.note("the same relation in other words")
    else:
        findings.doubt("the same relation in other words, which several may have", 0.6)


def _written_alike(a: PersonName, b: PersonName, findings: LikenessEvidence) -> bool:
    """Whether all that differs is spaces, accents or the script."""
    accents = differ_in_accents_only(a.joined, b.joined)
    if accents is None:
        rough_a, rough_b = romanised(a.joined), romanised(b.joined)
        if is_latin(a.joined) == is_latin(b.joined) or not rough_a or rough_a != rough_b:
            return False
        findings.note("the same letters in another script")
        if min(len(a.words), len(b.words)) == 1:
            findings.doubt("a bare name", 0.8)
    elif not accents:
        findings.doubt("accents differ", 0.7)
    elif a.joined != b.joined:
        findings.note("accents dropped")
    if a.words != b.words and folded(a.joined) == folded(b.joined):
        findings.note("spaces differ")
        if len(a.words) != len(b.words) and min(len(a.words), len(b.words)) == 1:
            findings.doubt("one word or a full name", 0.8)
    # `Mr. Smith` and a bare `Smith` may be a couple.
    if a.title != b.title and len(a.words) == 1:
        findings.doubt("title and surname, or a bare name", 0.7)
    return True


def _compare_words(a: PersonName, b: PersonName, findings: LikenessEvidence) -> None:
    if len(a.words) > len(b.words):
        a, b = b, a
    if len(b.words) == 1:
        if a.title and b.title:
            if is_slip(a.words[0], b.words[0], endings=False):
                findings.doubt("surnames sound alike", 0.6, weak=True)
            else:
                findings.deny("surnames differ")
        else:
            _compare_given(a, b, findings, bare=True)
    elif len(a.words) == 1:
        _compare_single(a, b, findings)
    else:
        _compare_full(a, b, findings)


def _compare_single(short: PersonName, full: PersonName, findings: LikenessEvidence) -> None:
    """A bare word against a full name."""
    word = short.words[0]
    surnames = {full.words[-1], "".join(full.words[1:]), "".join(_without_particles(full.words[1:]))}
    if any(differ_in_accents_only(word, surname) for surname in surnames):
        findings.doubt("surname only", 0.6)
    elif short.title:
        findings.deny("surnames differ")
    else:
        findings.doubt("first name only", 0.6)
        _compare_given(short, full, findings, bare=True)


def _compare_full(a: PersonName, b: PersonName, findings: LikenessEvidence) -> None:
    words_a, words_b = a.words, b.words
    if sorted(map(folded, words_a)) == sorted(map(folded, words_b)):
        findings.doubt("the same words in another order", 0.6)
        return
    bare_a, bare_b = _without_particles(words_a), _without_particles(words_b)
    if (len(bare_a), len(bare_b)) != (len(words_a), len(words_b)):
        if len(bare_a) > 1 and len(bare_b) > 1 and not _particles_agree(words_a, words_b):
            findings.doubt("particle left out", 0.8)
        words_a, words_b = bare_a, bare_b
    if _compare_surnames(a, b, (words_a, words_b), findings):
        return
    _compare_given(a, b, findings, bare=False)
    if not findings.denied:
        _compare_middles(words_a[1:-1], words_b[1:-1], findings)


def _compare_surnames(
    a: PersonName, b: PersonName, words: tuple[Sequence[str], Sequence[str]], findings: LikenessEvidence
) -> bool:
    """Record how the surnames agree; True if nothing is left to compare."""
    words_a, words_b = words
    last_a, last_b = words_a[-1], words_b[-1]
    if differ_in_accents_only(last_a, last_b):
        return False
    if len(last_a) == 1 or len(last_b) == 1:
        if last_a[0] != last_b[0]:
            findings.deny("initial of the surname does not fit")
            return True
        findings.doubt("initial of the surname", 0.6, weak=True)
        return False
    if a.maiden != b.maiden and any(differ_in_accents_only(who.maiden, last) for who, last in ((a, last_b), (b, last_a))):
        findings.doubt("maiden name", 0.7)
        return False
    # Two surnames, of which one is left out: the shorter name must be the beginning of the longer, or lack its middle.
    shorter, longer = sorted((words_a, words_b), key=len)
    if len(longer) > len(shorter) and any(differ_in_accents_only(shorter[-1], word) for word in longer[1:-1]):
        findings.doubt("one of two surnames", 0.6)
        _compare_given(a, b, findings, bare=False)
        return True
    if min(len(last_a), len(last_b)) >= SURNAME_DOUBLING_CHARS_MIN and differ_in_doubling(last_a, last_b):
        findings.note("a letter of the surname doubled")
        return False
    if is_slip(last_a, last_b, endings=False):
        findings.doubt("surnames sound alike", 0.6, weak=True)
        return False
    findings.deny("surnames differ")
    return True


def _compare_given(a: PersonName, b: PersonName, findings: LikenessEvidence, *, bare: bool) -> None:
    """First names. `bare`: nothing else agrees, so that even a sure relation of names is a suggestion at most."""
    pairs = [(a.words[0], b.words[0])]
    if a.nickname or b.nickname:
        pairs += [(x, y) for x in (a.nickname, a.words[0]) for y in (b.nickname, b.words[0]) if x and y]
    if any(differ_in_accents_only(x, y) for x, y in pairs):
        return
    one, other = folded(pairs[0][0]), folded(pairs[0][1])
    if len(one) == 1 or len(other) == 1:
        if one[0] != other[0]:
            findings.deny("initial does not fit")
        else:
            findings.doubt("initial of the given name", 0.6, weak=True)
        return
    related = relation_of(one, other)
    if related in (GivenNameRelation.SPELLING, GivenNameRelation.NICKNAME):
        if bare:
            findings.doubt(related.value, 0.8)
        else:
            findings.note(related.value)
    elif related in (GivenNameRelation.OPEN_NICKNAME, GivenNameRelation.SHARED_NICKNAME, GivenNameRelation.RESPELLED):
        findings.doubt(related.value, 0.8 if related is GivenNameRelation.OPEN_NICKNAME else 0.6)
    elif related is GivenNameRelation.UNRELATED:
        findings.deny("two given names")
    elif is_slip(one, other):
        findings.doubt("nearly the same spelling and sound", 0.6, weak=True)
    elif is_short_form(one, other):
        findings.doubt("short form of the other", 0.6, weak=True)
    else:
        findings.deny("given names differ")


def _compare_middles(middles_a: Sequence[str], middles_b: Sequence[str], findings: LikenessEvidence) -> None:
    for one, other in zip(middles_a, middles_b, strict=False):
        if differ_in_accents_only(one, other):
            continue
        if min(len(one), len(other)) > 1 or folded(one)[0] != folded(other)[0]:
            findings.deny("middle names differ")
            return
        findings.note("initial of a middle name")
    left_out = (middles_b if len(middles_b) > len(middles_a) else middles_a)[min(len(middles_a), len(middles_b)) :]
    if any(len(word) > 1 for word in left_out):
        findings.doubt("middle name left out", 0.7)
    elif left_out:
        findings.note("middle initial left out")


def _compare_unspaced(a: PersonName, b: PersonName, findings: LikenessEvidence) -> None:
    """Chinese, Japanese, Korean: surname first, without a space. One character more or less is another name."""
    shorter, longer = sorted((folded(a.joined), folded(b.joined)), key=len)
    if is_latin(shorter) or is_latin(longer) or len(longer) == len(shorter):
        findings.deny("written differently")
    elif longer.startswith(shorter) and len(longer) <= 4:
        findings.doubt("surname only", 0.6)
    elif longer.endswith(shorter) and len(shorter) > 1 and len(longer) <= 4:
        findings.doubt("given name only", 0.6)
    else:
        findings.deny("written differently")


def _without_particles(words: Sequence[str]) -> tuple[str, ...]:
    kept = tuple(word for number, word in enumerate(words) if number == 0 or word not in _words().particles)
    return kept if len(kept) > 1 or len(words) == 1 else tuple(words)


def _particles_agree(words_a: Sequence[str], words_b: Sequence[str]) -> bool:
    particles = _words().particles
    return [word for word in words_a[1:] if word in particles] == [word for word in words_b[1:] if word in particles]


class _Words:
    """`people.txt`, read."""

    def __init__(self) -> None:
        listed = sections(__package__, "people.txt")
        self.degrees = word_set(listed["degrees"])
        self.degrees_after_comma = self.degrees | word_set(listed["degrees after a comma"])
        self.generations = word_map(listed["generations"])
        self.possessives = word_set(listed["possessives"])
        self.possessives_of_kin = self.possessives | word_set(listed["possessives before a relation"])
        self.particles = word_set(listed["particles"])
        kinds = (("titles of men", "m"), ("titles of women", "f"), ("titles", ""))
        self.titles = {folded(word): gender for section, gender in kinds for word in word_set(listed[section])}
        self.kin = {
            folded(word): (line.strip("*").split()[0], line.startswith("*"))
            for line in listed["relations"]
            for word in line.strip("*").split()
        }
        self.maiden = re.compile(rf"\(?\b(?:{'|'.join(listed['born'])})\s+([^()]+)\)?")
        endings, hyphenated = "|".join(listed["endings"]), "|".join(listed["endings after a hyphen"])
        self.polite_ending = re.compile(rf"(?<=.)\s?(?:{endings})$|-(?:{hyphenated})$")


@cache
def _words() -> _Words:
    return _Words()


# -- given names


class GivenNameRelation(Enum):
    """What the table says of two given names."""

    SPELLING = "another spelling of the same given name"
    NICKNAME = "nickname of the other"
    OPEN_NICKNAME = "nickname of the other, and of more names"
    SHARED_NICKNAME = "both nicknames of one name"
    RESPELLED = "related to the other, spelled another way"
    UNRELATED = "two given names"
    UNKNOWN = "not in the table"


class _GivenNames:
    """`given_names.txt`, by name: the lines it is the head of, and those on which it is a short form."""

    def __init__(self) -> None:
        listed = sections(__package__, "given_names.txt")
        self.lines: dict[str, set[int]] = {}
        self.short_for: dict[str, set[int]] = {}
        self.men: set[str] = set(word_set(listed["more men"]))
        self.women: set[str] = set(word_set(listed["more women"]))
        number = 0
        for entries, bearers in ((listed["men"], self.men), (listed["women"], self.women)):
            for entry in entries:
                heads, _, nicknames = entry.partition(":")
                for name in heads.split():
                    self.lines.setdefault(name, set()).add(number)
                for name in nicknames.split():
                    self.short_for.setdefault(name, set()).add(number)
                bearers.update(heads.split(), nicknames.split())
                number += 1
        self.known = self.men | self.women
        self.respelled: dict[str | None, list[str]] = {}
        for name in sorted(self.known):
            self.respelled.setdefault(respelled(name), []).append(name)


@cache
def _given_names() -> _GivenNames:
    return _GivenNames()


def relation_of(one: str, other: str) -> GivenNameRelation:
    """How two different folded given names are related."""
    table = _given_names()
    none: set[int] = set()
    heads_one, heads_other = table.lines.get(one, none), table.lines.get(other, none)
    short_one, short_other = table.short_for.get(one, none), table.short_for.get(other, none)
    if heads_one & heads_other:
        return GivenNameRelation.SPELLING
    if short_one & heads_other or short_other & heads_one:
        nickname = one if short_one & heads_other else other
        # Tony is Anthony or Antonio, in one family never both; Alex may be a brother or a sister, Jack may be Jack.
        return (
            GivenNameRelation.OPEN_NICKNAME
            if gender(nickname) is None or nickname in table.lines
            else GivenNameRelation.NICKNAME
        )
    if short_one & short_other:
        return GivenNameRelation.SHARED_NICKNAME
    if one in table.known and other in table.known:
        return GivenNameRelation.UNRELATED
    return GivenNameRelation.RESPELLED if name_numbers(one) & name_numbers(other) else GivenNameRelation.UNKNOWN


def gender(name: str) -> str | None:
    """`f` or `m` where the table knows bearers of one kind only."""
    table = _given_names()
    man, woman = name in table.men, name in table.women
    return None if man == woman else "m" if man else "f"


@lru_cache(maxsize=16_384)
def name_numbers(name: str) -> frozenset[int]:
    """Numbers of the names that this folded name is or stands for: related names share one. Unknown ones are respelled."""
    table = _given_names()
    names = [name] if name in table.known else table.respelled.get(respelled(name), [])
    return frozenset().union(*(table.lines.get(one, ()) for one in names), *(table.short_for.get(one, ()) for one in names))
