"""Sentences that are kept as the user said them, because they tell something that lasts and no rule reads them.

The judge scores them. Whatever its score, nothing is kept that is quoted, asked, made up or in code, that holds a secret, or
whose words are mostly unknown to it: what is left out can be said again.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from perdure.domain.knowledge.proposals import FactType
from perdure.domain.text.patterns import pattern
from perdure.domain.values import dataclass
from perdure.engine.extraction.judge import JudgedKind, judge, known_share, words_of
from perdure.engine.extraction.predicates import speaks_of_health
from perdure.engine.text.cues import either, is_small_talk
from perdure.engine.text.hygiene import refusal
from perdure.engine.text.own_words import HOLE, is_unsure, states_nothing, takes_back
from perdure.engine.text.sentences import sentence_spans

KEPT_MIN = ((9, 0.5), (7, 0.55), (0, 0.94))
"""The score from which a sentence of at least so many words is kept: the fewer there are, the less the judge has to go by.
Chosen, like the next, by cross-validation over the writers who taught it."""
KEPT_MIN_LOWER = 0.4
"""The score from which a sentence without capitals is kept: who types so says it in fewer words."""
REST_MIN = 0.5
"""The same for what rules left of a sentence that they read in part: who tells one thing there tells more."""
RULE_MIN = 0.2
"""How likely it must be a rule rather than nothing. Rules are short and say little else: they are judged by this alone."""
RULE_SURE = 0.6
"""From here on a rule may have a condition, and may look like any other wish at the agent."""
HEALTH_MIN = 0.5
"""What is said of health is kept if it is this likely to last: it is worse to miss it."""
SURE_MIN = 0.7
"""How likely its kind must be to count: below, it is a memory of little importance, found by recall alone."""
TURN_MIN = -3.0
"""How much a sentence must sound like a change before what is known is looked through: nearly all that are one do."""
NOTHING_MAX = 0.025
NOTHING_TURN_MAX = -2.0
"""Below both, a sentence surely tells nothing: of what lasts, seven in a thousand are there, of all else half."""
KNOWN_MIN = 0.55
"""The share of its words that the judge must know."""
NOTHING_CHARS_MAX = 1_000
"""A longer message may tell something anywhere."""
WORDS_MIN = 3
WORDS_MAX = 60

_FACTS: Mapping[JudgedKind, tuple[FactType, int]] = {
    "fact": ("fact", 1),
    "change": ("fact", 1),
    "preference": ("preference", 1),
    "habit": ("habit", 1),
    "relationship": ("relationship", 2),
    "health": ("fact", 2),
    "rule": ("fact", 1),
    "todo": ("fact", 1),
}
_OTHERS = pattern(lambda: rf"\W*(?:{either('somebody named before')})\b", re.IGNORECASE)
"""Alone, such a sentence does not tell whom it is about."""
_OF_ONESELF = pattern(r"\W*(?:my|meine?|mon|ma|mes|mis?)\b(?! (?:name|answers?|antwort))", re.IGNORECASE)
"""What begins so tells of the user, and is no order, however it sounds: "My knee hurts when I run downhill"."""
_NEVER = ("secret", "hidden", "hypothetical", "fiction", "instruction")
_NO_RULE = ("secret", "hidden", "fiction")
_CODE = pattern(
    r"https?://|www\.|[{}|\\^~]|\S=|=\S|;$|\w\(|\(\)|::|->|</|/>|\b[A-Za-z]{1,4}-?\d{3,}\b|[A-Za-z]\d{5,}|\b\w+_\w+|\b0x|\b\d+(?:\.\d+){3}\b|\b(?:ERROR|WARN|INFO|DEBUG)\b"
)
_BEFORE = pattern(lambda: rf"(?:(?:{either('filler around a statement')})\b[\s,.:;!…-]*)+", re.IGNORECASE)
_JOINT = pattern(lambda: rf"[,;:–—]\s+|\s+-\s+|\s+(?=(?:{either('joins parts of a sentence')})\s)", re.IGNORECASE)
_JOINED = pattern(lambda: rf"(?:[\W_]*\b(?:{either('joins parts of a sentence')})\b)*[\W_]*", re.IGNORECASE)
_NO_BEGINNING = pattern(lambda: rf"\W*(?:{either('begins no statement')})\b", re.IGNORECASE)
_BEHIND = pattern(lambda: rf"(?:[\s,.:;!…-]+(?:{either('filler around a statement')}))+[\s.!…]*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OwnWords:
    """What is kept of a sentence: its place there, and as what."""

    start: int
    end: int
    kind: JudgedKind
    sure: bool
    turn: str | None = None
    """The words that may change what is known."""
    fleeting: bool = False
    """Whether nothing is kept of it unless it changes something."""

    @property
    def fact_type(self) -> FactType:
        return _FACTS[self.kind][0]

    @property
    def importance(self) -> int:
        return _FACTS[self.kind][1] if self.sure else 1


def left_of(sentence: str, read: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Where the parts of a sentence stand in which nothing was `read`; neighbours are one, which begins with a part of some
    words, not with `34,`.
    """
    edges = [0, *(one.end() for one in _JOINT.finditer(sentence)), len(sentence)]
    found: list[tuple[int, int]] = []
    for start, end in itertools.pairwise(edges):
        if any(start < last and first < end for first, last in read):
            continue
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        elif len(sentence[start:end].split()) >= WORDS_MIN:
            found.append((start, end))
    return [
        (
            joined.end() if (joined := _JOINED.match(sentence, *one)) else one[0],
            one[0] + len(sentence[slice(*one)].rstrip(" ,;:–—-")),
        )
        for one in found
    ]


