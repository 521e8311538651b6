"""Words as they are indexed: folded, without function words, as stems; identifiers and numbers also whole.

The language is chosen text by text, by its function words. What is made of the terms (postings, weights) is left to others.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any, Protocol, cast

from perdure.domain.text.patterns import pattern
from perdure.engine.words import lines, sections, word_set

TEXT_CHARS_MAX = 400_000
"""A text is read this far: a book pasted into a message must not hold up the others."""
QUESTION_CHARS_MAX = 4_000
"""A question is read this far."""
TERM_CHARS_MAX = 64
"""Longer runs are keys or encoded bytes; they are told apart by their beginning."""
PARTS_MAX = 8
VOTE_WORDS_MAX = 200
"""The language shows in the first words; a vote over more finds nothing else."""
VOTE_SHARE = 4
"""Function words are at least every fourth word of a text in their language."""
STEMS_KEPT_MAX = 50_000
HASHES_KEPT_MAX = 100_000
DEFAULT_LANGUAGE = "english"
NAME_WORDS_MAX = 40
"""Of a name, a goal, a description or a preview: more says nothing new."""

# A letter or digit, or a sign that belongs to the letter before it in Hebrew, Arabic, Indic and South-East Asian scripts.
_W = "[\\w\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u0e00-\u0eff\u1000-\u109f\u1780-\u17d3]"
_TOKEN = pattern(rf"(?<!\w)(?:c\+\+|[cf]#)(?!\w)|{_W}+(?:[.,'@:/+&-]{_W}+)*")
_CLITICS = frozenset(("s", "re", "ve", "ll", "d", "m", "t"))
_NUMBER = pattern(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_SPLIT = pattern(rf"(?!{_W})[\s\S]|_")
_NAME_PARTS = pattern(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^\W\d_]+|\d+")
_UNSPACED = pattern(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]+"
)
"""Scripts that put no spaces between words (and Korean, whose endings cling to them): indexed by pairs of characters."""


def lexemes(text: str) -> list[str]:
    """The terms of a text, in its order, repeated as often as they occur.

    Function words are left out, unless the text has no others. Equal up to case and accents: `Café` and `cafe`. An
    identifier, a version, an address or a number is one term, followed by its parts.
    """
    return [term for _, terms in words_with_terms(text) for term in terms]


def words_with_terms(text: str) -> list[tuple[str, list[str]]]:
    """The words that carry a text, folded, in order, each with the terms that `lexemes` makes of it."""
    found = list(_tokens(folded(text[:TEXT_CHARS_MAX])))
    language = language_of(found)
    stops = stopwords()[language]
    kept = [token for token in found if token not in stops] or found
    stemmed = _stemmer(language)
    return [(token, stemmed(token) if token.isalpha() else _compound(token, stemmed, stops)) for token in kept]


@lru_cache(maxsize=64)
def question_words(text: str) -> tuple[tuple[str, list[str]], ...]:
    """The same for a short text that several ask about in a row. Not to be changed."""
    return tuple(words_with_terms(text))


@lru_cache(maxsize=20_000)
def name_words(name: str) -> tuple[str, ...]:
    """The words of the name of a key, a series or a tool: `raceCalendar-2026` has `race`, `calendar` and `2026`."""
    return tuple(dict.fromkeys(part.lower() for part in _NAME_PARTS.findall(name)[:NAME_WORDS_MAX]))


def folded(text: str) -> str:
    """Lower case without accents: `Ærø Škoda` is `aero skoda`. Marks that spell (`й`, `が`) stay."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", text).translate(_FOLDS)


def language_of(words: Sequence[str]) -> str:
    """The language with the most function words among the first ones; English where none has a fair share."""
    votes = dict.fromkeys(stopwords(), 0)
    languages_of = _languages_of()
    heard = 0
    for word in words[:VOTE_WORDS_MAX]:
        heard += 1
        for language in languages_of.get(word, ()):
            votes[language] += 1
    best = max(votes, key=votes.__getitem__)
    # A single `o` or `la` in an English sentence is a name, not a vote.
    return best if votes[best] > votes[DEFAULT_LANGUAGE] and votes[best] * VOTE_SHARE >= heard else DEFAULT_LANGUAGE


