"""WordPiece gives what the published tokenizer of the model gives, and stays bounded on any text."""

from __future__ import annotations

import time

import hypothesis.strategies as st
import pytest
from hypothesis import given

from perdure.adapters.embedding import wordpiece
from perdure.adapters.embedding.static import bundled
from perdure.adapters.embedding.wordpiece import CHUNKS_KEPT_MAX, WORD_CHARS_MAX, WordPiece

VOCABULARY = {**bundled().table.vocabulary, "[UNK]": len(bundled().table.vocabulary)}
PIECES = list(VOCABULARY)
AS_THE_MODEL = WordPiece(VOCABULARY, unknown=VOCABULARY["[UNK]"])
LENIENT = WordPiece(VOCABULARY)

# What the `tokenizers` package gives with the model's own tokenizer.json, without the special tokens.
PUBLISHED = [
    ("I've met Zoë at Starbucks!", ["i", "'", "ve", "met", "zoe", "at", "starbucks", "!"]),
    ("naïve café — déjà vu", ["naive", "cafe", "—", "de", "##ja", "vu"]),
    ("Ångström İstanbul", ["ang", "##strom", "istanbul"]),
    ("ΣΊΣΥΦΟΣ", ["σ", "##ι", "##σ", "##υ", "##φ", "##ο", "##σ"]),
    ("我喜欢猫，very much", ["我", "[UNK]", "[UNK]", "[UNK]", "，", "very", "much"]),
    ("東京タワー", ["東", "京", "タ", "##ワ", "##ー"]),
    ("한국어", ["ᄒ", "##ᅡ", "##ᆫ", "##ᄀ", "##ᅮ", "##ᆨ", "##ᄋ", "##ᅥ"]),
    ("पानी", ["प", "##ा", "##न", "##ी"]),
    ("مرحبا", ["م", "##ر", "##ح", "##ب", "##ا"]),
    ("e-mail: a.b@c.de", ["e", "-", "mail", ":", "a", ".", "b", "@", "c", ".", "de"]),
    ("$9.99 (50% off)", ["$", "9", ".", "99", "(", "50", "%", "off", ")"]),
    ("€100 and 20°C", ["€", "##100", "and", "20", "##°", "##c"]),
    ("snake_case_name", ["snake", "_", "case", "_", "name"]),
    ("unaffable", ["una", "##ffa", "##ble"]),
    ("2026-11-15T09:30:00Z", ["202", "##6", "-", "11", "-", "15", "##t", "##0", "##9", ":", "30", ":", "00", "##z"]),
    ("ﬁne Straße", ["ﬁ", "##ne", "st", "##raße"]),
    ("¿Qué tal?", ["¿", "que", "tal", "?"]),
    ("a\u200bb\u00adc", ["abc"]),
    ("a\x00b\x1cc\x85d", ["abc", "##d"]),
    ("a\u2028b\u3000c\xa0d", ["a", "b", "c", "d"]),
    ("\u0378x", ["[UNK]"]),
    ("😀 ok 👍🏽", ["[UNK]", "ok", "[UNK]"]),
    ("\ufffd", []),
    ("  \t\n ", []),
    ("", []),
    ("x" * WORD_CHARS_MAX, ["xx", *["##xx"] * 49]),
    ("x" * (WORD_CHARS_MAX + 1), ["[UNK]"]),
]


@pytest.mark.parametrize(("text", "pieces"), PUBLISHED)
def test_pieces_are_those_of_the_published_tokenizer(text: str, pieces: list[str]) -> None:
    assert [PIECES[at] for at in AS_THE_MODEL.ids(text)] == pieces
    assert [PIECES[at] for at in AS_THE_MODEL.ids(text)] == pieces, "from what was kept"


def test_names_of_special_tokens_are_text() -> None:
    assert [PIECES[at] for at in AS_THE_MODEL.ids("[UNK] [SEP]")] == ["[", "un", "##k", "]", "[", "sep", "]"]


def test_half_a_surrogate_is_dropped() -> None:
    assert AS_THE_MODEL.ids("caf\ud83dé \udc00") == AS_THE_MODEL.ids("café")


def test_without_an_unknown_piece_the_rest_of_the_word_is_still_read() -> None:
    assert [PIECES[at] for at in LENIENT.ids("love❤ 😀 x❤y")] == ["love", "x", "y"]


def test_a_quarter_of_a_megabyte_takes_little_time() -> None:
    for text in ("x" * 250_000, "ab. " * 62_500, "我" * 250_000, "a\u0301" * 125_000, "é ß" * 75_000):
        started = time.process_time()
        AS_THE_MODEL.ids(text)
        assert time.process_time() - started < 5  # a tenth of a second here; squared growth would take many minutes


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordpiece, "CHUNKS_KEPT_MAX", 10)
    assert CHUNKS_KEPT_MAX > 10
    pieces = WordPiece(VOCABULARY)
    before = pieces.ids("word7")
    for number in range(100):
        pieces.ids(f"word{number} {'y' * 50}{number}")
        assert len(pieces._kept) <= 10
    assert all(len(chunk) <= 32 for chunk in pieces._kept)
    assert pieces.ids("word7") == before


@given(st.text(st.characters(), max_size=60), st.text(st.characters(), max_size=60))
def test_white_space_parts_texts(one: str, other: str) -> None:
    assert AS_THE_MODEL.ids(f"{one} {other}") == AS_THE_MODEL.ids(one) + AS_THE_MODEL.ids(other)


@given(st.text(st.characters(), max_size=60))
def test_case_and_accents_make_no_difference_to_latin_text(text: str) -> None:
    plain = "".join(char for char in text if char.isascii())
    assert AS_THE_MODEL.ids(plain.upper()) == AS_THE_MODEL.ids(plain.lower())