def lasting_words(sentence: str, *, rest: bool = False) -> OwnWords | None:
    """The sentence without the fillers around it, if it tells something that lasts; `rest`: it is what rules left of one."""
    if not _is_plain(sentence) or takes_back(sentence) or _OTHERS.match(sentence) or (rest and _NO_BEGINNING.match(sentence)):
        return None
    found = judge(sentence)
    is_rule = found.kind == "rule" and found.rule >= RULE_MIN and not is_unsure(sentence)
    least = REST_MIN if rest else _kept_from(sentence)
    if not (is_rule or found.score >= least) or known_share(sentence) < KNOWN_MIN:
        return None
    why = states_nothing(sentence)
    if why in (_NO_RULE if is_rule and found.rule >= RULE_SURE else _NEVER) or (
        why == "question" and found.kind not in ("rule", "todo")
    ):
        return None
    start, end = _without_fillers(sentence)
    if refusal(sentence[start:end]) is not None:
        return None
    kind = found.unruled if found.kind == "rule" and _OF_ONESELF.match(sentence) else found.kind
    return OwnWords(start, end, kind, found.certainty >= SURE_MIN)


def turning_words(sentence: str) -> OwnWords | None:
    """The sentence without the fillers around it, if it may end or replace something known: worth a look at what is."""
    if not _is_plain(sentence) or _OTHERS.match(sentence) or judge(sentence).turn < TURN_MIN:
        return None
    start, end = _without_fillers(sentence)
    if states_nothing(sentence) is not None or takes_back(sentence) or refusal(sentence[start:end]) is not None:
        return None
    return OwnWords(start, end, "change", sure=False)


def surely_tells_nothing(text: str) -> bool:
    """Whether no sentence of a message tells or changes anything, and the judge knows its words well enough to say so."""
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    return len(text) <= NOTHING_CHARS_MAX and all(_is_nothing(one) for one in sentences)


def _is_nothing(sentence: str) -> bool:
    if is_small_talk(sentence):
        return True
    found = judge(sentence)
    return found.score < NOTHING_MAX and found.turn < NOTHING_TURN_MAX and known_share(sentence) >= KNOWN_MIN


def _kept_from(sentence: str) -> float:
    words = len(sentence.split())
    least = KEPT_MIN_LOWER if sentence.islower() else next(score for size, score in KEPT_MIN if words >= size)
    return min(least, HEALTH_MIN) if speaks_of_health(sentence) else least


def _is_plain(sentence: str) -> bool:
    """Whether it is a sentence of words, neither code nor a list of numbers."""
    if HOLE in sentence or _CODE.search(sentence):
        return False
    words = [word for word in words_of(sentence) if word[0].isalpha()]
    return WORDS_MIN <= len(words) <= WORDS_MAX and sum(map(len, words)) * 2 >= len(sentence)


def _without_fillers(sentence: str) -> tuple[int, int]:
    before, behind = _BEFORE.match(sentence), _BEHIND.search(sentence)
    start, end = before.end() if before else 0, behind.start() if behind else len(sentence)
    return (start, end) if len(sentence[start:end].split()) >= WORDS_MIN else (0, len(sentence))
