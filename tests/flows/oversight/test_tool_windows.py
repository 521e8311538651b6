"""What a tool's result proves: the flow of seeds 0 and 1 saves a call, and nobody's entries prove more than they do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import perdure
import perdure.aio
from perdure import InvalidInput
from perdure.domain.times.instants import to_us
from perdure.testing import StoppedClock

NOW = datetime(2025, 10, 25, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
SAVE = "Get kudos from last 24 hours and save to memory"
ASK = "Who gave me kudos in the last 12 hours?"
ALL = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2025, 10, 26, tzinfo=UTC))


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(NOW)


@pytest.fixture
def ana(clock: StoppedClock) -> Iterator[perdure.Memory]:
    with perdure.open("memory:", clock=clock) as engine:
        yield engine.memory("ana", agent="coach")
        assert engine.verify().findings == ()


def kudos(*hours: float) -> list[dict[str, Any]]:
    """One for each: so many hours ago."""
    return [{"id": f"k{ago}", "created_at": (NOW - ago * HOUR).isoformat(), "who": f"athlete_{ago}"} for ago in hours]


FOUND = kudos(9, 11, 14, 20)
"""None within the last hours, so that nothing but the window says that these are covered."""


def agent(text: str, tools: Any) -> Any:
    """Calls the API, unless it is told that it need not."""
    if "[Relevant Memory]" in text:
        held = json.loads(text.split("[Relevant Memory]\n")[1]).get("kudos", {})
        if held.get("coverage") == "full":
            return [one["who"] for one in held["entries"]]
    return tools["getKudos"]()


def counted(calls: list[str], rows: Any) -> Callable[[], Any]:
    def get_kudos() -> Any:
        calls.append("called")
        return rows

    return get_kudos


def covered(ana: perdure.Memory, name: str = "kudos") -> list[tuple[datetime, datetime]]:
    return [(one.span.start, one.span.end) for one in ana.series(name).windows(*ALL)]


@pytest.mark.parametrize("rule", [True, "last 24 hours", (NOW - 24 * HOUR, NOW), {"getKudos": True}])
def test_the_two_goals_of_the_seed_make_one_call(ana: perdure.Memory, rule: Any) -> None:
    """S0-39, S0-52, S0-57, X-2: the window that the goal names was asked for, so it need not be asked for again."""
    calls: list[str] = []
    tools = {"getKudos": counted(calls, FOUND)}
    [kept] = ana.run(SAVE, agent, tools, mode="auto", window=rule).kept
    assert (kept.action, kept.covers) == ("merged", "window")
    assert covered(ana) == [(NOW - 24 * HOUR, NOW)]
    assert ana.run(ASK, agent, tools, mode="auto", window=rule).answer == ["athlete_9", "athlete_11"]
    assert calls == ["called"]


def test_a_declared_tool_needs_no_word_in_the_run(ana: perdure.Memory) -> None:
    """S0-50: the declaration says by which parameters the window is taken; an end that is left out is now."""
    calls: list[str] = []

    @perdure.tool(
        description="Kudos of a time.",
        parameters=[
            {"name": "after", "type": "string", "description": "From."},
            {"name": "before", "type": "string", "description": "Up to.", "required": False},
            {"name": "sport", "type": "string", "description": "Of this sport.", "required": False},
        ],
        window=("after", "before"),
    )
    def getKudos(after: str, before: str | None = None, sport: str = "all") -> Any:  # noqa: N802 - as the seeds name tools
        calls.append(after)
        return FOUND

    def asks(text: str, tools: Any) -> Any:
        return agent(text, {"getKudos": lambda: tools["getKudos"]("24 hours ago", sport="run")})

    tools = {"getKudos": getKudos}
    [kept] = ana.run(SAVE, asks, tools, mode="auto").kept
    assert (kept.covers, covered(ana)) == ("window", [(NOW - 24 * HOUR, NOW)])
    assert ana.run(ASK, asks, tools, mode="auto").answer == ["athlete_9", "athlete_11"]
    assert calls == ["24 hours ago"]


def test_the_arguments_of_a_tool_say_which_window_it_was_asked_for(ana: perdure.Memory) -> None:
    """X-2: both ends, by whatever usual names, and nothing beside them that may leave entries out."""
    window = {"startTime": (NOW - 24 * HOUR).isoformat(), "endTime": NOW.isoformat()}
    kept = ana.after("getKudos", FOUND, "save the kudos", mode="auto", arguments={**window, "limit": 50, "tag": None})
    assert (kept.covers, covered(ana)) == ("window", [(NOW - 24 * HOUR, NOW)])
    for more in ({"athlete": "bob"}, {"limit": 4}, {"limit": 50, "page": 2}, {"cursor": "abc"}):
        kept = ana.after("getLikes", FOUND, "save the likes", mode="auto", arguments={**window, **more})
        assert kept.covers in ("entries", "nothing"), more
    beside = ana.after("getRuns", FOUND, "save the runs", mode="auto", arguments={**window, "athlete": "bob"})
    assert (beside.covers, covered(ana, "runs")) == ("nothing", [])
    assert "`athlete`, which may leave entries out" in beside.reason
    paged = ana.after("getWalks", FOUND, "save the walks", mode="auto", arguments={"start": 0, "end": 4})
    assert paged.covers == "entries", "places in a list are no times"


def test_the_four_goals_of_the_seed_fetch_and_merge_what_is_missing(ana: perdure.Memory, clock: StoppedClock) -> None:
    """S0-36, S0-37, S0-54…S0-57: the same goal an hour later brings what is new; once a tool's results are kept in a series, a
    goal that does not say so merges what it had to fetch; and what is held is not fetched again."""
    calls: list[str] = []
    days = {"value": 1.0}

    def get_kudos() -> Any:
        calls.append("API")
        return [one for one in world if clock.now() - days["value"] * 24 * HOUR <= datetime.fromisoformat(one["created_at"])]

    world = kudos(*range(1, 160, 7))
    tools = {"getKudos": get_kudos}

    def told(goal: str, over_days: float) -> tuple[int, int | None]:
        """How many calls it took, and how many entries are held then."""
        days["value"] = over_days
        before = len(calls)
        ana.run(goal, agent, tools, mode="auto", window=True)
        return len(calls) - before, ana.series("kudos").about().count

    assert told(SAVE, 1) == (1, 4)
    clock.move(hours=1)
    world[:0] = kudos(-0.5)
    assert told(SAVE, 1) == (1, 5), "one came in this hour"
    assert told("Who gave me kudos in the last 12 hours?", 0.5) == (0, 5)
    assert told("Show kudos from last 7 days", 7) == (1, 24)
    assert told("Show kudos from last 7 days", 7) == (0, 24)
    assert told("Who gave me kudos in the last 2 days?", 2) == (0, 24)


def test_a_first_result_is_merged_only_where_somebody_wants_it(ana: perdure.Memory) -> None:
    """S1-3, S1-22: the first one is offered; accepted or asked for once, later ones go on with it, unless the goal says not to."""
    window = (NOW - 24 * HOUR, NOW)
    first = ana.after("getKudos", FOUND, ASK, mode="auto", window=window)
    assert first.action == "suggested"
    ana.tools.accept(first, FOUND)
    assert ana.after("getKudos", kudos(1, 2), ASK, mode="auto", window=window).action == "merged"
    assert ana.after("getKudos", kudos(3, 4), f"{ASK} Do not save it.", mode="auto", window=window).action == "none"
    assert ana.after("getKudos", kudos(3, 4), ASK, mode="suggest", window=window).action == "suggested"
    assert ana.series("kudos").about().count == len(FOUND) + 2


@pytest.mark.parametrize(
    "result",
    [
        {"kudos": FOUND, "has_more": True},
        {"kudos": FOUND, "next": "https://api.example/2"},
        {"kudos": FOUND, "meta": {"next_cursor": "x"}},
        {"kudos": FOUND, "total": 9},
        {"kudos": FOUND, "complete": False},
        kudos(*range(1, 11)),
    ],
)
def test_a_result_that_is_cut_or_just_a_page_long_proves_its_entries_only(ana: perdure.Memory, result: Any) -> None:
    """X-2: only the span of the batch, and it is marked as such."""
    kept = ana.run(SAVE, agent, {"getKudos": lambda: result}, mode="auto", window=True).kept[0]
    assert (kept.action, kept.covers, kept.window) == ("merged", "entries", None)
    assert "only the time between the entries counts as covered" in kept.reason
    assert ana.journal.decisions(limit=1)[0].body["covers"] == "entries"
    [(start, end)] = covered(ana)
    rows = result if isinstance(result, list) else result["kudos"]
    assert (start.isoformat(), end.isoformat()) == (rows[-1]["created_at"], rows[0]["created_at"])


def test_a_page_that_says_it_is_all_proves_its_window(ana: perdure.Memory) -> None:
    for said in ({"has_more": False}, {"total": 10}):
        tools = {"getKudos": counted([], {"kudos": kudos(*range(1, 11)), **said})}
        [kept] = ana.run(SAVE, lambda _, hands: hands["getKudos"](), tools, mode="auto", window=True).kept
        assert kept.covers == "window"
    handed = ana.after("getLikes", kudos(*range(1, 11)), "save the likes", mode="auto", window=(NOW - 24 * HOUR, NOW))
    assert handed.covers == "window", "who hands over a window says that all of it came"
    cut = {"likes": kudos(*range(1, 8)), "has_more": True}
    assert ana.after("getLikes", cut, "save the likes", mode="auto", window=(NOW - 48 * HOUR, NOW)).covers == "entries"


def test_a_declared_tool_that_brings_one_entry_begins_a_series(ana: perdure.Memory) -> None:
    """A quiet day is a day, and the entries of the next one join it."""
    [kept] = ana.run(SAVE, agent, {"getKudos": lambda: kudos(9)}, mode="auto", window=True).kept
    assert (kept.action, kept.covers, covered(ana)) == ("merged", "window", [(NOW - 24 * HOUR, NOW)])


def test_entries_in_no_order_prove_nothing(ana: perdure.Memory) -> None:
    """The best runs of all times are not all runs of all times."""
    kept = ana.after("getTopRuns", kudos(9, 400, 3, 77), "save the top runs", mode="auto")
    assert (kept.action, kept.covers, covered(ana, "top_runs")) == ("merged", "nothing", [])


def test_what_was_suggested_covers_the_same_once_it_is_accepted(ana: perdure.Memory) -> None:
    [kept] = ana.run(SAVE, agent, {"getKudos": lambda: FOUND}, mode="suggest", window=True).kept
    assert covered(ana) == []
    assert ana.tools.accept(kept, FOUND).action == "merged"
    assert covered(ana) == [(NOW - 24 * HOUR, NOW)]


def test_the_async_face_credits_the_same(clock: StoppedClock) -> None:
    calls: list[str] = []

    async def get_kudos() -> Any:
        calls.append("called")
        return FOUND

    async def asks(text: str, tools: Any) -> Any:
        found = agent(text, tools)
        return found if isinstance(found, list) else await found

    async def day() -> None:
        async with await perdure.aio.open("memory:", clock=clock) as engine:
            ana = engine.memory("ana")
            first = await ana.run(SAVE, asks, {"getKudos": get_kudos}, mode="auto", window=True)
            assert [one.covers for one in first.kept] == ["window"]
            second = await ana.run(ASK, asks, {"getKudos": get_kudos}, mode="auto", window=True)
            assert second.answer == ["athlete_9", "athlete_11"]

    asyncio.run(day())
    assert calls == ["called"]


def test_a_model_has_the_same_choice_when_it_merges(ana: perdure.Memory) -> None:
    """S0-48, X-2: a window, only the time between the entries, or nothing; the answer says which."""
    rows = [{"id": one["id"], "timestamp": one["created_at"]} for one in FOUND]
    call = ana.tools.call_tool
    assert call("mergeTimeseriesState", {"key": "a", "entries": rows})["covered"] is None
    between = call("mergeTimeseriesState", {"key": "b", "entries": rows, "infer": "batch_span"})["covered"]
    assert between == {"start": rows[-1]["timestamp"], "end": rows[0]["timestamp"], "inferred": True}
    window = {"window_start": (NOW - 24 * HOUR).isoformat(), "window_end": NOW.isoformat()}
    whole = call("mergeTimeseriesState", {"key": "c", "entries": rows, **window})["covered"]
    assert whole == {"start": window["window_start"], "end": window["window_end"], "inferred": False}
    assert call("mergeTimeseriesState", {"key": "d", "entries": rows, "infer": "all"})["success"] is False


@pytest.mark.parametrize(
    "rule", ["soon", 24, ("start",), ("start", 3), ("not a name", "end"), {"other": True}, {"getKudos": "x"}]
)
def test_a_window_that_says_nothing_is_refused_before_anything_runs(ana: perdure.Memory, rule: Any) -> None:
    calls: list[str] = []
    with pytest.raises(InvalidInput, match="window"):
        ana.run(SAVE, agent, {"getKudos": counted(calls, FOUND)}, window=rule)
    assert calls == []
    with pytest.raises(InvalidInput, match="'since', which the tool does not take"):
        perdure.tool(description="x", window=("since", "until"))


hours = st.lists(st.floats(0.01, 200, allow_nan=False).map(lambda one: round(one, 3)), min_size=0, max_size=30, unique=True)
anything = st.dictionaries(
    st.sampled_from(["start", "end", "limit", "athlete", "page", "since", "q"]),
    st.none() | st.integers(-5, 10**6) | st.sampled_from(["x", "2 days ago", "now", ""]),
    max_size=3,
)


@given(
    hours=hours,
    arguments=anything,
    ordered=st.booleans(),
    beside=st.dictionaries(st.sampled_from(["total", "next"]), st.none() | st.integers(0, 99)),
)
def test_no_undeclared_tool_creates_coverage_beyond_its_entries(
    hours: list[float], arguments: dict[str, Any], ordered: bool, beside: dict[str, Any]
) -> None:
    """X-1, X-2: unless its arguments carry both ends of a window, nothing outside its entries is ever covered."""
    rows = kudos(*(sorted(hours) if ordered else hours))
    with perdure.open("memory:", clock=StoppedClock(NOW)) as engine:
        ana = engine.memory("ana")
        kept = ana.run(
            SAVE,
            lambda _, tools: tools["getKudos"](**arguments),
            {"getKudos": lambda **_: {"kudos": rows, **beside}},
            mode="auto",
        ).kept[0]
        times = [to_us(datetime.fromisoformat(one["created_at"])) for one in rows]
        if kept.covers == "window":
            assert {"start", "end"} <= arguments.keys()
            assert arguments.get("athlete") is None
            return
        for window in ana.series("kudos").windows(*ALL):
            assert min(times) <= window.span.start_us < window.span.end_us <= max(times)


@pytest.mark.parametrize(
    "told",
    [
        {"error": "rate limited"},
        {"errors": ["timeout"]},
        {"success": False},
        {"ok": False},
        {"status": "error"},
        {"status": 503},
    ],
)
@pytest.mark.parametrize("hours", [(), (30,), (30, 40)])
@pytest.mark.parametrize("asked", ["window", "arguments"])
def test_a_tool_that_failed_covers_nothing(
    ana: perdure.Memory, told: dict[str, Any], hours: tuple[float, ...], asked: str
) -> None:
    """S0-3, S0-57: an error without entries was taken for a time without any."""
    ends = ((NOW - 48 * HOUR).isoformat(), NOW.isoformat())
    ways: dict[str, dict[str, Any]] = {
        "window": {"window": ends},
        "arguments": {"arguments": {"start": ends[0], "end": ends[1]}},
    }
    ana.after("getKudos", kudos(1, 5, 9), SAVE, mode="auto", window=("24 hours ago", "now"))
    kept = ana.after("getKudos", {**told, "kudos": kudos(*hours)}, SAVE, mode="auto", **ways[asked])
    assert kept.covers == "nothing"
    [held] = ana.series("kudos").windows(*ALL)
    assert held.span.start == NOW - 24 * HOUR
