"""Standing instructions in a message: orders to the agent that are meant to last, and words that take such an order back.

Works by form: `always`, `from now on`, `whenever I …` and the like, with an order to the agent. When in doubt a sentence is
none: what is left out can be said again. The forms are in `order_forms`; what an order is about, in `order_topics`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from perdure.domain.instructions import OrderKind
from perdure.engine.sentences import sentence_spans

WINDOW_CHARS = 2_000
"""Of a longer message its beginning and its end are looked at, each so far: the rest is a document."""
ORDER_CHARS_MAX = 500
FOUND_MAX = 10
"""Orders taken from one message, the first ones."""


@dataclass(frozen=True, slots=True)
class Found:
    """Where in the text a sentence, or a heading with its list, gives or takes back a standing order."""

    start: int
    end: int
    kind: OrderKind


# A text with none of these words and phrases, in lower case, holds no standing order. Looking costs some microseconds.
_HINTS = """
    always never ever whenever whatever every everytime everyday anytime anymore longer henceforth future default
    forward forwards rule rules notice starting effective matter circumstances call address refer stop quit cease again
    back mind needn forget ignore disregard scrap scratch drop cancel undo lift nevermind instruction request answers
    replies responses explanations summaries immer stets nie niemals grundsätzlich jetzt sofort nun künftig zukünftig
    zukunft fortan weiteres mehr mal jedesmal sooft nenn nenne hör hören wieder vergiss toujours systématiquement jamais
    plus désormais dorénavant avenir partir maintenant ordre fois moi arrête arrêtez nouveau recommencer oublie oubliez
    siempre nunca más ahora adelante futuro aviso vez vuelvas volver nuevo llámame deja olvida ya
"""
_HINT_WORDS = frozenset(_HINTS.split())
_HINT_PHRASES = (
    "now on", "from here", "from t", "as of ", "h time ", "y time ", "when i ", "if i ", "y more", "o more", "t need",
    "t have to", "o need", "l times", "otherwise", "ll your", "f your", "om you", "para de",
)  # fmt: skip
_BLANKS = str.maketrans(dict.fromkeys(".,;:!?-()[]{}<>\"'/\\*_#\n\t\r", " "))
_WORD = re.compile(r"[^\W\d_]+")


def standing_instructions(text: str) -> tuple[Found, ...]:
    """The standing orders in a message of the user, in order; spans are of whole sentences. Never raises."""
    if len(text) <= 2 * WINDOW_CHARS:
        return _found_in(text, 0) if _has_hint(text) else ()
    head, tail = text[:WINDOW_CHARS], text[-WINDOW_CHARS:]
    found: tuple[Found, ...] = ()
    if _has_hint(head):
        # What the view cuts off has no end yet.
        found = tuple(one for one in _found_in(head, 0) if one.end < WINDOW_CHARS)
    paragraph = tail.rfind("\n\n")
    if paragraph >= 0 and _has_hint(tail):
        # The end of something pasted looks like an order, too: only what speaks to the agent outright is taken from there.
        start = len(text) - WINDOW_CHARS + paragraph
        found += _found_in(text[start:], start, outright=True)
    return found[:FOUND_MAX]


def _has_hint(text: str) -> bool:
    lower = text.lower()
    # Splitting is the faster way to words, where blanks can be made of everything else.
    words = lower.translate(_BLANKS).split() if lower.isascii() else _WORD.findall(lower)
    if not _HINT_WORDS.isdisjoint(words):
        return True
    for phrase in _HINT_PHRASES:  # noqa: SIM110 - every message passes here, and a generator takes twice as long
        if phrase in lower:
            return True
    return False


def _found_in(text: str, offset: int, *, outright: bool = False) -> tuple[Found, ...]:
    """Orders in a text that stands at `offset` of its message; with `outright`, without those that could be anybody's."""
    from perdure.engine import order_forms as forms  # compiled when the first text has a hint

    spans = [span for span in sentence_spans(text) if span[1] - span[0] <= ORDER_CHARS_MAX]
    likely = [span for span in spans if _has_hint(text[span[0] : span[1]])]
    if not any(forms.recognised(text[start:end]) for start, end in likely):
        return ()
    own = forms.own_words_in(text)
    found: list[Found] = []
    for start, end in likely:
        said = forms.recognised(own[start:end])
        if said is None or (found and start < found[-1].end - offset):
            continue
        kind, bare = said
        if bare and (outright or forms.is_somebody_elses(own, start, text)):
            continue
        last = _with_list(text, end) if kind == "order" else end
        if last == end and forms.is_heading(text[start:end]):
            continue
        if last - start <= ORDER_CHARS_MAX and not forms.in_fiction(own, start):
            found.append(Found(offset + start, offset + last, kind))
    return tuple(found[:FOUND_MAX])


_ITEM = re.compile(r"\r?\n[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]+[^\n]+")


def _with_list(text: str, end: int) -> int:
    """The end of the list that an order ending in a colon announces; else of the order itself."""
    if text[end - 1] != ":":
        return end
    while (item := _ITEM.match(text, end)) is not None:
        end = item.end()
    return len(text[:end].rstrip())
