"""Passages: whole messages, long texts cut; and how much a text tells of its writer."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from perdure.engine.search.entries import PASSAGE_CHARS, PASSAGES_MAX, WHOLE_CHARS_MAX, cut, spans_of, telling
from perdure.engine.search.lexicon import lexemes, term_hash


def test_a_message_is_one_passage() -> None:
    (passage,) = cut("I adopted a puppy. The puppy is called Max.")
    assert (passage.start, passage.end, passage.length) == (0, 43, 5)
    assert passage.terms[term_hash("puppi")] == 2


def test_no_text_is_no_passage() -> None:
    assert cut("") == []


def test_a_remark_inside_a_document_has_a_passage_of_its_own() -> None:
    document = "Lorem ipsum dolor sit amet. " * 400
    found = cut(f"{document}\n\nBy the way, the key is under the flowerpot.\n\n{document}")
    assert len(found) > 5
    assert sum(term_hash("flowerpot") in passage.terms for passage in found) == 1


def test_a_long_text_is_cut_between_paragraphs_before_sentences_before_words() -> None:
    paragraphs = ("word " * 200 + "\n\n") * 10
    assert all(paragraphs[end - 2 : end] == "\n\n" for _, end in spans_of(paragraphs))
    sentences = "One more sentence here. " * 400
    assert all(sentences[end - 2 : end] == ". " for _, end in spans_of(sentences))


@given(st.text(alphabet="ab .\n", max_size=40), st.integers(1, 600))
def test_passages_lie_side_by_side_and_are_bounded(piece: str, times: int) -> None:
    text = piece * times
    spans = spans_of(text)
    assert [start for start, _ in spans] == [0, *(end for _, end in spans[:-1])][: len(spans)]
    assert len(spans) == PASSAGES_MAX or (spans[-1][1] if spans else 0) == len(text)
    assert len(spans) <= 1 or all(0 < end - start <= PASSAGE_CHARS for start, end in spans)
    assert (len(spans) <= 1) == (len(text) <= WHOLE_CHARS_MAX)


@given(st.lists(st.sampled_from(["dog", "cats", "the", "v1.2", "Mäuse"]), max_size=30))
def test_a_passage_counts_each_term_of_its_text(words: list[str]) -> None:
    text = " ".join(words)
    for passage in cut(text):
        assert passage.length == sum(passage.terms.values()) == len(lexemes(text))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("I went to Rome. My sister came along.", 1.0),
        ("By the way, I just turned 32. Any tips?", 0.5),
        ("What did you do with my bike?", 0.0),
        ("Sounds great! Enjoy.", 0.0),
        ("Ich war gestern in Köln. Meine Schwester auch.", 1.0),
        ("J’ai vu la mer. C’était beau.", 0.5),
        ("我昨天搬家了。你好吗？", 0.5),
        ("", 0.0),
    ],
)
def test_telling_is_about_oneself_and_not_asked(text: str, told: float) -> None:
    assert telling(text) == told
