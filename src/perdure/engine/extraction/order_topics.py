"""What a standing order is about, and which held order a new one, or one that is taken back, puts out of force.

Careful: what is not clearly about the same thing, under the same condition, stays. Of two that clash, the newest stands
last anyway.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache

from perdure.domain.knowledge.entities import OrderKind
from perdure.domain.values import dataclass
from perdure.engine.extraction.orders import language_names, languages, of_all_languages
from perdure.engine.extraction.patterns import spelled

_WORD = r"[^\W_]+(?:['’-][^\W_]+)*"
_UNCLEAR = "?"
# The patterns, of what the languages have in their section `about`.
_FORMS = {
    "language": r"\b{IN_LANGUAGE}(?: {PLAINLY})? ({LANGUAGES})\b(?! {NO_LANGUAGE})",
    "name": r"\b{CALL_ME}(?: {JUST})* (?-i:((?:{TITLE}\.? )?[^\W\d_a-zà-ÿ][\w\x27’-]*|{HONORIFIC}))",
    "denied": r"\b{DENIED}\b",
    "forbids": r"{FORBIDS}",
    "condition": r"\b{CONDITION}\b|{IN_SOME_CASE}",
    "reason": r"(?s:{REASON})",
    "forget": r"\b{FORGET}\b",
    "drop": r"\b{DROP}\b",
}


@dataclass(frozen=True, slots=True)
class _Wish:
    """What an order wants of its topic, or does not want."""

    value: str
    denied: bool = False

    def clashes(self, other: _Wish) -> bool:
        """Whether no agent can follow both."""
        if _UNCLEAR in (self.value, other.value) or (self.denied and other.denied):
            return False
        return (self.value == other.value) == (self.denied or other.denied)


def withdraws(said: str, held: Sequence[str], *, kind: OrderKind) -> int | None:
    """Which of the `held` orders `said` puts out of force; None if none, or if that is not sure.

    An order does so if it is of the same topic and says something else of it; what takes back, if it names one of them.
    """
    topics = _topics(said)
    if kind == "order":
        if not topics or _pattern("condition").search(said):
            return None
        return next((index for index in reversed(range(len(held))) if _replaces(topics, held[index])), None)
    found = [index for index, order in enumerate(held) if _takes_back(said, topics, order)]
    return found[0] if len(found) == 1 else None


def says_same_order(one: str, other: str) -> bool:
    """Whether two orders are the same words, but for case, punctuation and courtesy."""
    return _plain_words(one) == _plain_words(other)


def _replaces(new: Mapping[str, _Wish], order: str) -> bool:
    if _pattern("condition").search(order):
        return False
    old = _topics(order)
    if len(old) != 1 or _says_more(order):
        return False
    [(topic, wish)] = old.items()
    return topic in new and new[topic].clashes(wish)


def _takes_back(said: str, named: Mapping[str, _Wish], order: str) -> bool:
    """Whether the order is meant: allowed again, no longer asked for, or named as something to forget."""
    forgets = _pattern("forget").search(said) is not None
    drops = not forgets and _pattern("drop").search(said) is not None
    old = _topics(order)
    if named and old:
        if len(named) != 1 or len(old) != 1 or named.keys() != old.keys() or not _beside(said) <= _content(order):
            return False
        [mine], [theirs] = named.values(), old.values()
        if forgets:
            return mine.value == theirs.value
        if drops:
            return mine.value == theirs.value and not theirs.denied
        return _Wish(mine.value).clashes(theirs)
    words = _content(said)
    if not words or not words <= _content(order):
        return False
    return forgets or drops != (_pattern("forbids").search(order) is not None)


def _topics(text: str) -> Mapping[str, _Wish]:
    """What an order is about, with what it wants of it."""
    found: dict[str, _Wish] = {}
    if (spoken := _pattern("language").search(text)) is not None:
        found["language"] = _Wish(language_names().get(spoken[1].casefold(), spoken[1]), _denies(text, spoken))
    if (name := _pattern("name").search(text)) is not None:
        found["name"] = _Wish(name[1].casefold(), _denies(text, name))
    for topic, either in _either().items():
        places = [(value, match) for value, form in either.items() if (match := form.search(text)) is not None]
        if places:
            value, match = places[0]
            found[topic] = _Wish(value, _denies(text, match)) if len(places) == 1 else _Wish(_UNCLEAR)
    return found


def _denies(text: str, match: re.Match[str]) -> bool:
    """Whether the order is against what it names here."""
    return _pattern("denied").search(text, 0, match.start()) is not None


def _says_more(order: str) -> bool:
    """Whether an order says something besides its one topic, which would be lost with it; why it is given does not count."""
    return bool(_beside(_pattern("reason").sub("", order)))


def _beside(text: str) -> frozenset[str]:
    """What a text is about besides the topics that have a name."""
    for form in (_pattern("language"), _pattern("name"), *(form for either in _either().values() for form in either.values())):
        text = form.sub(" ", text)
    return _content(text)


def _content(text: str) -> frozenset[str]:
    """The words by which an order is told from others, without endings."""
    return frozenset(root for word in re.findall(_WORD, text) if (root := _root(word)) not in _common_roots())


def _root(word: str) -> str:
    decomposed = unicodedata.normalize("NFKD", word.casefold().replace("’", "'"))
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    for ending in ("ing", "ed", "es", "s", "en", "e"):
        if plain.endswith(ending) and len(plain) - len(ending) >= 3:
            plain = plain[: -len(ending)]
            break
    return plain[:-1] if len(plain) > 3 and plain[-1] == plain[-2] else plain


def _plain_words(text: str) -> list[str]:
    words = re.findall(_WORD, text.casefold().replace("’", "'").replace("do not ", "don't "))
    return [word for word in words if word not in _words("polite")]


def _pattern(name: str) -> re.Pattern[str]:
    return of_all_languages(_FORMS[name], "about")


@cache
def _either() -> Mapping[str, Mapping[str, re.Pattern[str]]]:
    """Things that are wanted one way or the other: the pattern of each way."""
    found: dict[str, dict[str, list[str]]] = {}
    for data in languages().values():
        for topic, either in data.get("topics", {}).items():
            for value, form in either.items():
                found.setdefault(topic, {}).setdefault(value, []).append(spelled(form, {}))
    return {
        topic: {value: re.compile(rf"\b(?:{'|'.join(forms)})(?!\w)", re.IGNORECASE) for value, forms in either.items()}
        for topic, either in found.items()
    }


@cache
def _common_roots() -> frozenset[str]:
    return frozenset(map(_root, _words("common")))


@cache
def _words(key: str) -> frozenset[str]:
    """The words that the languages have under a key of their section `about`."""
    return frozenset(" ".join(data.get("about", {}).get(key, "") for data in languages().values()).split())
