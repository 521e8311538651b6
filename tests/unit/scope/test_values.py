"""Laws of scopes, text, time, limits, tallies, tokens and ids."""

from __future__ import annotations

import json
import random
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.adapters.clock import SystemClock, uuid7_text
from perdure.domain.conversation.messages import Cursor, Message, MessageQuery, bounds
from perdure.domain.conversation.tally import Tally, extended
from perdure.domain.errors import ALL_ERRORS, InvalidInput, LimitExceeded, PerdureError, Unavailable
from perdure.domain.limits import Limits
from perdure.domain.scope import Address, MessageId, Scope, SessionId
from perdure.domain.text.rules import check_id, check_json, encode_json
from perdure.domain.times.instants import check_instant, from_us, to_us
from perdure.engine.text.tokens import _PIECES, estimate_tokens

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(json_values)
def test_json_survives_the_way_into_the_store_and_back(value: object) -> None:
    check_json(value, "value")
    assert json.loads(encode_json(value, "value", bytes_max=10**9, limit="x")) == value


@given(st.text())
def test_text_is_an_id_exactly_if_every_store_can_hold_it(text: str) -> None:
    try:
        fits = 0 < len(text.encode()) <= 50 and "\0" not in text
    except UnicodeEncodeError:
        fits = False
    if fits:
        assert check_id(text, "id", bytes_max=50) == text
    else:
        with pytest.raises(InvalidInput, match="id"):
            check_id(text, "id", bytes_max=50)


def test_encoding_states_the_limit_it_met() -> None:
    with pytest.raises(LimitExceeded, match="`things_max` = 5"):
        encode_json("ééé", "thing", bytes_max=5, limit="things_max")


@given(st.datetimes(timezones=st.timezones()))
def test_instants_survive_as_microseconds(instant: datetime) -> None:
    try:
        utc = check_instant(instant, "at")
    except InvalidInput:
        return  # it leaves the calendar in UTC
    # An hour that the clocks repeat or skip equals no time in another zone, so the comparison is in UTC.
    assert from_us(to_us(utc)) == utc == instant.astimezone(UTC)


@pytest.mark.parametrize("error", ALL_ERRORS)
def test_every_error_has_a_code_of_its_own_and_says_whether_to_retry(error: type[PerdureError]) -> None:
    assert [one.code for one in ALL_ERRORS].count(error.code) == 1
    assert isinstance(error("x").retriable, bool)
    assert error("x").retriable == (error is Unavailable)


def test_all_errors_are_listed() -> None:
    found, waiting = [], [PerdureError]
    while waiting:
        one = waiting.pop()
        if one.__module__.startswith("perdure.domain"):
            found.append(one)
        waiting.extend(one.__subclasses__())
    assert set(found) == set(ALL_ERRORS)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "9", True, None])
def test_limits_are_whole_and_positive(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="page_rows_max"):
        Limits(page_rows_max=wrong)  # type: ignore[arg-type]


def test_scopes_are_equal_by_value_and_usable_as_keys() -> None:
    assert Scope.of("ana", agent="a") == Scope.of("ana", agent="a")
    assert len({Scope.of("ana"), Scope.of("ana", space="b"), Scope.of("ana", channel="c"), Scope.of("ana", agent="d")}) == 4


def messages(count: int) -> list[Message]:
    source = random.Random(count)
    return [
        Message(
            MessageId(str(seq)),
            SessionId("s"),
            1,
            seq,
            source.choice(["user", "tool"]),
            "x",
            datetime(2026, 1, 1, tzinfo=UTC),
            seq,
            {},
        )  # type: ignore[arg-type]
        for seq in range(1, count + 1)
    ]


@given(st.integers(0, 40), st.lists(st.integers(0, 40), max_size=6))
def test_a_tally_is_the_same_however_the_messages_are_cut_and_repeated(count: int, cuts: list[int]) -> None:
    held = messages(count)
    whole = extended(Tally(Address(), 1), held)
    pieces = Tally(Address(), 1)
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), count], strict=True):
        pieces = extended(pieces, held[max(0, start - 3) : end])
    assert pieces == whole
    assert whole.messages == count


@given(st.integers(1, 5), st.integers(0, 5), st.integers(1, 5), st.integers(0, 5), st.none() | st.integers(1, 5))
def test_bounds_are_the_open_interval_the_query_means(a: int, b: int, c: int, d: int, session: int | None) -> None:
    query = MessageQuery(Address(), 10, session, before=Cursor(c, d), after=Cursor(a, b))
    low, high = bounds(query)
    for number in range(1, 6):
        for seq in range(1, 6):
            wanted = Cursor(a, b) < Cursor(number, seq) < Cursor(c, d) and session in (None, number)
            assert (low < Cursor(number, seq) < high) == wanted


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("", 0, 0),
        ("   \n", 0, 0),
        ("I moved to Seattle", 4, 4),
        ("Don't worry, it's fine.", 6, 10),
        ("1234567", 2, 4),
        ("我昨天搬到了西雅图", 7, 12),
        ("Привет, как твои дела сегодня?", 7, 14),
        ("supercalifragilistic", 2, 5),
    ],
)
def test_token_estimates_are_of_the_right_size_in_any_script(text: str, low: int, high: int) -> None:
    """X-39: not characters divided by four."""
    assert low <= estimate_tokens(text) <= high


@given(st.text(st.characters(max_codepoint=127)))
def test_the_fast_way_to_estimate_ascii_counts_the_same(text: str) -> None:
    assert estimate_tokens(text) == len(_PIECES.findall(text))


@given(st.text(), st.text())
def test_token_estimates_add_up(a: str, b: str) -> None:
    assert estimate_tokens(a + "\n" + b) == estimate_tokens(a) + estimate_tokens(b)


class TestIds:
    def test_they_are_version_seven_and_grow(self) -> None:
        clock = SystemClock()
        made = [clock.new_id() for _ in range(20_000)]
        assert made == sorted(made)
        assert len(set(made)) == len(made)
        assert all(
            re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", one) for one in made[:100]
        )

    def test_they_carry_the_time(self) -> None:
        made = uuid7_text((1_700_000_000_000 << 12) | 5, b"\xff" * 8)
        assert int(made.replace("-", "")[:12], 16) == 1_700_000_000_000

    def test_the_clock_is_aware(self) -> None:
        assert SystemClock().now().utcoffset() == timedelta(0)
