"""The writer's own statements in a message: what is quoted, pasted, code, a question or make-believe is told apart.

Works by form alone. When in doubt a stretch is not the writer's own: what is left out can be said again.
"""

from __future__ import annotations

import re
from typing import Literal

from perdure.domain.text.patterns import pattern
from perdure.engine.text.cues import either, is_question

OWN_CHARS_MAX = 12_000
"""A message longer than this is read up to here: longer ones are documents."""
PARAGRAPH_CHARS_MAX = 1_500
"""In a message of more than twice this, a paragraph longer than this is something pasted."""
HOLE = "■"
"""Stands for each character that is not the writer's own within a line."""

Why = Literal["question", "hypothetical", "hearsay", "fiction", "joke", "secret", "instruction", "hidden"]

_FENCED = pattern(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_INLINE_CODE = pattern(r"`[^`\n]{1,400}`")
_QUOTED_LINE = pattern(r"^[ \t]*(?:>|\|).*$", re.MULTILINE)
_QUOTES = pattern(
    r"\"([^\"\n]{1,1500})\"|“([^”\n]{1,1500})”|«([^»\n]{1,1500})»|„([^“”\n]{1,1500})[“”]|(?<![\w])'([^'\n]{12,1500})'(?!\w)"
)
_QUOTED_WORDS_KEPT = 2
_HEADER = pattern(lambda: rf"^(?:{either('mail header')}): .*$", re.MULTILINE)
_FORWARDED = pattern(lambda: rf"^.*(?:{either('forwarded')}).*$", re.MULTILINE)
_SPEAKER = pattern(r"^(?:\[?\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?\]? ?)?[A-Z][\w .'-]{0,24}(?: \(\w+\))?: \S", re.MULTILINE)
_LONG_LINE = pattern(rf"[^\n]{{{PARAGRAPH_CHARS_MAX},}}")
_PASTE = pattern(
    lambda: (
        rf"(?:\b(?:{either('work on a text')})\b|\b(?:this|the|my|a|an|here(?:['’]s| is| are)|"
        rf"following)\b[^\n:]{{0,40}}\b(?:{either('document')})\b)[^\n:.!?]{{0,120}}:(?=\s)"
    ),
    re.IGNORECASE,
)


def own_words(text: str) -> str:
    """`text` with what is quoted, pasted or code blanked out; every character that remains keeps its place."""
    text = text[:OWN_CHARS_MAX]
    text = _QUOTED_LINE.sub(_blank, _FENCED.sub(_blank, text))
    text = _INLINE_CODE.sub(_hole, text)
    text = _after(text, _pasted_from(text))
    text = _QUOTES.sub(_hole_if_long, text)
    if len(_SPEAKER.findall(text)) >= 2:
        text = re.sub(rf"{_SPEAKER.pattern}.*$", _blank, text, flags=re.MULTILINE)
    if len(text) > 2 * PARAGRAPH_CHARS_MAX:
        text = _LONG_LINE.sub(_blank, text)
    return text


def _pasted_from(text: str) -> int:
    """Where something begins that the writer only passes on; the end of the text if nothing does."""
    starts = [len(text)]
    headers = list(_HEADER.finditer(text))
    if len(headers) >= 2:
        starts.append(headers[0].start())
    starts.extend(match.start() for match in [_FORWARDED.search(text)] if match)
    starts.extend(match.end() for match in [_PASTE.search(text)] if match)
    return min(starts)


def _blank(match: re.Match[str]) -> str:
    return "\n" * len(match[0])


def _hole(match: re.Match[str]) -> str:
    return HOLE * len(match[0])


def _hole_if_long(match: re.Match[str]) -> str:
    inside = next(group for group in match.groups() if group is not None)
    return HOLE * len(match[0]) if len(inside.split()) > _QUOTED_WORDS_KEPT else match[0]


def _after(text: str, start: int) -> str:
    return text[:start] + "\n" * (len(text) - start)


# Sentences that state nothing.

_HIDDEN = pattern("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
_SECRET = pattern(
    lambda: (
        rf"\b(?:{either('secret')})\b|\b(?:sk|pk|ghp|gho|xox[bp]|AKIA|AIza|eyJ)[-_A-Za-z0-9]{{12,}}|-----BEGIN"
        r"|\b(?:\d[ -]?){13,19}\b|\b\d{3}-\d\d-\d{4}\b"
    ),
    re.IGNORECASE,
)
_CONDITION = pattern(lambda: rf"^\W*(?:(?:{either('before a condition')}),? )*(?:{either('condition')})\b", re.IGNORECASE)
_WISH = pattern(lambda: rf"\b(?:{either('unreal')})\b", re.IGNORECASE)
_UNSURE = pattern(lambda: rf"\b(?:{either('unsure')})\b", re.IGNORECASE)
_HEARSAY = pattern(
    lambda: (
        rf"\b(?:{either('hearsay')}|(?!i\b|we\b)[\w’']+ (?:just |also |once |always |keeps )?(?:{either('verb of saying')}))\b"
    ),
    re.IGNORECASE,
)
_FICTION_ALL = pattern(lambda: rf"\b(?:{either('fiction begun')})\b", re.IGNORECASE)
_FICTION = pattern(
    lambda: (
        rf"\b(?:(?:in|for|from) (?:my|the|this|a|an|our|his|her) (?:[\w-]+ )?(?:{either('work of fiction')})"
        rf"|{either('fiction')})\b"
    ),
    re.IGNORECASE,
)
_JOKE = pattern(lambda: rf"\b(?:{either('joke')})\b|[😂🤣😜🙃😏]|(?<=\s)/s\b", re.IGNORECASE)
_TAKEN_BACK = pattern(lambda: rf"\W*(?:{either('taken back')})", re.IGNORECASE)
_INSTRUCTION = pattern(lambda: rf"\b(?:{either('injection in a message')})\b", re.IGNORECASE)
_QUESTION_START = pattern(
    lambda: (
        rf"^\W*(?:(?:{either('before a question')}),? )*(?:{either('question verb')})(?:['’]s|['’]re)?\s+"
        rf"(?:{either('question subject')})\b"
    ),
    re.IGNORECASE,
)
_IMPERATIVE = pattern(lambda: rf"^\W*(?:(?:{either('before a task')}),? )*(?:{either('task')})\b", re.IGNORECASE)


def states_nothing(sentence: str) -> Why | None:
    """Why a sentence is not taken as a statement of fact, going by its form; None if nothing speaks against it."""
    if _HIDDEN.search(sentence):
        return "hidden"
    if _SECRET.search(sentence):
        return "secret"
    if _INSTRUCTION.search(sentence):
        return "instruction"
    if is_question(sentence) or "?" in sentence[-4:] or _QUESTION_START.match(sentence):
        return "question"
    if _CONDITION.match(sentence) or _WISH.search(sentence):
        return "hypothetical"
    if _FICTION.search(sentence) or _FICTION_ALL.search(sentence):
        return "fiction"
    if _JOKE.search(sentence):
        return "joke"
    return "instruction" if _IMPERATIVE.match(sentence) else None


def is_unsure(sentence: str) -> bool:
    """Whether the writer marks the sentence as a guess or as told by others."""
    return bool(_UNSURE.search(sentence))


def told_by_others(before: str) -> bool:
    """Whether what stands `before` a statement, in its sentence, makes it somebody else's."""
    return bool(_HEARSAY.search(before))


def opens_fiction(sentence: str) -> bool:
    """Whether everything after this sentence, in the same message, is make-believe."""
    return bool(_FICTION_ALL.search(sentence))


def takes_back(sentence: str) -> bool:
    """Whether it says that the sentence before was not meant: `just kidding`."""
    return bool(_TAKEN_BACK.match(sentence))
