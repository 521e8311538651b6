"""Values that come back as they are, and lists that are appended to: on every store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

import perdure
from lanes import examples
from perdure import Conflict, InvalidInput, LimitExceeded, NotFound
from perdure.testing import StoppedClock

NINE = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
SECRET = "AKIA" + "Q3EGRTNW7PLKYJXZ"


@pytest.fixture
def engine(backend: Any) -> Iterator[perdure.Engine]:
    """Whatever a test does to it, the store is sound at its end."""
    opened = backend.open(clock=StoppedClock(NINE))
    yield opened
    assert opened.verify().findings == ()


def same(one: object, other: object) -> bool:
    """Equal, and of the same types all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(map(same, one, other)) and all(map(same, one.values(), other.values()))  # type: ignore[arg-type, attr-defined]
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))  # type: ignore[arg-type]
    return one == other


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
KEYS = st.one_of(TEXTS, st.sampled_from(["perdure:bytes", "perdure:list", "perdure:pairs"]), st.integers(), st.none())
VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS, st.binary(max_size=8)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3), st.tuples(inner, inner)),
    max_leaves=8,
)


@settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES)
def test_a_verbatim_value_comes_back_as_it_is(engine: perdure.Engine, value: object) -> None:
    ana = engine.memory("ana")
    ana.state.save("k", value, verbatim=True)
    assert same(ana.state.load("k"), value)


def test_a_verbatim_value_keeps_a_secret_and_a_plain_one_does_not(engine: perdure.Engine) -> None:
    state = engine.memory("ana").state
    state.save("open", {"key": SECRET})
    state.save("kept", {"key": SECRET}, verbatim=True)
    assert state.load("kept") == {"key": SECRET}
    assert SECRET not in str(state.load("open"))


