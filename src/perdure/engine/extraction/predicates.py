"""What a clause says of its subject: the attributes that have a name, and the predicates that tell them.

A predicate is written once for `I` and for `she`: `<live>` is `live` after the one and `lives` after the other, `<be>` is `'m`
or `is`. It has to match right behind the subject, so a modal, a doubt or a reporting verb in between leaves nothing to match.
Attributes are in `attributes.toml`, predicates in `en.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any, Literal

from perdure.domain.knowledge.proposals import EntityType, FactType, Proposal
from perdure.domain.values import dataclass
from perdure.engine.extraction.patterns import compiled, english
from perdure.engine.words import table

Shape = Literal["place", "org", "job", "age", "phrase", "diet", "languages", "date", "name"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """What is told of a subject, and how it is worded."""

    name: str
    own: str
    """Wording of a statement about the user."""
    shape: Shape
    fact_type: FactType = "fact"
    entity: EntityType | None = None
    importance: int = 1
    other: str = ""
    """Wording behind a name, if it is not that of `own` in lower case."""

    def content(self, value: str, who: str | None) -> str:
        """`Lives in Rome`, or `Anna lives in Rome`."""
        if who is None:
            return self.own.format(value)
        words = self.other or self.own[0].lower() + self.own[1:]
        return f"{who} {words.format(value)}"


@cache
def attributes() -> Mapping[str, Attribute]:
    """The attributes that have a name, by it."""
    rows: Mapping[str, Mapping[str, Any]] = table(__package__, "attributes.toml")["attributes"]
    return {name: Attribute(name, **row) for name, row in rows.items()}


@cache
def attributes_that_are(kind: Literal["personal", "of_strangers", "single_valued"]) -> frozenset[str]:
    """Names of attributes: kept of other people too, even of strangers, or with one value at a time."""
    return frozenset(table(__package__, "attributes.toml")[kind].split())


def is_single_valued(attribute: str | None) -> bool:
    """Whether a new value of the attribute takes the place of the old one."""
    return attribute is not None and (attribute.startswith("favorite_") or attribute in attributes_that_are("single_valued"))


IMPORTANT, IDENTITY = 2, 3


def bounded_importance(proposed: object, attribute: str | None, fact_type: str, content: str, *, of_user: bool) -> int:
    """How important a statement is, within what its kind allows, no matter who proposes it: the user's name 3, relationships 2,
    health and safety at least 2, anything else at most what its attribute is worth, or 2.
    """
    words = _plain_words(content)
    marks = _marks()
    if of_user and (attribute in marks.names or words.startswith(marks.own_name)):
        return IDENTITY
    known = attributes().get(attribute or "")
    usual = 1 if known is None else known.importance if of_user else min(known.importance, IMPORTANT)
    most = max(IMPORTANT, usual)
    least = 0
    if fact_type == "relationship":
        least = most = IMPORTANT
    elif attribute in marks.health or speaks_of_health(content):
        least, most = IMPORTANT, IDENTITY
    number = proposed if isinstance(proposed, int) and not isinstance(proposed, bool) else usual
    return max(least, min(most, number))


@dataclass(frozen=True, slots=True)
class _Marks:
    """What makes a statement important: names of attributes, and how words of it begin."""

    names: frozenset[str]
    own_name: tuple[str, ...]
    health: frozenset[str]
    health_words: re.Pattern[str]


@cache
def _marks() -> _Marks:
    rows = table(__package__, "attributes.toml")
    return _Marks(
        names=frozenset(rows["names"].split()),
        own_name=tuple(f" {one} " for one in rows["own_name"]),
        health=frozenset(rows["health"].split()),
        health_words=re.compile(f" (?:{'|'.join(map(re.escape, rows['health_words']))})"),
    )


def speaks_of_health(content: str) -> bool:
    """Whether words of it are about health or safety."""
    return _marks().health_words.search(_plain_words(content)) is not None


def _plain_words(content: str) -> str:
    return " ".join(("", *re.findall(r"\w+", content.casefold()), ""))


def usual_importance(said: Proposal) -> int:
    """How important a statement is that somebody makes without saying so."""
    return bounded_importance(None, said.attribute, said.fact_type, said.content, of_user=said.subject is None)


@dataclass(frozen=True)
class Predicate:
    """One way to say something of a subject. Groups named after attributes hold their values."""

    form: str
    ended: bool = False
    changed: bool = False
    """It tells of a change, so a time beside it is when that happened."""
    confidence: float = 0.9

    @cached_property
    def own(self) -> re.Pattern[str]:
        """What stands behind `I` or `we`."""
        verbs = english()["verbs"]["own"]
        return compiled(re.sub(_VERB, lambda verb: verbs.get(verb[1], verb[1]), self.form))

    @cached_property
    def other(self) -> re.Pattern[str]:
        """What stands behind a name, `she`, `my sister`."""
        verbs = english()["verbs"]["other"]
        return compiled(re.sub(_VERB, lambda verb: verbs.get(verb[1]) or third_person(verb[1]), self.form))


_VERB = r"(?<!\?P)<(\w+)>"


@cache
def predicates() -> tuple[Predicate, ...]:
    """All of them, in order: the first that matches holds."""
    return tuple(Predicate(**row) for row in english()["rows"]["predicates"])


def third_person(verb: str) -> str:
    """`go` as it stands after `she`: `goes`."""
    known = {"have": "has", "be": "is", "am": "is", "are": "is", "do": "does", "go": "goes"}
    if verb in known:
        return known[verb]
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    return verb[:-1] + "ies" if verb.endswith("y") and verb[-2:-1] not in "aeiou" else verb + "s"
