"""What a text gives to search: passages with their terms, and how much of it tells of its writer.

A message is one passage. Only a text that is much longer than a message is cut, so that a remark inside a pasted document
is not drowned; shorter passages were measured and found nothing more (docs/explanation, recall).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from perdure.engine.lexicon import lexemes, term_hash

PASSAGE_CHARS = 3_000
"""Where a long text is cut, about: four or five hundred words, as many as an assistant's long answer has."""
WHOLE_CHARS_MAX = 6_000
"""A text up to here stays whole: two halves of one answer would only compete with each other."""
PASSAGES_MAX = 64
"""Of a longer text the beginning is searched: 64 passages are about thirty thousand words."""

_BREAKS = tuple(re.compile(pattern) for pattern in (r"\n\s*\n", r"\n", r"[.!?…。！？]\s*", r"\s+"))
"""Where to cut, the best first: paragraph, line, sentence, word."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a text, and how often each of its terms (by hash) occurs in it."""

    start: int
    end: int
    terms: dict[int, int]
    length: int
    """Terms in all, repeats counted."""


def cut(text: str) -> list[Passage]:
    """The passages of a text: in order, side by side, and together all of it up to `PASSAGES_MAX`; none of no text."""
    return [_passage(text, start, end) for start, end in spans_of(text)]


def spans_of(text: str) -> list[tuple[int, int]]:
    """Where `cut` cuts: each stretch is at most `PASSAGE_CHARS` long, unless the text is whole."""
    if len(text) <= WHOLE_CHARS_MAX:
        return [(0, len(text))] if text else []
    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(text) and len(spans) < PASSAGES_MAX:
        end = len(text) if len(text) - start <= PASSAGE_CHARS else _break(text, start)
        spans.append((start, end))
        start = end
    return spans


def _break(text: str, start: int) -> int:
    """The last good break in the second half of the next `PASSAGE_CHARS`; without one, in the middle of a word."""
    low, high = start + PASSAGE_CHARS // 2, start + PASSAGE_CHARS
    for breaks in _BREAKS:
        ends = [found.end() for found in breaks.finditer(text, low, high)]
        if ends:
            return ends[-1]
    return high


def _passage(text: str, start: int, end: int) -> Passage:
    terms = lexemes(text[start:end])
    return Passage(start, end, dict(Counter(map(term_hash, terms))), len(terms))


TELLING_CHARS_MAX = 4_000
TELLING_SENTENCES = 2
"""So many sentences about oneself are as good as more: most messages that later matter have one or two."""

_SENTENCES = re.compile(r"[^.!?\n。！？]+[.!?。！？]*")
_OWN_WORDS = re.compile(
    r"\b(?:i|i['’](?:m|ve|d|ll)|my|me|mine|we|our|ours|us|"
    r"ich|mein\w{0,2}|mir|mich|wir|unser\w{0,2}|je|mon|ma|mes|moi|nous|notre|nos|yo|mi|mis|nosotr[oa]s|nuestr[oa]s?|"
    r"io|mio|mia|miei|mie|noi|nostr[oaie]|eu|meus?|minhas?|nós|ik|mijn|mij|wij|onze)\b|\bj['’]|我|私|僕|俺|저는|나는|내가",
    re.IGNORECASE,
)


def telling(text: str) -> float:
    """How much a text tells of its writer, 0 to 1: sentences in the first person that are no questions."""
    told = 0
    for sentence in _SENTENCES.finditer(text, 0, TELLING_CHARS_MAX):
        if sentence[0][-1] not in "?？" and _OWN_WORDS.search(sentence[0]):
            told += 1
            if told == TELLING_SENTENCES:
                break
    return told / TELLING_SENTENCES
