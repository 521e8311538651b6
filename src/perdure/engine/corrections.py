"""Corrections: which earlier statement a sentence takes back or puts right, and what it becomes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from perdure.domain.knowledge import EntityName
from perdure.engine.possessions import Told

_OPENER = (
    r"(?:(?:no|nope|sorry|oops|wait|actually|correction|my bad|ah|oh|hmm|ugh|typo|my mistake|i "
    r"misspoke|whoops|er|um|hang on|hold on|scratch that|strike that)\b[,.!:;—– -]*)"
)
_MEANT = re.compile(
    rf"^\W*(?:(?P<opener>{_OPENER}+)(?:i meant(?: to (?:say|write|type))?|i mean|make (?:that|it)|"
    r"it['’]s(?: actually)?|it is(?: actually)?|it should (?:be|say)|that should (?:be|say)|"
    r"should be|that['’]s|(?:he|she)['’]s(?: called)?|(?:his|her|my|the) name is|the (?:right|"
    r"correct) \w+ is)?|(?:actually )?(?:i meant(?: to (?:say|write|type))?|make that|that should "
    r"(?:be|say)|"
    rf"the (?:right|correct) \w+ is))\s*(?P<value>[^.!?;\n]{{1,60}}?)(?:,? (?:not|instead of|rather "
    rf"than) (?P<wrong>[^.!?;,\n]{{1,40}}))?\s*[.!]*$",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"^\W*(?P<value>[A-Z0-9][^.!?;,\n]{0,40}), not (?P<wrong>[A-Z0-9][^.!?;,\n]{0,40})\s*[.!]*$")
_SPELLED = re.compile(r",? (?:with|spelled|spelt|without)\b.*$", re.IGNORECASE)
_SCRATCH = re.compile(
    r"^\W*(?:(?:actually|no|wait|oh|sorry),? )*(?:scratch that|strike that|forget (?:that|what i "
    r"(?:just )?said)|that(?:['’]s| is| was) (?:not true|wrong|incorrect|not right|a mistake)|i "
    r"(?:was wrong|misspoke|take that back))",
    re.IGNORECASE,
)
_SAYS_SO = re.compile(r"\b(?:meant|make (?:that|it)|correct|right|not|instead of|rather than|typo)\b", re.IGNORECASE)
_DIGITS = re.compile(r"\d")
_SENTENCE = re.compile(
    r"\b(?:i|i['’]m|we|you|is|are|was|have|has|do|did|don['’]t|can|will|that|this|the|my|to)\b", re.IGNORECASE
)


def corrected(sentence: str, said: Sequence[Told]) -> Told | None:
    """The statement of `said`, newest last, with the value that the sentence puts in place of the wrong one."""
    match = _MEANT.match(sentence) or _PLAIN.match(sentence)
    if match is None or not said:
        return None
    value = _SPELLED.sub("", match["value"]).strip(" ,'\"“”")
    if not _SAYS_SO.search(sentence) and not re.match(r"[A-Z0-9]", value):
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
    return bool(_SCRATCH.match(sentence))


def _target(said: Sequence[Told], value: str, wrong: str) -> Told | None:
    if wrong:
        fitting = [told for told in said if wrong.casefold() in _named_value(told).casefold()]
        return fitting[-1] if fitting else None
    if _SENTENCE.search(value) or len(value.split()) > 4:
        return None
    fitting = [told for told in said if _alike(_named_value(told), value)]
    return fitting[0] if len(fitting) == 1 else None


def _named_value(told: Told) -> str:
    """What a correction may put right: of a relation it is who, seldom what."""
    return told.subject.label if told.attribute == "relation" and told.subject else told.value


def _alike(old: str, new: str) -> bool:
    return bool(_DIGITS.search(old)) == bool(_DIGITS.search(new)) and (old[:1].isupper() == new[:1].isupper())


def _with_value(told: Told, value: str, start: int, end: int) -> Told:
    def named(entity: EntityName) -> EntityName:
        return replace(entity, label=value) if entity.label == told.value else entity

    person = told.attribute == "relation"
    old = told.subject.label if person and told.subject else told.value
    # `John is my cofounder`, corrected to `Jon`: the name was wrong, not the relation.
    if person and value[:1].isupper():
        subject = EntityName("person", value)
        return replace(
            told,
            content=told.content.replace(old, value),
            subject=subject,
            entities=(subject,),
            start=start,
            end=end,
            corrects=True,
        )
    return replace(
        told,
        value=value,
        content=told.content.replace(told.value, value),
        entities=tuple(map(named, told.entities)),
        subject=named(told.subject) if told.subject and not person else told.subject,
        start=start,
        end=end,
        corrects=True,
        ended=False,
    )
