"""Who a clause is about: the user, a person with a name or a relation to the user, or a pronoun whose person is certain.

Corrections: which earlier statement a sentence takes back or puts right, and what it becomes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from perdure.domain.knowledge.proposals import EntityName
from perdure.domain.values import dataclass, field, replace
from perdure.engine.extraction.facts import StatedFact, person_name, title_of
from perdure.engine.extraction.patterns import pattern, words


@dataclass(frozen=True, slots=True)
class MentionedPerson:
    """Somebody in the user's life, as this conversation names them."""

    label: str
    relation: str | None = None
    named: bool = True
    title: str = field(default="", compare=False)

    @property
    def gender(self) -> str:
        if self.relation in words("SHE"):
            return "f"
        return "m" if self.relation in words("HE") else ""

    @property
    def spoken(self) -> str:
        """How a statement begins that is about this person."""
        return f"{self.title}{self.label}" if self.named else f"My {self.label}"


@dataclass(frozen=True, slots=True)
class Subject:
    """Of whom a clause speaks: None is the user. `end` is where what is said of them begins."""

    person: MentionedPerson | None
    start: int
    end: int


@dataclass(slots=True)
class People:
    """The people of a conversation so far, and those a pronoun may mean."""

    by_label: dict[str, list[MentionedPerson]] = field(default_factory=dict)
    recent: list[MentionedPerson] = field(default_factory=list)
    """Named in this sentence or the one before."""
    strangers: int = 0
    """Names in this sentence and the one before that may be persons, though nothing says so."""

    def add(self, person: MentionedPerson) -> None:
        held = self.by_label.setdefault(person.label.casefold(), [])
        if person not in held:
            held.append(person)

    def notice(self, person: MentionedPerson) -> None:
        self.recent = [other for other in self.recent if other.label != person.label]
        self.recent.append(person)

    def labelled(self, label: str) -> Sequence[MentionedPerson]:
        return self.by_label.get(label.casefold(), ())

    def named(self, label: str) -> MentionedPerson | None:
        """Whom a bare name means; None if two people bear it, or nobody here does."""
        held = self.labelled(label)
        return held[-1] if held and not self.ambiguous(label) else None

    def ambiguous(self, label: str) -> bool:
        return len({person.relation for person in self.labelled(label) if person.relation}) > 1

    def related(self, relation: str) -> MentionedPerson | None:
        """Whom `my sister` means; without a known name it is a label of its own. None if there are two."""
        found = {p.label: p for held in self.by_label.values() for p in held if p.relation == relation and p.named}
        if len(found) > 1:
            return None
        if found:
            return next(iter(found.values()))
        is_name = relation.capitalize() in words("PARENT_NAMES")
        return MentionedPerson(relation.capitalize() if is_name else relation, relation, named=is_name)

    def pronoun(self, word: str) -> MentionedPerson | None:
        wanted = "f" if word.lower() == "she" else "m"
        fitting = [person for person in self.recent if person.gender in ("", wanted)]
        return fitting[0] if len(fitting) == 1 and not self.strangers else None


def after_fillers(sentence: str, start: int) -> int:
    """Where the clause proper begins."""
    match = pattern("fillers").match(sentence, start)
    return match.end() if match else start


def is_corrective(before: str) -> bool:
    """Whether the words before a clause say that something was wrong."""
    return bool(pattern("corrective").search(before))


def clause_starts(sentence: str) -> Iterator[int]:
    """Where clauses may begin: at the start and behind each boundary."""
    yield 0
    for match in pattern("boundary").finditer(sentence):
        yield match.end()
    # `I have a brother named Ian who lives in Cork`
    for match in pattern("introduced").finditer(sentence):
        yield match.end()


def subject_at(sentence: str, start: int, people: People) -> Subject | None:
    """The subject that stands at `start`; None if there is none, or it is not certain who is meant."""
    match = pattern("oneself").match(sentence, start)
    if match:
        return Subject(None, start, match.end())
    match = pattern("my_relation").match(sentence, start)
    if match:
        return _related(match, start, people)
    match = pattern("pronoun").match(sentence, start)
    if match:
        person = people.pronoun(match[0])
        return Subject(person, start, match.end()) if person else None
    match = pattern("named_person").match(sentence, start)
    if match:
        return _named_subject(match, start, people)
    return None


def people_in(sentence: str, people: People) -> list[tuple[int, MentionedPerson | None]]:
    """Whom a sentence names, with their places: known people, and None for a name that may be anybody's."""
    found: list[tuple[int, MentionedPerson | None]] = []
    for match in pattern("any_name").finditer(sentence):
        name = person_name(match["name"])
        if name is None:
            continue
        held = people.labelled(name)
        opening = not sentence[: match.start()].strip()
        if held:
            found.append((match.start(), held[-1]))
        elif (opening and pattern("acts").match(sentence, match.end())) or (
            not opening and not pattern("place_lead").search(sentence[: match.start()])
        ):
            found.append((match.start(), None))
    for match in pattern("relative").finditer(sentence):
        relation = match["relation"].lower()
        person = people.related(relation) if relation in words("UNIQUE") else None
        if person is not None:
            found.append((match.start(), person))
    return sorted(found, key=lambda one: one[0])


