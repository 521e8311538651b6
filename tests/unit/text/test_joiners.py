"""Joiners stay where emoji and scripts need them, one at a time, and carry nothing else."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.domain.text.fences import fenced
from perdure.domain.text.joiners import JOINERS, has_stray_joiners, without_stray_joiners
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
    assert flaw(f"Ana wrote {dirty} today") == "has characters that nobody sees"


@pytest.mark.parametrize("text", NEEDED.values(), ids=NEEDED.keys())
def test_two_hundred_in_a_row_become_the_one_that_is_needed(text: str) -> None:
    dirty = text.replace("\u200d", "\u200d" * 200).replace("\u200c", "\u200c" * 200)
    assert without_stray_joiners(dirty) == text
    assert fenced(dirty.replace("\u200d\u200d", "\u200d\u200b\u200d")) == text, "nor with something else between them"
    assert flaw(f"Ana wrote {dirty} today") == "has characters that nobody sees"


@given(st.text(st.sampled_from([*JOINERS, *"aक्षمی👨👩🏽❤ ️\n"]), max_size=40))
def test_there_are_never_two_in_a_row_and_nothing_else_changes(text: str) -> None:
    kept = without_stray_joiners(text)
    assert not any(one in JOINERS and other in JOINERS for one, other in pairwise(kept))
    bare = str.maketrans("", "", JOINERS)
    assert kept.translate(bare) == text.translate(bare)
    assert not has_stray_joiners(kept)
