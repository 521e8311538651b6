"""Who a clause is about: the user, a person with a name or a relation to the user, or a pronoun whose person is certain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from perdure.engine.factwords import (
    GENDERS,
    NAME,
    PARENT_NAMES,
    RELATION,
    RELATION_ADJECTIVE,
    UNIQUE,
    person_name,
)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody in the user's life, as this conversation names them."""

    label: str
    relation: str | None = None
    named: bool = True

    @property
    def gender(self) -> str:
        return GENDERS.get(self.relation or "", "")

    @property
    def spoken(self) -> str:
        """How a statement begins that is about this person."""
        return self.label if self.named else f"My {self.label}"


@dataclass(frozen=True, slots=True)
class Subject:
    """Of whom a clause speaks: None is the user. `end` is where what is said of them begins."""

    person: Person | None
    start: int
    end: int


@dataclass(slots=True)
class Cast:
    """The people of a conversation so far, and those a pronoun may mean."""

    people: dict[str, list[Person]] = field(default_factory=dict)
    recent: list[Person] = field(default_factory=list)
    """Named in this sentence or the one before."""
    strangers: int = 0
    """Names in this sentence and the one before that may be persons, though nothing says so."""

    def add(self, person: Person) -> None:
        held = self.people.setdefault(person.label.casefold(), [])
        if person not in held:
            held.append(person)

    def notice(self, person: Person) -> None:
        self.recent = [other for other in self.recent if other.label != person.label]
        self.recent.append(person)

    def named(self, label: str) -> Person | None:
        """Whom a bare name means; None if two people bear it, or nobody here does."""
        held = self.people.get(label.casefold(), [])
        relations = {person.relation for person in held if person.relation}
        return held[-1] if held and len(relations) <= 1 else None

    def ambiguous(self, label: str) -> bool:
        relations = {person.relation for person in self.people.get(label.casefold(), []) if person.relation}
        return len(relations) > 1

    def related(self, relation: str) -> Person | None:
        """Whom `my sister` means; without a known name it is a label of its own. None if there are two."""
        found = {p.label: p for held in self.people.values() for p in held if p.relation == relation and p.named}
        if len(found) > 1:
            return None
        if found:
            return next(iter(found.values()))
        return Person(
            relation.capitalize() if relation.capitalize() in PARENT_NAMES else relation,
            relation,
            named=relation.capitalize() in PARENT_NAMES,
        )

    def pronoun(self, word: str) -> Person | None:
        wanted = "f" if word.lower() == "she" else "m"
        fitting = [person for person in self.recent if person.gender in ("", wanted)]
        return fitting[0] if len(fitting) == 1 and not self.strangers else None


_FILLERS = re.compile(
    r"(?:\s|[-–—*•]|[,;:.]\s|(?:well|so|ok|okay|anyway|btw|fyi|oh|ah|yeah|yes|yep|yup|nope|no|nah|hi|"
    r"hello|hey|hiya|also|and|but|because|plus|now|currently|nowadays|these days|"
    r"right now|at the moment|for now|by the way|just so you know|just fyi|for context|for reference|"
    r"for the record|for your information|"
    r"(?:please |pls )?(?:remember|note|keep in mind|know|be aware|don['’]t forget)(?: that)?|"
    r"(?:quick |small )?(?:update|correction|background|note|heads up)|"
    r"i(?:['’]ve)? (?:already )?(?:told you|mentioned)(?: before| earlier)?(?: that)?|as i (?:said|"
    r"mentioned)(?: before| earlier)?|you should know(?: that)?|"
    r"i should (?:mention|add|say)(?: that)?|(?:good|big|great|sad|bad|exciting|some|happy|quick) "
    r"news|guess what|turns out|it turns out(?: that)?|the thing is|thing is|"
    r"actually|honestly|personally|basically|unfortunately|sadly|luckily|finally|recently|thanks|"
    r"thank you|sorry|my bad|oops|wait|hmm|um|uh|"
    r"a bit about me|about me|in fact|after all|to be honest|tbh|though|then|since|while|as you know|"
    r"first|second|lastly|nice to meet you|"
    r"good (?:morning|afternoon|evening)|there|everyone|again|today|yesterday|until recently|"
    r"meanwhile|too)(?=[\s,.:;!–—-])[,.:;!]?)*",
    re.IGNORECASE,
)
BOUNDARY = re.compile(r"[,;:()…—–]\s*|\s-\s|\s(?:and|but|because|so|while|although|though|plus|since|whereas)\s", re.IGNORECASE)
_INTRODUCED = re.compile(r"\b(?:named|called) (?=[^\W\d_])")
_CORRECTIVE = re.compile(r"\b(?:no|nope|nah|correction|sorry|my bad|oops|wait|i mean)\b", re.IGNORECASE)