def recent_of(named: list[MentionedPerson | None]) -> tuple[list[MentionedPerson], int]:
    """The people among those named, each once, and how many of the names are nobody's we know."""
    known = {person.label: person for person in named if person is not None}
    return list(known.values()), sum(person is None for person in named)


def _related(match: re.Match[str], start: int, people: People) -> Subject | None:
    relation = match["relation"].lower()
    name = person_name(match["name"]) if match["name"] else None
    if name:
        # `my sister Anna lives`: only what is the name belongs to the subject.
        end = match.start("name") + match["name"].find(name.split()[0]) + len(name)
        tail = pattern("name_tail").match(match.string, end)
        return Subject(MentionedPerson(name, relation, title=title_of(match["name"])), start, tail.end() if tail else end)
    end = match.end("relation")
    tail = pattern("relation_tail").match(match.string, end)
    person = people.related(relation) if relation in words("UNIQUE") else None
    return Subject(person, start, tail.end() if tail else end) if person else None


def _named_subject(match: re.Match[str], start: int, people: People) -> Subject | None:
    name = person_name(match["name"])
    if name is None:
        return None
    end = match.end() if match["name"].endswith(name) else match.start("name") + match["name"].find(name) + len(name)
    if match["relation"]:
        return Subject(MentionedPerson(name, match["relation"].lower(), title=title_of(match["name"])), start, match.end())
    if people.ambiguous(name):
        return None
    person = people.named(name)
    if person is None and " " in name:
        return None  # a full name that nobody introduced may be anybody's, of the news for example
    if person is None and name in words("PARENT_NAMES"):
        person = MentionedPerson(name, name.lower())
    return Subject(person or MentionedPerson(name, title=title_of(match["name"])), start, end)


def corrected(sentence: str, said: Sequence[StatedFact]) -> StatedFact | None:
    """The statement of `said`, newest last, with the value that the sentence puts in place of the wrong one."""
    match = pattern("meant").match(sentence) or pattern("value_not").match(sentence)
    if match is None or not said:
        return None
    value = pattern("spelled").sub("", match["value"]).strip(" ,'\"“”")
    if not pattern("says_so").search(sentence) and not re.match(r"[A-Z0-9]", value):
        return None  # `No problem`, `Wait, really`
    wrong = (match["wrong"] or "").strip(" ,'\"“”")
    target = _target(said, value, re.sub(r"^(?:in|at|on|to|from) ", "", wrong))
    if target is None or target.value.casefold() == value.casefold():
        return None
    value = re.sub(r"^(?:in|at|on|to|from) ", "", value)
    start = match.start("value")
    return _with_value(target, value, start, start + len(match["value"]))


def takes_back_all(sentence: str) -> bool:
    """Whether the sentence says that what was said just before is wrong, without saying what is right."""
    return bool(pattern("scratch").match(sentence))


def _target(said: Sequence[StatedFact], value: str, wrong: str) -> StatedFact | None:
    if wrong:
        fitting = [fact for fact in said if wrong.casefold() in _named_value(fact).casefold()]
        return fitting[-1] if fitting else None
    if pattern("whole_sentence").search(value) or len(value.split()) > 4:
        return None
    fitting = [fact for fact in said if _alike(_named_value(fact), value)]
    return fitting[0] if len(fitting) == 1 else None


def _named_value(fact: StatedFact) -> str:
    """What a correction may put right: of a relation it is who, seldom what."""
    return fact.subject.label if fact.attribute == "relation" and fact.subject else fact.value


def _alike(old: str, new: str) -> bool:
    return bool(re.search(r"\d", old)) == bool(re.search(r"\d", new)) and (old[:1].isupper() == new[:1].isupper())


def _with_value(fact: StatedFact, value: str, start: int, end: int) -> StatedFact:
    def named(entity: EntityName) -> EntityName:
        return replace(entity, label=value) if entity.label == fact.value else entity

    person = fact.attribute == "relation"
    old = fact.subject.label if person and fact.subject else fact.value
    # `John is my cofounder`, corrected to `Jon`: the name was wrong, not the relation.
    if person and value[:1].isupper():
        subject = EntityName("person", value)
        return replace(
            fact,
            content=fact.content.replace(old, value),
            subject=subject,
            entities=(subject,),
            start=start,
            end=end,
            corrects=True,
        )
    return replace(
        fact,
        value=value,
        content=fact.content.replace(fact.value, value),
        entities=tuple(map(named, fact.entities)),
        subject=named(fact.subject) if fact.subject and not person else fact.subject,
        start=start,
        end=end,
        corrects=True,
        ended=False,
    )
