"""Joiners stay where emoji and scripts need them, one at a time, and carry nothing else."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.domain.text.fences import JOINERS, fenced, has_stray_joiners, without_stray_joiners
from perdure.engine.text.hygiene import flaw

NEEDED = {
    "a family": "👨\u200d👩\u200d👧\u200d👦",
    "a skin tone": "👩🏽\u200d🚀",
    "a style": "❤️\u200d🔥",
    "a flag": "🏳️\u200d🌈",
    "a woman running to the right": "🏃🏽\u200d♀️\u200d➡️",
    "head shaking": "🙂\u200d↔️",
    "Persian": "می\u200cخواهم خانه\u200cها را ببینم",
    "Persian with vowel signs": "مِی\u200cخواهم",
    "a Persian letter that stands alone": "ه\u200d.ش",
    "Urdu": "علم\u200cالاعداد",
    "Hindi": "क्\u200dष और क्\u200cष",
    "Bengali": "র\u200d্যাম",
    "Sinhala": "ශ්\u200dරී ලංකා",
    "Malayalam": "അവന്\u200d",
    "Kannada": "ರ್\u200cಕ",
}


@pytest.mark.parametrize("text", NEEDED.values(), ids=NEEDED.keys())
def test_scripts_and_emoji_keep_the_joiners_that_they_need(text: str) -> None:
    assert without_stray_joiners(text) == text
    assert fenced(text) == text
    assert flaw(f"Ana wrote {text} today") is None


@pytest.mark.parametrize("joiner", JOINERS)
@pytest.mark.parametrize("text", ["pay{}ment", "{}Hello", "Hello{}", "a {} b", "привет{}мир", "東{}京", "1{}2", "日本{}", "{}"])
def test_everywhere_else_they_are_taken_out(joiner: str, text: str) -> None:
    dirty = text.format(joiner * 200)
    assert without_stray_joiners(dirty) == text.format("")
    assert fenced(dirty) == text.format("")
    assert flaw(f"Ana wrote {dirty} today") == "has hidden characters"


@pytest.mark.parametrize("text", NEEDED.values(), ids=NEEDED.keys())
def test_two_hundred_in_a_row_become_the_one_that_is_needed(text: str) -> None:
    dirty = text.replace("\u200d", "\u200d" * 200).replace("\u200c", "\u200c" * 200)
    assert without_stray_joiners(dirty) == text
    assert fenced(dirty.replace("\u200d\u200d", "\u200d\u200b\u200d")) == text, "nor with something else between them"
    assert flaw(f"Ana wrote {dirty} today") == "has hidden characters"


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("👩" + "\u200d\ufe0f" * 100 + "b", "👩\ufe0fb"),
        ("a" + "\ufe0f" * 100 + "b", "ab"),
        ("a" + "\ufe03b\ufe05 " * 20, "a" + "b " * 20),
        ("\ufe00Hello", "Hello"),
        ("❤\ufe0f\ufe0e", "❤\ufe0f"),
        ("1\ufe0f\u20e3", "1\ufe0f\u20e3"),
        ("\u845b\ufe00", "\u845b\ufe00"),
    ],
    ids=ascii,
)
def test_a_style_stays_behind_what_it_styles_and_only_once(dirty: str, clean: str) -> None:
    assert fenced(dirty) == clean


def _tagged(letters: str) -> str:
    return "🏴" + "".join(chr(0xE0000 + ord(letter)) for letter in letters) + "\U000e007f"


@pytest.mark.parametrize("place", ["gbeng", "gbsct", "gbwls"])
def test_flags_that_are_written_with_tags_stay(place: str) -> None:
    assert fenced(_tagged(place)) == _tagged(place)
    assert flaw(f"Ana wrote {_tagged(place)} today") is None


@pytest.mark.parametrize("tags", ["obey", "gbengobey", "GBENG", ""])
def test_tags_that_are_no_flag_are_taken_out(tags: str) -> None:
    dirty = _tagged(tags)
    assert fenced(dirty) == "🏴"
    assert flaw(f"Ana wrote {dirty} today") == "has hidden characters"


def test_what_unicode_says_to_ignore_is_taken_out() -> None:
    ignored = (
        "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180f\u2065\u3164\uffa0\ufff0\U0001bca0\U0001bca3\U0001d173\U000e0001\U000e0fff"
    )
    assert fenced(f"pay{ignored}ment") == "payment"


@given(st.text(st.sampled_from([*JOINERS, *"aक्षمی👨👩🏽❤ ️\n"]), max_size=40))
def test_there_are_never_two_in_a_row_and_nothing_else_changes(text: str) -> None:
    kept = without_stray_joiners(text)
    assert not any(one in JOINERS and other in JOINERS for one, other in pairwise(kept))
    bare = str.maketrans("", "", JOINERS)
    assert kept.translate(bare) == text.translate(bare)
    assert not has_stray_joiners(kept)
