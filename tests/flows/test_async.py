from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

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
            assert await ana.message("m1") == first
            assert [message.seq for message in await ana.messages()] == [1, 2]
            assert (await engine.process()).ran == 1
            assert (await ana.tally()).messages == 2
            assert len(await ana.journal()) == len(await ana.sessions()) == len(await ana.jobs()) == 1
            assert await ana.retry_jobs() == 0
            assert (await engine.verify()).clean
            assert (await engine.backup(tmp_path / "b")).rows["messages"] == 2
            assert (await engine.doctor()).healthy
            assert (await engine.purge()).jobs_removed >= 1
            assert len(await engine.files()) == (3 if backend.name == "sqlite" else 0)
            assert engine.limits.batch_messages_max == 10_000
            assert ana.scope.owner.user == "ana"
            assert "AsyncMemory" in repr(ana)

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
