"""Text taken apart: sentences in any script, words counted, and cuts that break neither sentence, word nor character.

Works by punctuation and lines, without a dictionary: what a script does not mark, such as words in Thai, is not found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from perdure.domain.text.patterns import pattern
from perdure.engine.text import cues

CHARACTER_MAX = 64
SENTENCE_CHARS_MAX = 2_000
"""A longer stretch without an end is split where a word ends, so that no step after this one meets a giant."""

TITLES_CHARS_MAX = 24

Span = tuple[int, int]

# Han, kana and the like are written without spaces, about two characters to a word; Thai, Lao, Khmer and Burmese about four.
_HAN = "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_PUNCTUATION = "…\u3000-\u303f\uff01-\uff0f\uff1a-\uff20"
_WORDS = pattern(f"([{_HAN}]+)|([{_UNSPACED}]+)|[^\\s{_PUNCTUATION}{_HAN}{_UNSPACED}]+")
_NO_SPACES = pattern(f"[{_HAN}{_UNSPACED}]")

_LINES = pattern(r"[^\n\r\x0b\x0c\x85\u2028\u2029]+")
_FENCE = pattern(r"\s*(?:```|~~~)")
_MARKER = pattern(r"\s*(?:[-*+•‣▪◦–—>]+|\(?\d{1,3}[.)]|[a-zA-Z]\)|#{1,6}|\[[ xX]\])\s+")
# Lines that are records, not prose: JSON, log lines, shell prompts, tables, indented code that ends like code.
_RECORD = pattern(
    r"\s*(?:[{\[\]}<|$]|\"[^\"]*\"\s*:|\d{4}-\d\d-\d\d[T ]\d\d:|\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|TRACE)\b|"
    r"(?:def|class|import|from|return|const|let|var|function|public|private|SELECT|INSERT|UPDATE)\s.*[;:({=])"
)
_CLOSERS = "\"'”’»›)\\]}」』】）〉》*_"
# A run of marks is read from its beginning alone, or one of 100 KB would be read 100,000 times.
_END = pattern(
    rf"(?:(?<![.!?…‼⁇⁈⁉])[.!?…‼⁇⁈⁉]++|[؟۔।॥።։།။។᙮\u037e]++)[{_CLOSERS}]*+(?=\s|$)|[。！？｡．]+[{_CLOSERS}]*|[.!?][)\]]*(?=[{_HAN}])"
)
_WORD_BEFORE = pattern(r"[^\s(\[\"'“„«]*$")
_NEXT_WORD = pattern(r"\s+([^\W\d_]+)(?!\w)")
_INITIALS = pattern(r"(?:[^\W\d_]\.){1,3}[^\W\d_]")
_ABBREVIATION_GOES_ON = pattern(r"\s[^\W\d_]\.")
_AFTER_DAY = pattern(lambda: rf"\s*(?:[^\W\dA-ZÄÖÜ_]|(?:{cues.either('month after a day')})\b)")


def sentences(text: str) -> list[str]:
    """The sentences of `text`, each word for word as it stands there, without the markers of list items."""
    return [text[start:end] for start, end in sentence_spans(text)]


def sentence_spans(text: str) -> list[Span]:
    """Where the sentences of `text` stand, in order, none empty, none longer than `SENTENCE_CHARS_MAX`.

    A new line always ends a sentence. Lines of code, JSON and logs stay whole.
    """
    found: list[Span] = []
    fenced = False
    for line in _LINES.finditer(text):
        start, end = line.span()
        if _FENCE.match(text, start, end):
            fenced = not fenced
            continue
        if not fenced:
            marker = _MARKER.match(text, start, end)
            start = marker.end() if marker else start
        parts = [(start, end)] if fenced or _RECORD.match(text, start, end) else _prose(text, start, end)
        for part in parts:
            found.extend(_bounded(text, *_trimmed(text, *part)))
    return found


def count_words(text: str) -> int:
    """Words of `text`: runs without space. Two characters of Chinese or Japanese are a word, and four of Thai or Khmer."""
    total = 0
    for match in _WORDS.finditer(text):
        if match.lastindex is None:
            total += 1
        else:
            total += -(-len(match[0]) // (2 if match.lastindex == 1 else 4))
    return total


def cut_text(text: str, chars_max: int, words_max: int | None = None) -> str:
    """`text` if it is within the limits, else the start of it that is, and `…`.

    It ends with a sentence if that keeps half of what fits; else with a word; else, within a word longer than that, with
    a whole character as readers see it.
    """
    if len(text) <= chars_max and (words_max is None or count_words(text) <= words_max):
        return text
    room = min(chars_max - 1, len(text))
    if words_max is not None:
        room = min(room, _chars_of_words(text[: room + 1], words_max))
    if room <= 0:
        return ""
    end = _sentence_end(text, min(room, chars_max - 2))
    if end * 2 >= room:
        return f"{text[:end]} …"
    end = _word_end(text, room)
    if end * 2 < room:
        end = _character_end(text, room)
    kept = text[:end].rstrip()
    return f"{kept}…" if kept else ""


def _prose(text: str, start: int, end: int) -> Iterator[Span]:
    for match in _END.finditer(text, start, end):
        if match[0][0] != "." or _ends_here(text, start, match, end):
            yield start, match.end()
            start = match.end()
    yield start, end


def _ends_here(text: str, start: int, match: re.Match[str], end: int) -> bool:
    """Whether a full stop ends the sentence, rather than an abbreviation, an initial or the number of a day."""
    if match.end() - match.start() > 1:
        return True
    before = _WORD_BEFORE.search(text, max(start, match.start() - 24), match.start())
    word = before[0] if before else ""
    folded = word.casefold()
    if _INITIALS.fullmatch(word) and _is_titles(text[start : match.start() - len(word)]):
        return False
    if folded in cues.words("abbreviation") or (len(word) == 1 and word.isupper() and word != "I"):
        return False
    following = text[match.end() : min(match.end() + 14, end)]
    if len(word) == 1 and _ABBREVIATION_GOES_ON.match(following):
        return False
    if folded in cues.words("abbreviation that may end"):
        next_word = _NEXT_WORD.match(following)
        goes_on = next_word is not None and next_word[1].casefold() in cues.words("name after an abbreviation")
        return not (goes_on or following.lstrip()[:1].islower())
    return not (word.isdigit() and len(word) <= 2 and _AFTER_DAY.match(following))


def _is_titles(text: str) -> bool:
    """Whether nothing of a sentence stands there yet but titles: `Dr. ` before `J.R. Smith`."""
    return len(text) <= TITLES_CHARS_MAX and all(
        word.casefold().rstrip(".") in cues.words("abbreviation") for word in text.split()
    )


def _trimmed(text: str, start: int, end: int) -> Span:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _bounded(text: str, start: int, end: int) -> Iterator[Span]:
    while end - start > SENTENCE_CHARS_MAX:
        stop = start + SENTENCE_CHARS_MAX
        cut = text.rfind(" ", start + SENTENCE_CHARS_MAX // 2, stop)
        cut = cut if cut > 0 else max(_character_end(text, stop), start + 1)
        yield _trimmed(text, start, cut)
        start, _ = _trimmed(text, cut, end)
    if start < end:
        yield start, end


def _chars_of_words(text: str, words_max: int) -> int:
    """How many characters from the start hold no more than `words_max` words."""
    total = 0
    for match in _WORDS.finditer(text):
        size = 1 if match.lastindex is None else 2 if match.lastindex == 1 else 4
        words = -(-len(match[0]) // size) if match.lastindex else 1
        if total + words > words_max:
            return match.start() + (words_max - total) * size if match.lastindex else match.start()
        total += words
    return len(text)


def _sentence_end(text: str, room: int) -> int:
    """The end of the last sentence that ends within `room`; 0 if none does."""
    ends = [end for _, end in sentence_spans(text[: room + 1]) if end <= room]
    # The last one may end only because the view does: it counts if the text goes on with a new line or after punctuation.
    return max((end for end in ends if end < room or _is_sentence_end(text, end)), default=0)


def _is_sentence_end(text: str, end: int) -> bool:
    follows = text[end : end + 1]
    return follows in ("\n", "\r") or (follows.isspace() and bool(_END.search(text, max(0, end - 6), end)))


def _word_end(text: str, room: int) -> int:
    """The last place up to `room` that is not inside a word."""
    for place in range(room, 0, -1):
        if text[place].isspace() or text[place - 1].isspace():
            return place
        if _NO_SPACES.match(text[place]) or _NO_SPACES.match(text[place - 1]):
            return _character_end(text, place)
    return 0


def _character_end(text: str, place: int) -> int:
    """The last place up to `place` that is not inside a character as readers see it: letter and marks, joined emoji, flag.

    No character is longer than `CHARACTER_MAX`: a heap of marks is cut anywhere.
    """
    least = place - CHARACTER_MAX
    found = place
    while 0 < found < len(text) and _joined(text, found):
        found -= 1
        if found <= least:
            return place
    return found


def _joined(text: str, place: int) -> bool:
    before, after = text[place - 1], text[place]
    if after < "\u0300":
        return before == "\r" and after == "\n"
    if before == "\u200d" or after == "\u200d" or unicodedata.category(after)[0] == "M":
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f":
        return True
    if "\u1160" <= after <= "\u11ff":
        return "\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3"
    return _is_flag_half(after) and _is_flag_half(before) and _flag_halves_before(text, place) % 2 == 1


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flag_halves_before(text: str, place: int) -> int:
    start = place
    while start > max(0, place - CHARACTER_MAX) and _is_flag_half(text[start - 1]):
        start -= 1
    return place - start
