"""Async calls that are cancelled in the middle of their commit: on SQLite a hook holds the commit until the task was cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import apsw

import perdure
import perdure.aio
from proof.accounts import Told, check_accounts
from proof.harness import Case, Round
from proof.requests import KINDS, Request
from proof.servers import fresh_sqlite
from proof.wholeness import check_heals
from proof.workers.answering import When

TURN, OPENING = "turn", "open"
WAYS = (*KINDS, TURN, *KINDS, TURN, OPENING)
HELD_S = 60.0
TURNS_OF_THE_LOOP = 20
"""After a cancellation the loop goes round so often: a task that ends meanwhile has not waited for its commit."""
TURN_COMMITS = 4
"""A turn is taken, something is said, the turn is given back."""
WORKER = "perdure-worker"


@dataclass
class Catch:
    """Holds the first, second … commit from now on, in its thread, until it is let go."""

    when: When = "before"
    left: int = 0
    held: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def set(self, when: When, commits: int) -> None:
        self.held.clear()
        self.go.clear()
        self.when, self.left = when, commits

    def release(self) -> None:
        self.left = 0
        self.go.set()

    def hook(self, connection: apsw.Connection) -> None:
        connection.set_commit_hook(partial(self._step, "before"))
        connection.set_wal_hook(lambda *_: self._step("after"))

    def _step(self, when: When) -> int:
        if self.left and when == self.when:
            self.left -= 1
            if not self.left:
                self.held.set()
                self.go.wait(HELD_S)
        return 0


async def made(memory: perdure.aio.AsyncMemory, request: Request) -> Any:
    """As the request of that kind is made without `await`; what was answered."""
    match request.kind:
        case "append":
            return (await memory.append("user", request.text(), id=request.part_id(0))).seq
        case "append_many":
            batch = [perdure.NewMessage("user", request.text(one), id=request.part_id(one)) for one in range(request.parts)]
            return [message.seq for message in await memory.append_many(batch)]
        case "remember":
            return (await memory.remember(request.text(), attribute=f"fact_{request.id}", value=request.id)).verdict
        case "save" | "save_own":
            return await memory.state.save(request.key, {"by": request.id, "text": request.text()}, request=request.id)
        case "merge" | "merge_own":
            series = memory.series(request.key, max_entries=None)
            return (await series.merge(request.entries(), window=request.window, request=request.id)).total_count
        case "todo":
            return (await memory.todos.add(request.text())).id
    raise ValueError(request.kind)


def cancel_calls(round: Round) -> None:
    """One engine for all cases; each case has a user of its own."""
    catch = Catch()
    url = fresh_sqlite(round.folder)
    apsw.connection_hooks.append(catch.hook)
    try:
        asyncio.run(_cancel_all(round, catch, url))
    finally:
        catch.release()
        apsw.connection_hooks.remove(catch.hook)
    with perdure.open(url) as engine:
        check_heals(round, engine, when="all cancelled calls")


async def _cancel_all(round: Round, catch: Catch, url: str) -> None:
    async with await perdure.aio.open(url) as engine:
        for case in round.cases(quick=2 * len(WAYS), full=30 * len(WAYS), name="cancelled calls"):
            way = WAYS[case.number % len(WAYS)]
            memory = engine.memory(f"user-{case.number}")
            await memory.messages(1)
            if way == OPENING:
                await _cancel_opening(round, case, catch)
            elif way == TURN:
                await _cancel_turn(round, case, catch, memory)
            else:
                await _cancel_request(round, case, catch, engine, memory, way)


async def _cancelled(
    round: Round, case: Case, catch: Catch, call: Callable[[], Awaitable[Any]], words: str
) -> BaseException | None:
    """Make the call and cancel it, once or several times, while it commits; what it ended with."""
    kept: list[BaseException] = []

    async def whole() -> None:
        try:
            await call()
        except BaseException as error:
            kept.append(error)  # as whoever logs it does: what it refers to stays
            raise

    task = asyncio.create_task(whole())
    if not await asyncio.to_thread(_until_held, catch, task):
        round.count("ended before a commit could be held")
        await asyncio.wait({task})
        return kept[0] if kept else None
    for _ in range(case.chance.choice((1, 1, 2, 3))):
        task.cancel()
        for _ in range(TURNS_OF_THE_LOOP):
            await asyncio.sleep(0)
    round.check(not task.done(), "goes on without its task", f"{words}: the task has ended, and its commit has not")
    catch.release()
    await asyncio.wait({task})
    round.met("cancelled in the middle of a commit")
    return kept[0] if kept else None


def _until_held(catch: Catch, task: asyncio.Task[None]) -> bool:
    while not catch.held.wait(0.01):
        if task.done():
            return False
    return True


async def _cancel_request(
    round: Round, case: Case, catch: Catch, engine: perdure.aio.AsyncEngine, memory: perdure.aio.AsyncMemory, kind: str
) -> None:
    request, told = Request(0, case.number, kind), Told()
    when: When = case.chance.choice(("before", "after"))
    words = f"{kind}, cancelled {when} its commit was done"
    told.begin(request)
    catch.set(when, 1)
    error = await _cancelled(round, case, catch, lambda: made(memory, request), words)
    round.check(isinstance(error, asyncio.CancelledError), "refused", f"{words}: ended with {error!r}")
    sync = engine._sync.memory(f"user-{case.number}")
    told.begin(request)
    told.done(request, await made(memory, request))
    check_accounts(round, sync, told, when=words)


async def _cancel_turn(round: Round, case: Case, catch: Catch, memory: perdure.aio.AsyncMemory) -> None:
    """Taking it, saying something in it, or giving it back: afterwards somebody else can have it at once."""
    at = 1 + case.number // len(KINDS) % TURN_COMMITS
    when: When = case.chance.choice(("before", "after"))
    words = f"a turn, cancelled {when} commit {at} was done"

    async def in_a_turn() -> None:
        async with memory.turn(wait_s=5.0, lease_s=600.0) as turn:
            await turn.append("user", "in a turn", id="t1")

    catch.set(when, at)
    kept = await _cancelled(round, case, catch, in_a_turn, words)
    catch.release()
    try:
        async with memory.turn(wait_s=0.0, lease_s=600.0) as turn:
            said = await turn.append("user", "in a turn", id="t1")
        round.check(said.seq == 1, "doubled", f"{words}: said again, it is number {said.seq}")
        round.met("a turn was given back")
    except perdure.Unavailable as error:
        round.wrong("lock kept", f"{words}: {error}")
    del kept


async def _cancel_opening(round: Round, case: Case, catch: Catch) -> None:
    """A store that is being made when nobody wants it any more: no thread and no file stays open, and it opens later."""
    folder = round.folder / f"opening-{case.number}"
    folder.mkdir()
    before = _ours(folder)
    catch.set(case.chance.choice(("before", "after")), 1)
    url = f"sqlite:///{folder / 'store.db'}"
    opened: list[perdure.aio.AsyncEngine] = []

    async def opening() -> None:
        opened.append(await perdure.aio.open(url, background=True))

    await _cancelled(round, case, catch, opening, "opening")
    catch.release()
    for engine in opened:
        await engine.close()
    left = sorted(_ours(folder) - before)
    round.check(not left, "left open", f"an opening that was cancelled left {', '.join(left)}")
    async with await perdure.aio.open(url) as engine:
        await engine.memory("ana").append("user", "after all")
        check_heals(round, engine._sync, when="a cancelled opening")


def _ours(folder: Path) -> set[str]:
    """Threads that work for a store, and files of this folder that are open."""
    threads = {f"the thread {one.name}" for one in threading.enumerate() if one.name == WORKER}
    handles = (path for path in Path("/proc/self/fd").iterdir() if path.is_symlink())
    return threads | {f"the file {path.readlink()}" for path in handles if str(folder) in str(path.readlink())}
