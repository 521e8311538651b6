"""Reads one remembered sentence as extraction reads a message: `Lives in Porto` as if the user had said `I live in Porto`.

Only where the rules are certain; a sentence that they do not understand stays what it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from perdure.domain.conversation.messages import Message
from perdure.domain.knowledge.keys import slug
from perdure.domain.knowledge.proposals import EntityName, ExtractionRequest, Proposal
from perdure.domain.scope import MessageId, SessionId
from perdure.domain.text.patterns import pattern
from perdure.engine.extraction.extractor import RuleExtractor

READ_CHARS_MAX = 300
"""A longer text is no sentence about one thing."""
_USER = pattern(r"(?:the )?user(?P<own>['’]s)? +", re.IGNORECASE)
_LEAD = pattern(r"(?:(?:no longer|currently|now|still|also|recently|just|really|mostly|usually|never|not) +)+", re.IGNORECASE)
_OWNED = pattern(
    r"(?:favou?rite|name|birthday|phone|email|job|employer|partner|wife|husband|hometown|nickname)\b", re.IGNORECASE
)
_JOINED = pattern(
    r"\b(?P<and>and|but) (?P<verb>lives|works|likes|loves|hates|prefers|speaks|studies|is|has|does)\b", re.IGNORECASE
)
_JOINTS = frozenset(("i", "my", "am", "is", "and", "but", "also", "who", "a", "an", "the", "as", "at", "in", "now"))
_HELPERS = {
    "is": "am",
    "isn't": "am not",
    "isn’t": "am not",
    "has": "have",
    "hasn't": "have not",
    "does": "do",
    "doesn't": "do not",
    "doesn’t": "do not",
    "goes": "go",
}


def as_told(said: Proposal, now: datetime, zone: str) -> list[Proposal]:
    """A statement with what its own words tell, where the speaker has not named an attribute, a value or a subject.

    One fact keeps the words as they are; several, if they are all that the sentence tells, become one statement each.
    """
    if (said.attribute, said.value, said.subject) != (None, None, None):
        return [said]
    facts = read_sentence(said.content, now, zone)
    if len(facts) > 1 and not said.entities:
        return [_with_wish(replace(fact, confidence=said.confidence, importance=said.importance), said) for fact in facts]
    if len(facts) != 1:
        return [said]
    fact = facts[0]
    subject = fact.subject
    if subject is None and not _is_of_user(said, fact):
        return [said]  # whose it is, its words leave open
    if subject is not None and said.entities:
        subject = next((one for one in said.entities if _means(one, fact.subject)), None)
        if subject is None:
            return [said]  # it is about somebody else than its words seem to say
    plain = not said.entities and (said.type, said.fact_type) == ("PROFILE", "fact")
    told = replace(
        said,
        type=fact.type if plain else said.type,
        fact_type=fact.fact_type if said.fact_type == "fact" else said.fact_type,
        entities=said.entities or fact.entities,
        subject=subject,
        attribute=fact.attribute,
        value=fact.value,
        time_words=fact.time_words,
        valid_from=fact.valid_from,
        ended=fact.ended,
    )
    return [_with_wish(told, said)]


def _is_of_user(said: Proposal, fact: Proposal) -> bool:
    """Whether a sentence that names no subject tells of the user: who they are, or who is theirs (`My boss is Tom`)."""
    others = [one for one in said.entities[:1] if one.type in ("person", "project")]
    return said.type in ("PROFILE", fact.type) and all(any(_means(one, named) for named in fact.entities) for one in others)


def _with_wish(told: Proposal, said: Proposal) -> Proposal:
    """What was said beside the sentence goes before what the sentence tells."""
    return replace(
        told,
        valid_from=said.valid_from or told.valid_from,
        ended=said.ended or told.ended,
        corrects=said.corrects,
    )


def _means(given: EntityName, named: EntityName | None) -> bool:
    """Whether an entity that was given is the one that a sentence names, perhaps by a part of its name."""
    if named is None or given.type != named.type:
        return False
    words, others = (set(slug(one.label).split("_")) for one in (given, named))
    return words <= others or others <= words


def read_sentence(text: str, now: datetime, zone: str) -> tuple[Proposal, ...]:
    """The facts with a named attribute that a sentence tells, as proposals without evidence; none if it tells none.

    Several only if they are all that it tells: nothing of a sentence may be lost by being taken apart.
    """
    if len(text) > READ_CHARS_MAX or "\n" in text.strip():
        return ()
    for words in (_in_first_person(text.strip()), text):
        facts = () if words is None else _read(words, now, zone)
        if words is not None and facts and (len(facts) == 1 or _cover(facts, words)):
            return tuple(replace(fact, evidence=()) for fact in facts) if all(fact.attribute for fact in facts) else ()
    return ()


def _cover(facts: Sequence[Proposal], text: str) -> bool:
    """Whether the facts leave nothing of the text untold but the words that join them."""
    told = [(one.start, one.end) for fact in facts for one in fact.evidence]
    times = {fact.time_words for fact in facts if fact.time_words}
    told += [match.span() for words in times for match in re.finditer(re.escape(words), text)]
    rest = [match[0] for match in re.finditer(r"\w+", text) if not any(start <= match.start() < end for start, end in told)]
    return all(word.casefold() in _JOINTS for word in rest)


def _read(text: str, now: datetime, zone: str) -> tuple[Proposal, ...]:
    message = Message(
        id=MessageId("sentence"),
        session=SessionId("sentence"),
        session_number=1,
        seq=1,
        role="user",
        content=text,
        at=now,
        tokens=0,
        metadata={},
    )
    return RuleExtractor(own_words=False).extract(ExtractionRequest((message,), zone=zone)).proposals


def _in_first_person(text: str) -> str | None:
    """The sentence as the user would say it; None if it has a subject of its own."""
    named = _USER.match(text)
    rest = text if named is None else text[named.end() :]
    if named is not None and named["own"]:
        return f"My {rest}"
    if named is None and _OWNED.match(rest):
        return f"My {rest[0].lower()}{rest[1:]}"
    lead = _LEAD.match(rest)
    adverb, rest = ("", rest) if lead is None else (lead[0].lower(), rest[lead.end() :])
    verb, blank, tail = rest.partition(" ")
    own = _own_form(verb.casefold())
    if own is None or not blank:
        return None
    return _JOINED.sub(lambda found: f"{found['and']} I {_own_form(found['verb'].casefold())}", f"I {adverb}{own} {tail}")


def _own_form(verb: str) -> str | None:
    """A verb of the third person, or of the past, as it stands after `I`."""
    if verb in _HELPERS:
        return _HELPERS[verb]
    if verb in _DOING:
        return f"am {verb}"
    if verb.endswith("ed") or verb in _PAST:
        return verb
    if not verb.isalpha() or not verb.endswith("s") or verb.endswith("ss"):
        return None
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    return verb[:-2] if verb.endswith(("shes", "ches", "sses", "xes", "zes")) else verb[:-1]


_DOING = frozenset(("working", "building", "developing", "designing", "creating", "leading", "managing", "living", "studying"))
_PAST = frozenset(("left", "quit", "got", "grew", "began", "became", "was", "had", "took", "bought", "sold", "went"))
