from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import apsw
import pytest

import perdure
import perdure.aio


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(work(), 60))


def test_the_async_face_does_what_the_sync_one_does(backend: Any, tmp_path: Path) -> None:
    async def work() -> None:
        async with await perdure.aio.open(settings=backend.settings) as engine:
            ana = engine.memory("ana", agent="coach")
            first = await ana.append("user", "I moved to Seattle", id="m1")
            assert (await ana.append("user", "I moved to Seattle", id="m1")).repeated
            await ana.append_many([perdure.NewMessage("user", "two")])
            assert await ana.conversation.message("m1") == first
            assert [message.seq for message in await ana.messages()] == [1, 2]
            assert (await engine.process()).ran == 4, "counted, learned from, and what is new indexed each time"
            assert (await ana.conversation.tally()).messages == 2
            assert len(await ana.conversation.sessions()) == 1
            assert "tally/1" in {operation.actor for operation in await ana.journal.list()}
            assert [job.kind for job in await ana.admin.jobs()] == ["extract", "index", "sweep", "tally"]
            assert await ana.admin.retry_jobs() == 0
            assert (await engine.verify()).clean
            assert (await engine.backup(tmp_path / "b")).rows["messages"] == 2
            assert (await engine.doctor()).healthy
            assert (await engine.purge()).jobs_removed >= 1
            assert len(await engine.files()) == (3 if backend.name == "sqlite" else 0)
            assert engine.limits.batch_messages_max == 10_000
            assert ana.scope.owner.user == "ana"
            assert "AsyncMemory" in repr(ana)

    run(work)


def test_state_series_and_tools_are_awaited_too(backend: Any) -> None:
    async def work() -> None:
        async with await perdure.aio.open(settings=backend.settings) as engine:
            ana = engine.memory("ana")
            state = ana.state
            assert await state.save("k", {"a": 1}) == 1
            assert await state.load("k") == {"a": 1}
            assert (await state.find("k")).found
            assert await state.keys() == ["k"]
            assert len(await state.list()) == len(await state.history("k")) == 1
            assert (await state.search("k*")).matches == ("k",)
            assert await state.delete("k")
            assert await state.restore("k", 1) == 3
            assert await state.clear() == 1

            asked = []

            async def fetcher(window: Any) -> list[dict[str, object]]:
                await asyncio.sleep(0)
                asked.append(window)
                return [{"id": 1, "timestamp": window.start.isoformat(), "who": "bob"}]

            series = ana.series("s", max_entries=5)
            answer = await series.fetch("2025-01-01", "2025-01-02", fetcher)
            assert (answer.coverage, answer.count, len(asked)) == ("full", 1, 1)
            assert (await series.fetch("2025-01-01", "2025-01-02", fetcher)).fetches == 0

            @series.tool()
            async def activities(start: object, end: object) -> list[object]:
                return [{"id": 2, "timestamp": "2025-01-05"}]

            assert (await activities("2025-01-04", "2025-01-06"))["count"] == 1
            assert (await series.merge([{"id": 3, "timestamp": 1}], strict=True)).added == 1
            assert (await series.query("2025-01-01", "2025-01-06")).coverage == "partial"
            assert len(await series.gaps("2025-01-01", "2025-01-06")) == 1
            assert len(await series.windows("2025-01-01", "2025-01-06")) == 2
            assert await series.count() == 3
            assert (await series.first()).id == "3"
            assert (await series.last()).id == "2"
            assert sum((await series.per("day")).values()) == 3
            assert (await series.group("who"))["bob"] == 1
            assert "bob" in await series.distinct("who")
            assert [entry.id async for entry in series.entries()] == ["3", "1", "2"]
            assert len([line async for line in series.export("csv")]) == 4
            assert len(await series.rows()) == 3
            assert await series.history("1") == []
            assert (await series.configure(keep_days=1)).spec.keep_days == 1
            assert (await series.about()).count == 3
            assert (await series.cleanup(1)).removed == 3
            assert [one.name for one in await ana.series.list()] == ["s"]

            tools = ana.tools
            assert (await tools.call_tool("saveState", {"key": "t", "value": 1}))["success"]
            assert not (await tools.read_only().call_tool("saveState", {"key": "t", "value": 1}))["success"]
            assert tools.permissions().keys() == set(tools.names())
            assert len(tools.schemas("mcp")) == 16
            assert (await tools.merge_timeseries_state("u", [{"id": 1, "timestamp": 5}]))["added"] == 1
            assert (await tools.query_timeseries_state("u", 0, 9))["count"] == 1
            assert (await tools.cleanup_old_timeseries("u"))["removed"] == 1
            assert await series.remove() == 0

    run(work)


