"""The arms of a search: what each measures, and that nothing outside the allowed items has a say."""

from __future__ import annotations

from collections.abc import Sequence

import hypothesis.strategies as st
import numpy as np
import pytest
import simsimd
from hypothesis import given

from perdure.engine.search import columns, ranking
from perdure.engine.search.allowed import Allowed
from perdure.engine.search.columns import Floats, ItemColumns, ItemRow, Voice, item_columns, rounded
from perdure.engine.search.entries import Passage, cut
from perdure.engine.search.lexicon import term_hash
from perdure.engine.search.question import QuestionTime, SearchQuestion, SoughtTerm

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US


def seeking(*terms: str | tuple[str, float, int], **more: object) -> SearchQuestion:
    sought = [
        SoughtTerm(one, term_hash(one), 1.0) if isinstance(one, str) else SoughtTerm(one[0], term_hash(one[0]), *one[1:])
        for one in terms
    ]
    return SearchQuestion(tuple(sought), " ".join(one.term for one in sought), **more)  # type: ignore[arg-type]


def shelf_of(*texts: str) -> ItemColumns:
    """Messages of one session."""
    return item_columns([ItemRow(cut(text), session="s", seq=place) for place, text in enumerate(texts)])


def everything(shelf: ItemColumns) -> Allowed:
    return Allowed(shelf, np.ones(shelf.items, np.bool_))


def by_words(shelf: ItemColumns, asked: SearchQuestion, only: np.ndarray | None = None) -> Floats:
    allowed = everything(shelf) if only is None else Allowed(shelf, only)
    return ranking.words_scores(shelf, ranking.TermPostings(shelf, asked, allowed), allowed)


def by_session(shelf: ItemColumns, asked: SearchQuestion, only: np.ndarray | None = None) -> Floats:
    allowed = everything(shelf) if only is None else Allowed(shelf, only)
    return ranking.session_scores(shelf, ranking.TermPostings(shelf, asked, allowed), allowed)


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    score = by_words(shelf_of("dog park", "dog house", "dog food", "puppy day"), seeking("dog", "puppi"))
    assert score.argmax() == 3
    assert score[0] == score[1] > 0


def test_of_two_that_say_it_the_shorter_is_about_it() -> None:
    score = by_words(shelf_of("puppy", "puppy kitten hamster rabbit parrot"), seeking("puppi"))
    assert score[0] > score[1] > 0


def test_a_word_said_twice_counts_more_but_not_double() -> None:
    score = by_words(shelf_of("puppy cat", "puppy puppy", "mouse cat"), seeking("puppi"))
    assert score[0] < score[1] < 2 * score[0]


def test_what_stands_in_for_a_word_is_no_rarer_than_it() -> None:
    shelf = shelf_of("doctor here", "doctor there", "physician here", "nobody there")
    score = by_words(shelf, seeking("doctor", ("physician", 1.0, 0)))
    assert score[2] == pytest.approx(score[0])


def test_of_a_long_text_its_best_passage_counts() -> None:
    near = Passage(0, 1, {term_hash("puppi"): 1}, 2)
    far = Passage(1, 2, {term_hash("cat"): 1}, 2)
    shelf = item_columns([ItemRow([far, near]), ItemRow([near]), ItemRow([])])
    assert not shelf.one_passage_each
    score = by_words(shelf, seeking("puppi"))
    assert score[0] == score[1] > 0
    assert score[2] == 0


def test_a_session_is_found_by_words_spread_over_it() -> None:
    rows = [
        ItemRow(cut("a puppy"), session="one", seq=0),
        ItemRow(cut("from the shelter"), session="one", seq=1),
        ItemRow(cut("a puppy"), session="two", seq=0),
        ItemRow(cut("from the breeder"), session="two", seq=1),
        ItemRow(cut("puppy shelter")),
    ]
    score = by_session(item_columns(rows), seeking("puppi", "shelter"))
    assert score[0] == score[1] > score[2] == score[3] > 0
    assert score[4] == 0  # it is of no session