_SELF = re.compile(
    r"(?:(?:my (?:family|wife|husband|partner|girlfriend|boyfriend|sister|brother|friend) and )?(?:I|"
    r"i)|(?i:we))(?=\b|m\b|ve\b)(?=['’ ]|m\b|ve\b)"
)
_MY = re.compile(
    rf"(?i:my) (?P<adjective>(?i:{RELATION_ADJECTIVE}))(?P<relation>(?i:{RELATION}))(?![\w’'-]*['’]s [a-z]+ (?:is|are))"
    rf"(?:(?:,? (?:named |called |whose name is )?| \()(?P<name>{NAME})[,)]?)?(?:,? who(?=['’ ]))?(?P<tail>)"
)
_NAMED = re.compile(
    rf"(?P<name>{NAME})(?:(?:, | \()(?i:my|our) "
    rf"(?i:{RELATION_ADJECTIVE})(?P<relation>(?i:{RELATION}))[,)]?)?(?:,? who(?=['’ ]))?"
)
_PRONOUN = re.compile(r"(?i:he|she)(?=['’ ])")


def after_fillers(sentence: str, start: int) -> int:
    """Where the clause proper begins."""
    match = _FILLERS.match(sentence, start)
    return match.end() if match else start


def is_corrective(words: str) -> bool:
    """Whether the words before a clause say that something was wrong."""
    return bool(_CORRECTIVE.search(words))


def clause_starts(sentence: str) -> Iterator[int]:
    """Where clauses may begin: at the start and behind each boundary."""
    yield 0
    for match in BOUNDARY.finditer(sentence):
        yield match.end()
    # `I have a brother named Ian who lives in Cork`
    for match in _INTRODUCED.finditer(sentence):
        yield match.end()


def subject_at(sentence: str, start: int, cast: Cast) -> Subject | None:
    """The subject that stands at `start`; None if there is none, or it is not certain who is meant."""
    match = _SELF.match(sentence, start)
    if match:
        return Subject(None, start, match.end())
    match = _MY.match(sentence, start)
    if match:
        return _related(match, start, cast)
    match = _PRONOUN.match(sentence, start)
    if match:
        person = cast.pronoun(match[0])
        return Subject(person, start, match.end()) if person else None
    match = _NAMED.match(sentence, start)
    if match:
        return _named(match, start, cast)
    return None


_ANY_NAME = re.compile(rf"(?<![\w’'.-])(?P<name>{NAME})")
_PLACE_LEAD = re.compile(r"\b(?:in|at|from|to|near|of|for|via|the|on|by)\s+$", re.IGNORECASE)
_ACTS = re.compile(r"(?:['’]s| (?:is|was|has|had|and|came|said|says|went|will|would|\w+ed|\w+s)\b)")
_RELATIVE = re.compile(rf"\b(?i:my) (?:(?i:older|younger|little|big) )?(?P<relation>(?i:{RELATION}))(?![\w’'-])")


def people_in(sentence: str, cast: Cast) -> list[tuple[int, Person | None]]:
    """Whom a sentence names, with their places: people of the cast, and None for a name that may be anybody's."""
    found: list[tuple[int, Person | None]] = []
    for match in _ANY_NAME.finditer(sentence):
        name = person_name(match["name"])
        if name is None:
            continue
        held = cast.people.get(name.casefold(), [])
        opening = not sentence[: match.start()].strip()
        if held:
            found.append((match.start(), held[-1]))
        elif (opening and _ACTS.match(sentence, match.end())) or (
            not opening and not _PLACE_LEAD.search(sentence[: match.start()])
        ):
            found.append((match.start(), None))
    for match in _RELATIVE.finditer(sentence):
        relation = match["relation"].lower()
        person = cast.related(relation) if relation in UNIQUE else None
        if person is not None:
            found.append((match.start(), person))
    return sorted(found, key=lambda one: one[0])


def recent_of(named: list[Person | None]) -> tuple[list[Person], int]:
    """The people among those named, each once, and how many of the names are nobody's we know."""
    people = {person.label: person for person in named if person is not None}
    return list(people.values()), sum(person is None for person in named)


def _related(match: re.Match[str], start: int, cast: Cast) -> Subject | None:
    relation = match["relation"].lower()
    name = person_name(match["name"]) if match["name"] else None
    if name:
        # `my sister Anna lives`: only what is the name belongs to the subject.
        end = match.start("name") + match["name"].find(name.split()[0]) + len(name)
        tail = re.compile(r"[,)]?(?:,? who(?=['’ ]))?").match(match.string, end)
        return Subject(Person(name, relation), start, tail.end() if tail else end)
    end = match.end("relation")
    tail = re.compile(r"(?:,? who(?=['’ ]))?").match(match.string, end)
    person = cast.related(relation) if relation in UNIQUE else None
    return Subject(person, start, tail.end() if tail else end) if person else None


def _named(match: re.Match[str], start: int, cast: Cast) -> Subject | None:
    name = person_name(match["name"])
    if name is None:
        return None
    end = match.end() if match["name"].endswith(name) else match.start("name") + match["name"].find(name) + len(name)
    if match["relation"]:
        return Subject(Person(name, match["relation"].lower()), start, match.end())
    if cast.ambiguous(name):
        return None
    person = cast.named(name)
    if person is None and " " in name:
        return None  # a full name that nobody introduced may be anybody's, of the news for example
    if person is None and name in PARENT_NAMES:
        person = Person(name, name.lower())
    return Subject(person or Person(name), start, end)