def test_many_tasks_append_at_once(sqlite: Any) -> None:
    async def work() -> None:
        async with await perdure.aio.open(settings=sqlite.settings) as engine:
            ana = engine.memory("ana")
            await asyncio.gather(*(ana.append("user", str(number)) for number in range(200)))
            assert [message.seq for message in await ana.messages(500)] == list(range(1, 201))

    run(work)


def test_a_cancelled_call_ends_its_work_before_the_cancellation_goes_on() -> None:
    threads = perdure.aio.Threads()
    started, finish, done = threading.Event(), threading.Event(), []

    def slow() -> None:
        started.set()
        finish.wait(20)
        done.append("written")

    async def work() -> None:
        task = asyncio.create_task(threads.run(slow))
        await asyncio.to_thread(started.wait, 20)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        finish.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert done == ["written"]

    run(work)
    threads.close()


def test_a_turn_that_is_cancelled_while_it_is_taken_is_given_back() -> None:
    threads = perdure.aio.Threads()
    entered, go, told = threading.Event(), threading.Event(), []

    @contextmanager
    def lock() -> Iterator[str]:
        entered.set()
        go.wait(20)
        try:
            yield "held"
        finally:
            told.append("given back")

    async def work() -> None:
        kept: list[BaseException] = []

        async def holding() -> None:
            try:
                async with threads.entered(lock(), lambda held, _: held):
                    told.append("in it")
            except asyncio.CancelledError as error:
                kept.append(error)  # as a logger does
                raise

        task = asyncio.create_task(holding())
        await asyncio.to_thread(entered.wait, 20)
        task.cancel()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert told == ["given back"]
        assert len(kept) == 1

    run(work)
    threads.close()


def test_an_opening_that_is_cancelled_leaves_nothing_open(tmp_path: Path) -> None:
    entered, go = threading.Event(), threading.Event()

    def slowly(connection: apsw.Connection) -> None:
        entered.set()
        go.wait(20)

    async def work() -> None:
        task = asyncio.create_task(perdure.aio.open(f"sqlite:///{tmp_path}/store.db", background=True))
        await asyncio.to_thread(entered.wait, 20)
        task.cancel()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    apsw.connection_hooks.append(slowly)
    try:
        run(work)
    finally:
        apsw.connection_hooks.remove(slowly)
    assert not [thread for thread in threading.enumerate() if thread.name == "perdure-worker"]


def test_errors_and_context_reach_the_other_thread_and_back() -> None:
    threads = perdure.aio.Threads()
    colour: ContextVar[str] = ContextVar("colour")

    def fail() -> None:
        raise perdure.NotFound(colour.get())

    async def work() -> None:
        colour.set("blue")
        with pytest.raises(perdure.NotFound, match="blue"):
            await threads.run(fail)

    run(work)
    threads.close()


def test_a_store_that_does_not_open_leaves_no_threads() -> None:
    before = threading.active_count()

    async def work() -> None:
        with pytest.raises(perdure.InvalidInput):
            await perdure.aio.open("nonsense:")

    run(work)
    assert threading.active_count() <= before + 1