def test_many_sessions_score_as_few_do(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [ItemRow(cut(f"puppy number{place % 7}"), session=f"{place % 40}", seq=place) for place in range(200)]
    shelf, asked = item_columns(rows), seeking("puppi", "number3", "number4")
    few = by_session(shelf, asked)
    monkeypatch.setattr(ranking, "SESSION_CELLS_MAX", 0)
    np.testing.assert_allclose(by_session(shelf, asked), few, rtol=1e-6)


def test_meaning_is_the_cosine_up_to_rounding() -> None:
    vectors = np.random.default_rng(5).normal(size=(2_500, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    codes, scales = rounded(vectors)
    shelf = item_columns(
        [ItemRow([Passage(0, 0, {}, 0)], vectors=codes[i : i + 1], scales=scales[i : i + 1]) for i in range(2_500)], dims=16
    )
    np.testing.assert_allclose(ranking.meaning_scores(shelf, vectors[7], everything(shelf)), vectors @ vectors[7], atol=0.02)


def test_without_vectors_there_is_no_meaning() -> None:
    shelf = shelf_of("a puppy")
    assert ranking.meaning_scores(shelf, None, everything(shelf)).tolist() == [0.0]
    assert ranking.meaning_scores(shelf, np.ones(4, np.float32), everything(shelf)).tolist() == [0.0]
    assert ranking.meaning_scores(shelf, np.zeros(4, np.float32), everything(shelf)).tolist() == [0.0]


def test_time_fits_inside_less_beside_and_where_it_is_named() -> None:
    rows = [
        ItemRow(cut("then"), at=10 * DAY_US),
        ItemRow(cut("a day after"), at=12 * DAY_US),
        ItemRow(cut("long after"), at=40 * DAY_US),
        ItemRow(cut("long after, of then"), at=40 * DAY_US, times=[(10 * DAY_US, 11 * DAY_US)]),
        ItemRow(cut("long after, of the whole year"), at=40 * DAY_US, times=[(0, 365 * DAY_US)]),
        ItemRow(cut("no time known")),
    ]
    shelf = item_columns(rows)
    asked = seeking("x", stretches=(QuestionTime(10 * DAY_US, 11 * DAY_US, DAY_US),))
    fit = ranking.time_scores(shelf, asked, everything(shelf))
    assert fit[0] > fit[1] > fit[3] > fit[2] >= 0
    assert fit[2] == fit[4] == pytest.approx(0, abs=1e-6)
    assert fit[5] == 0


def test_a_time_that_all_share_tells_nothing() -> None:
    shelf = item_columns([ItemRow(cut("one"), at=DAY_US), ItemRow(cut("two"), at=DAY_US)])
    asked = seeking("x", stretches=(QuestionTime(0, 2 * DAY_US, DAY_US),))
    assert ranking.time_scores(shelf, asked, everything(shelf)).tolist() == [0.0, 0.0]
    assert ranking.time_scores(shelf, asked, Allowed(shelf, np.zeros(2, np.bool_))).tolist() == [0.0, 0.0]


def test_speakers_are_found_by_name_and_machines_by_role() -> None:
    rows = [
        ItemRow(cut("a"), speaker="Ann"),
        ItemRow(cut("b"), speaker="Bo"),
        ItemRow(cut("c"), role=Voice.USER),
        ItemRow(cut("d"), role=Voice.ASSISTANT),
        ItemRow(cut("e"), role=Voice.TOOL),
    ]
    shelf = item_columns(rows)
    assert ranking.speaker_scores(shelf, seeking("x", named=frozenset({"Bo"}))).tolist() == [False, True, False, False, False]
    assert not ranking.speaker_scores(shelf, seeking("x")).any()
    assert ranking.machine_scores(shelf).tolist() == [False, False, False, True, True]


words = st.lists(st.sampled_from(["puppy", "cat", "dog", "park", "red", "blue", "Paris", "42"]), min_size=0, max_size=12).map(
    " ".join
)
rows = st.lists(st.tuples(words, st.sampled_from(["", "s", "t", "u"])), min_size=1, max_size=25)


def made(pairs: Sequence[tuple[str, str]]) -> ItemColumns:
    return item_columns(
        [ItemRow(cut(text), session=session, seq=place, at=place * HOUR_US) for place, (text, session) in enumerate(pairs)]
    )


@given(rows, st.data())
def test_what_is_not_allowed_changes_nothing(pairs: list[tuple[str, str]], data: st.DataObject) -> None:
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs))))
    whole, part = made(pairs), made([pair for pair, open_ in zip(pairs, allowed, strict=True) if open_])
    asked = seeking("puppi", "park", "pari", ("cat", 0.4, 0), stretches=(QuestionTime(0, 3 * HOUR_US, HOUR_US),))
    for arm in (by_words, by_session):
        np.testing.assert_allclose(arm(whole, asked, allowed)[allowed], arm(part, asked), rtol=1e-5)
        assert not arm(whole, asked, allowed)[~allowed].any()
    # Positions differ between the two shelves, times do not: the fit is compared where both have the same items.
    fit = ranking.time_scores(whole, asked, Allowed(whole, allowed))
    assert np.isfinite(fit).all()
    assert not fit[~allowed].any()