@lru_cache(maxsize=HASHES_KEPT_MAX)
def term_hash(term: str) -> int:
    """A term as 64 bits, the same on every machine and in every process."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


class _Stemmed(Protocol):
    def __call__(self, word: str, /) -> list[str]: ...


def _tokens(text: str) -> Iterator[str]:
    """Words of folded text; those of scripts without spaces as pairs of characters."""
    for token in _TOKEN.findall(text):
        if token.isascii():
            if token.isalpha():
                yield token[:TERM_CHARS_MAX]
            else:
                yield from _words_of(token)
        elif _UNSPACED.search(token):
            yield from _pairs(token)
        else:
            yield from _words_of(token)


def _words_of(token: str) -> Iterator[str]:
    """Clitics and elisions off (`don't`, `l'ami`); plain words joined by a mark taken apart (`and/or`, `well-known`)."""
    if token.isalpha():
        yield token[:TERM_CHARS_MAX]
        return
    if "'" in token:
        for part in token.split("'"):
            if part not in _CLITICS:
                yield from _words_of(part)
        return
    if _is_identifier(token):
        yield token[: 4 * TERM_CHARS_MAX]
        return
    for part in _SPLIT.split(token):
        if part:
            yield part[:TERM_CHARS_MAX]


def _is_identifier(token: str) -> bool:
    return "_" in token or "@" in token or "." in token or "+" in token or "#" in token or any(map(str.isdigit, token))


def _pairs(token: str) -> Iterator[str]:
    last = 0
    for run in _UNSPACED.finditer(token):
        if run.start() > last:
            yield from _words_of(token[last : run.start()].strip(".,'@:/+&-_"))
        chars = run[0]
        yield from (chars[at : at + 2] for at in range(max(1, len(chars) - 1)))
        last = run.end()
    if last < len(token):
        yield from _words_of(token[last:].strip(".,'@:/+&-_"))


def _compound(token: str, stemmed: _Stemmed, stops: frozenset[str]) -> list[str]:
    """An identifier whole, and its parts where it has some: `v2.3`, `foo_bar`; a number without its separators."""
    if _NUMBER.fullmatch(token):
        return [token.replace(",", "")[:TERM_CHARS_MAX]]
    # Single characters are left out: the digits of a version and the letters of `e.g` are found everywhere.
    parts = [part for part in _SPLIT.split(token) if len(part) > 1 and part not in stops][:PARTS_MAX]
    if not parts or parts == [token]:
        return [token[:TERM_CHARS_MAX]]
    inner = [term for part in parts for term in (stemmed(part) if part.isalpha() else [part])]
    return [token[:TERM_CHARS_MAX], *(part[:TERM_CHARS_MAX] for part in inner)]


class _Folds(dict[int, str]):
    """What each character becomes, found when first met: lower case, its base letter, or itself."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        letter = _LETTERS.get(char) or _base(char)
        self[code] = letter
        return letter


_LETTERS = {
    "’": "'",
    "‘": "'",
    "ʼ": "'",
    "ß": "ss",
    "ẞ": "ss",
    "æ": "ae",
    "Æ": "ae",
    "œ": "oe",
    "Œ": "oe",
    "ø": "o",
    "Ø": "o",
} | {"ł": "l", "Ł": "l", "đ": "d", "Đ": "d", "ð": "d", "Ð": "d", "þ": "th", "Þ": "th", "ı": "i", "ё": "е", "Ё": "е"}
_FOLDS = _Folds()


def _base(char: str) -> str:
    """Latin and Greek letters lose their marks; full-width and other forms become the plain ones."""
    plain = unicodedata.normalize("NFKC", char).lower()
    if not plain or unicodedata.name(plain[0], "").split(" ")[0] not in ("LATIN", "GREEK"):
        return plain
    return "".join(part for part in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(part)) or plain


@cache
def stopwords() -> Mapping[str, frozenset[str]]:
    """The function words of the languages that are known, folded."""
    return {language: word_set(entries) for language, entries in sections(__package__, "stopwords.txt").items()}


@cache
def _languages_of() -> dict[str, tuple[str, ...]]:
    """The languages that have a word as a function word."""
    words: dict[str, list[str]] = {}
    for language, stops in stopwords().items():
        for word in stops:
            words.setdefault(word, []).append(language)
    return {word: tuple(languages) for word, languages in words.items()}


@cache
def load_stemmers() -> Callable[[str], Any]:
    """What makes a stemmer. It brings all languages along, so that it is loaded late; and before an engine is open, since
    a child of a fork would wait for ever for what another thread was loading.
    """
    import snowballstemmer  # type: ignore[import-untyped]

    return cast("Callable[[str], Any]", snowballstemmer.stemmer)


@cache
def _irregular() -> dict[str, str]:
    """English forms that no stemmer brings together with their word, by form."""
    entries = map(str.split, lines(__package__, "irregular.txt"))
    return {form: word for word, *forms in entries for form in forms}


@cache
def _stemmer(language: str) -> _Stemmed:
    """The stemmer of a language, with the stems it found before: most words of most texts are met again."""
    new_stemmer = load_stemmers()
    irregular = _irregular() if language == "english" else {}
    known: dict[str, list[str]] = {}

    def stemmed(word: str) -> list[str]:
        found = known.get(word)
        if found is None:
            if len(known) >= STEMS_KEPT_MAX:
                known.clear()
            # A stemmer holds the word it is at, so that threads must not share one; making it costs less than stemming.
            found = known[word] = [new_stemmer(language).stemWord(irregular.get(word, word))]
        return found

    return stemmed
