"""Standing instructions in a message: orders to the agent that are meant to last, and words that take such an order back.

Works by form: `always`, `from now on`, `whenever I …` and the like, with an order to the agent. A form is looked for where a
clause starts, so that what others say, and what is told of others, is left alone. When in doubt a sentence is no order: what
is left out can be said again. The forms are in `orders.LANGUAGE.toml`; what an order is about, in `order_topics`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

from perdure.domain.knowledge.entities import OrderKind
from perdure.domain.values import dataclass
from perdure.engine.extraction.patterns import any_of, pieces_of, spelled, word_lists
from perdure.engine.text.own_words import OWN_CHARS_MAX, opens_fiction, own_words
from perdure.engine.text.sentences import sentence_spans
from perdure.engine.words import tables

WINDOW_CHARS = 2_000
"""Of a longer message its beginning and its end are looked at, each so far: the rest is a document."""
ORDER_CHARS_MAX = 500
FOUND_MAX = 10
"""Orders taken from one message, the first ones."""
CLAUSES_MAX = 8


@dataclass(frozen=True, slots=True)
class OrderSpan:
    """Where in the text a sentence, or a heading with its list, gives or takes back a standing order."""

    start: int
    end: int
    kind: OrderKind


def standing_instructions(text: str) -> tuple[OrderSpan, ...]:
    """The standing orders in a message of the user, in order; spans are of whole sentences. Never raises."""
    if len(text) <= 2 * WINDOW_CHARS:
        return _orders_in(text, 0) if has_hint(text) else ()
    head, tail = text[:WINDOW_CHARS], text[-WINDOW_CHARS:]
    found: tuple[OrderSpan, ...] = ()
    if has_hint(head):
        # What the view cuts off has no end yet.
        found = tuple(one for one in _orders_in(head, 0) if one.end < WINDOW_CHARS)
    paragraph = tail.rfind("\n\n")
    if paragraph >= 0 and has_hint(tail):
        # The end of something pasted looks like an order, too: only what speaks to the agent outright is taken from there.
        start = len(text) - WINDOW_CHARS + paragraph
        found += _orders_in(text[start:], start, outright=True)
    return found[:FOUND_MAX]


def has_hint(text: str) -> bool:
    """Whether a text has any of the words without which it holds no standing order. Looking costs some microseconds."""
    hints, phrases = _hints()
    lower = text.lower()
    # Splitting is the faster way to words, where blanks can be made of everything else.
    words = lower.translate(_BLANKS).split() if lower.isascii() else re.findall(r"[^\W\d_]+", lower)
    if not hints.isdisjoint(words):
        return True
    for phrase in phrases:  # noqa: SIM110 - every message passes here, and a generator takes twice as long
        if phrase in lower:
            return True
    return False


_BLANKS = str.maketrans(dict.fromkeys(".,;:!?-()[]{}<>\"'/\\*_#\n\t\r", " "))


def _orders_in(text: str, offset: int, *, outright: bool = False) -> tuple[OrderSpan, ...]:
    """Orders in a text that stands at `offset` of its message; with `outright`, without those that could be anybody's."""
    spans = [span for span in sentence_spans(text) if span[1] - span[0] <= ORDER_CHARS_MAX]
    likely = [span for span in spans if has_hint(text[span[0] : span[1]])]
    if not any(recognised(text[start:end]) for start, end in likely):
        return ()
    own = _own_words_in(text)
    found: list[OrderSpan] = []
    for start, end in likely:
        said = recognised(own[start:end])
        if said is None or (found and start < found[-1].end - offset):
            continue
        kind, bare = said
        if bare and (outright or _is_somebody_elses(own, start, text)):
            continue
        last = _with_list(text, end) if kind == "order" else end
        if last == end and _is_heading(text[start:end]):
            continue
        if last - start <= ORDER_CHARS_MAX and not _in_fiction(own, start):
            found.append(OrderSpan(offset + start, offset + last, kind))
    return tuple(found[:FOUND_MAX])


def _with_list(text: str, end: int) -> int:
    """The end of the list that an order ending in a colon announces; else of the order itself."""
    if text[end - 1] != ":":
        return end
    item = re.compile(r"\r?\n[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]+[^\n]+")
    while (match := item.match(text, end)) is not None:
        end = match.end()
    return len(text[:end].rstrip())


def _own_words_in(text: str) -> str:
    """`text` with what is quoted, pasted or code blanked out, every character at its place."""
    own = own_words(text)
    return own + "\n" * (len(text) - len(own)) if len(text) > OWN_CHARS_MAX else own


