"""Open questions: what was asked and not answered, or answered with a promise to look. By words shared, not by meaning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from perdure.domain.conversation.messages import Message
from perdure.domain.text.patterns import pattern
from perdure.engine.text import cues
from perdure.engine.text.sentences import sentence_spans

HEAD_CHARS_MAX = 16_000
TAIL_CHARS_MAX = 4_000
TOOL_HEAD_CHARS_MAX = 6_000
TOOL_TAIL_CHARS_MAX = 2_000


FIRM_SENTENCES = 3
"""An answer that states so much has answered, also if it puts something off."""


def open_questions(messages: Sequence[Message]) -> dict[int, frozenset[str]]:
    """For each message, by its index, the questions in it that stay open: no answer came, or one that put it off.

    The user's questions; the agent's too where the user has not spoken since.
    """
    found: dict[int, frozenset[str]] = {}
    last_user = max((index for index, message in enumerate(messages) if message.role == "user"), default=-1)
    statements = StatementIndex(messages)
    for index, message in enumerate(messages):
        if message.role == "user" or (message.role == "assistant" and index > last_user):
            asked = [sentence for sentence in sentences_of(message) if cues.is_question(sentence) and _matters(sentence)]
            if asked and message.role == "user":
                turn_end, replies = _replies(messages, index)
                asked = [
                    one for one in asked if not (_is_answered(one, replies) or (replies and statements.settle(one, turn_end)))
                ]
            if asked:
                found[index] = frozenset(asked)
    return found


class StatementIndex:
    """What users and agents state in some messages, by the words they use. Built when first asked."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._by_word: dict[str, list[tuple[int, int]]] | None = None

    def settle(self, question: str, start: int = 0) -> bool:
        """Whether a statement from message `start` on is about what the question asks: it has half of its words."""
        words = content_words(question)
        hits: Counter[tuple[int, int]] = Counter()
        for word in words:
            hits.update(place for place in self._index().get(word, ()) if place[0] >= start)
        return any(count >= _needed(words) for count in hits.values())

    def _index(self) -> dict[str, list[tuple[int, int]]]:
        if self._by_word is None:
            self._by_word = {}
            for index, message in enumerate(self._messages):
                if message.role in ("user", "assistant"):
                    for number, sentence in enumerate(sentences_of(message)):
                        if _states(sentence):
                            for word in content_words(sentence):
                                self._by_word.setdefault(word, []).append((index, number))
        return self._by_word


def _replies(messages: Sequence[Message], index: int) -> tuple[int, list[list[str]]]:
    """What the agent said before the user spoke again, and where that is. A run of user messages is one turn."""
    place = index + 1
    while place < len(messages) and messages[place].role == "user":
        place += 1
    replies = []
    while place < len(messages) and messages[place].role != "user":
        said = sentences_of(messages[place]) if messages[place].role == "assistant" else []
        if said:
            replies.append(said)
        place += 1
    return place, replies


def _is_answered(question: str, replies: Sequence[Sequence[str]]) -> bool:
    """By the last reply of the turn: what came before it, such as a word before a tool call, is not the answer."""
    if not replies:
        return False
    firm = [sentence for sentence in replies[-1] if not cues.DEFERRAL.search(sentence)]
    if len(firm) == len(replies[-1]) or len(firm) >= FIRM_SENTENCES:
        return True
    words = content_words(question)
    return any(len(words & content_words(one)) >= _needed(words) for one in firm if not cues.is_question(one))


def bounded_views(message: Message) -> tuple[str, ...]:
    """What is looked at: all of a message of usual length, the head and the tail of a giant."""
    is_tool = message.role == "tool"
    head, tail = (TOOL_HEAD_CHARS_MAX, TOOL_TAIL_CHARS_MAX) if is_tool else (HEAD_CHARS_MAX, TAIL_CHARS_MAX)
    text = message.content
    return (text,) if len(text) <= head + tail else (text[:head], text[-tail:])


def sentences_of(message: Message) -> list[str]:
    """The sentences of a message, as far as it is looked at."""
    return [view[start:end] for view in bounded_views(message) for start, end in sentence_spans(view)]


_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TERMS = pattern(rf"([{_UNSPACED}]+)|[^\W\d_{_UNSPACED}][^\W_{_UNSPACED}]+|\d[\w.-]*")


def content_words(sentence: str) -> frozenset[str]:
    """Words that carry the matter, cut to six letters so that endings do not count; without spaces, pairs of characters."""
    fillers = cues.words("filler")
    found: set[str] = set()
    for match in _TERMS.finditer(sentence[:1_000].casefold()):
        word = match[0]
        if match.lastindex:
            found.update(word[place : place + 2] for place in range(len(word) - 1))
        elif len(word) > 2 and word not in fillers:
            found.add(word[:6])
    return frozenset(found)


def _needed(words: frozenset[str]) -> int:
    return max(2, -(-len(words) // 2))


def _matters(question: str) -> bool:
    return cues.asks_openly(question) and not cues.is_small_talk(question)


def _states(sentence: str) -> bool:
    return not (cues.is_question(sentence) or cues.DEFERRAL.search(sentence) or cues.OPEN.search(sentence))
