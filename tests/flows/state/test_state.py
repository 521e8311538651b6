"""Key-value state through the public calls, and the tools an agent gets, on every store."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

import perdure
from lanes import examples
from perdure import Conflict, InvalidInput, LimitExceeded, NotFound
from perdure.domain.state import Revision
from perdure.testing import FailingStore, StoppedClock

NINE = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
TOOLS = {
    "saveState": "write",
    "loadState": "read",
    "listStateKeys": "read",
    "searchState": "read",
    "deleteState": "write",
    "mergeTimeseriesState": "write",
    "queryTimeseriesState": "read",
    "cleanupTimeseriesState": "write",
}
"""The seeds' tools."""
ALL_TOOLS = {
    **TOOLS,
    "remember": "write",
    "recall": "read",
    "forget": "write",
    "addTodo": "write",
    "listTodos": "read",
    "completeTodo": "write",
    "addLesson": "write",
    "listLessons": "read",
}


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(NINE)


@pytest.fixture
def engine(backend, clock: StoppedClock) -> Iterator[perdure.Engine]:  # type: ignore[no-untyped-def]
    """Whatever a test does to it, the store is sound at its end."""
    opened = backend.open(clock=clock)
    yield opened
    assert opened.verify().findings == ()


@pytest.fixture
def ana(engine: perdure.Engine) -> perdure.Memory:
    return engine.memory("ana", agent="coach")


VALUES = [
    None,
    True,
    False,
    0,
    -1,
    2**70,
    1.5,
    -0.0,
    1e300,
    "",
    "text",
    "é ß 李 🎉",
    "line\nbreak\ttab \\ \" ' %s ?1 {x}",
    [],
    {},
    [[[]]],
    {"": ""},
    {"a": [1, {"b": None}], "ü": "ä"},
    [None, True, 1, 1.5, "x", [], {}],
    "null",
    "\u2028\x7f\x01",
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: ascii(value)[:40])
def test_any_json_comes_back_as_it_was_saved(ana: perdure.Memory, value: Any) -> None:
    assert ana.state.save("k", value) == 1
    loaded = ana.state.load("k", default="nothing there")
    assert loaded == value
    assert json.dumps(loaded) == json.dumps(value), "also its type"
    found = ana.state.find("k")
    assert (found.found, found.value, found.revision, found.updated_at) == (True, value, 1, NINE)


