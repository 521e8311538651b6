"""Remembered text in a prompt: behind a fence that it cannot close itself, and without what nobody sees.

The two joiners, U+200C and U+200D, are needed by emoji and by several scripts, and are invisible, so that texts can hide in
them: one is kept where it belongs to its neighbours, all others are taken out.
"""

from __future__ import annotations

import re
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


FENCE = "memory"
_PLACES = "|".join("".join(chr(0xE0000 + ord(letter)) for letter in name) for name in ("gbeng", "gbsct", "gbwls"))
FLAG = pattern(f"(\U0001f3f4(?:{_PLACES})\U000e007f)")
"""Of England, Scotland or Wales: the only emoji that are written with tags."""
# Marks that turn what follows, and characters that show nothing but reach a model: soft hyphens, zero widths, tags. The two
# joiners are apart: several scripts and emoji need them.
_UNSHOWN = pattern(
    lambda: (
        f"{FLAG.pattern}|"
        "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
        "\u2800\u3164\ud800-\udfff\ue000-\uf8ff\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
    )
)
# The style of the character before: a second one has nothing to style, nor has one behind a letter or a blank.
_STRAY_STYLE = pattern("(?<=[\ufe00-\ufe0f\\sA-Za-z])[\ufe00-\ufe0f]+|^[\ufe00-\ufe0f]+")
# What some models read as the plain sign, and what they read as the plain letters of our fence's name.
_OPENING = pattern("[<\u02c2\u1438\u2039\u227a\u2329\u276c\u276e\u27e8\u2991\u2a85\u3008\ufe64\uff1c]")
_LIKE_LETTERS = str.maketrans(
    "\u043c\u043f\u1d0d\u028d\u0435\u1d07\u0454\u03b5\u212e\u03bf\u043e\u0585\u1d0f0\u0433\u0280\u1d26\u0443\u03b3\u04af\u028f\u10e7",
    "mmmmeeeeeooooorrryyyyy",
)
_BLANK = pattern(r"\s*")
_FENCE_REACH = 60
"""A name with more between its letters is none for anybody."""
# Words that the tokenisers of chat models take for the bounds of a turn, wherever they stand.
_TURNS = pattern(
    r"<(?=[|\uff5c][^\n<>]{1,60}[|\uff5c]>|</?SYS>>"
    r"|/?(?:s|bos|eos|start_of_turn|end_of_turn|end_of_utterance|tool_call|tool_response)>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT)\])",
    re.IGNORECASE,
)
_BREAKS = pattern("\r\n|[\n\r\u2028\u2029]")


def frame(kind: str, title: str, source: str, text: str) -> str:
    """The text, fenced as data; it cannot close the fence."""
    head = f'<{FENCE} kind="{attribute(kind)}" title="{attribute(title)}" source="{attribute(source)}">'
    return f"{head}\n{fenced(text)}\n</{FENCE}>"


def fenced(text: str) -> str:
    """`text` with whatever could pass for our fence or for the bounds of a turn made harmless, and without what nobody sees."""
    seen = _TURNS.sub(lambda match: f"{match[0]} ", visible(text))
    return _OPENING.sub(lambda match: "&lt;" if _names_fence(seen, match.end()) else match[0], seen)


def _names_fence(text: str, place: int) -> bool:
    """Whether what follows reads as the name of our fence: in any case, spacing, font or look-alike letters."""
    blank = _BLANK.match(text, place)
    start = place if blank is None else blank.end()
    after = text[start : start + _FENCE_REACH]
    if after[:1].isascii() and after[:1] not in ("m", "M", "/", "\\"):
        return False
    plain = unicodedata.normalize("NFKD", after).casefold().translate(_LIKE_LETTERS)
    letters = "".join(char for char in plain if not char.isspace() and unicodedata.category(char)[0] not in "CM")
    return letters.lstrip("/\u2044\u2215\u29f8\\").startswith(FENCE)


def one_item(text: str) -> str:
    """`text` with every line but its first set in, so that none of them can pass for another item's beginning."""
    return _BREAKS.sub("\n  ", text)


def visible(text: str) -> str:
    """`text` without characters that are not shown, and without marks that turn the order of what follows."""
    shown = _UNSHOWN.sub(r"\1", text)
    # Joiners first: where they stood between two styles, those are side by side now.
    return _STRAY_STYLE.sub("", without_stray_joiners(shown) if any(one in shown for one in JOINERS) else shown)


def attribute(text: str) -> str:
    """`text` as the value of an attribute of a fence: on one line, without quotes."""
    shown = " ".join(visible(text).split())
    return shown.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
