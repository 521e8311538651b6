"""A data class of ours is one of the standard library's, whose methods come later."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from threading import Thread

import pytest

from perdure.domain import values
from perdure.domain.values import KW_ONLY, field


def _pair(**how: bool) -> list[type]:
    """The same class as the library makes it, and as we do."""
    made = []
    for dataclass in (dataclasses.dataclass, values.dataclass):

        class Point:
            x: int
            y: int = 2
            names: list[str] = field(default_factory=list, hash=False)
            _: KW_ONLY
            note: str = field(default="", compare=False, repr=False)
            seen: int = field(default=0, init=False)

            def __post_init__(self) -> None:
                if self.x == 99:
                    raise ValueError("99 is no place")

        Point.__qualname__ = "Point"
        made.append(dataclass(**how)(Point))
    return made


HOWS = ({"frozen": True, "slots": True}, {"slots": True}, {"frozen": True}, {}, {"frozen": True, "slots": True, "order": True})


@pytest.mark.parametrize("how", HOWS, ids=str)
def test_values_are_made_shown_compared_and_hashed_as_the_library_does_it(how: dict[str, bool]) -> None:
    def seen(kind: type) -> list[object]:
        one, same, other = kind(1, note="a"), kind(1, 2, note="b"), kind(3, 2, ["n"])
        told: list[object] = [repr(one), repr(other), one == same, one == other, one != other, one == (1, 2), one.note]
        told += [kind.__match_args__, [named.name for named in dataclasses.fields(kind)], dataclasses.asdict(other)]
        told += [dataclasses.replace(other, x=4).x, str(inspect.signature(kind)), one.names is not kind(1).names]
        told += [copy.deepcopy(other) == other, kind.__hash__ is None or hash(one) == hash(same)]
        told += [[place.x for place in sorted([other, one])]] if "order" in how else []
        return told

    library, ours = _pair(**how)
    assert seen(ours) == seen(library)


@pytest.mark.parametrize("how", HOWS, ids=str)
def test_what_is_wrong_is_refused_with_the_same_words(how: dict[str, bool]) -> None:
    def words(kind: type) -> list[str]:
        def assign() -> None:
            kind(1).x = 5

        def delete() -> None:
            del kind(1).x

        said = []
        for act in (kind, lambda: kind(1, z=2), lambda: kind(99), lambda: kind(1) < kind(2), assign, delete):
            try:
                act()
            except (TypeError, ValueError, dataclasses.FrozenInstanceError) as error:
                said.append(f"{type(error).__name__}: {error}")
            else:
                said.append("done")
        return said

    library, ours = _pair(**how)
    assert [one.replace("_pair.<locals>.", "") for one in words(ours)] == words(library)


def test_the_signature_is_known_before_a_value_was_made() -> None:
    library, ours = _pair(frozen=True, slots=True)
    assert str(inspect.signature(ours)) == str(inspect.signature(library))
    assert ours.__init__.__annotations__ == library.__init__.__annotations__


@values.dataclass(frozen=True, slots=True)
class Kept:
    """A value at the top of a module, where pickle finds it."""

    text: str
    number: int = 0


def test_a_value_survives_pickle() -> None:
    assert pickle.loads(pickle.dumps(Kept("a", 3))) == Kept("a", 3)


def test_a_class_that_inherits_from_a_data_class_takes_its_fields_along() -> None:
    @values.dataclass(frozen=True, slots=True)
    class More(Kept):
        """A value with one field more."""

        more: str = "m"

    assert repr(More("a")).endswith("More(text='a', number=0, more='m')")
    assert More("a", 1, "b") == More("a", 1, "b") != Kept("a", 1)


def test_a_class_that_changes_how_a_value_is_made_keeps_its_own_way() -> None:
    class Loud(Kept):
        def __init__(self, text: str) -> None:
            super().__init__(text.upper(), 7)

    assert Loud("a").text == "A"
    assert str(inspect.signature(Loud)) == "(text: 'str') -> 'None'"


def test_threads_that_make_the_first_value_together_all_get_theirs() -> None:
    for _ in range(50):
        _, ours = _pair(frozen=True, slots=True)
        made: list[object] = []
        threads = [Thread(target=lambda kind=ours, made=made: made.append(kind(1) == kind(1))) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert made == [True] * 4


def test_a_method_of_ones_own_stays() -> None:
    @values.dataclass(frozen=True, slots=True)
    class Shy:
        secret: str

        def __repr__(self) -> str:
            return "Shy()"

        def __hash__(self) -> int:
            return 5

    assert (repr(Shy("s")), hash(Shy("s"))) == ("Shy()", 5)