def test_a_stored_null_differs_from_a_missing_key(ana: perdure.Memory) -> None:
    ana.state.save("null", None)
    assert ana.state.load("null", default="default") is None
    assert ana.state.load("missing", default="default") == "default"
    assert ana.state.load("missing") is None
    assert (ana.state.find("null").found, ana.state.find("missing").found) == (True, False)
    assert ana.state.keys() == ["null"]
    told = ana.tools.call_tool("loadState", {"key": "null"})
    assert (told["success"], told["key"], told["value"], told["found"]) == (True, "null", None, True)
    told = ana.tools.call_tool("loadState", {"key": "missing"})
    assert (told["success"], told["value"], told["found"]) == (False, None, False)
    assert (told["error"], told["code"]) == ("nothing is kept under 'missing'", "not_found")
    told = ana.tools.call_tool("loadState", {"key": "missing", "default": []})
    assert (told["success"], told["value"], told["found"]) == (True, [], False), "S0-63: loadState(key, default)"


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (object(), "`value`"),
        ({"a": object()}, ".a"),
        ({"a": [0, {"b": object()}]}, ".a[1].b"),
        ([1, [2, NINE]], "[1][1]"),
        ({"a": float("nan")}, ".a"),
        ([float("inf")], "[0]"),
        ({"a": b"x"}, ".a"),
        ({"a": {1: 2}}, ".a"),
        ({"a": {1, 2}}, ".a"),
        ({"a": ["\0"]}, ".a[0]"),
        ({"a": "\ud800"}, ".a"),
        ({"x": {"y\0": 1}}, ".x"),
        ({"a": 10**5000}, ".a"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_is_not_json_is_refused_with_the_path_inside_it(ana: perdure.Memory, value: Any, place: str) -> None:
    """The issue: a value that is not JSON gives `InvalidInput` naming the path inside it."""
    ana.state.save("k", "before")
    with pytest.raises(InvalidInput, match=re.escape(place)):
        ana.state.save("k", value)
    assert ana.state.find("k").revision == 1


def test_a_value_that_contains_itself_is_refused(ana: perdure.Memory) -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(InvalidInput):
        ana.state.save("k", circle)
    assert ana.tools.call_tool("saveState", {"key": "k", "value": circle})["success"] is False


@pytest.mark.parametrize("key", ["", "\0", "\ud800", None, 7, b"k", ["k"], "x" * 401])
def test_a_key_that_is_none_is_refused_by_every_call(ana: perdure.Memory, key: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: ana.state.save(key, 1),
        lambda: ana.state.load(key),
        lambda: ana.state.find(key),
        lambda: ana.state.delete(key),
        lambda: ana.state.history(key),
        lambda: ana.state.restore(key, 1),
    ]
    for call in calls:
        with pytest.raises(InvalidInput):
            call()


@pytest.mark.parametrize(
    "key", ["a", "A", " ", "../../etc/passwd", "a/b", "*", "[", "%", "_", "'; DROP TABLE", "李", "x" * 400]
)
def test_any_text_is_a_key(ana: perdure.Memory, key: str) -> None:
    ana.state.save(key, key)
    assert ana.state.keys() == [key]
    assert ana.state.load(key) == key
    assert ana.state.delete(key)


# -- size


def test_twenty_megabytes_come_back(ana: perdure.Memory) -> None:
    """The issue: large values (tens of MB) work; listing them loads none."""
    value = {"rows": ["x" * 1_000] * 20_000}
    ana.state.save("large", value)
    assert ana.state.load("large") == value
    [info] = ana.state.list()
    assert info.size_bytes > 20_000_000
    assert info.preview == '{"rows":["' + "x" * 90 + "..."
    assert ana.tools.call_tool("loadState", {"key": "large"})["value"] == value


def test_a_value_over_the_setting_is_refused_and_one_at_it_is_not(backend) -> None:  # type: ignore[no-untyped-def]
    """The issue: bounded by a setting, which the error names; bytes are those of the JSON in UTF-8."""
    ana = backend.open(limits=perdure.Limits(state_value_bytes_max=1_000)).memory("ana")
    ana.state.save("k", "x" * 998)
    ana.state.save("k", "é" * 499)
    for over in ("x" * 999, "é" * 500):
        with pytest.raises(LimitExceeded, match="state_value_bytes_max"):
            ana.state.save("k", over)
        told = ana.tools.call_tool("saveState", {"key": "k", "value": over})
        assert (told["success"], "state_value_bytes_max" in told["error"], bool(told["remedy"])) == (False, True, True)
    assert ana.state.find("k").revision == 2


# -- revisions


def test_every_save_keeps_a_revision(ana: perdure.Memory, clock: StoppedClock) -> None:
    for number in range(1, 5):
        assert ana.state.save("k", {"n": number}) == number
        clock.move(minutes=1)
    history = ana.state.history("k")
    assert [(one.number, json.loads(one.body or "")["n"]) for one in history] == [(4, 4), (3, 3), (2, 2), (1, 1)]
    assert [one.saved_at for one in history] == [NINE + timedelta(minutes=minute) for minute in (3, 2, 1, 0)]
    assert ana.state.load("k") == {"n": 4}
    assert ana.state.load("k", revision=2) == {"n": 2}
    assert ana.state.find("k", revision=2).updated_at == NINE + timedelta(minutes=1)
    assert ana.state.load("k", default="none", revision=9) == "none"
    assert [one.number for one in ana.state.history("k", limit=2)] == [4, 3]
    assert [one.number for one in ana.state.history("k", limit=2, before=3)] == [2, 1]
    assert list(ana.state.history("never")) == []


def test_restoring_saves_the_past_value_as_the_next_revision(ana: perdure.Memory) -> None:
    ana.state.save("k", "first")
    ana.state.save("k", None)
    assert ana.state.restore("k", 1) == 3
    assert ana.state.load("k") == "first"
    assert ana.state.restore("k", 2) == 4
    assert (ana.state.find("k").found, ana.state.load("k")) == (True, None)
    for missing in (0, 5, -1, 2**40):
        with pytest.raises(NotFound):
            ana.state.restore("k", missing)
    with pytest.raises(NotFound):
        ana.state.restore("never", 1)


def test_a_deleted_key_is_gone_and_can_be_brought_back(ana: perdure.Memory) -> None:
    ana.state.save("k", "value")
    assert ana.state.delete("k") is True
    assert ana.state.delete("k") is False
    assert ana.state.delete("never") is False
    assert (ana.state.find("k").found, ana.state.keys(), ana.state.search("*").matches) == (False, [], ())
    assert [(one.number, one.body) for one in ana.state.history("k")] == [(2, None), (1, '"value"')]
    assert ana.state.load("k", revision=1) == "value"
    with pytest.raises(NotFound):
        ana.state.restore("k", 2)
    assert ana.state.restore("k", 1) == 3
    assert ana.state.load("k") == "value"


def test_revisions_are_bounded(backend) -> None:  # type: ignore[no-untyped-def]
    engine = backend.open(limits=perdure.Limits(state_revisions_max=3))
    state = engine.memory("ana").state
    for number in range(1, 8):
        state.save("k", number)
    assert [one.number for one in state.history("k")] == [7, 6, 5]
    assert (state.load("k"), state.load("k", revision=5), state.find("k", revision=4).found) == (7, 5, False)
    state.delete("k")
    assert [one.number for one in state.history("k")] == [8, 7, 6]
    assert engine.verify().findings == ()


@pytest.mark.parametrize("number", [0, -1, 2**63, -(2**70), 10**30])
def test_a_revision_there_is_not_is_not_found(ana: perdure.Memory, number: int) -> None:
    ana.state.save("k", 1)
    for call in (lambda: ana.state.find("k", revision=number).found, lambda: ana.state.load("k", False, revision=number)):
        with suppress(InvalidInput):
            assert call() is False
    with pytest.raises((NotFound, InvalidInput)):
        ana.state.restore("k", number)
    with suppress(InvalidInput):
        ana.state.history("k", before=number)


# -- expected


def test_a_save_that_expects_another_revision_is_a_conflict(ana: perdure.Memory) -> None:
    """The issue: optional expected revision (`Conflict` when it moved)."""
    assert ana.state.save("k", "a", expected=0) == 1
    with pytest.raises(Conflict, match="k"):
        ana.state.save("k", "b", expected=0)
    assert ana.state.save("k", "b", expected=1) == 2
    for stale in (1, 3, -1):
        with pytest.raises(Conflict):
            ana.state.save("k", "c", expected=stale)
        with pytest.raises(Conflict):
            ana.state.delete("k", expected=stale)
    assert ana.state.load("k") == "b"
    assert ana.state.delete("k", expected=2) is True


@pytest.mark.parametrize("how", ["never saved", "deleted", "expired", "restored"])
def test_what_find_says_can_be_expected(ana: perdure.Memory, clock: StoppedClock, how: str) -> None:
    """`Conflict` when it moved, and only then: load, decide, save works whatever became of the key before."""
    if how == "deleted":
        ana.state.save("k", "a")
        ana.state.delete("k")
    elif how == "expired":
        ana.state.save("k", "a", expires_in_s=60)
        clock.move(minutes=2)
    elif how == "restored":
        ana.state.save("k", "a")
        ana.state.save("k", "b")
        ana.state.restore("k", 1)
    number = ana.state.find("k").revision
    assert ana.state.save("k", "next", expected=number) > number
    assert ana.state.load("k") == "next"


def test_of_two_writers_that_expect_the_same_revision_one_is_told(engine: perdure.Engine) -> None:
    rounds = 15
    start = threading.Barrier(2)

    def write(name: str) -> list[str]:
        told = []
        for number in range(rounds):
            start.wait(60)
            try:
                engine.memory("ana").state.save("k", name, expected=number)
                told.append("saved")
            except Conflict:
                told.append("conflict")
            start.wait(60)
        return told

    with ThreadPoolExecutor(2) as pool:
        left, right = pool.map(write, ("left", "right"), timeout=120)
    assert [{one, other} for one, other in zip(left, right, strict=True)] == [{"saved", "conflict"}] * rounds
    assert engine.memory("ana").state.find("k").revision == rounds


def test_writers_that_expect_nothing_never_conflict(engine: perdure.Engine) -> None:
    writers, each = 4, 25
    start = threading.Barrier(writers)

    def write(name: int) -> list[int]:
        start.wait(60)
        return [engine.memory("ana").state.save("k", [name, number]) for number in range(each)]

    with ThreadPoolExecutor(writers) as pool:
        numbers = [number for made in pool.map(write, range(writers), timeout=120) for number in made]
    assert sorted(numbers) == list(range(1, writers * each + 1))


def test_a_deletion_among_writers_deletes(engine: perdure.Engine) -> None:
    """The key is there all the time: whoever deletes it is told that it was."""
    stop = threading.Event()

    def keep_saving() -> None:
        while not stop.is_set():
            engine.memory("ana").state.save("k", "kept alive")

    def delete() -> list[bool]:
        told = []
        for _ in range(60):
            engine.memory("ana").state.save("k", "there now")
            told.append(engine.memory("ana").state.delete("k"))
        return told

    with ThreadPoolExecutor(3) as pool:
        savers = [pool.submit(keep_saving) for _ in range(2)]
        try:
            assert pool.submit(delete).result(120) == [True] * 60
        finally:
            stop.set()
        for saver in savers:
            saver.result(60)


# -- expiry


def test_a_value_expires_at_its_time(ana: perdure.Memory, clock: StoppedClock) -> None:
    ana.state.save("k", "soon gone", expires_in_s=60)
    ana.state.save("kept", "stays")
    clock.move(seconds=59)
    assert ana.state.load("k") == "soon gone"
    assert ana.state.keys() == ["k", "kept"]
    clock.move(seconds=1)
    assert (ana.state.find("k").found, ana.state.load("k", default="gone")) == (False, "gone")
    assert (ana.state.keys(), ana.state.search("k*").matches) == (["kept"], ("kept",))
    assert ana.tools.call_tool("loadState", {"key": "k"})["found"] is False
    assert ana.state.delete("k") is False
    assert ana.state.load("k", revision=1) == "soon gone", "history shows it, expired or not"


def test_saving_again_without_expiry_keeps_the_value(ana: perdure.Memory, clock: StoppedClock) -> None:
    ana.state.save("k", 1, expires_in_s=60)
    ana.state.save("k", 2)
    clock.move(days=365)
    assert ana.state.load("k") == 2
    ana.state.save("k", 3, expires_in_s=1)
    clock.move(seconds=1)
    assert ana.state.restore("k", 3) == 4
    clock.move(days=365)
    assert ana.state.load("k") == 3, "what was brought back on purpose stays"


@pytest.mark.parametrize("wrong", [0, -1, "60", True, float("nan"), float("inf"), 10**30])
def test_an_expiry_that_makes_no_sense_is_refused(ana: perdure.Memory, wrong: Any) -> None:
    with pytest.raises(InvalidInput):
        ana.state.save("k", 1, expires_in_s=wrong)
    assert ana.state.keys() == []


# -- listing, searching, clearing


def test_keys_are_listed_in_order_with_time_size_and_revision(ana: perdure.Memory, clock: StoppedClock) -> None:
    ana.state.save("b", "éé")
    clock.move(minutes=1)
    for key in ("a", "B", "ä", "b"):
        ana.state.save(key, [1, 2])
    assert [(one.key, one.size_bytes, one.revision, one.updated_at) for one in ana.state.list()] == [
        ("B", 5, 1, NINE + timedelta(minutes=1)),
        ("a", 5, 1, NINE + timedelta(minutes=1)),
        ("b", 5, 2, NINE + timedelta(minutes=1)),
        ("ä", 5, 1, NINE + timedelta(minutes=1)),
    ]
    assert [one.key for one in ana.state.list("[ab]")] == ["a", "b"]
    assert [one.key for one in ana.state.list(limit=2)] == ["B", "a"]


@pytest.mark.parametrize(("length", "cut"), [(97, False), (98, False), (99, True), (5_000, True)])
@pytest.mark.parametrize("letter", ["x", "é", "🎉", '"'])
def test_a_preview_is_100_characters_and_says_when_it_is_cut(ana: perdure.Memory, length: int, cut: bool, letter: str) -> None:
    value = letter * length
    text = json.dumps(value, ensure_ascii=False)
    ana.state.save("k", value)
    [told] = ana.tools.call_tool("listStateKeys", {"include_values": True})["keys"]
    assert told["preview"] == (text[:100] + "..." if len(text) > 100 else text)
    assert told["size_bytes"] == len(text.encode())
    assert (len(text) > 100) == cut or letter == '"'


GLOBS = [
    ("*", {"kudos_givers", "kudos", "Kudos", "route_givers", "a*b", "[x]", "%", "_", "日本"}),
    ("kudos*", {"kudos", "kudos_givers"}),
    ("*_givers", {"kudos_givers", "route_givers"}),
    ("?udos", {"kudos", "Kudos"}),
    ("kudos", {"kudos"}),
    ("KUDOS", set()),
    ("%", {"%"}),
    ("_", {"_"}),
    ("?", {"%", "_"}),
    ("a[*]b", {"a*b"}),
    ("[[]x]", {"[x]"}),
    ("日*", {"日本"}),
    ("日?", {"日本"}),
    ("[!kK]*", {"route_givers", "a*b", "[x]", "%", "_", "日本"}),
    ("nothing*", set()),
    ("*" * 40, None),
]


@pytest.mark.parametrize(("pattern", "expected"), GLOBS)
def test_a_glob_is_case_exact_on_every_store(ana: perdure.Memory, pattern: str, expected: set[str] | None) -> None:
    everything = GLOBS[0][1]
    assert everything is not None
    for key in everything:
        ana.state.save(key, key.upper())
    found = ana.state.search(pattern)
    assert set(found.matches) == (everything if expected is None else expected)
    assert found.results == {key: key.upper() for key in found.matches}
    assert (found.pattern, found.truncated, list(found.matches)) == (pattern, False, sorted(found.matches))


@pytest.mark.parametrize("pattern", ["", None, 7, ["*"], "\0*", "\ud800*", "*\0"])
def test_a_pattern_that_is_none_is_refused_or_finds_nothing(ana: perdure.Memory, pattern: Any) -> None:
    ana.state.save("k", 1)
    with suppress(InvalidInput):
        assert ana.state.search(pattern).matches == ()


def test_a_search_has_a_limit_and_says_when_there_is_more(ana: perdure.Memory) -> None:
    for number in range(12):
        ana.state.save(f"k{number:02}", number)
    some = ana.state.search("k*", limit=5)
    assert (some.matches, some.truncated) == (tuple(f"k{number:02}" for number in range(5)), True)
    assert ana.state.search("k*", limit=12).truncated is False
    assert ana.state.search("k0*", limit=10).truncated is False
    for wrong in (0, -1, True, 1.5, "5"):
        with pytest.raises(InvalidInput):
            ana.state.search("k*", limit=wrong)  # type: ignore[arg-type]


def test_clearing_deletes_every_key_and_each_can_be_restored(engine: perdure.Engine) -> None:
    ana, bob = engine.memory("ana"), engine.memory("bob")
    for number in range(7):
        ana.state.save(f"k{number}", number)
    bob.state.save("k0", "bob's")
    assert ana.state.clear() == 7
    assert (ana.state.keys(), ana.state.clear(), bob.state.keys()) == ([], 0, ["k0"])
    ana.state.restore("k3", 1)
    assert ana.state.load("k3") == 3


def test_a_lower_bound_on_listings_loses_no_key(backend) -> None:  # type: ignore[no-untyped-def]
    """`clear` deletes every key, `keys` gives all, and no default asks for more than the setting allows."""
    ana = backend.open(limits=perdure.Limits(page_rows_max=5)).memory("ana")
    for number in range(8):
        ana.state.save(f"k{number}", number)
    assert len(ana.state.list()) <= 8
    told = ana.tools.call_tool("listStateKeys")
    assert told["success"]
    assert told["count"] == 8 or told.get("truncated") is True, "a list that was cut says so"
    assert ana.tools.call_tool("searchState", {"pattern": "*"})["success"]
    assert ana.tools.call_tool("queryTimeseriesState", {"key": "s", "start_time": 1, "end_time": 2})["success"]
    assert ana.series("s").fetch(1, 2, lambda window: []).coverage == "full"
    assert ana.state.clear() == 8
    assert ana.state.keys() == []


def test_more_keys_than_are_read_at_once(engine: perdure.Engine) -> None:
    """All keys are all keys, and a search looks at every one of them."""
    ana = engine.memory("ana")
    keys = [f"{letter}{number:03}" for letter in "abc" for number in range(400)]

    def fill(tx: Any) -> None:
        for key in keys:
            tx.state.put(Revision(key, 1, "1", NINE), keep=1)

    engine._store.write(ana.scope.owner, fill)
    assert ana.state.keys() == keys
    assert ana.state.search("*99").matches == tuple(key for key in keys if key.endswith("99"))
    assert (ana.state.search("b*", limit=400).truncated, ana.state.search("b*", limit=399).truncated) == (False, True)


# -- whose


def test_state_belongs_to_a_user_and_is_shared_by_their_agents(engine: perdure.Engine) -> None:
    engine.memory("ana", agent="coach").state.save("k", "ana's")
    assert engine.memory("ana", agent="companion", channel="phone").state.load("k") == "ana's"
    for other in (engine.memory("bob"), engine.memory("ANA"), engine.memory("ana", space="elsewhere")):
        assert (other.state.find("k").found, other.state.keys(), list(other.state.history("k"))) == (False, [], [])
        assert (other.state.delete("k"), other.state.clear(), other.state.search("*").matches) == (False, 0, ())
        with pytest.raises(NotFound):
            other.state.restore("k", 1)
        assert other.state.save("k", "theirs", expected=0) == 1
    assert engine.memory("ana").state.load("k") == "ana's"


# -- tools


def test_the_seeds_tools_are_there_with_their_permissions(ana: perdure.Memory) -> None:
    """S0-48, S0-49, S1-24, S1-25: names and permissions as the seeds give them."""
    assert dict(ana.tools.permissions()) == ALL_TOOLS
    assert list(ana.tools.permissions())[: len(TOOLS)] == list(TOOLS)
    assert list(ana.tools.names()) == list(ana.tools.permissions())


def test_a_tool_answers_with_an_envelope(ana: perdure.Memory) -> None:
    """S1-24 to S1-29, X-8, X-9: `call_tool(name, params)` and the fields of each answer."""
    saved = ana.tools.call_tool("saveState", {"key": "kudos_givers", "value": ["athlete_123", "athlete_456"]})
    assert (saved["success"], saved["key"]) == (True, "kudos_givers")
    loaded = ana.tools.call_tool("loadState", {"key": "kudos_givers"})
    assert loaded.keys() >= {"success", "key", "value", "found"}
    assert loaded["value"] == ["athlete_123", "athlete_456"]
    listed = ana.tools.call_tool("listStateKeys", {"include_values": False})
    assert listed.keys() >= {"success", "count", "keys"}
    assert listed["keys"][0].keys() >= {"key", "updated_at", "size_bytes"}
    assert listed == ana.tools.call_tool("listStateKeys", {}) == ana.tools.call_tool("listStateKeys")
    found = ana.tools.call_tool("searchState", {"pattern": "kudos*"})
    assert found.keys() >= {"success", "pattern", "matches", "results", "truncated"}
    merged = ana.tools.call_tool(
        "mergeTimeseriesState", {"key": "s", "entries": [{"id": 1, "timestamp": "2026-01-05T08:00:00Z"}]}
    )
    assert merged.keys() >= {"success", "added", "duplicates", "updated", "rejected", "total_count"}
    cleaned = ana.tools.call_tool("cleanupTimeseriesState", {"key": "s", "keep_days": 0})
    assert (cleaned["removed"], cleaned["kept"]) == (1, 0)
    assert ana.tools.call_tool("deleteState", {"key": "kudos_givers"})["success"] is True
    assert ana.tools.call_tool("loadState", {"key": "kudos_givers"})["found"] is False


def test_every_answer_is_json(ana: perdure.Memory) -> None:
    ana.state.save("k", {"a": 1})
    ana.series("s").merge([{"id": 1, "timestamp": 1_700_000_000}], window=(1_600_000_000, 1_800_000_000))
    todo = ana.todos.add("call the dentist").id
    for name, params in SOUND.items():
        answer = ana.tools.call_tool(name, {"todo": todo} if name == "completeTodo" else params)
        assert answer["success"] is True, answer
        assert json.loads(json.dumps(answer, allow_nan=False)) == answer


SOUND: dict[str, dict[str, Any]] = {
    "saveState": {"key": "k", "value": [1]},
    "loadState": {"key": "k"},
    "listStateKeys": {"include_values": True},
    "searchState": {"pattern": "*", "limit": 3},
    "deleteState": {"key": "k"},
    "mergeTimeseriesState": {
        "key": "t",
        "entries": [{"n": 1, "at": 1_700_000_000}],
        "id_field": "id",
        "timestamp_field": "at",
        "id_template": "e_{n}",
        "window_start": "2023-11-01T00:00:00Z",
        "window_end": "2023-12-01T00:00:00Z",
        "complete": True,
    },
    "queryTimeseriesState": {
        "key": "t",
        "start_time": "2023-11-01T00:00:00Z",
        "end_time": "2023-12-01T00:00:00Z",
        "timestamp_field": "at",
        "limit": 5,
    },
    "cleanupTimeseriesState": {"key": "t", "keep_days": 30},
    "remember": {
        "content": "Lives in Oslo",
        "type": "PROFILE",
        "entities": ["place:Oslo"],
        "attribute": "lives_in",
        "value": "Oslo",
        "valid_from": "2023-11-01T00:00:00Z",
        "pinned": True,
    },
    "recall": {
        "query": "Where do I live?",
        "kinds": ["memory"],
        "entities": ["place:Oslo"],
        "since": "2023-11-01T00:00:00Z",
        "until": "2023-12-01T00:00:00Z",
        "limit": 3,
        "budget_tokens": 200,
    },
    "forget": {"entity": "place:Oslo"},
    "addTodo": {"content": "call Sam", "kind": "commitment", "due_at": "2026-02-01T09:00:00Z", "recurrence": "0 7 * * 1"},
    "listTodos": {"kind": "commitment", "closed": False, "due_before": "2026-03-01T00:00:00Z", "limit": 3},
    "completeTodo": {"todo": "t"},
    "addLesson": {"text": "Answer in one sentence", "scope": "user"},
    "listLessons": {"scope": "user", "limit": 3},
}

WRONG: list[tuple[Any, Any]] = [
    ("noSuchTool", {}),
    ("", {}),
    (None, {}),
    (["loadState"], {}),
    ("loadState", None),
    ("loadState", {}),
    ("loadState", []),
    ("loadState", "key"),
    ("loadState", {"key": "k", "extra": 1}),
    ("loadState", {"key": None}),
    ("loadState", {"key": ""}),
    ("loadState", {"key": "\0"}),
    ("loadState", {5: 5}),
    ("saveState", {"key": "k"}),
    ("saveState", {"key": "k", "value": {1, 2}}),
    ("searchState", {"pattern": ""}),
    ("searchState", {"pattern": "*", "limit": 0}),
    ("searchState", {"pattern": "*", "limit": "x"}),
    ("searchState", {"pattern": "*", "limit": 10**30}),
    ("deleteState", {"key": ["k"]}),
    ("mergeTimeseriesState", {"key": "s"}),
    ("mergeTimeseriesState", {"key": "s", "entries": "text"}),
    ("mergeTimeseriesState", {"key": "s", "entries": {"id": 1}}),
    ("mergeTimeseriesState", {"key": "s", "entries": None}),
    ("mergeTimeseriesState", {"key": "s", "entries": [], "window_start": "2026-01-01T00:00:00Z"}),
    ("mergeTimeseriesState", {"key": "s", "entries": [], "window_start": "x", "window_end": "y"}),
    ("mergeTimeseriesState", {"key": "s", "entries": [], "window_start": 10**400, "window_end": 5}),
    ("mergeTimeseriesState", {"key": "s", "entries": [], "id_template": "{"}),
    ("mergeTimeseriesState", {"key": "s", "entries": [], "id_field": 7}),
    ("queryTimeseriesState", {"key": "s", "start_time": "soon", "end_time": "later"}),
    ("queryTimeseriesState", {"key": "s", "start_time": "2026-01-02T00:00:00Z", "end_time": "2026-01-01T00:00:00Z"}),
    ("queryTimeseriesState", {"key": "s", "start_time": 10**400, "end_time": 5}),
    ("queryTimeseriesState", {"key": "s", "start_time": 1, "end_time": 5, "limit": "many"}),
    ("queryTimeseriesState", {"key": "s", "start_time": 1, "end_time": 5, "page": f"{10**30}:x"}),
    ("queryTimeseriesState", {"key": "s", "start_time": 1, "end_time": 5, "page": {"a": 1}}),
    ("cleanupTimeseriesState", {"key": "s", "keep_days": -1}),
    ("cleanupTimeseriesState", {"key": "s", "keep_days": "all"}),
]


@pytest.mark.parametrize(("name", "params"), WRONG, ids=lambda one: ascii(one)[:60])
def test_a_tool_never_raises_and_says_what_to_do(ana: perdure.Memory, name: Any, params: Any) -> None:
    """The issue: a tool never raises: it returns `{success: false, error, remedy}`."""
    answer = ana.tools.call_tool(name, params)
    assert answer["success"] is False
    assert isinstance(answer["error"], str)
    assert isinstance(answer["remedy"], str)
    assert answer["error"]
    assert answer["remedy"]
    json.dumps(answer)


def test_a_tool_on_a_store_that_is_down_says_so(engine: perdure.Engine, clock: StoppedClock) -> None:
    store = FailingStore(engine._store)
    tools = perdure.Engine(store, clock, perdure.Settings(url="memory:")).memory("ana").tools  # type: ignore[arg-type]
    for name, params in SOUND.items():
        store.fail_next(perdure.Unavailable("the store is busy; try again"))
        answer = tools.call_tool(name, params)
        assert (answer["success"], answer["error"], answer["remedy"]) == (False, "the store is busy", "try again")


AWKWARD: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    1.5,
    2**63,
    -(2**63) - 1,
    10**400,
    float("nan"),
    float("inf"),
    -1e308,
    1_700_000_000,
    "",
    "\0",
    "\ud800",
    "k",
    "t",
    "*",
    "[",
    "[!",
    "5:x",
    "-5:",
    "--5:x",
    f"{10**25}:x",
    "2026-01-05T08:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "9" * 30,
    "{n}",
    "{n.x}",
    "{",
    "1e400",
    "x" * 500,
    [],
    {},
    [[]],
    {"a": None},
    {"\0": 1},
    {"k": "\ud800"},
]


