"""Whether two short statements say the same. Careful: what is not clearly the same is not."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# Words that carry no meaning of their own in a statement about somebody. Negations are not among them.
_FILLERS = """a an the is are am be being do does of in on at for with and my our your his her their its
    i me we you he she it they user that this these those have has really very just also currently now s who which as
    der die das ein eine ist bin mein meine le la les un une est mon ma mes el los las una es soy mi mis"""
_EMPTY = frozenset(_FILLERS.split())
# Where the order of words counts, so do the small words between them.
_BLANK = _EMPTY - {"of", "in", "on", "at", "for", "with", "and", "as"}
_DENIALS = "not no never nor without cannot cant dont doesnt isnt arent wont didnt kein keine nicht nie pas jamais nunca"
_NOT = frozenset(_DENIALS.split())
_HYPHEN = re.compile(r"(?<=\bco)-(?=\w)")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SAME = {
    "likes": "like", "enjoys": "like", "enjoy": "like", "lives": "live", "resides": "live", "works": "work",
    "prefers": "prefer", "cuisine": "food", "film": "movie", "flat": "apartment", "neighbour": "neighbor",
    "favourite": "favorite", "colour": "color", "mum": "mother", "mom": "mother", "dad": "father",
}  # fmt: skip


_ORDINAL = re.compile(r"(\d{1,4})(?:st|nd|rd|th)")
_ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_MONTHS = "january february march april may june july august september october november december"
# Numbers and months as they are also written.
_SPELLED = {
    **{word: str(number) for number, word in enumerate(_ONES.split())},
    **{word: str(20 + 10 * number) for number, word in enumerate(_TENS.split())},
    **{month[:3]: month for month in _MONTHS.split()},
    "sept": "september",
}


@lru_cache(maxsize=4096)
def meaning(text: str) -> frozenset[tuple[str, int]]:
    """The words that carry a statement, without order, case, accents and endings, each with how often it occurs."""
    words: dict[str, int] = {}
    for found in _words(text):
        if found not in _EMPTY:
            word = _stem(found)
            words[word] = words.get(word, 0) + 1
    return frozenset(words.items())


def says_the_same(one: str, other: str) -> bool:
    """The same words that matter in the same order, or the two sides of one `is` swapped."""
    first, second = words_in_order(one), words_in_order(other)
    if first == second:
        return bool(first) or _plain(one) == _plain(other)
    sides, others = _sides(one), _sides(other)
    return sides is not None and others is not None and sides == others[::-1]


@lru_cache(maxsize=4096)
def words_in_order(text: str) -> tuple[str, ...]:
    """The words that carry a statement, in order, without case, accents and endings."""
    return tuple(_stem(word) for word in _words(text) if word not in _BLANK)


def _words(text: str) -> list[str]:
    return [word.replace("'", "").replace("’", "") for word in _WORD.findall(_HYPHEN.sub("", _plain(text)))]


def _sides(text: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """What stands before and after the only `is` of a statement."""
    parts = re.split(r"\b(?:is|are|am)\b", text, flags=re.IGNORECASE)
    if len(parts) != 2:
        return None
    left, right = (words_in_order(part) for part in parts)
    return (left, right) if left and right else None


def is_negative(text: str) -> bool:
    """Whether the text denies something."""
    return any(word.replace("'", "").replace("’", "") in _NOT for word in _WORD.findall(_plain(text)))


def plain_parts(value: str) -> list[str]:
    """The parts of a value between commas, in plain words."""
    return [part for part in (" ".join(_WORD.findall(piece)) for piece in _plain(value).split(",")) if part]


def _plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", "".join(char for char in decomposed if not unicodedata.combining(char)))


def _stem(word: str) -> str:
    word = _SAME.get(word, word)
    if (ordinal := _ORDINAL.fullmatch(word)) is not None:
        return ordinal[1]
    if word in _SPELLED:
        return _SPELLED[word]
    if len(word) > 5 and word.endswith("ing"):
        stem = word[:-3]
        return stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "lsz" else stem
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return _stem(word[:-1])
    if len(word) > 5 and word.endswith(("our", "ise")):
        return word[:-3] + ("or" if word.endswith("our") else "ize")
    return word
