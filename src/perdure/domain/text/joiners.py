"""The two joiners, U+200C and U+200D: needed by emoji and by several scripts, and invisible, so that texts can hide in them.

One is kept where it belongs to its neighbours; all others are taken out.
"""

from __future__ import annotations

import unicodedata

from perdure.domain.text.patterns import pattern

_PARTS, _JOINS = "\u200c", "\u200d"
JOINERS = _PARTS + _JOINS
_RUN = pattern(f"[{JOINERS}]+")
_VIRAMA = 9
"""The combining class of the signs that take a vowel away, in the scripts of India and their neighbours."""
# Scripts whose letters take another form when they are joined.
_CURSIVE = pattern(
    "[\u0620-\u064a\u066e-\u06d3\u06d5\u06ee\u06ef\u06fa-\u06ff\u0710-\u072f\u074d-\u077f\u07ca-\u07ea\u0840-\u0858\u0860-\u086a\u0870-\u0887"
    "\u0889-\u088e\u08a0-\u08c9\u1807\u180a\u1820-\u1878\u1880-\u18aa\ua840-\ua873\U00010ac0-\U00010ac7\U00010d00-\U00010d23"
    "\U00010f30-\U00010f44\U0001e900-\U0001e943]"
)
_PICTURE = pattern("[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]")
_TONE_OR_STYLE = frozenset({"\ufe0f", *map(chr, range(0x1F3FB, 0x1F400))})
MARKS_MAX = 8
"""So many signs may stand on a letter before a joiner."""


def without_stray_joiners(text: str) -> str:
    """`text` with a joiner only where it joins or parts two characters, and never more than one."""
    return _RUN.sub(lambda run: run[0][0] if _needed(run[0][0], text, run.start(), run.end()) else "", text)


def has_stray_joiners(text: str) -> bool:
    return without_stray_joiners(text) != text


def _needed(joiner: str, text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - MARKS_MAX) : start], text[end : end + 1]
    if not before:
        return joiner == _JOINS and bool(_CURSIVE.match(after))
    if _is_virama(before[-1]) or (_is_virama(after) and before[-1].isalpha()):
        return True
    letter = before.rstrip("".join(char for char in set(before) if unicodedata.category(char) == "Mn"))[-1:]
    if _CURSIVE.match(letter):
        # One that parts has a letter on both sides; one that joins may give a letter alone its form.
        return joiner == _JOINS or bool(_CURSIVE.match(after))
    if joiner == _PARTS:
        return False
    shown = before.rstrip("".join(_TONE_OR_STYLE))[-1:]
    return bool(_PICTURE.match(shown) and _PICTURE.match(after)) or bool(_CURSIVE.match(after) and not letter.isalpha())


def _is_virama(char: str) -> bool:
    return bool(char) and unicodedata.combining(char) == _VIRAMA
