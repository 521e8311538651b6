"""Facts that need no subject of a clause: who people are to the user, what begins with `my`, and what the user works on.

`John is my cofounder`, `my sister Anna`, `I'm married to Sam`, and pets by the same words; a name, a birthday, an address to
write to, a favourite; projects with their state and dates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from perdure.domain.knowledge.proposals import EntityName, FactType, MemoryType
from perdure.domain.values import dataclass, replace
from perdure.engine.extraction.patterns import compiled, english, forms, pattern, words
from perdure.engine.extraction.predicates import Attribute, attributes


@dataclass(frozen=True, slots=True)
class StatedFact:
    """One statement, before it has a time and evidence."""

    attribute: str | None
    value: str
    content: str
    start: int
    end: int
    type: MemoryType = "PROFILE"
    fact_type: FactType = "fact"
    entities: tuple[EntityName, ...] = ()
    subject: EntityName | None = None
    confidence: float = 0.9
    importance: int = 1
    ended: bool = False
    corrects: bool = False
    changed: bool = False
    """A time beside it is when that began, or ended."""


# -- names


def person_name(said: str) -> str | None:
    """The name without title, possessive or words that follow names at the start of a sentence; None if it is no name."""
    bare = said.strip()[len(title_of(said)) :]
    initials = pattern("initials").match(bare)
    first = initials[0] if initials else ""
    name = bare[len(first) :]
    last = "." if pattern("generation").search(name) else ""
    name = name.strip(" ,.'’")
    parts = name.split()
    no_names = words("NO_NAMES")
    while parts and parts[-1] in no_names:
        parts.pop()
    if not parts or any(part in no_names for part in parts) or len(parts[0]) < 2 or (name.isupper() and len(name) > 5):
        return None
    return first + " ".join(parts) + (last if name.endswith(parts[-1]) else "")


def title_of(said: str) -> str:
    """The title before a name, with the blank behind it; empty if there is none."""
    title = pattern("title").match(said.strip())
    return title[0] if title else ""


def proper(said: str) -> str | None:
    """A place or an organisation as said; None if the words are something else with a capital."""
    parts = said.strip(" ,").split()
    no_places = words("NO_PLACES")
    while parts and (parts[-1].strip(",") in no_places or (parts[-1] in _JOINING and len(parts) < len(said.split()))):
        parts.pop()
    if not parts or parts[0].strip(",") in no_places:
        return None
    return " ".join(parts).rstrip(",")


_JOINING = ("and", "&", "of", "for", "the", "de")
"""Of a name they join two words; left at its end, they join the next clause."""


# -- who people are to the user, and pets


@dataclass(frozen=True, slots=True)
class Relation:
    """One person, or one pet, and what they are to the user."""

    name: str
    relation: str
    start: int
    end: int
    ended: bool = False
    pet: bool = False
    ours: bool = False
    title: str = ""

    @property
    def stated(self) -> StatedFact:
        """What is kept of it: of a partner, a boss or a child who that is, of others what they are."""
        who, attribute = EntityName("person", self.name), self._attribute
        plain = StatedFact(attribute, self.name, self._content, self.start, self.end, ended=self.ended)
        if self.pet:
            return replace(plain, changed=self.ended)
        related = replace(plain, type="PEOPLE", fact_type="relationship", entities=(who,))
        if attribute == "relation":
            return replace(related, value=self.relation, subject=who, importance=2)
        return replace(related, importance=2, changed=True)

    @property
    def _attribute(self) -> str:
        if self.pet:
            return "has_pet"
        if self.relation in words("PARTNERS"):
            return "partner"
        if self.relation in words("BOSSES"):
            return "manager"
        return "has_child" if self.relation in words("CHILDREN") else "relation"

    @property
    def _content(self) -> str:
        if self.pet:
            return f"Has a {self.relation} named {self.name}"
        return f"{self.title}{self.name} {'was' if self.ended else 'is'} {'our' if self.ours else 'my'} {self.relation}"


def find_relations(sentence: str) -> Iterator[Relation]:
    """Everybody the sentence relates to the user, each once."""
    seen: set[tuple[str, str]] = set()
    for one in sorted(_relations(sentence), key=lambda relation: (relation.start, -relation.end)):
        key = (one.name, one.relation)
        if key not in seen:
            seen.add(key)
            yield one


def _relations(sentence: str) -> Iterator[Relation]:
    if pattern("possessive").search(sentence):
        yield from _of_mine(sentence)
    for match in pattern("have_relation").finditer(sentence):
        yield from _relation(match, match["name"], match["relation"])
    for name in ("married", "together"):
        for match in pattern(name).finditer(sentence):
            yield from _relation(match, match["name"], forms("COUPLED")[match["how"].removesuffix(" to")])
    for match in pattern("apart").finditer(sentence):
        yield from _relation(match, match["name"] or match["left"], "partner", ended=True)
    for match in pattern("pets").finditer(sentence):
        adjective, kind = match["adjective"] or match["adjective2"] or "", match["relation"] or match["relation2"]
        gone = bool(pattern("pet_gone").search(sentence, match.end()))
        yield from _relation(match, match["name"] or match["name2"], f"{adjective}{kind}".strip(), pet=True, ended=gone)


def _of_mine(sentence: str) -> Iterator[Relation]:
    for form in ("named_by", "said_of", "apposed", "behind"):
        for match in pattern(form).finditer(sentence):
            # `Yesterday, my wife …`: what opens a sentence is a name only if the words about it are closed again.
            if form == "behind" and not sentence[: match.start()].strip() and not match["close"]:
                continue
            yield from _relation(match, match["name"], match["relation"], ours=match["whose"].lower() == "our")
    for match in pattern("children").finditer(sentence):
        for name in filter(None, (match["name"], match["other"], match["third"])):
            yield from _relation(match, name, forms("CHILD")[match["relation"].lower()])
    for match in pattern("no_longer").finditer(sentence):
        if match["gone"] or "no longer" in match[0]:
            yield from _relation(match, match["name"], match["relation"], ended=True)


def _relation(
    match: re.Match[str], said: str, relation: str, *, ended: bool = False, pet: bool = False, ours: bool = False
) -> Iterator[Relation]:
    name = person_name(said)
    relation = relation.lower()
    if name is None or name.split()[0].casefold() == relation or (ours and not pattern("shared_relation").fullmatch(relation)):
        return
    end = match.end()
    if said.strip() != name and match.end() >= match.string.find(name, match.start()) + len(name):
        end = max(
            match.string.find(name, match.start()) + len(name),
            match.end() if match[0].rstrip(" ,)").endswith(relation) else 0,
        )
    yield Relation(name, relation, match.start(), end, ended=ended, pet=pet, ours=ours, title=title_of(said))


def bare_pets(sentence: str) -> Iterator[tuple[str, int, int]]:
    """Pets without a name: `two cats`, with their places."""
    for match in pattern("bare_pet").finditer(sentence):
        yield re.sub(r"^.*?(?:have|own)(?: got)? ", "", match[0]), match.start(), match.end()


# -- what begins with `my`


@dataclass(frozen=True, slots=True)
class _Possession:
    attribute: Attribute
    form: re.Pattern[str]


@cache
def _possessions() -> tuple[_Possession, ...]:
    return tuple(map(_possession, english()["rows"]["possessions"]))


def _possession(row: Mapping[str, Any]) -> _Possession:
    name = row["attribute"]
    attribute = attributes().get(name) or Attribute(name, row["says"], "phrase", importance=row["importance"])
    return _Possession(attribute, compiled(row["form"]))


def find_possessions(sentence: str) -> Iterator[StatedFact]:
    """What a sentence says of the user, beginning with `my`, and how they are called."""
    yield from _own_name(sentence)
    if not pattern("of_oneself").search(sentence):
        return
    for one in _possessions():
        for match in one.form.finditer(sentence):
            yield from _possessed(one.attribute, match)
    for match in pattern("favourite").finditer(sentence):
        what, value = match["what"].lower().replace("colour", "color"), match["v"].strip()
        yield StatedFact(
            attribute=f"favorite_{what.replace(' ', '_')}",
            value=value,
            content=f"Favorite {what} is {value}",
            start=match.start(),
            end=match.end("v"),
            fact_type="preference",
        )
    for match in pattern("others_birthday").finditer(sentence):
        name = person_name(match["name"])
        if name and re.search(r"\d", match["v"]):
            who = EntityName("person", name)
            yield StatedFact(
                attribute="birthday",
                value=match["v"],
                content=f"{name}'s birthday is {match['v']}",
                start=match.start(),
                end=match.end("v"),
                type="PEOPLE",
                entities=(who,),
                subject=who,
            )


def _possessed(attribute: Attribute, match: re.Match[str]) -> Iterator[StatedFact]:
    value = match["v"].strip(" ,")
    if attribute.entity is not None:
        value = proper(value) or ""
    if attribute.name == "birthday" and not re.search(r"\d|first|second|third|th\b", value):
        return
    if attribute.name == "email":
        value = value.rstrip(".")
    if value:
        yield StatedFact(
            attribute=attribute.name,
            value=value,
            content=attribute.content(_with_article(value) if attribute.name == "job_title" else value, None),
            start=match.start(),
            end=match.end("v"),
            entities=(EntityName(attribute.entity, value),) if attribute.entity else (),
            confidence=0.95,
            importance=attribute.importance,
        )


def _with_article(job: str) -> str:
    if pattern("title_alone").match(job):
        return job
    return f"{'an' if job[0].lower() in 'aeiou' else 'a'} {job}"


@cache
def _name_patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(map(compiled, english()["rows"]["names"]))


def _own_name(sentence: str) -> Iterator[StatedFact]:
    wrong = pattern("name_corrected").search(sentence)
    if wrong and (name := person_name(wrong["name"])):
        yield _called(name, wrong.start(), wrong.end(), confidence=0.95, corrects=True)
        return
    for index, form in enumerate(_name_patterns()):
        match = form.search(sentence)
        if match is None:
            continue
        said = match["name"]
        found = _lower_name(said, sentence) if said[0].islower() else person_name(said)
        if found is None or (index == len(_name_patterns()) - 1 and pattern("not_me").search(match[0].strip())):
            continue
        yield _called(found, match.start(), match.start("name") + len(said), confidence=0.95 if index == 0 else 0.85)
        return


def _called(name: str, start: int, end: int, *, confidence: float, corrects: bool = False) -> StatedFact:
    return StatedFact(
        attribute="name",
        value=name,
        content=f"Name is {name}",
        start=start,
        end=end,
        importance=3,
        confidence=confidence,
        corrects=corrects,
    )


def _lower_name(word: str, sentence: str) -> str | None:
    """A name without a capital: only of those who write none at all."""
    return word if sentence == sentence.lower() and word not in words("LOWER_NO_NAMES") else None


# -- projects


def find_projects(sentence: str) -> Iterator[StatedFact]:
    """What a sentence says of things the user works on."""
    for form in ("working_on", "project_called"):
        for match in pattern(form).finditer(sentence):
            name = _project(match.groupdict().get("called") or match["v"])
            if name:
                yield StatedFact(
                    attribute="works_on",
                    value=name,
                    content=f"Working on {name}",
                    start=match.start(),
                    end=match.end("v"),
                    type="PROJECT",
                    entities=(EntityName("project", name),),
                    importance=2,
                )
    for match in pattern("project_status").finditer(sentence):
        name = _project(match["v"])
        if name and match["v"].split()[0] not in words("NO_NAMES") and (" " in name or name[:1].isupper()):
            yield _of_project(name, "status", match["s"], f"{name} is {match['s']}", match.start("v"), match.end("s"))
    for match in pattern("project_uses").finditer(sentence):
        name = _project(match["p"] or match["p2"] or "", bare=True)
        if name:
            for value in re.split(r", and |, | and ", match["v"].rstrip(".")):
                yield _of_project(name, "technology", value, f"{name} uses {value}", match.start(), match.end())
    for match in pattern("project_role").finditer(sentence):
        name = _project(match["v"])
        if name:
            yield _of_project(name, "role", "lead", f"Leads {name}", match.start(), match.end("v"))


def deadlines(sentence: str) -> Iterator[tuple[str, int, int]]:
    """Projects whose date a sentence tells, with the place where they stand and where the date begins."""
    for match in pattern("project_deadline").finditer(sentence):
        name = _project(match["a"] or match["b"] or match["c"] or "", bare=True)
        if name:
            yield name, match.start(), match.start("when")


def deadline_of(name: str, said: str, start: int, end: int) -> StatedFact:
    """That the date of a project is as `said`."""
    return _of_project(name, "deadline", said, f"Deadline of {name} is {said}", start, end)


def _of_project(name: str, attribute: str, value: str, content: str, start: int, end: int) -> StatedFact:
    project = EntityName("project", name)
    return StatedFact(
        attribute=attribute,
        value=value,
        content=content,
        start=start,
        end=end,
        type="PROJECT",
        entities=(project,),
        subject=project,
        importance=2 if attribute == "deadline" else 1,
    )


def _project(said: str, *, bare: bool = False) -> str | None:
    name = pattern("project_article").sub("", said.strip()).strip()
    name = re.sub(r"(?<=\w)\s+project$", "", name, flags=re.IGNORECASE)
    if not name or pattern("no_project").search(name) or name in words("NO_NAMES") or name.split()[0].endswith("ing"):
        return None
    return None if name.casefold() in words("BARE_PROJECTS") and not bare else name
