"""How much work the judge of change takes: a sentence is held against many notes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.engine.knowledge import changes, pair_words
from perdure.engine.knowledge.changes import closed_by, closing, features

NOTES = [
    f"{verb} car {name}" for verb in ("Owns the", "Drives the", "Likes the") for name in ("Golf", "Volvo", "Corsa", "Ypsilon")
]


def test_what_is_barred_is_not_held_against_the_table_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> float:
        raise AssertionError("it was looked up")

    monkeypatch.setattr(changes, "pair_score", refuse)
    assert closing("Owns a Golf", "Should I sell the Golf?") == -float("inf")
    assert closing("Owns a Golf", "I sold the Golf. " + "And so on. " * 40) == -float("inf")
    with pytest.raises(AssertionError, match="looked up"):
        closing("Owns a Golf", "I sold the Golf.")


def test_a_sentence_is_taken_apart_once_for_all_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    runs = pair_words._runs

    def counted(words: tuple[str, ...], longest: int) -> set[str]:
        asked.append(tuple(words))
        return runs(words, longest)

    monkeypatch.setattr(pair_words, "_runs", counted)
    closed_by("I parked the van outside yesterday.", NOTES)
    said = ("i", "parked", "the", "van", "outside", "yesterday")
    assert 0 < asked.count(said) < len(NOTES) / 2, "once for its words, and for its signs once beside the same topics"


def test_a_score_is_the_sum_of_the_features() -> None:
    weights = changes._table()
    seen = features("Owns a Golf", "I sold the Golf.")
    total = weights["bias"] + sum(weights[name] * value for name, value in seen.items()) - weights["from"]
    assert closing("Owns a Golf", "I sold the Golf.") == total >= 0


@given(st.lists(st.text("abcdeß1", min_size=1, max_size=9), min_size=1, max_size=6).map(" ".join), st.data())
def test_texts_with_words_that_are_alike_have_a_mark_in_common(text: str, data: st.DataObject) -> None:
    other = data.draw(st.text("abcde1 ", max_size=30) | st.just(text + "es") | st.just("ab" + text))
    note, told = changes.taken_apart(text), changes.taken_apart(other)
    alike = any(changes._alike(one, two) for one in note.content for two in told.content)
    assert not alike or not note.marks.isdisjoint(told.marks)
