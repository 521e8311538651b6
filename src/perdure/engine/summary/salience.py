"""Salience: which sentences of a conversation carry it, and which names of people it mentions.

Position, rarity, names, numbers, questions and the rules of the user raise a sentence; small talk is left out. People are
found by title, relation or what they do: names only, no identities.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from perdure.domain.conversation.messages import Message, Role
from perdure.domain.text.patterns import pattern
from perdure.domain.values import dataclass, replace
from perdure.engine.summary.pins import BARE, is_bulk, split_head
from perdure.engine.summary.questions import StatementIndex, content_words, open_questions, sentences_of
from perdure.engine.text import cues
from perdure.engine.text.cues import either
from perdure.engine.text.literals import items_of

MESSAGE_SENTENCES_MAX = 80
TOOL_SENTENCES_MAX = 6
CANDIDATES_MAX = 60_000

_NAME = pattern(r"(?<=[^\W\d_] )[A-ZÀ-ÖØ-ÞА-Я][^\W\d_]{2,}")
_ROLE_WEIGHTS: dict[str, float] = {"user": 0.3, "assistant": 0.0, "system": -0.2, "tool": -0.3}
_PASTED_WEIGHT = -0.3


@dataclass(frozen=True, slots=True)
class SummarySentence:
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


def ranked(previous: str, messages: Sequence[Message], question: str = "") -> list[SummarySentence]:
    """The sentences of both, in log order, each with its score. Small talk is not among them."""
    found = [*_of_previous(previous, messages), *_of_messages(messages)][-CANDIDATES_MAX:]
    seen = Counter(word for candidate in found for word in candidate.words)
    asked = content_words(question)
    last = max(len(messages) - 1, 1)
    first_user = next((index for index, message in enumerate(messages) if message.role == "user"), 0)
    return [_scored(candidate, place, seen, len(found), asked, last, first_user) for place, candidate in enumerate(found)]


def picked(candidates: Iterable[SummarySentence], limit: int) -> list[SummarySentence]:
    """The best `limit` that do not say the same again, best first. Ties go to the newer one."""
    chosen: list[SummarySentence] = []
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


def _of_previous(previous: str, messages: Sequence[Message]) -> list[SummarySentence]:
    found = []
    statements = StatementIndex(messages)
    for line in previous.splitlines():
        role, at, is_open, text = split_head(line.strip())
        text = text.strip()
        if text and not line.startswith(BARE) and any(char.isalnum() for char in text):
            found.append(
                SummarySentence(
                    place=0,
                    turn=-1,
                    role=role,
                    at=at,
                    text=text,
                    words=content_words(text),
                    is_rule=role == "user" and cues.RULE.search(text),
                    is_open=is_open and not statements.settle(text),
                    is_decision=cues.DECISION.search(text),
                )
            )
    return found


def _of_messages(messages: Sequence[Message]) -> Iterable[SummarySentence]:
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


def _candidate(turn: int, message: Message, sentence: str, is_open: bool) -> SummarySentence:
    asks = cues.is_question(sentence)
    states = message.role in ("user", "assistant") and not asks
    return SummarySentence(
        place=0,
        turn=turn,
        role=message.role,
        at=message.at,
        text=sentence,
        words=content_words(sentence),
        is_rule=states and message.role == "user" and cues.RULE.search(sentence),
        is_open=is_open or (states and cues.OPEN.search(sentence)),
        is_decision=states and cues.DECISION.search(sentence),
    )


def _scored(
    candidate: SummarySentence, place: int, seen: Counter[str], total: int, asked: frozenset[str], last: int, first_user: int
) -> SummarySentence:
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


_CAPITALISED = r"[A-ZÀ-ÖØ-Þ][a-zß-ɏ]+(?:[-'’][A-ZÀ-ÖØ-Þ]?[a-zß-ɏ]+)?"
_PERSON_NAME = rf"(?P<name>{_CAPITALISED}(?: (?:(?:van|von|de|da|del|di|der|la|le|bin|al) )*{_CAPITALISED}){{0,2}})"
_PATTERNS = (
    pattern(lambda: rf"\b(?:{either('title')})\.? {_PERSON_NAME}"),
    pattern(
        lambda: (
            rf"\b(?i:{either('whose')}) (?i:[\w-]+ )?(?i:{either('relation')}),? "
            rf"(?i:(?:{either('called')}) )?{_PERSON_NAME}"
        )
    ),
    pattern(lambda: rf"{_PERSON_NAME},? (?i:{either('whose after a name')}) (?i:[\w-]+ )?(?i:{either('relation')})\b"),
    pattern(lambda: rf"\b(?i:{either('contact')}) {_PERSON_NAME}"),
    pattern(lambda: rf"(?:^|[.!?,;] |\b(?:{either('before who acts')}) ){_PERSON_NAME} (?:{either('act')})\b"),
    pattern(lambda: rf"\b(?i:{either('own name')}) {_PERSON_NAME}"),
    pattern(lambda: rf"\bwith {_PERSON_NAME} (?:from|at|in) (?:{either('department')})\b"),
    pattern(
        r"(?:[的是和跟给叫请下の]|^|(?<![\u4e00-\u9fff]))(?P<name>[\u4e00-\u9fff]{1,3}|[ァ-ヴー]{2,8}|[\u3040-\u309f]{2,4})"
        r"(?:先生|女士|小姐|老师|经理|さん|様|くん|ちゃん|氏)"
    ),
    pattern(r"(?P<name>[가-힣]{2,3})(?: ?씨|님)"),
)
PEOPLE_MAX = 12


def people_of(sentences: Iterable[str]) -> list[str]:
    """Names of persons, those named most often first; a short form of a name already there is the same person."""
    counts: Counter[str] = Counter()
    for sentence in sentences:
        for name in names_in(sentence):
            counts[name] += 1
    names = [name for name, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
    return [name for name in names if not any(name != other and name in other.split() for other in names)][:PEOPLE_MAX]


def names_in(sentence: str) -> list[str]:
    """Names of persons in one sentence, in order, each once."""
    others = cues.words("not a name")
    found: dict[str, int] = {}
    for named in _PATTERNS:
        for match in named.finditer(sentence[:1_000]):
            words = match["name"].split()
            while words and words[-1] in others:
                words.pop()
            if words and words[0] not in others:
                found.setdefault(" ".join(words), match.start("name"))
    return sorted(found, key=found.__getitem__)