def test_no_odd_value_of_any_parameter_makes_a_tool_raise(ana: perdure.Memory) -> None:
    """The issue: a tool never raises; here for each parameter of each tool, one odd value at a time."""
    raised = []
    for name, params in SOUND.items():
        for param in [*params, "page"] if name == "queryTimeseriesState" else params:
            odd_entries = [[{"n": odd, "at": odd, "id": odd}] for odd in AWKWARD] if param == "entries" else []
            for odd in AWKWARD + odd_entries:
                try:
                    assert isinstance(ana.tools.call_tool(name, {**params, param: odd})["success"], bool)
                except Exception as error:
                    raised.append(f"{name}({param}={odd!a:.40}): {type(error).__name__}")
    assert raised == []


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
anything = st.sampled_from(AWKWARD) | st.recursive(
    st.sampled_from(AWKWARD) | scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
entries = anything | st.lists(anything | st.fixed_dictionaries({"id": anything, "at": anything, "n": anything}), max_size=3)


@st.composite
def tool_calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A call that is nearly right: one or two of the tool's own parameters are anything at all."""
    name = draw(st.sampled_from(sorted(SOUND)))
    params = {**SOUND[name]}
    able = [*params, "page"] if name == "queryTimeseriesState" else [*params]
    for param in draw(st.lists(st.sampled_from(able), min_size=1, max_size=2)):
        params[param] = draw(entries if param == "entries" else anything)
    return name, params


# A thread of the PostgreSQL pool rolls dice now and then, which Hypothesis takes for a strategy's doing.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module")
@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
@given(call=tool_calls())
def test_whatever_a_model_sends_comes_back_as_an_answer(ana: perdure.Memory, call: tuple[str, dict[str, Any]]) -> None:
    """The issue: a tool never raises."""
    answer = ana.tools.call_tool(*call)
    assert isinstance(answer["success"], bool)
    if not answer["success"] and not answer.get("rejected"):
        assert answer["error"]
        assert answer["remedy"]


@pytest.mark.parametrize("told", ["false", "False", "no", 0, "", None, [], {}])
def test_an_answer_that_a_model_calls_incomplete_proves_nothing(ana: perdure.Memory, told: Any) -> None:
    """X-2: `complete` is a boolean. What else a model writes there is refused or understood, never taken for true."""
    window = {"window_start": "2025-10-01T00:00:00Z", "window_end": "2025-10-02T00:00:00Z"}
    ana.tools.call_tool("mergeTimeseriesState", {"key": "s", "entries": [], **window, "complete": told})
    answer = ana.tools.query_timeseries_state("s", *window.values())
    assert (answer["coverage"], answer["needs_api_call"]) == ("none", True)


# -- read-only registries


def test_a_read_only_registry_offers_nothing_that_writes(ana: perdure.Memory) -> None:
    """The issue: a host may hand out read-only registries."""
    ana.state.save("k", 1)
    tools = ana.tools.read_only()
    reading = {name: permission for name, permission in ALL_TOOLS.items() if permission == "read"}
    assert dict(tools.permissions()) == reading
    assert [one["function"]["name"] for one in tools.schemas("openai")] == list(tools.names()) == list(reading)
    for name in ALL_TOOLS.keys() - reading.keys():
        refused = tools.call_tool(name, SOUND[name])
        assert (refused["success"], bool(refused["remedy"])) == (False, True)
    assert tools.call_tool("loadState", {"key": "k"})["value"] == 1
    assert (ana.state.find("k").revision, ana.series.list()) == (1, [])


def test_a_read_only_registry_has_no_back_door(ana: perdure.Memory) -> None:
    """The seeds' functions stand beside the tools; those that write do not write through a read-only registry."""
    ana.series("s").merge([{"id": 1, "timestamp": 1_700_000_000}])
    tools = ana.tools.read_only()
    for call in (
        lambda: tools.merge_timeseries_state("s", [{"id": 2, "timestamp": 1_700_000_000}]),
        lambda: tools.cleanup_old_timeseries("s", 0),
        lambda: tools.read_only().merge_timeseries_state("new", [{"id": 2, "timestamp": 1}]),
    ):
        with suppress(perdure.PerdureError, AttributeError):
            assert call()["success"] is False
    assert (ana.series("s").count(), [one.name for one in ana.series.list()]) == (1, ["s"])
    assert tools.query_timeseries_state("s", 1_600_000_000, 1_800_000_000)["count"] == 1


# -- schemas

JSON_TYPES = {"string", "number", "integer", "boolean", "array", "object", "null"}


def check_schema(node: Any) -> None:
    """The part of JSON Schema that tool definitions use; anything else would be a slip of the pen."""
    assert isinstance(node, dict)
    assert node.keys() <= {"type", "description", "properties", "required", "items", "additionalProperties", "enum", "default"}
    types = node.get("type", [])
    assert set([types] if isinstance(types, str) else types) <= JSON_TYPES
    if "description" in node:
        assert isinstance(node["description"], str)
        assert node["description"]
    for child in node.get("properties", {}).values():
        check_schema(child)
    if "items" in node:
        check_schema(node["items"])
    assert set(node.get("required", [])) <= node.get("properties", {}).keys()
    assert isinstance(node.get("additionalProperties", False), bool)


def parts(style: str, tool: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Name, description and parameters, from the form that an API takes."""
    if style == "openai":
        assert tool.keys() == {"type", "function"}
        assert tool["type"] == "function"
        function = tool["function"]
        assert function.keys() >= {"name", "description", "parameters"}
        return function["name"], function["description"], function["parameters"]
    wanted = "input_schema" if style == "anthropic" else "inputSchema"
    assert tool.keys() >= {"name", "description", wanted}
    return tool["name"], tool["description"], tool[wanted]


@pytest.mark.parametrize("style", ["openai", "anthropic", "mcp"])
def test_schemas_have_the_form_each_api_takes(ana: perdure.Memory, style: str) -> None:
    """The issue: `schemas("openai" | "anthropic" | "mcp")` gives the definitions that those APIs take."""
    definitions = ana.tools.schemas(style)
    assert json.loads(json.dumps(definitions)) == definitions
    seen = {}
    for tool in definitions:
        name, description, schema = parts(style, tool)
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)
        assert 10 < len(description) <= 1_024
        assert schema["type"] == "object"
        check_schema(schema)
        assert all("description" in child for child in schema["properties"].values())
        seen[name] = schema
    assert seen.keys() == ALL_TOOLS.keys() == SOUND.keys()
    for name, params in SOUND.items():
        assert set(seen[name]["required"]) <= params.keys() <= seen[name]["properties"].keys()
    assert set(seen["mergeTimeseriesState"]["required"]) == {"key", "entries"}
    assert seen["mergeTimeseriesState"]["properties"].keys() >= {
        "id_field",
        "timestamp_field",
        "window_start",
        "window_end",
        "complete",
    }
    assert set(seen["queryTimeseriesState"]["required"]) == {"key", "start_time", "end_time"}
    assert set(seen["searchState"]["required"]) == {"pattern"}
    assert seen["listStateKeys"]["required"] == []


def test_mcp_hints_tell_readers_from_writers(ana: perdure.Memory) -> None:
    hints = {tool["name"]: tool["annotations"]["readOnlyHint"] for tool in ana.tools.schemas("mcp")}
    assert hints == {name: permission == "read" for name, permission in ALL_TOOLS.items()}


def test_an_unknown_style_is_refused(ana: perdure.Memory) -> None:
    with pytest.raises(InvalidInput, match="openai"):
        ana.tools.schemas("soap")


def test_state_outlives_the_process(backend) -> None:  # type: ignore[no-untyped-def]
    with backend.open() as engine:
        engine.memory("ana").state.save("k", {"a": [1]})
        engine.memory("ana").state.save("k", {"a": [2]})
    with backend.open() as engine:
        state = engine.memory("ana").state
        assert (state.load("k"), state.load("k", revision=1)) == ({"a": [2]}, {"a": [1]})
