"""Cues: words by which a sentence shows what it is: a rule, a question, a decision, a promise, a deferral, small talk.

The words are in the folder `cues`, a file for each language. A cue is a hint, not a proof: it moves a sentence up, and never
removes the message it stands in.
"""

from __future__ import annotations

import re
from functools import cache

from perdure.domain.text.patterns import pattern
from perdure.engine.words import lines, sections, word_set


@cache
def entries(heading: str) -> tuple[str, ...]:
    """What all languages have under a heading; the first language has every heading."""
    languages = lines(__package__, "cues/languages.txt")
    first, *others = (sections(__package__, f"cues/{language}.txt") for language in languages)
    return (*first[heading], *(entry for other in others for entry in other.get(heading, ())))


def either(heading: str) -> str:
    """The inside of a regular expression for any of the entries under a heading."""
    return "|".join(entries(heading))


@cache
def words(heading: str) -> frozenset[str]:
    """The words under a heading below which words stand apart by spaces."""
    return word_set(entries(heading))


class Cue:
    """Any of the words under a heading, found as whole words in any case."""

    def __init__(self, heading: str) -> None:
        self._heading = heading
        self._pattern = pattern(self._source)

    def search(self, sentence: str) -> bool:
        """Whether the cue is there."""
        return self._pattern.search(sentence.lower()) is not None

    def place(self, sentence: str) -> tuple[int, int] | None:
        """Where the cue is first; None if it is not, or lower case has other places."""
        lower = sentence.lower()
        match = self._pattern.search(lower) if len(lower) == len(sentence) else None
        return match.span() if match else None

    def _source(self) -> str:
        # Scripts without spaces have no word edges, so edges count for Latin letters only. Matching lower case against
        # lower case lets the regular expression engine look at the first letter only; ignoring case takes four times as long.
        joined = either(self._heading).replace("'", "['’]?")
        return rf"(?<![a-zß-ɏ])(?:{joined})(?![a-zß-ɏ])"


RULE = Cue("rule")
WISH = Cue("wish")
DECISION = Cue("decision")
OPEN = Cue("open")
DEFERRAL = Cue("deferral")
PROMISE = Cue("promise")
CORRECTION = Cue("correction")
PROJECT = Cue("project")
SELF = Cue("self")

_SMALL_TALK = pattern(lambda: rf"(?:(?:{either('small talk')})(?:[\W_]+|$))+", re.IGNORECASE)
_QUESTION = pattern(r"[?？؟\u037e⁇⁈]['\"”’»)\]}」』*_]*$")
_ASKS = pattern(lambda: rf"(?:{either('question word')})\b", re.IGNORECASE)
_DENSE = pattern(r"[\u3040-\u9fff\uac00-\ud7a3]")
_LETTERS = pattern(r"[^\W\d_]")


def is_question(sentence: str) -> bool:
    """Whether the sentence asks, by its mark. Without a mark nothing is a question."""
    return bool(_QUESTION.search(sentence)) and bool(_LETTERS.search(sentence))


def asks_openly(sentence: str) -> bool:
    """Whether a question expects more than assent: it starts like one, or is long enough to be one."""
    return len(sentence) >= (5 if _DENSE.search(sentence) else 12) or _ASKS.match(sentence) is not None


def is_small_talk(sentence: str) -> bool:
    """Greetings, thanks, assent, laughter, and what has no letters or digits at all."""
    if len(sentence) > 120:
        return False
    if not any(char.isalnum() for char in sentence):
        return True
    return _SMALL_TALK.fullmatch(sentence.strip(" \t*_~\"'“”’.,!?…-")) is not None
