"""Windows and days of a series at their edges: clocks set wrong, pages cut off, midnights skipped."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import perdure
import perdure.aio
from perdure.testing import StoppedClock


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(datetime(2025, 10, 28, tzinfo=UTC))


def test_a_stale_tip_is_measured_against_now(clock: StoppedClock) -> None:
    series = perdure.open("memory:", clock=clock).memory("ana").series("s", fresh_for_s=600)
    series.merge([], window=("2025-01-01T00:00", "2025-01-01T12:00"))
    assert series.query("2025-01-01T00:00", "2025-01-01T12:10").coverage == "partial"


def test_a_clock_that_was_ahead_leaves_no_claim_behind(clock: StoppedClock) -> None:
    series = perdure.open("memory:", clock=clock).memory("ana").series("s")
    clock.move(days=2)
    series.merge([], window=("2025-10-27", "2025-10-30"))
    clock.move(days=-2)
    series.merge([], window=("2025-10-20", "2025-10-21"))
    clock.move(days=3)
    assert series.query("2025-10-27", "2025-10-28").coverage == "full"
    assert series.query("2025-10-28", "2025-10-30").coverage == "none"


def test_a_page_in_the_middle_that_was_cut_off_leaves_the_window_open(clock: StoppedClock) -> None:
    series = perdure.open("memory:", clock=clock).memory("ana").series("s")

    def fetcher(window: perdure.Window, *cursor: object) -> perdure.Page:
        return perdure.Page([]) if cursor else perdure.Page([{"id": 1, "timestamp": "2025-10-01"}], 1, complete=False)

    assert series.fetch("2025-10-01", "2025-10-02", fetcher).coverage == "none"


def test_a_range_of_too_many_pieces_is_refused(clock: StoppedClock) -> None:
    series = perdure.open("memory:", clock=clock).memory("ana").series("s")
    for wrong in ({"longest_s": 1}, {"longest_s": True}, {"lease_s": None}):
        with pytest.raises(perdure.InvalidInput):
            series.fetch("0001-01-02", "2025-10-02", lambda window: [], **wrong)
    with pytest.raises(TypeError, match="bogus"):
        series.fetch("0001-01-02", "2025-10-02", lambda window: [], bogus=1)  # type: ignore[call-arg]


def test_nested_async_fetches_do_not_block_each_other() -> None:
    async def main() -> list[str]:
        async with await perdure.aio.open("memory:") as engine:
            ana = engine.memory("ana")

            async def inner(window: perdure.Window) -> list[object]:
                return []

            async def one(number: int) -> str:
                async def outer(window: perdure.Window) -> list[object]:
                    await ana.series(f"inner{number}").fetch("2025-01-01", "2025-01-02", inner)
                    return []

                return (await ana.series(f"outer{number}").fetch("2025-01-01", "2025-01-02", outer)).coverage

            return await asyncio.gather(*(one(number) for number in range(20)))

    assert asyncio.run(asyncio.wait_for(main(), 60)) == ["full"] * 20


def test_a_cancelled_fetch_ends_what_its_fetcher_waits_for() -> None:
    async def main() -> None:
        async with await perdure.aio.open("memory:") as engine:

            async def hanging(window: perdure.Window) -> list[object]:
                await asyncio.sleep(600)
                return []

            with pytest.raises(TimeoutError):
                await asyncio.wait_for(engine.memory("ana").series("s").fetch("2025-01-01", "2025-01-02", hanging), 0.3)

    started = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - started < 60


def test_for_ever_fresh_can_be_said_of_a_series(backend: Any) -> None:
    """X-3: `fresh_for=inf` equals the seed."""
    series = backend.open().memory("ana").series("s", fresh_for_s=float("inf"))
    series.merge([], window=("2025-01-01", "2025-01-02"))
    now = datetime.now(UTC)
    assert series.query(now - timedelta(days=1), now).coverage == "full"


def test_days_are_days_where_midnight_is_skipped() -> None:
    series = perdure.open("memory:").memory("ana").series("s", zone="America/Sao_Paulo")
    series.merge([{"id": number, "timestamp": f"2018-11-0{number}T12:00"} for number in (2, 6)])
    days = list(series.per("day"))
    assert [day.date().day for day in days] == [2, 3, 4, 5, 6]
    assert {day.hour for day in days} == {0}
