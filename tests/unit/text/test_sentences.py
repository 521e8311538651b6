"""Taking text apart: sentences in any script, words counted, cuts within limits."""

from __future__ import annotations

import time
import unicodedata

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from perdure.engine.text.sentences import SENTENCE_CHARS_MAX, count_words, cut_text, sentence_spans, sentences
from talk import telling_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Smith paid 3.50 USD. Then he left.", ["Dr. Smith paid 3.50 USD.", "Then he left."]),
        (
            "Dr. J.R. Smith called. We met at Mt. Sinai. J.P. Lee came.",
            ["Dr. J.R. Smith called.", "We met at Mt. Sinai.", "J.P. Lee came."],
        ),
        ("See https://a.example/b?c=d. Or v1.2.3, or 10.0.0.1.", ["See https://a.example/b?c=d.", "Or v1.2.3, or 10.0.0.1."]),
        ("Open src/main.py, e.g. with vim. J. Doe wrote it.", ["Open src/main.py, e.g. with vim.", "J. Doe wrote it."]),
        ("Am 3. März kommt z. B. Anna. Um 9 Uhr.", ["Am 3. März kommt z. B. Anna.", "Um 9 Uhr."]),
        ("Call at 5 p.m. tomorrow. Bye etc. and so on.", ["Call at 5 p.m. tomorrow.", "Bye etc. and so on."]),
        ("ok. i will. never mind", ["ok.", "i will.", "never mind"]),
        ('He said "stop." Then "go!" came.', ['He said "stop."', 'Then "go!"', "came."]),
        ("我昨天搬家了。新地址是北京！你好吗？好", ["我昨天搬家了。", "新地址是北京！", "你好吗？", "好"]),
        ("行きます。「はい。」と言った。", ["行きます。", "「はい。」", "と言った。"]),
        ("هل أنت بخير؟ نعم. شكرا", ["هل أنت بخير؟", "نعم.", "شكرا"]),
        ("मैं ठीक हूँ। आप कैसे हैं?", ["मैं ठीक हूँ।", "आप कैसे हैं?"]),
        ("- one\n* two. three\n1. four\n2) five\n> six\n## Seven", ["one", "two.", "three", "four", "five", "six", "Seven"]),
        ("before\n```py\nx = 1. + y\n- z\n```\nafter", ["before", "x = 1. + y", "- z", "after"]),
        ('{"a": "b. c", "d": [1. , 2]}', ['{"a": "b. c", "d": [1. , 2]}']),
        ("2026-11-15 10:00:01 ERROR db. gone! retry", ["2026-11-15 10:00:01 ERROR db. gone! retry"]),
        ("Wait... what?! No way…", ["Wait...", "what?!", "No way…"]),
        ("", []),
        (" \n\t\u2028 \r\n", []),
    ],
)
def test_sentences_end_where_readers_end_them(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(telling_text)
@example("a" * 5_000)
@example("́" * 4_100)
def test_sentences_are_in_order_word_for_word_and_bounded(text: str) -> None:
    before = 0
    for start, end in sentence_spans(text):
        assert before <= start < end <= len(text)
        assert end - start <= SENTENCE_CHARS_MAX
        assert text[start:end] == text[start:end].strip()
        before = end


@given(telling_text)
def test_no_letter_is_lost_between_sentences(text: str) -> None:
    fenceless = text.replace("`", "").replace("~", "")
    outside = list(fenceless)
    for start, end in sentence_spans(fenceless):
        outside[start:end] = " " * (end - start)
    left = "".join(outside)
    # What remains are the markers of list items.
    assert all(len(word) <= 4 or set(word) <= set("-*+•‣▪◦–—>#") for word in left.split())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("one two  three", 3),
        ("don't—stop", 1),
        ("我昨天搬家了。", 3),
        ("สวัสดีครับ", 3),
        ("mixed 中文字 text", 4),
        ("👍 👍", 2),
        ("…", 0),
        ("지난달에 이사", 2),
    ],
)
def test_words_are_counted_in_any_script(text: str, words: int) -> None:
    assert count_words(text) == words


@pytest.mark.parametrize(
    ("text", "chars", "words", "expected"),
    [
        ("Short.", 6, None, "Short."),
        ("One sentence. Another sentence here.", 24, None, "One sentence. …"),
        ("A very long sentence without an end", 16, None, "A very long…"),
        ("a b c d e f", 99, 3, "a b c…"),
        ("x" * 50, 10, None, "xxxxxxxxx…"),
        ("我们明天早上八点在北京南站见面", 6, None, "我们明天早…"),
        ("我们明天早上八点在北京南站见面", 99, 2, "我们明天…"),
        ("family 👩‍👩‍👧 photo", 11, None, "family…"),
        ("anything", 0, None, ""),
        ("anything", -5, None, ""),
        ("anything at all", 99, 0, ""),
        ("First line\nsecond line", 13, None, "First line …"),
    ],
)
def test_cuts_fall_at_a_sentence_else_a_word_else_a_character(text: str, chars: int, words: int | None, expected: str) -> None:
    assert cut_text(text, chars, words) == expected


@given(telling_text, st.integers(-1, 300), st.none() | st.integers(0, 60))
def test_a_cut_is_within_its_limits_and_the_start_of_the_text(text: str, chars: int, words: int | None) -> None:
    cut = cut_text(text, chars, words)
    assert len(cut) <= max(chars, 0)
    assert words is None or count_words(cut) <= words
    if cut != text:
        assert cut == "" or cut.endswith("…")
        assert text.startswith(cut[:-1].rstrip())


@given(
    st.lists(st.sampled_from(["👩‍👩‍👧", "🇩🇪", "👍🏽", "e\u0301", "각", "\u1112\u1161\u11ab", "ก็", "हि", "a"]), min_size=2).map(
        "".join
    ),
    st.integers(1, 60),
)
def test_a_cut_never_splits_a_character_as_readers_see_it(text: str, chars: int) -> None:
    kept = cut_text(text, chars).removesuffix("…").rstrip()
    rest = text[len(kept) :]
    if rest and kept:
        assert unicodedata.category(rest[0])[0] != "M"
        assert "\u200d" not in (rest[0], kept[-1])
        assert rest[0] not in "🏽\u1161\u11ab"
        flags = len(kept) - len(kept.rstrip("🇩🇪"))
        assert flags % 2 == 0


def test_a_megabyte_takes_no_time() -> None:
    for text in ("word " * 200_000, "x" * 1_000_000, "一" * 1_000_000, "a. " * 300_000, "\u0301" * 1_000_000, "🇩" * 500_000):
        began = time.thread_time()
        cut_text(text, 600, 100)
        assert time.thread_time() - began < 2