@given(rows)
def test_scores_are_finite_and_not_negative(pairs: list[tuple[str, str]]) -> None:
    shelf = made(pairs)
    for asked in (seeking("puppi", "42"), seeking("never"), SearchQuestion((), "")):
        for arm in (by_words, by_session):
            score = arm(shelf, asked)
            assert len(score) == shelf.items
            assert (np.isfinite(score) & (score >= 0)).all()


@given(rows, st.randoms())
def test_the_order_of_items_makes_no_difference(pairs: list[tuple[str, str]], rnd: object) -> None:
    order = list(range(len(pairs)))
    rnd.shuffle(order)  # type: ignore[attr-defined]
    asked = seeking("puppi", "red", "dog")
    one, other = made(pairs), made([pairs[place] for place in order])
    for arm in (by_words, by_session):
        np.testing.assert_allclose(arm(one, asked)[order], arm(other, asked), rtol=1e-5)


UNITS = st.integers(1, 400).flatmap(lambda dims: st.tuples(st.just(dims), st.integers(0, 2**32 - 1), st.booleans()))


@given(UNITS)
def test_nearness_is_the_same_with_and_without_the_kernel_and_exact_to_a_thousandth(drawn: tuple[int, int, bool]) -> None:
    dims, seed, lopsided = drawn
    random = np.random.default_rng(seed)
    rows = random.integers(-127, 128, (40, dims), dtype=np.int8)
    rows[0], rows[1] = 127, -127
    vector = np.eye(dims)[0] if lopsided else random.standard_normal(dims)
    unit = (vector / np.linalg.norm(vector)).astype(np.float32)
    steps, size = columns.in_steps(unit)
    whole = rows.astype(np.int64) @ steps
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    for kernel in (simsimd, None):
        found = np.zeros(len(rows), np.float32)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(columns, "simsimd", kernel)
            columns.products(rows, steps, found)
        assert (found == whole).all()
        assert np.abs(found * size - rows @ unit.astype(np.float64)).max() <= 0.001 * lengths.max()


def test_a_shelf_ranks_the_same_with_and_without_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    drawn = random.standard_normal((600, 32)).astype(np.float32)
    vectors, scales = rounded(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))
    texts = [f"row {place} of the {'ferry' if place % 7 else 'lantern'}" for place in range(600)]
    rows = [
        ItemRow(
            cut(text),
            session=f"s{place // 40}",
            seq=place,
            vectors=vectors[place : place + 1],
            scales=scales[place : place + 1],
        )
        for place, text in enumerate(texts)
    ]
    shelf, asked = item_columns(rows, dims=32), seeking("lantern")
    with_it = [ranking.rank(shelf, asked, everything(shelf), one, limit=50) for one in drawn[:20]]
    monkeypatch.setattr(columns, "simsimd", None)
    without = [ranking.rank(shelf, asked, everything(shelf), one, limit=50) for one in drawn[:20]]
    assert [(one.items.tolist(), one.scores.tolist()) for one in with_it] == [
        (one.items.tolist(), one.scores.tolist()) for one in without
    ]
