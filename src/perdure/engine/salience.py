"""Salience: which sentences of a conversation carry it. Counts words over the conversation itself; knows no language.

Position, rarity, names, numbers, questions and the rules of the user raise a sentence; small talk is left out.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from perdure.domain.messages import Message, Role
from perdure.engine import cues
from perdure.engine.items import items_of
from perdure.engine.pinning import is_bulk
from perdure.engine.pins import BARE, split_head
from perdure.engine.questions import Statements, content_words, open_questions, sentences_of

MESSAGE_SENTENCES_MAX = 80
TOOL_SENTENCES_MAX = 6
CANDIDATES_MAX = 60_000

_NAME = re.compile(r"(?<=[^\W\d_] )[A-ZÀ-ÖØ-ÞА-Я][^\W\d_]{2,}")
_ROLE_WEIGHTS: dict[str, float] = {"user": 0.3, "assistant": 0.0, "system": -0.2, "tool": -0.3}
_PASTED_WEIGHT = -0.3


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may go into a summary. `place` orders the candidates as the log does."""

    place: int
    turn: int
    """Which message it is from, counted from 0; negative for lines of the previous summary."""
    role: Role | None
    at: datetime | None
    text: str
    words: frozenset[str]
    is_rule: bool = False
    is_open: bool = False
    is_decision: bool = False
    is_pasted: bool = False
    score: float = 0.0


def ranked(previous: str, messages: Sequence[Message], question: str = "") -> list[Candidate]:
    """The sentences of both, in log order, each with its score. Small talk is not among them."""
    found = [*_of_previous(previous, messages), *_of_messages(messages)][-CANDIDATES_MAX:]
    seen = Counter(word for candidate in found for word in candidate.words)
    asked = content_words(question)
    last = max(len(messages) - 1, 1)
    first_user = next((index for index, message in enumerate(messages) if message.role == "user"), 0)
    return [_scored(candidate, place, seen, len(found), asked, last, first_user) for place, candidate in enumerate(found)]


def picked(candidates: Iterable[Candidate], limit: int) -> list[Candidate]:
    """The best `limit` that do not say the same again, best first. Ties go to the newer one."""
    chosen: list[Candidate] = []
    covered: set[str] = set()
    texts: set[str] = set()
    for candidate in sorted(candidates, key=lambda one: (-one.score, -one.place)):
        if len(chosen) >= limit:
            break
        fresh = len(candidate.words - covered)
        if candidate.text in texts or (candidate.words and fresh * 5 < len(candidate.words)):
            continue
        chosen.append(candidate)
        texts.add(candidate.text)
        covered |= candidate.words
    return chosen


def _of_previous(previous: str, messages: Sequence[Message]) -> list[Candidate]:
    found = []
    statements = Statements(messages)
    for line in previous.splitlines():
        role, at, is_open, text = split_head(line.strip())
        text = text.strip()
        if text and not line.startswith(BARE) and any(char.isalnum() for char in text):
            is_open = is_open and not statements.settle(text)
            is_rule = role == "user" and cues.RULE.search(text)
            found.append(Candidate(0, -1, role, at, text, content_words(text), is_rule, is_open, cues.DECISION.search(text)))
    return found


def _of_messages(messages: Sequence[Message]) -> Iterable[Candidate]:
    unanswered = open_questions(messages)
    for turn, message in enumerate(messages):
        left = TOOL_SENTENCES_MAX if message.role == "tool" else MESSAGE_SENTENCES_MAX
        asked = unanswered.get(turn, frozenset())
        for place, sentence in enumerate(sentences_of(message), 1):
            if left <= 0:
                break
            if cues.is_small_talk(sentence):
                continue
            left -= 1
            found = _candidate(turn, message, sentence, sentence in asked)
            # Rules in what the user pasted are somebody else's.
            yield replace(found, is_rule=False, is_pasted=True) if message.role == "user" and is_bulk(message, place) else found


def _candidate(turn: int, message: Message, sentence: str, is_open: bool) -> Candidate:
    asks = cues.is_question(sentence)
    states = message.role in ("user", "assistant") and not asks
    return Candidate(
        0,
        turn,
        message.role,
        message.at,
        sentence,
        content_words(sentence),
        is_rule=states and message.role == "user" and cues.RULE.search(sentence),
        is_open=is_open or (states and cues.OPEN.search(sentence)),
        is_decision=states and cues.DECISION.search(sentence),
    )


def _scored(
    candidate: Candidate, place: int, seen: Counter[str], total: int, asked: frozenset[str], last: int, first_user: int
) -> Candidate:
    text, words = candidate.text, candidate.words
    scale = math.log(total + 1) or 1.0
    rarity = sum(math.log((total + 1) / seen[word]) for word in words) / (len(words) * scale) if words else 0.0
    score = rarity + (_PASTED_WEIGHT if candidate.is_pasted else _ROLE_WEIGHTS.get(candidate.role or "", 0.0))
    score += 1.2 * candidate.is_rule + 1.0 * candidate.is_open + 0.9 * candidate.is_decision
    score += min(1.2, sum(0.4 if item.kind in ("identifier", "path", "url") else 0.25 for item in items_of(text[:2_000])))
    score += 0.1 * min(3, len(_NAME.findall(text[:500])))
    if candidate.role == "user" and not (candidate.is_rule or candidate.is_pasted) and cues.WISH.search(text):
        score += 0.4
    if asked:
        score += 0.6 * len(words & asked) / len(asked)
    if candidate.turn < 0:
        score += 0.1
    else:
        score += 0.3 * (candidate.turn / last) ** 2 + (0.4 if candidate.turn == first_user else 0.0)
    if len(words) < 3:
        score -= 0.4
    elif len(text) > 400:
        score -= 0.3
    return replace(candidate, place=place, score=round(score, 6))
