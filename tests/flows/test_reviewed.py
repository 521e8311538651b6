"""What a reviewer found, one test each."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import perdure
import perdure.aio
from perdure.adapters.sqlite.group import Ticket, WriterGroup
from perdure.testing import StoppedClock

INTERRUPTED = """
import os, signal, sys, threading, time, perdure
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may have been told to ignore it
engine = perdure.open(sys.argv[1])
ana = engine.memory("ana")
busy, finish = threading.Event(), threading.Event()

def slow(tx):
    busy.set()
    finish.wait(20)

thread = threading.Thread(target=lambda: engine._store.write(ana.scope.owner, slow))
thread.start()
busy.wait(20)
threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()  # a real one: it wakes a thread that waits
try:
    ana.append("user", "interrupted while waiting")
except KeyboardInterrupt:
    print("interrupted")
finish.set()
thread.join()
print(ana.append("user", "afterwards").seq)
"""


def test_an_interrupted_writer_stops_nobody_else(tmp_path: Path) -> None:
    """Ctrl-C in a thread that waits for its turn must not leave the others without a leader."""
    url = f"sqlite:///{tmp_path}/a.db"
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, url], capture_output=True, text=True, timeout=60)
    assert (done.stdout.split(), done.stderr) == (["interrupted", "1"], "")


def test_a_ticket_that_leaves_hands_the_lead_on() -> None:
    led: list[Any] = []
    group = WriterGroup(lambda batch: led.extend(ticket.work for ticket in batch))
    heir, next_one = Ticket("heir"), Ticket("next")
    heir.heir = True
    group._led = True
    group._queue.extend([heir, next_one])
    assert group._leave(heir)
    assert next_one.heir
    assert next_one.wait(1)
    assert group._leave(next_one)
    group.submit(Ticket("alone"), 1)
    assert led == ["alone"]


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
    for wrong in ({"longest_s": 1}, {"longest_s": True}, {"lease_s": None}, {"bogus": 1}):
        with pytest.raises(perdure.InvalidInput):
            series.fetch("0001-01-02", "2025-10-02", lambda window: [], **wrong)


def crafted(tmp_path: Path, *lines: Any) -> Path:
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines[:-1])
    footer = {**lines[-1], "sha256": hashlib.sha256(body).hexdigest()}
    path = tmp_path / "crafted"
    path.write_bytes(gzip.compress(body + json.dumps(footer).encode() + b"\n"))
    return path


HEADER = {"format": "perdure-backup", "version": 1, "schema": 2}
INJECTION = "owners VALUES('q','q',0); CREATE TABLE owned(x); INSERT INTO owners"


@pytest.mark.parametrize(
    "lines",
    [
        [HEADER, {"table": INJECTION, "columns": []}, {"rows": {INJECTION: 0}}],
        [{"format": "perdure-backup", "version": 1}, {"rows": {}}],
        [HEADER, {"rows": {}}],
        [HEADER, {"table": "owners", "columns": ["space", "user_id", "operations"]}, 5, {"rows": {"owners": 1}}],
        [HEADER, {"table": "owners", "columns": ["space", "user_id", "operations"]}, ["a"], {"rows": {"owners": 1}}],
        [HEADER, {"table": "owners", "columns": ["space", "user_id", "1; DROP"]}, {"rows": {"owners": 0}}],
        [HEADER, {"table": "nope", "columns": ["a"]}, {"rows": {"nope": 0}}],
        [HEADER, {"table": "owners", "columns": ["space", "user_id", "operations"]}, {"rows": {"owners": 7}}],
    ],
)
def test_a_crafted_backup_is_refused(sqlite: Any, tmp_path: Path, lines: list[Any]) -> None:
    engine = sqlite.open()
    engine.memory("ana").append("user", "stays")
    with pytest.raises(perdure.Corrupt):
        perdure.restore(crafted(tmp_path, *lines), settings=sqlite.settings, replace=True)
    assert len(engine.memory("ana").messages()) == 1
    assert engine.verify().clean


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


@pytest.mark.parametrize(
    "call",
    [
        lambda ana: ana.append("tool", "x", failed=None), lambda ana: ana.append_many(5), lambda ana: ana.append_many([{"role": "user"}]),
        lambda ana: ana.append_many("text"), lambda ana: ana.append([], "x"), lambda ana: ana.state.load("k", revision="1"),
        lambda ana: ana.state.restore("k", None), lambda ana: ana.series("s").merge([], window=5), lambda ana: ana.series("s").merge([], windo=(1, 2)),
        lambda ana: ana.series("s").query(1, 2, options=5), lambda ana: ana.series("s").history([]), lambda ana: ana.series("s").group([]),
        lambda ana: list(ana.series("s").export([])), lambda ana: ana.tools.schemas([]), lambda ana: ana.series("s").configure(id_template=5),
        lambda ana: ana.series("s").configure(fresh_for_s=-1), lambda ana: ana.series("s").query("9999-12-31T23:59:59.999999", "9999-12-31T23:59:59.999999"),
    ],
)  # fmt: skip
def test_odd_arguments_are_refused_in_our_words(call: Any) -> None:
    with pytest.raises(perdure.InvalidInput):
        call(perdure.open("memory:").memory("ana"))


@pytest.mark.parametrize("url", [5, "http://[::1", "sqlite:///x%00y", "sqlite:agent.db", "sqlite:///:memory:"])
def test_odd_urls_are_refused_in_our_words(url: Any) -> None:
    with pytest.raises(perdure.InvalidInput):
        perdure.open(url)


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


def test_an_id_with_markup_is_shown_as_it_is(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("perdure")
    env = {**os.environ, "PERDURE_URL": f"sqlite:///{tmp_path}/a.db", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [str(script), "append", "--user", "ana", "user", "ü", "--id", "[/red]ü"],
        capture_output=True,
        text=True,
        env=env,
        timeout=60,
    )
    assert done.returncode == 0
    assert done.stdout.startswith("[/red]\\xfc  session")


def test_a_worker_told_to_stop_by_ctrl_c_stops(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("perdure")
    env = {**os.environ, "PERDURE_URL": f"sqlite:///{tmp_path}/a.db"}
    with subprocess.Popen([str(script), "worker"], stderr=subprocess.PIPE, text=True, env=env) as process:
        try:
            assert process.stderr is not None
            assert "is running" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, err) == (0, "worker stopped\n")


def test_clocks_do_not_pile_up() -> None:
    import gc

    from perdure.adapters.system import SystemClock

    def held() -> tuple[int, int]:
        gc.collect()
        return sum(isinstance(one, SystemClock) for one in gc.get_objects()), threading.active_count()

    clocks, threads = held()  # other tests may have engines open
    for _ in range(50):
        perdure.open("memory:").close()
    now = held()
    assert now[0] < clocks + 25
    assert now[1] < threads + 25
