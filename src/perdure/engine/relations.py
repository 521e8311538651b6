"""Who people are to the user: `John is my cofounder`, `my sister Anna`, `I'm married to Sam`; and pets, by the same words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from perdure.engine.clauses import Cast, Person
from perdure.engine.factwords import (
    BOSSES,
    CAPITALS,
    CHILDREN,
    NAME,
    PARTNERS,
    PET,
    RELATION,
    RELATION_ADJECTIVE,
    person_name,
)


@dataclass(frozen=True, slots=True)
class Tie:
    """One person, or one pet, and what they are to the user."""

    name: str
    relation: str
    start: int
    end: int
    ended: bool = False
    pet: bool = False
    ours: bool = False

    @property
    def attribute(self) -> str:
        if self.pet:
            return "has_pet"
        if self.relation in PARTNERS:
            return "partner"
        if self.relation in BOSSES:
            return "manager"
        return "has_child" if self.relation in CHILDREN else "relation"

    @property
    def content(self) -> str:
        whose = "our" if self.ours else "my"
        return f"{self.name} was {whose} {self.relation}" if self.ended else f"{self.name} is {whose} {self.relation}"


_REL = rf"(?P<adjective>(?i:{RELATION_ADJECTIVE}))(?P<relation>(?i:{RELATION}))"
_N = rf"(?P<name>{NAME})"
_ONE = rf"[{CAPITALS}][\w’-]+"
_CALLED = r"(?:,? (?:named|called|whose name is|by the name of),? |, )"

# Each at any place of a sentence that states something.
_SAID_OF = re.compile(
    rf"(?<![\w’'-]){_N},? (?:is|was|['’]s|who is|who['’]s) (?:now |still |also |actually "
    rf")?(?P<whose>(?i:my|our)) {_REL}(?![\w-]|['’]s)"
)
_NAMED_BY = re.compile(
    rf"\b(?P<whose>(?i:my|our)) {_REL}(?:['’]s (?:first |full )?name)?(?: is|['’]s)(?: now)?(?: "
    rf"(?:named|called))? {_N}(?! (?:and|or) I\b)"
)
_APPOSED = re.compile(
    rf"\b(?P<whose>(?i:my|our)) {_REL}(?:,? | \(|, (?:named|called) | (?:named|called) ){_N}(?=[\s.,;:!)’']|$)"
)
_BEHIND = re.compile(rf"(?<![\w’'-]){_N}(?:, | \(| - | – )(?P<whose>my|our) {_REL}(?P<close>[,)]|\s[-–]\s)?(?![\w-]|['’]s)")
_CHILDREN = re.compile(
    r"\b(?:(?i:my|our)|(?i:have|has)) (?:two |three |young |little |twin |\d )*(?P<relation>(?i:kids|"
    r"children|sons|daughters|boys|girls|twins)),? (?:named |called )?"
    rf"(?P<name>{_ONE})(?:, (?P<third>{_ONE}),?)? and (?P<other>{_ONE})"
)
_ONE_CHILD = {
    "sons": "son",
    "boys": "son",
    "daughters": "daughter",
    "girls": "daughter",
    "kids": "child",
    "children": "child",
    "twins": "child",
}
_HAVE = re.compile(rf"\b(?:I|we|We)(?: have|['’]ve got| also have| just had| had) (?:a|an|one) {_REL}{_CALLED}{_N}")
_MARRIED = re.compile(
    r"\b(?:I|i)(?:['’]?m| am| got| have been|['’]ve been|['’]m happily) (?:now |just "
    rf")?(?P<how>married to|engaged to|dating|seeing|going out with) {_N}"
)
_TOGETHER = re.compile(
    rf"(?<![\w’'-]){_N} and I (?:are|got|have been|just got) (?:now |just )?(?P<how>married|engaged|dating|a couple)"
)
_APART = re.compile(
    rf"(?:(?<![\w’'-]){_N} and I (?:have |just |recently |finally )*(?:broke up|split up|divorced|"
    r"separated|got divorced|are divorced|called it quits)|\b(?:I|i) (?:just |recently |finally "
    r")*(?:broke up with|divorced|left my (?:husband|wife|partner|boyfriend|girlfriend)) "
    rf"(?P<left>{NAME}))"
)
_NO_LONGER = re.compile(
    rf"(?<![\w’'-]){_N} (?:is no longer|isn['’]t|is not) (?P<whose>my|our) {_REL}(?P<gone>,? any ?more|,? any longer| now)?"
)
_PETS = re.compile(
    rf"\b(?i:my|our) (?P<adjective>(?:[a-z-]+ ){{0,2}}?)(?P<relation>{PET})(?:['’]s name)?(?:,? | is "
    rf"(?:named |called )?| \(|['’]s )(?:(?:named|called) )?{_N}"
    r"|\b(?:I|we|We)(?: just| recently| also)?(?: have| got| adopted|['’]ve got| rescued| bought)(?: "
    r"just| recently)?(?: adopted| rescued)? (?:a|an|another) "
    rf"(?P<adjective2>(?:[a-z-]+ ){{0,3}}?)(?P<relation2>{PET})(?:,? (?:named|called)|,| whose name is) (?P<name2>{NAME})"
)
_BARE_PET = re.compile(
    r"\b(?:I|we|We)(?: also| now)? (?:have|own)(?: got)? (?P<count>a|an|one|two|three|four|\d) "
    rf"(?P<adjective>(?:[a-z-]+ ){{0,2}}?)(?P<relation>{PET})s?(?P<list>(?:,? and (?:a|an|one|two|"
    rf"three) (?:[a-z-]+ ){{0,2}}?{PET}s?)?)(?![\w-]| (?:named|called|food|bed|toy|tree|house))"
)
_GONE = re.compile(r"\b(?:died|passed away|(?:was|were) put (?:down|to sleep)|crossed the rainbow bridge)\b")
_COUPLED = {
    "married": "spouse",
    "engaged": "fiancé",
    "dating": "partner",
    "seeing": "partner",
    "going out with": "partner",
    "a couple": "partner",
}


def find_ties(sentence: str, cast: Cast) -> Iterator[Tie]:
    """Everybody the sentence ties to the user. People found are added to `cast`."""
    seen: set[tuple[str, str]] = set()
    for tie in sorted(_all(sentence), key=lambda one: (one.start, -one.end)):
        key = (tie.name, tie.relation)
        if key in seen:
            continue
        seen.add(key)
        if not tie.pet:
            cast.add(Person(tie.name, tie.relation))
        yield tie


def _all(sentence: str) -> Iterator[Tie]:
    if _POSSESSIVE.search(sentence):
        yield from _of_mine(sentence)
    for match in _HAVE.finditer(sentence):
        yield from _tie(match, match["name"], match["relation"])
    for pattern in (_MARRIED, _TOGETHER):
        for match in pattern.finditer(sentence):
            yield from _tie(match, match["name"], _COUPLED[match["how"].removesuffix(" to")])
    for match in _APART.finditer(sentence):
        yield from _tie(match, match["name"] or match["left"], "partner", ended=True)
    for match in _PETS.finditer(sentence):
        adjective, relation = match["adjective"] or match["adjective2"] or "", match["relation"] or match["relation2"]
        gone = bool(_GONE.search(sentence, match.end()))
        yield from _tie(match, match["name"] or match["name2"], f"{adjective}{relation}".strip(), pet=True, ended=gone)


_POSSESSIVE = re.compile(r"\b(?:[Mm]y|[Oo]ur|have|has) ")


def _of_mine(sentence: str) -> Iterator[Tie]:
    for pattern in (_NAMED_BY, _SAID_OF, _APPOSED, _BEHIND):
        for match in pattern.finditer(sentence):
            # `Yesterday, my wife …`: what opens a sentence is a name only if the words about it are closed again.
            if pattern is _BEHIND and not sentence[: match.start()].strip() and not match["close"]:
                continue
            yield from _tie(match, match["name"], match["relation"], ours=match["whose"].lower() == "our")
    for match in _CHILDREN.finditer(sentence):
        for name in filter(None, (match["name"], match["other"], match["third"])):
            yield from _tie(match, name, _ONE_CHILD[match["relation"].lower()])
    for match in _NO_LONGER.finditer(sentence):
        if match["gone"] or "no longer" in match[0]:
            yield from _tie(match, match["name"], match["relation"], ended=True)


_OURS = re.compile(
    r"(?i)ceo|cto|coo|cfo|designer|developer|engineer|lead|manager|intern|advisor|adviser|investor|"
    r"lawyer|accountant|client|customer|"
    r"landlord|neighbou?r|babysitter|nanny|vet|teacher|coach|contractor|son|daughter|baby|kid|child|"
    r"cofounder|co-founder|editor|drummer|"
    r"guitarist|singer|supplier|bandmate|roommate|flatmate|housemate"
)


def _tie(
    match: re.Match[str], name: str, relation: str, *, ended: bool = False, pet: bool = False, ours: bool = False
) -> Iterator[Tie]:
    known = person_name(name)
    relation = relation.lower()
    if known is None or known.split()[0].casefold() == relation or (ours and not _OURS.fullmatch(relation)):
        return
    end = match.end()
    if name.strip() != known and match.end() >= match.string.find(known, match.start()) + len(known):
        end = max(
            match.string.find(known, match.start()) + len(known),
            match.end() if match[0].rstrip(" ,)").endswith(relation) else 0,
        )
    yield Tie(known, relation, match.start(), end, ended, pet, ours)


def bare_pets(sentence: str) -> Iterator[tuple[str, int, int]]:
    """Pets without a name: `two cats`, with their places."""
    for match in _BARE_PET.finditer(sentence):
        yield re.sub(r"^.*?(?:have|own)(?: got)? ", "", match[0]), match.start(), match.end()