def _is_somebody_elses(own: str, start: int, text: str) -> bool:
    """Whether an order that names nobody is rather a line of a list, or what a heading or a speaker announced."""
    line = text.rfind("\n", 0, start) + 1
    if re.match(r"[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]+\Z", text[line:start]):
        return True
    first = own.rfind("\n\n", 0, start) + 1
    colons = re.compile(r":(?:[ \t]*(?P<line>\n|\Z)|(?=\s))").finditer(own, first, start)
    return any(_announces_others(own, first, colon) for colon in colons)


def _announces_others(own: str, first: int, colon: re.Match[str]) -> bool:
    """Whether the words before a colon give others the word; at the end of a line, unless they say that it is for the agent."""
    begin = 1 + max(first - 1, *(own.rfind(end, first, colon.start()) for end in "\n.!?:"))
    before = own[begin : colon.start()]
    return _reported().search(before) is not None or (colon["line"] is not None and _english("for_you").search(before) is None)


def _in_fiction(own: str, start: int) -> bool:
    """Whether something before this place makes all that follows make-believe."""
    return any(opens_fiction(own[first:last]) for first, last in sentence_spans(own[:start]))


# -- one sentence


def recognised(sentence: str) -> tuple[OrderKind, bool] | None:
    """What the sentence is, if it is a standing order or takes one back; and whether it could be said to anybody."""
    lead = _english("lead").match(sentence)
    start = lead.end() if lead is not None else 0
    if _english("attributed").search(sentence) or _english("idiom").match(sentence, start):
        return None
    for place, is_firm in islice(_clause_starts(sentence, start), CLAUSES_MAX):
        found = _recognised_at(sentence[place:], is_firm=is_firm)
        if found is not None:
            return found
    return None


def _is_heading(sentence: str) -> bool:
    """Whether it only announces orders: `From now on:`."""
    lead = _english("lead").match(sentence)
    return _english("heading").match(sentence, lead.end() if lead is not None else 0) is not None


def _clause_starts(sentence: str, start: int) -> Iterator[tuple[int, bool]]:
    """Where clauses start, and whether each is one of its own: `I like it, but never use it` goes on about the speaker."""
    yield start, True
    if (called := _english("vocative").match(sentence)) is not None and called.end() > start:
        yield called.end(), True
    for match in _english("separator").finditer(sentence, start):
        if _reported().search(sentence, 0, match.start()):
            return
        lead = _english("lead").match(sentence, match.end())
        yield match.end() if lead is None else lead.end(), match["firm"] is not None


def _recognised_at(clause: str, *, is_firm: bool) -> tuple[OrderKind, bool] | None:
    """The same for a clause, from its start."""
    words = re.findall(r"[^\W\d_]+", clause.lower())
    # Most sentences have none of these words: what needs them is not looked for.
    may_withdraw, is_foreign = not _returning().isdisjoint(words), not _foreign().isdisjoint(words)
    if (may_withdraw and _says(clause, "en", "withdrawals")) or (is_foreign and _says_foreign(clause, "withdrawals")):
        return "withdrawal", False
    if _says(clause, "en", "stops") or _says_foreign(clause, "stops"):
        return "stop", False
    if _english("named").match(clause) or (is_foreign and _foreign_name().match(clause)):
        return "order", False
    asks = clause.rstrip("\"'”’)* ").endswith("?")
    if asks and (not _english("asked_kindly").match(clause) or _english("question").match(clause)):
        return None
    if _english("heading").match(clause):
        return "order", False
    if is_foreign and _says_foreign(clause, "orders") and not _once().search(clause):
        return "order", False
    return _order_at(clause, is_firm=is_firm)


def _order_at(clause: str, *, is_firm: bool) -> tuple[OrderKind, bool] | None:
    """The same for an English clause that takes nothing back."""
    if any(_english(name).match(clause) for name in ("pointless", "to_others", "times")):
        return None
    if _once().search(clause) and not _english("from_now").search(clause):
        return None
    to_agent = _english("me").search(clause) is not None
    if _english("software").search(clause) and not _english("for_me").search(clause):
        return None
    if _says(clause, "en", "orders"):
        return "order", False
    if _says(clause, "en", "asked") and _english("lasting").search(clause):
        return "order", False
    if _says(clause, "en", "by_default"):
        return ("order", False) if to_agent else None
    return ("order", not to_agent) if is_firm and _says(clause, "en", "bare") else None


# -- the forms


