"""Clauses held against the predicates: what a sentence states of the user and of people in the user's life."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from perdure.domain.knowledge import EntityName
from perdure.engine.attributes import ATTRIBUTES, PERSONAL, Attribute
from perdure.engine.clauses import (
    Cast,
    Person,
    Subject,
    after_fillers,
    clause_starts,
    is_corrective,
    people_in,
    recent_of,
    subject_at,
)
from perdure.engine.factwords import DEPARTMENTS, proper, third_person
from perdure.engine.ownwords import told_by_others
from perdure.engine.possessions import Told
from perdure.engine.predicates import PREDICATES, Predicate
from perdure.engine.timewords import TimeMention

# Of a name that nothing ties to the user only what is plainly about a person is taken.
_LIKINGS = frozenset(("likes", "dislikes", "prefers", "allergy"))
_OF_STRANGERS = frozenset(("lives_in", "works_at", "job_title", "from", "studies_at", "age", "allergy", "diet", "speaks"))
_MORE = re.compile(r"(?:,? and| but|,)(?: also| now| then| currently)?(?= [a-z])")
_PRONOUN = re.compile(r"(?:he|she|they)(?=['’ ])", re.IGNORECASE)
_DENIED = re.compile(
    r"\b(?:don['’]t|do not|doesn['’]t|isn['’]t|am not|['’]m not|is not|not) (?:actually |really "
    r")?(?:live|work|from|in|at|a|an|called)\b",
    re.IGNORECASE,
)
_NOT_AFTER = re.compile(r",? (?:and )?not (?:in |at |from |a |an )?(?:[A-Z0-9]|[a-z]+[.!]?$)")
_WRONG = re.compile(r"\b(?:not|correction|wrong|incorrect|mistake|i mean|i meant|typo)\b|n['’]t\b", re.IGNORECASE)
PHRASE_WORDS_MAX = 9
LISTED_WORDS_MAX = 3


def statements_of(sentence: str, times: list[TimeMention], cast: Cast) -> tuple[list[Told], int]:
    """What the clauses of a sentence state, and how many were left out because it is not certain of whom they speak."""
    told: list[Told] = []
    unclear = consumed = 0
    named = people_in(sentence, cast)
    before = (cast.recent, cast.strangers)
    for start in clause_starts(sentence):
        if start < consumed:
            continue
        begin = _begin(sentence, start, times)
        here = [person for place, person in named if place < begin]
        cast.recent, cast.strangers = recent_of(here) if here else before
        subject = subject_at(sentence, begin, cast)
        if subject is None:
            pronoun = _PRONOUN.match(sentence, begin)
            unclear += bool(pronoun and _match(Subject(Person("?"), begin, pronoun.end()), sentence))
            continue
        if told_by_others(sentence[:begin]):
            continue
        corrective = is_corrective(sentence[start:begin] if told else sentence[:begin]) or bool(
            _DENIED.search(sentence[:begin])
        )
        while True:
            found = _match(subject, sentence)
            if found is None:
                break
            predicate, match = found
            marked = corrective or denies_after(sentence, match.end())
            told.extend(replace(one, corrects=marked and not one.ended) for one in _statements(predicate, match, subject, cast))
            consumed = match.end()
            more = _MORE.match(sentence, consumed)
            if more is None:
                break
            subject = replace(subject, start=more.end() + 1, end=more.end())
    cast.recent, cast.strangers = recent_of([person for _, person in named]) if named else before
    told.extend(_habits(sentence, times))
    return told, unclear


def denies(sentence: str) -> bool:
    """Whether a sentence itself names something as wrong, so that it corrects even what was said long before."""
    return bool(_WRONG.search(sentence))


def denies_after(sentence: str, end: int) -> bool:
    """Whether a statement is followed by what it is not: `, not Austin`."""
    return bool(_NOT_AFTER.match(sentence, end))


def _begin(sentence: str, start: int, times: list[TimeMention]) -> int:
    """Behind fillers, and behind a time that opens the clause: `Last month I moved`."""
    begin = after_fillers(sentence, start)
    for mention in times:
        lead = re.compile(r"(?:on|in|at|back in|as of|around)?\s*", re.IGNORECASE).match(sentence, begin)
        if lead and begin <= mention.start <= lead.end():
            return after_fillers(sentence, mention.end)
    return begin


def _match(subject: Subject, sentence: str) -> tuple[Predicate, re.Match[str]] | None:
    for predicate in PREDICATES:
        pattern = predicate.own if subject.person is None else predicate.other
        match = pattern.match(sentence, subject.end)
        if match:
            return predicate, match
    return None


def _statements(predicate: Predicate, match: re.Match[str], subject: Subject, cast: Cast) -> Iterator[Told]:
    person = subject.person
    stranger = person is not None and person.relation is None and person.label.casefold() not in cast.people
    for group, said in match.groupdict().items():
        if said is None or group == "verb":
            continue
        words, end = said, match.end(group)
        name = {
            "then": "lives_in",
            "next_org": "works_at",
            "founder_of": "works_at",
            "started_as": "job_title",
            "workplace": "works_at",
        }.get(group, group)
        attribute = ATTRIBUTES[name]
        if person is not None and (name not in PERSONAL or (stranger and name not in _OF_STRANGERS)):
            continue
        ended = (predicate.ended and group not in ("then", "next_org")) or (
            group == "works_at" and "next_org" in match.re.groupindex
        )
        if attribute.name in _LIKINGS:
            more = "" if name == "prefers" else _listed(match.string, match.end(group), words)
            if not more and _GOES_ON.match(match.string, match.end(group)):
                continue  # `a safe, inviting place`: the comma is inside what is liked
            words, end = words + more, match.end(group) + len(more)
        headed = _HEADED.fullmatch(words) if name == "job_title" else None
        if headed and headed["org"].split()[0] not in DEPARTMENTS:
            yield from _headed(headed, subject, match, group, ended=ended)
            continue
        for value in _values(attribute, words, match.string, cast):
            yield Told(
                name,
                value,
                attribute.content(_worded(attribute, value), person.spoken if person else None),
                subject.start,
                end,
                "PEOPLE" if person else "PROFILE",
                attribute.fact_type,
                _entities(attribute, value, person),
                EntityName("person", person.label) if person else None,
                min(predicate.confidence, 0.75 if stranger else 1.0),
                attribute.importance if person is None else min(attribute.importance, 2),
                ended,
                changed=predicate.changed,
            )


_HEADED = re.compile(r"(?P<title>.+) of (?P<org>(?:the )?[A-Z0-9][^,]*)")


def _headed(headed: re.Match[str], subject: Subject, match: re.Match[str], group: str, *, ended: bool) -> Iterator[Told]:
    """`CEO of Acme` is a title and a company."""
    person, org = subject.person, headed["org"]
    who = EntityName("person", person.label) if person else None
    for name, value, worded in (("job_title", headed["title"], f"{headed['title']} of {org}"), ("works_at", org, org)):
        attribute = ATTRIBUTES[name]
        yield Told(
            name,
            value,
            attribute.content(_worded(attribute, worded), person.spoken if person else None),
            subject.start,
            match.end(group),
            "PEOPLE" if person else "PROFILE",
            attribute.fact_type,
            (*((who,) if who else ()), EntityName("org", org.removeprefix("the "))),
            who,
            importance=min(attribute.importance, 3 if who is None else 2),
            ended=ended,
        )


def _entities(attribute: Attribute, value: str, person: Person | None) -> tuple[EntityName, ...]:
    who = (EntityName("person", person.label),) if person else ()
    label = value.removeprefix("the ")
    if attribute.entity and not (attribute.entity == "org" and label[:1].islower()):
        return (*who, EntityName(attribute.entity, label))
    return who


def _worded(attribute: Attribute, value: str) -> str:
    if attribute.shape != "job" or re.match(
        r"(?:ceo|cto|coo|cfo|cmo|vp|head|chief|director of|president of|dean|chair)\b", value, re.IGNORECASE
    ):
        return value
    return f"{'an' if value[0].lower() in 'aeiou' else 'a'} {value}"


_TAILS = re.compile(
    r"\s+(?:a lot|very much|so much|the most|too|as well|anyway|though|honestly|tbh|these days|right "
    r"now|at all|myself|best|more|again|either|lately|sometimes|way too much|most of the time|indeed|"
    r"recently|a bit|a great deal|here)$",
    re.IGNORECASE,
)
_LOOSE = re.compile(
    r"(?i)^(?:both|all|either|neither|option|none|everything|anything|nothing|some of|each|more|a few|"
    r"having|my|our|to (?:complain|brag|admit|say|think|know|be|see|hear|bother|break|tell|ask|"
    r"interrupt|disappoint)|being (?:asked|told|called)|working with you|talking (?:to|with) you|"
    r"doing this|not|what|an? (?:good|nice|great|bit|lot|little)\b|so far|where|why|which|such|some|"
    r"any|seeing|hearing|and|or|as|much|saying|people (?:who|that)|for|number|version|plan [a-z]$|"
    r"someone|something|mine|yours|by|with|of)\b"
)
_ITEM = r"(?!(?:i|my|we|he|she|it|so|but|which|especially|particularly|because|who|they|you)\b)[\w’'-]+(?: [\w’'-]+){0,2}"
_LIST = re.compile(rf"(?:, {_ITEM}){{0,6}},? and {_ITEM}(?=\s*(?:[.!;]|$| but\b))", re.IGNORECASE)


def _listed(sentence: str, end: int, words: str) -> str:
    """The rest of a list of short things, of which a predicate takes the first: `, chess and long walks`."""
    if len(words.split()) > LISTED_WORDS_MAX:
        return ""
    rest = _LIST.match(sentence, end)
    return rest[0] if rest else ""


_GOES_ON = re.compile(
    r", (?!(?:but|so|and|or|which|especially|particularly|because|though|although|while|when|where|"
    r"however|since|who|as|too|also|i|my|we|he|she|it|not|just|really|mostly|even|if|then|please|"
    r"thanks|ok|okay|whatever|though|any|can|could|do|what|lol|anyway|always|by|for|in|on|at|with|"
    r"it['’]s|that['’]s|i['’]m|let['’]s|such|like|the)\b)[a-z]",
    re.IGNORECASE,
)
_UNFINISHED = re.compile(
    r"\b(?:to|of|for|with|like|on|in|at|from|about|a|an|the|my|and|or|than|as|into|by|such)$", re.IGNORECASE
)
_POINTING = re.compile(r"\b(?:this|that|these|those|it|there|you|your|him|her|them|yours)\b", re.IGNORECASE)
_PAIRS = re.compile(
    r"(?i)\b(?:mac and cheese|rock and roll|fish and chips|salt and (?:pepper|vinegar)|black and "
    r"white|arts and crafts|gin and tonic|rum and coke|bread and butter|peanut butter and jelly|bed "
    r"and breakfast|pros and cons|dungeons and dragons|drum and bass|r and b|crime and punishment|"
    r"pride and prejudice)\b"
)


def _values(attribute: Attribute, words: str, sentence: str, cast: Cast) -> Iterator[str]:
    words = words.strip(" ,'\"“”")
    shape = attribute.shape
    if shape in ("place", "org"):
        value = _named(words, sentence, shape)
        if value and not (shape == "org" and cast.people.get(value.casefold())):
            yield value
    elif shape == "languages":
        yield from re.findall(r"[A-Z][a-z]+", words)
    elif shape == "age":
        if 0 < int(words) < 120:
            yield words
    elif shape == "job":
        value = _TAILS.sub("", words)
        if not re.match(r"(?i)(?:part|result|matter|bit|kid|child|whole|team|a|the)\b", value):
            yield value
    elif shape == "phrase":
        yield from _phrases(attribute, words)
    else:
        yield words.lower() if shape == "diet" else words


def _named(words: str, sentence: str, shape: str) -> str | None:
    if words.islower() and not words.startswith(("the ", "a ", "an ", "my own", "our own")):
        return words if sentence == sentence.lower() and shape == "place" else None
    if re.match(r"(?:a|an|my own|our own|the [a-z])", words):
        return words if shape == "org" else None
    return proper(words)


def _phrases(attribute: Attribute, words: str) -> Iterator[str]:
    words = _TAILS.sub("", _TAILS.sub("", words)).strip(" ,")
    if len(words.split()) > PHRASE_WORDS_MAX or len(words) < 2 or _UNFINISHED.search(words):
        return
    if attribute.name in ("likes", "dislikes", "prefers", "allergy"):
        if _LOOSE.match(words) or _POINTING.search(words):
            return
        if attribute.name != "prefers" and not _PAIRS.search(words):
            parts = [part.strip() for part in re.split(r",? and |, | & ", words)]
            if len(parts) > 1 and all(part and len(part.split()) <= LISTED_WORDS_MAX for part in parts):
                yield from parts
                return
    yield words


# Verbs of things people do again and again; others tell of feelings and of the talk itself.
_REPEATED = (
    r"(?:have (?:[\w-]+ ){0,2}?(?:practice|lessons?|class(?:es)?|training|rehearsals?|therapy|"
    r"breakfast|lunch|dinner|coffee)|run|swim|walk|jog|cycle|bike|ride|go|play|practice|practise|"
    r"meditate|read|write|cook|bake|eat|drink|attend|volunteer|work|train|exercise|lift|study|teach|"
    r"visit|call|"
    r"meet|take|wake|get up|sleep|garden|journal|commute|clean|shop|watch|listen|travel|fast|stretch|"
    r"pray|sing|dance|paint|draw|surf|ski|hike|climb|host|coach|buy|check|feed|"
    r"water|drive|fly|start|finish|leave|do|skip|order|use|wear|bring|pack|stay|row|fish|babysit|tutor|knit|box|scoop)"
)
_REST = r"(?P<rest>(?: (?!myself\b)(?:[^.,;:!?()\n]|(?<=\d)[:.](?=\d)){1,80})?)"
_USUALLY = re.compile(
    r"(?:^|(?<=[,;:] )|(?<= and )|(?<= but ))(?:I|i) (?P<adverb>usually|normally|typically|generally|"
    rf"always|often|mostly) (?P<verb>{_REPEATED})\b{_REST}"
)
_PLAIN = re.compile(rf"(?:^|(?<=[,;:] )|(?<= and )|(?<= but ))(?:I|i) (?P<verb>{_REPEATED})\b{_REST}$")
_AFTERWARDS = re.compile(rf",? (?:I|i) (?:usually |always )?(?P<verb>{_REPEATED})\b{_REST}")
_WITH_SOMEBODY = re.compile(r"[A-Z]\w+ and $")
_VAGUE = re.compile(r"\b(?:it|them|this|that|these|those|you|your|to (?:be|go|do|have|get|wait))\b", re.IGNORECASE)


def _habits(sentence: str, times: list[TimeMention]) -> Iterator[Told]:
    """`I usually get up at six`, `I run every morning`, `every Sunday I call home`."""
    match = _USUALLY.search(sentence)
    if match and not _WITH_SOMEBODY.search(sentence[: match.start()]) and not _GOES_ON.match(sentence, match.end()):
        yield from _habit(match["verb"], match["rest"], match["adverb"], match.start(), match.end())
        return
    for mention in times:
        if mention.kind != "recurring":
            continue
        before = re.sub(r"\s(?:on|at)$", "", sentence[: mention.start].rstrip(" ,"))
        plain = _PLAIN.search(before)
        if plain:
            yield from _habit(plain["verb"], f"{plain['rest']} {mention.words}", "", plain.start(), mention.end)
            return
        after = _AFTERWARDS.match(sentence, mention.end)
        if after and after_fillers(sentence, 0) >= len(before):
            words = mention.words[:1].lower() + mention.words[1:]
            yield from _habit(after["verb"], f"{after['rest']} {words}", "", mention.start, after.end())
            return


def _habit(verb: str, rest: str, adverb: str, start: int, end: int) -> Iterator[Told]:
    rest = re.split(r"\s(?:and (?:i|my|then)|but|because|so|which|when i)\b", rest)[0]
    first, _, particle = verb.partition(" ")
    words = " ".join(f"{adverb} {third_person(first)} {particle} {rest}".split())
    if not _VAGUE.search(rest) and len(words.split()) > 1:
        yield Told(None, words, words[:1].upper() + words[1:], start, end, fact_type="habit", confidence=0.85)
