"""Whether two short statements say the same. Careful: what is not clearly the same is not."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# Words that carry no meaning of their own in a statement about somebody. Negations are not among them.
_FILLERS = """a an the is are am was be been being do does did to of in on at for with and my our your his her their its
    i me we you he she it they user that this these those have has had really very just also currently now s who which as
    by from into der die das ein eine ist bin mein meine le la les un une est mon ma mes el los las una es soy mi mis"""
_EMPTY = frozenset(_FILLERS.split())
_DENIALS = "not no never nor without cannot cant dont doesnt isnt arent wont didnt kein keine nicht nie pas jamais nunca"
_NOT = frozenset(_DENIALS.split())
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SAME = {
    "likes": "like", "enjoys": "like", "enjoy": "like", "lives": "live", "resides": "live", "works": "work",
    "prefers": "prefer", "favourite": "favorite", "colour": "color", "mum": "mother", "mom": "mother", "dad": "father",
}  # fmt: skip


@lru_cache(maxsize=4096)
def meaning(text: str) -> frozenset[tuple[str, int]]:
    """The words that carry a statement, without order, case, accents and endings, each with how often it occurs."""
    words: dict[str, int] = {}
    for found in _WORD.findall(_plain(text)):
        word = _stem(found.replace("'", "").replace("’", ""))
        if word not in _EMPTY:
            words[word] = words.get(word, 0) + 1
    return frozenset(words.items())


def says_the_same(one: str, other: str) -> bool:
    """Same words that matter, same negations, same numbers."""
    return meaning(one) == meaning(other) and bool(meaning(one) or _plain(one) == _plain(other))


def same_value(one: str, other: str) -> bool:
    """Whether two values of an attribute are the same, or one only says more of it: `Austin` and `Austin, Texas`."""
    first, second = _parts(one), _parts(other)
    if not first or not second:
        return _plain(one).strip() == _plain(other).strip()
    shorter, longer = sorted((first, second), key=len)
    return longer[: len(shorter)] == shorter


def is_negative(text: str) -> bool:
    """Whether the text denies something."""
    return any(word.replace("'", "").replace("’", "") in _NOT for word in _WORD.findall(_plain(text)))


def _parts(value: str) -> list[str]:
    return [part for part in (" ".join(_WORD.findall(piece)) for piece in _plain(value).split(",")) if part]


def _plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", "".join(char for char in decomposed if not unicodedata.combining(char)))


def _stem(word: str) -> str:
    word = _SAME.get(word, word)
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