def test_a_verbatim_value_is_not_found_shown_or_offered(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    ana.state.save("trip", "Ana sails to Madeira", verbatim=True)
    ana.state.append("trips", ["Ana sails to Madeira"])
    engine.process()
    assert ana.recall("sails to Madeira").hits == ()
    assert ana.state.search("*").matches == ()
    assert [one.preview for one in ana.state.list()] == [None, None]
    assert "Madeira" not in ana.before("Where does Ana sail to?").text
    ana.admin.reindex()
    engine.process()
    assert ana.recall("sails to Madeira").hits == (), "nor by an index that is made anew"


def test_a_key_that_becomes_verbatim_is_found_no_more(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    ana.state.save("boat", "Madeira")
    ana.state.save("boat", "Madeira", verbatim=True)
    assert ana.recall("boat").hits == ()
    ana.state.save("boat", "Madeira")
    assert [hit.id for hit in ana.recall("boat").hits] == ["boat"]


def test_what_cannot_be_kept_verbatim_is_refused_with_its_place(engine: perdure.Engine) -> None:
    state = engine.memory("ana").state
    with pytest.raises(InvalidInput, match=r"`value`\['a'\]\[1\].*cannot be kept verbatim"):
        state.save("k", {"a": [1, {2}]}, verbatim=True)
    with pytest.raises(InvalidInput, match="lone surrogate"):
        state.save("k", "\ud800", verbatim=True)
    with pytest.raises(InvalidInput, match="reserved"):
        state.save("k", {"perdure:list": []})
    with pytest.raises(InvalidInput, match="must be a list"):
        state.append("k", "abc")


def test_the_limit_on_values_holds_for_verbatim_ones(backend: Any) -> None:
    state = backend.open(limits=perdure.Limits(state_value_bytes_max=100)).memory("ana").state
    with pytest.raises(LimitExceeded, match="state_value_bytes_max"):
        state.save("k", b"x" * 90, verbatim=True)
    with pytest.raises(LimitExceeded, match="state_value_bytes_max"):
        state.append("k", ["x" * 90])


def test_a_list_grows_by_what_is_appended(engine: perdure.Engine) -> None:
    state = engine.memory("ana").state
    for number in range(300):
        state.append("log", [{"number": number, "text": "x" * 100}])
    assert [one["number"] for one in state.load("log")] == list(range(300))
    bodies = [one.body or "" for page in (None, 101, 201) for one in state.history("log", limit=100, before=page)]
    assert max(map(len, bodies)) < 300, "no revision holds more than its own items"


def test_a_list_outlives_the_bound_on_revisions(backend: Any) -> None:
    state = backend.open(limits=perdure.Limits(state_revisions_max=3)).memory("ana").state
    for number in range(9):
        state.append("log", [number])
    assert state.load("log") == list(range(9))
    state.delete("log")
    assert state.find("log").found is False
    state.restore("log", 9)
    assert state.load("log") == list(range(9)), "a deleted list can be restored"
    state.delete("log")
    for number in range(4):
        state.append("log", [f"new {number}"])
    assert state.load("log") == [f"new {number}" for number in range(4)]
    with pytest.raises(NotFound, match=r"no value at revision 9|kept no longer"):
        state.find("log", revision=9) if state.find("log", revision=9).found else state.restore("log", 9)


def test_an_earlier_list_is_restored_and_goes_on(engine: perdure.Engine) -> None:
    state = engine.memory("ana").state
    for item in (["a"], ["b", b"\x00"], ["c"]):
        state.append("log", item)
    assert state.load("log", revision=2) == ["a", "b", b"\x00"]
    state.restore("log", 2)
    state.append("log", ["d"])
    assert state.load("log") == ["a", "b", b"\x00", "d"]


def test_appending_is_guarded_and_can_be_repeated(engine: perdure.Engine) -> None:
    state = engine.memory("ana").state
    state.save("value", 1)
    with pytest.raises(Conflict, match="no list"):
        state.append("value", [1])
    number = state.append("log", ["a"], request="r")
    assert state.append("log", ["a"], request="r") == number
    with pytest.raises(Conflict, match="something else"):
        state.append("log", ["b"], request="r")
    with pytest.raises(Conflict, match="stands at revision 1"):
        state.append("log", ["b"], expected=0)
    state.append("log", ["b"], expected=1)
    assert state.load("log") == ["a", "b"]


def test_forgetting_reaches_verbatim_values_and_lists(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    ana.remember("Maria is my sister", "PEOPLE", entities=["person:Maria"])
    ana.state.save("packed", {"blob": b"\xa5Maria\x01", "n": 1}, verbatim=True)
    ana.state.save("other", {"blob": b"\xa5Mario\x01"}, verbatim=True)
    ana.state.append("log", ["Maria called", {"by": "Bob"}])
    ana.forget(entity="person:maria")
    assert ana.state.load("packed") == "[forgotten]", "whole, or gone"
    assert ana.state.load("other") == {"blob": b"\xa5Mario\x01"}
    assert ana.state.load("log") == ["[forgotten]", {"by": "Bob"}]
    held = BytesIO()
    ana.export(held)
    assert b"Maria" not in held.getvalue()


def test_verbatim_values_and_lists_travel_with_an_export(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    ana.state.save("k", (b"\x00", "a\0b"), verbatim=True)
    ana.state.append("log", [1])
    ana.state.append("log", [b"2"])
    held = BytesIO()
    ana.export(held)
    held.seek(0)
    bea = engine.memory("bea")
    bea.import_(held)
    assert bea.state.load("k") == (b"\x00", "a\0b")
    assert bea.state.load("log") == [1, b"2"]


def test_lists_that_hold_one_another_many_times_over_are_refused(engine: perdure.Engine) -> None:
    many: list[object] = ["x"]
    for _ in range(12):
        many = [many] * 10
    state = engine.memory("ana").state
    with pytest.raises(perdure.LimitExceeded, match="`items` has more parts than `state_value_bytes_max`"):
        state.append("walks", many)  # type: ignore[arg-type]
    with pytest.raises(perdure.LimitExceeded, match="`value` has more parts than `state_value_bytes_max`"):
        state.save("walks", many, verbatim=True)  # type: ignore[arg-type]


def test_a_revision_of_thousands_of_digits_is_told_as_one_that_is_not_there(engine: perdure.Engine) -> None:
    state = engine.memory("ana").state
    state.save("walks", [1])
    with pytest.raises(perdure.NotFound, match="has no value at revision"):
        state.restore("walks", 10**5_000)