class _Forms:
    """Any of some forms, in which `{VERB}` and the like stand for a word of a list, always as the last choice at its place.

    The words are looked up, not spelled out: with every list in every form, compiling takes three times as long.
    """

    def __init__(self, forms: Sequence[str], pieces: Mapping[str, str], words: Mapping[str, frozenset[str]]) -> None:
        self._forms = [re.compile(self._numbered(spelled(form, pieces)), re.IGNORECASE) for form in forms]
        self._words = words

    @staticmethod
    def _numbered(form: str) -> str:
        count = iter(range(9))
        return re.sub(r"\{([A-Z_]+)\}", lambda match: rf"(?P<{match[1]}{next(count)}>[^\W\d_]+(?:-[^\W\d_]+)?)\b", form)

    def match(self, clause: str) -> bool:
        return any(self._fits(form.match(clause)) for form in self._forms)

    def _fits(self, match: re.Match[str] | None) -> bool:
        if match is None:
            return False
        return all(word is None or _is_one(word.lower(), self._words[name[:-1]]) for name, word in match.groupdict().items())


def _is_one(word: str, words: frozenset[str]) -> bool:
    """Whether it is one of the words, or one with something hung on: `appelle-moi`."""
    return word in words or word.partition("-")[0] in words


@cache
def languages() -> Mapping[str, Mapping[str, Any]]:
    """The data of every language that orders are read in, English first."""
    found = tables(__package__, "orders")
    return {"en": found["en"], **found}


@cache
def language_names() -> Mapping[str, str]:
    """What languages are called in all of them, each with its English name."""
    rows = ((name, said) for data in languages().values() for name, said in data.get("languages", {}).items())
    return {word: name for name, said in rows for word in said.split()}


@cache
def _hints() -> tuple[frozenset[str], tuple[str, ...]]:
    phrases = tuple(phrase for data in languages().values() for phrase in data.get("hint_phrases", ()))
    return frozenset(" ".join(data.get("hints", "") for data in languages().values()).split()), phrases


@cache
def _foreign() -> frozenset[str]:
    data = [data for language, data in languages().items() if language != "en"]
    return frozenset(" ".join(one.get(key, "") for one in data for key in ("hints", "clause_hints")).split())


@cache
def _returning() -> frozenset[str]:
    return frozenset(languages()["en"]["withdrawal_hints"].split())


@cache
def _pieces(language: str) -> Mapping[str, str]:
    data = languages()[language]
    names = (word for said in data.get("languages", {}).values() for word in said.split())
    return pieces_of(data.get("pieces", {}), {"LANGUAGES": any_of(names)})


@cache
def _forms(language: str, kind: str) -> _Forms:
    data = languages()[language]
    words = {name: frozenset(found) for name, found in word_lists(data.get("words", {})).items()}
    return _Forms(data.get(kind, ()), _pieces(language), words)


def _says(clause: str, language: str, kind: str) -> bool:
    return _forms(language, kind).match(clause)


def _says_foreign(clause: str, kind: str) -> bool:
    return any(_says(clause, language, kind) for language in languages() if language != "en")


@cache
def _english(name: str) -> re.Pattern[str]:
    return re.compile(spelled(languages()["en"]["patterns"][name], _pieces("en")), re.IGNORECASE)


@cache
def of_all_languages(form: str, section: str = "") -> re.Pattern[str]:
    """A form in which `{NAME}` stands for what any language has under that key, in the section if one is given."""
    found: dict[str, list[str]] = {}
    for data in languages().values():
        for key, value in (data.get(section, {}) if section else data).items():
            if isinstance(value, str):
                found.setdefault(key.upper(), []).append(value)
    pieces = pieces_of({name: "|".join(forms) for name, forms in found.items()}, {"LANGUAGES": any_of(language_names())})
    return re.compile(spelled(form, pieces), re.IGNORECASE)


def _once() -> re.Pattern[str]:
    return of_all_languages(r"\b{ONCE}\b")


def _reported() -> re.Pattern[str]:
    """A clause that comes after words like these is somebody else's, or is told rather than said."""
    return of_all_languages(r"\b{REPORTED}\b|{GREETING}")


def _foreign_name() -> re.Pattern[str]:
    """`Call me Doc` in another language than English."""
    name = r"(?-i:[A-ZÀ-ÖØ-Þ][\w\x27’-]*)"
    return of_all_languages(rf"{{BEFORE}}{{0,3}}{{WORDS}} {name}(?:\s*[.!,;]|\s*$| {{BEHIND}}\b)", "call_me")
