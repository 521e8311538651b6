"""Clauses held against the predicates: what a sentence states of the user and of people in the user's life."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from perdure.domain.knowledge.proposals import EntityName
from perdure.engine.extraction.clauses import (
    MentionedPerson,
    People,
    Subject,
    after_fillers,
    clause_starts,
    is_corrective,
    people_in,
    recent_of,
    subject_at,
)
from perdure.engine.extraction.facts import StatedFact, proper
from perdure.engine.extraction.patterns import pattern, words
from perdure.engine.extraction.predicates import (
    Attribute,
    Predicate,
    attributes,
    attributes_that_are,
    predicates,
    third_person,
)
from perdure.engine.text.own_words import told_by_others
from perdure.engine.times.mentions import TimeMention

PHRASE_WORDS_MAX = 9
LISTED_WORDS_MAX = 3
_LIKED = ("likes", "dislikes", "prefers", "allergy")
# Groups of predicates that hold the value of an attribute with another name.
_SAME_AS = {
    "then": "lives_in",
    "next_org": "works_at",
    "founder_of": "works_at",
    "started_as": "job_title",
    "workplace": "works_at",
}


def statements_of(sentence: str, times: list[TimeMention], people: People) -> tuple[list[StatedFact], int]:
    """What the clauses of a sentence state, and how many were left out because it is not certain of whom they speak."""
    stated: list[StatedFact] = []
    unclear = consumed = 0
    named = people_in(sentence, people)
    before = (people.recent, people.strangers)
    for start in clause_starts(sentence):
        if start < consumed:
            continue
        begin = _begin(sentence, start, times)
        here = [person for place, person in named if place < begin]
        people.recent, people.strangers = recent_of(here) if here else before
        subject = subject_at(sentence, begin, people)
        if subject is None:
            pronoun = pattern("any_pronoun").match(sentence, begin)
            unclear += bool(pronoun and _match(Subject(MentionedPerson("?"), begin, pronoun.end()), sentence))
            continue
        if told_by_others(sentence[:begin]):
            continue
        corrective = is_corrective(sentence[start:begin] if stated else sentence[:begin]) or bool(
            pattern("denied").search(sentence[:begin])
        )
        subject = _past_relation(subject, sentence)
        while True:
            found = _match(subject, sentence)
            if found is None:
                break
            predicate, match = found
            marked = corrective or denies_after(sentence, match.end())
            found_here = _statements(predicate, match, subject, people)
            stated.extend(replace(one, corrects=marked and not one.ended) for one in found_here)
            consumed = match.end()
            further = _further(subject, sentence, consumed)
            if further is None:
                break
            subject = further
    people.recent, people.strangers = recent_of([person for _, person in named]) if named else before
    stated.extend(_habits(sentence, times))
    return stated, unclear


def _past_relation(subject: Subject, sentence: str) -> Subject:
    """The subject of what is said besides who somebody is to the user: `John is my cofounder and handles backend`."""
    said = pattern("of_mine").match(sentence, subject.end) if subject.person else None
    return subject if said is None else _further(subject, sentence, said.end()) or subject


def _further(subject: Subject, sentence: str, end: int) -> Subject | None:
    """The same subject of the next verb; None if no verb follows."""
    more = pattern("more").match(sentence, end)
    return replace(subject, start=more.end() + 1, end=more.end()) if more else None


def denies(sentence: str) -> bool:
    """Whether a sentence itself names something as wrong, so that it corrects even what was said long before."""
    return bool(pattern("wrong").search(sentence))


def denies_after(sentence: str, end: int) -> bool:
    """Whether a statement is followed by what it is not: `, not Austin`."""
    return bool(pattern("not_after").match(sentence, end))


def _begin(sentence: str, start: int, times: list[TimeMention]) -> int:
    """Behind fillers, and behind a time that opens the clause: `Last month I moved`."""
    begin = after_fillers(sentence, start)
    for mention in times:
        lead = pattern("time_lead").match(sentence, begin)
        if lead and begin <= mention.start <= lead.end():
            return after_fillers(sentence, mention.end)
    return begin


def _match(subject: Subject, sentence: str) -> tuple[Predicate, re.Match[str]] | None:
    for predicate in predicates():
        form = predicate.own if subject.person is None else predicate.other
        match = form.match(sentence, subject.end)
        if match:
            return predicate, match
    return None


def _statements(predicate: Predicate, match: re.Match[str], subject: Subject, people: People) -> Iterator[StatedFact]:
    person = subject.person
    stranger = person is not None and person.relation is None and not people.labelled(person.label)
    kept = attributes_that_are("of_strangers" if stranger else "personal")
    for group, said in match.groupdict().items():
        name = _SAME_AS.get(group, group)
        if said is None or group == "verb" or (person is not None and name not in kept):
            continue
        attribute, end = attributes()[name], match.end(group)
        ended = (predicate.ended and group not in ("then", "next_org")) or (
            group == "works_at" and "next_org" in match.re.groupindex
        )
        more = _rest_of_list(match.string, end, said) if name in _LIKED and name != "prefers" else ""
        if name in _LIKED and not more and pattern("goes_on").match(match.string, end):
            continue  # `a safe, inviting place`: the comma is inside what is liked
        end += len(more)
        headed = pattern("headed").fullmatch(said) if name == "job_title" else None
        if headed and headed["org"].split()[0] not in words("DEPARTMENTS"):
            yield from _headed(headed, subject, end, ended=ended)
            continue
        for value in _values(attribute, said + more, match.string, people):
            yield StatedFact(
                attribute=name,
                value=value,
                content=attribute.content(_with_article(attribute, value), person.spoken if person else None),
                start=subject.start,
                end=end,
                type="PEOPLE" if person else "PROFILE",
                fact_type=attribute.fact_type,
                entities=_entities(attribute, value, person),
                subject=EntityName("person", person.label) if person else None,
                confidence=min(predicate.confidence, 0.75 if stranger else 1.0),
                importance=attribute.importance if person is None else min(attribute.importance, 2),
                ended=ended,
                changed=predicate.changed,
            )


def _headed(headed: re.Match[str], subject: Subject, end: int, *, ended: bool) -> Iterator[StatedFact]:
    """`CEO of Acme` is a title and a company."""
    person, org = subject.person, headed["org"]
    who = EntityName("person", person.label) if person else None
    for name, value, worded in (("job_title", headed["title"], f"{headed['title']} of {org}"), ("works_at", org, org)):
        attribute = attributes()[name]
        yield StatedFact(
            attribute=name,
            value=value,
            content=attribute.content(_with_article(attribute, worded), person.spoken if person else None),
            start=subject.start,
            end=end,
            type="PEOPLE" if person else "PROFILE",
            fact_type=attribute.fact_type,
            entities=(*((who,) if who else ()), EntityName("org", org.removeprefix("the "))),
            subject=who,
            importance=min(attribute.importance, 3 if who is None else 2),
            ended=ended,
        )


def _entities(attribute: Attribute, value: str, person: MentionedPerson | None) -> tuple[EntityName, ...]:
    who = (EntityName("person", person.label),) if person else ()
    label = value.removeprefix("the ")
    if attribute.entity and not (attribute.entity == "org" and label[:1].islower()):
        return (*who, EntityName(attribute.entity, label))
    return who


def _with_article(attribute: Attribute, value: str) -> str:
    if attribute.shape != "job" or pattern("office").match(value):
        return value
    return f"{'an' if value[0].lower() in 'aeiou' else 'a'} {value}"


def _rest_of_list(sentence: str, end: int, said: str) -> str:
    """The rest of a list of short things, of which a predicate takes the first: `, chess and long walks`."""
    if len(said.split()) > LISTED_WORDS_MAX:
        return ""
    rest = pattern("listed").match(sentence, end)
    return rest[0] if rest else ""


def _values(attribute: Attribute, said: str, sentence: str, people: People) -> Iterator[str]:
    said = said.strip(" ,'\"“”")
    shape = attribute.shape
    if shape in ("place", "org"):
        value = _proper_value(said, sentence, shape)
        if value and not (shape == "org" and people.labelled(value)):
            yield value
    elif shape == "languages":
        yield from re.findall(r"[A-Z][a-z]+", said)
    elif shape == "age":
        if 0 < int(said) < 120:
            yield said
    elif shape == "job":
        value = pattern("tails").sub("", said)
        if not pattern("no_job").match(value):
            yield value
    elif shape == "phrase":
        yield from _phrases(attribute, said)
    else:
        yield said.lower() if shape == "diet" else said


def _proper_value(said: str, sentence: str, shape: str) -> str | None:
    if said.islower() and not said.startswith(("the ", "a ", "an ", "my own", "our own")):
        return said if sentence == sentence.lower() and shape == "place" else None
    if re.match(r"(?:a|an|my own|our own|the [a-z])", said):
        return said if shape == "org" else None
    return proper(said)


def _phrases(attribute: Attribute, said: str) -> Iterator[str]:
    said = pattern("tails").sub("", pattern("tails").sub("", said)).strip(" ,")
    if len(said.split()) > PHRASE_WORDS_MAX or len(said) < 2 or pattern("unfinished").search(said):
        return
    if attribute.name in _LIKED:
        if pattern("loose").match(said) or pattern("pointing").search(said):
            return
        if attribute.name != "prefers" and not pattern("pairs").search(said):
            parts = [part.strip() for part in re.split(r",? and |, | & ", said)]
            if len(parts) > 1 and all(part and len(part.split()) <= LISTED_WORDS_MAX for part in parts):
                yield from parts
                return
    yield said


def _habits(sentence: str, times: list[TimeMention]) -> Iterator[StatedFact]:
    """`I usually get up at six`, `I run every morning`, `every Sunday I call home`."""
    match = pattern("usually").search(sentence)
    if (
        match
        and not pattern("with_somebody").search(sentence[: match.start()])
        and not pattern("goes_on").match(sentence, match.end())
    ):
        yield from _habit(match["verb"], match["rest"], match["adverb"], match.start(), match.end())
        return
    for mention in times:
        if mention.kind != "recurring":
            continue
        before = re.sub(r"\s(?:on|at)$", "", sentence[: mention.start].rstrip(" ,"))
        plain = pattern("habit").search(before)
        if plain:
            yield from _habit(plain["verb"], f"{plain['rest']} {mention.words}", "", plain.start(), mention.end)
            return
        after = pattern("afterwards").match(sentence, mention.end)
        if after and after_fillers(sentence, 0) >= len(before):
            when = mention.words[:1].lower() + mention.words[1:]
            yield from _habit(after["verb"], f"{after['rest']} {when}", "", mention.start, after.end())
            return


def _habit(verb: str, rest: str, adverb: str, start: int, end: int) -> Iterator[StatedFact]:
    rest = pattern("habit_end").split(rest)[0]
    first, _, particle = verb.partition(" ")
    habit = " ".join(f"{adverb} {third_person(first)} {particle} {rest}".split())
    if not pattern("vague_habit").search(rest) and len(habit.split()) > 1:
        yield StatedFact(
            attribute=None,
            value=habit,
            content=habit[:1].upper() + habit[1:],
            start=start,
            end=end,
            fact_type="habit",
            confidence=0.85,
        )
