"""Words as they are indexed: folded, stemmed by language, identifiers whole."""

from __future__ import annotations

import time

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from perdure.engine.search.lexicon import TERM_CHARS_MAX, folded, language_of, lexemes, stopwords, term_hash, words_with_terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Running runs RUN", ["run", "run", "run"]),
        ("I don't know Caroline's dogs, they're hers", ["know", "carolin", "dog"]),
        ("Café crème at the Škoda", ["cafe", "creme", "skoda"]),
        ("Version v2.3.1 of foo_bar", ["version", "v2.3.1", "v2", "foo_bar", "foo", "bar"]),
        ("mail ana@example.com now", ["mail", "ana@example.com", "ana", "exampl", "com", "now"]),
        ("1,200 items for $3.50 and 42", ["1200", "item", "3.50", "42"]),
        ("ABC-123 well-known and/or", ["abc-123", "abc", "123", "well", "know"]),
        ("C++ or C#, not F#", ["c++", "c#", "f#"]),
        ("on 2023-05-01 at 12:30", ["2023-05-01", "2023", "05", "01", "12:30", "12", "30"]),
        ("東京に住む", ["東京", "京に", "に住", "住む"]),
        ("GPT4で書いた", ["gpt4", "で書", "書い", "いた"]),
        ("字", ["字"]),
        ("안녕 세계", ["안녕", "세계"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("Москва", ["москва"]),
        ("", []),
        (" .,!? ", []),
    ],
)
def test_terms_are_what_a_reader_would_look_for(text: str, expected: list[str]) -> None:
    assert lexemes(text) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The children are playing", "Playing, children play"),
        ("I bought a book and wrote to my people", "Did I buy or write? A person"),
        ("Die Straßen waren schön, und ich war in den Häusern", "Ich war in der Straße und in dem Haus"),
        ("Nous avons visité les hôtels de la ville", "Quand est-ce que j'ai visité l'hôtel ?"),
        ("¿Cuándo fueron tus amigos a la playa?", "Los amigos de mis amigos y las playas"),
    ],
)
def test_forms_of_a_word_meet_in_their_language(one: str, other: str) -> None:
    assert len(set(lexemes(one)) & set(lexemes(other))) >= 2


def test_the_language_is_the_one_whose_function_words_are_there() -> None:
    assert language_of(["wann", "war", "ich", "in", "der", "stadt"]) == "german"
    assert language_of(["where", "is", "the", "la", "la", "land", "poster"]) == "english"
    assert language_of(["brien", "o", "hara", "meets", "patrick"]) == "english"
    assert language_of([]) == "english"


def test_a_text_of_function_words_alone_keeps_them() -> None:
    assert lexemes("The Who") == ["the", "who"]


def test_function_words_are_written_as_folding_leaves_them() -> None:
    assert all(folded(word) == word for words in stopwords().values() for word in words)


def test_hashes_are_the_same_everywhere() -> None:
    assert term_hash("dog") == 11501171807684625465
    assert term_hash("\ud800") != term_hash("\ud801")


@given(st.text(max_size=300))
@example("İıẞﬁŸ'’ʼ")
@example("'''")
@example("a.b'c_d@e:f/g+h&i-j")
@example("ก็ด้วย์")
def test_any_text_has_terms_that_are_bounded_and_not_empty(text: str) -> None:
    terms = lexemes(text)
    assert all(0 < len(term) <= TERM_CHARS_MAX for term in terms)
    assert terms == [term for _, found in words_with_terms(text) for term in found]


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_case_makes_no_difference_to_folded_text(text: str) -> None:
    assert folded(folded(text)) == folded(folded(folded(text)))
    if text.isascii():
        assert lexemes(text.upper()) == lexemes(text.lower())


@pytest.mark.parametrize("unit", ["ab,", "a'", "1.", "漢字", "x_", "-", "é", "word "])
def test_a_giant_costs_no_more_than_its_bound(unit: str) -> None:
    began = time.process_time()
    lexemes(unit * 400_000)
    assert time.process_time() - began < 5
