"""Errands: writes with ids of the caller's, each tried again until it is acknowledged or given up, and the books of them.

Afterwards the store must hold every acknowledged errand exactly once and in order, and of one that was given up either all or
nothing. One errand after the other at each address, so the order is known; several addresses at once, by both faces.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import random
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeVar

import perdure
from perdure import aio
from proof.harness import Round

T = TypeVar("T")
Kind = Literal["append", "batch", "state", "merge", "todo", "remember"]
KINDS: tuple[Kind, ...] = ("append", "append", "batch", "state", "merge", "todo", "remember")
START = datetime(2026, 3, 2, tzinfo=UTC)
BATCH = 3
GIVE_UP_S = 30.0
"""How long after its first try an errand must be acknowledged, once the fault is over."""
AGAIN_S = 0.05
PLANETS = ("Ceres", "Vesta", "Juno", "Pallas", "Hygiea", "Flora", "Iris", "Metis", "Egeria", "Thetis")


@dataclass(slots=True)
class Errand:
    """One write under one id."""

    kind: Kind
    id: str
    number: int
    tries: int = 0
    acknowledged: bool = False
    may_be_given_up: bool = False

    def run(self, memory: Any) -> Any:
        """Make the write by either face."""
        if self.kind == "append":
            return memory.append("user", self.text, id=self.id)
        if self.kind == "batch":
            return memory.append_many([perdure.NewMessage("user", self.text, id=f"{self.id}.{part}") for part in range(BATCH)])
        if self.kind == "state":
            return memory.state.save(self.state_key(memory), self.id, request=self.id)
        if self.kind == "merge":
            return memory.series(self.series_name(memory)).merge(self.entries, window=self.window, request=self.id)
        if self.kind == "todo":
            return memory.todos.add(f"Write to {self.planet} about {self.id}")
        return memory.remember(f"The key of {self.planet} is {self.id}")

    @property
    def text(self) -> str:
        return f"errand {self.id} concerns {self.planet}"

    @property
    def planet(self) -> str:
        return PLANETS[self.number % len(PLANETS)]

    @property
    def window(self) -> tuple[datetime, datetime]:
        begin = START + timedelta(minutes=10 * self.number)
        return begin, begin + timedelta(minutes=10)

    @property
    def entries(self) -> list[dict[str, str]]:
        begin, _ = self.window
        return [
            {"id": f"{self.id}.{part}", "timestamp": (begin + timedelta(minutes=part)).isoformat()} for part in range(BATCH)
        ]

    @staticmethod
    def state_key(memory: Any) -> str:
        return f"last/{memory.scope.address.channel}"

    @staticmethod
    def series_name(memory: Any) -> str:
        return f"of-{memory.scope.address.channel}"


@dataclass(slots=True)
class Runner:
    """Does errands at one address, one after the other, in a thread of its own; by the async face if it is given that."""

    round: Round
    memory: Any
    errands: list[Errand]
    deadline_s: float
    grace_s: float
    give_up_s: float = GIVE_UP_S
    enough: Callable[[int], bool] = lambda done: False
    """Whether it may leave the rest undone, having done so many."""
    began_call: float | None = None
    """Since when it waits for an answer; None: it does not."""
    done: int = 0
    refused: int = 0
    refusals: list[tuple[perdure.Unavailable, float]] = field(default_factory=list)
    """What was raised, and after how many seconds."""
    answered_at: list[float] = field(default_factory=list)
    """When something was acknowledged."""
    worst_overrun_s: float = 0.0
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="errands", daemon=True)
        self._thread.start()

    def join(self, seconds: float) -> bool:
        assert self._thread is not None
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        try:
            asyncio.run(self._all())
        except Exception as error:
            self.round.wrong("raised", "".join(traceback.format_exception(error, limit=-5)))

    async def _all(self) -> None:
        for errand in self.errands:
            if self.enough(self.done):
                self.errands = self.errands[: self.done]
                return
            until = time.monotonic() + self.give_up_s
            while not await self._tried(errand):
                if errand.may_be_given_up:
                    break
                if time.monotonic() > until:
                    self.round.wrong("never acknowledged", f"{errand.kind} {errand.id}: {errand.tries} tries")
                    return
                await asyncio.sleep(AGAIN_S)
            self.done += 1

    async def _tried(self, errand: Errand) -> bool:
        errand.tries += 1
        self.began_call = began = time.monotonic()
        try:
            answer = errand.run(self.memory)
            if inspect.isawaitable(answer):
                await answer
        except perdure.Unavailable as error:
            self.refused += 1
            self.refusals.append((error, time.monotonic() - began))
        else:
            errand.acknowledged = True
            self.answered_at.append(time.monotonic())
        self.began_call = None
        took = time.monotonic() - began
        self.worst_overrun_s = max(self.worst_overrun_s, took - self.deadline_s)
        if took > self.deadline_s + self.grace_s:
            self.round.wrong("hangs", f"{errand.kind} {errand.id} took {took:.1f} s; its deadline is {self.deadline_s} s")
        return errand.acknowledged


def plan(case: int, actor: int, count: int, chance: random.Random) -> list[Errand]:
    """So many errands for one address; some will not be tried again when they are refused."""
    kinds = [chance.choice(KINDS) for _ in range(count)]
    return [
        Errand(kind, f"{aim(case)}{actor}-{number}", number, may_be_given_up=chance.random() < 0.2)
        for number, kind in enumerate(kinds)
    ]


def aim(case: int) -> str:
    """How the ids of a case begin."""
    return f"errand{case}-"


def patiently(call: Callable[[], T], seconds: float = GIVE_UP_S) -> T:
    """The answer, however often it is refused at first: connections that were lost in the fault are found out one by one."""
    until = time.monotonic() + seconds
    while True:
        try:
            return call()
        except perdure.Unavailable:
            if time.monotonic() > until:
                raise
            time.sleep(AGAIN_S)


@dataclass(slots=True)
class Books:
    """What the runners were told, against what the store holds."""

    round: Round
    engine: perdure.Engine
    checked: int = 0
    given_up: dict[str, int] = field(default_factory=lambda: {"whole": 0, "absent": 0})

    def check(self, runner: Runner) -> None:
        scope = runner.memory.scope
        memory = self.engine.memory(scope.owner.user, agent=scope.address.agent, channel=scope.address.channel)
        for kinds, held in (
            (("append", "batch"), self._messages(memory)),
            (("state",), self._revisions(memory, runner)),
            (("merge",), self._merged(memory)),
            (("todo",), [one.content.rsplit(" ", 1)[-1] for one in patiently(memory.todos.list)]),
            (("remember",), self._remembered(memory)),
        ):
            wanted = [errand for errand in runner.errands if errand.kind in kinds]
            self._compare(wanted, held, ordered="todo" not in kinds and "remember" not in kinds)

    def _compare(self, wanted: list[Errand], held: list[str], *, ordered: bool) -> None:
        """`held` has an id for each errand that is there as a whole, in the order in which they were done."""
        if len(held) != len(set(held)):
            self.round.wrong("doubled", f"held: {held}")
        sure = [errand.id for errand in wanted if errand.acknowledged]
        lost = [id for id in sure if id not in held]
        if lost:
            tries = {errand.id: errand.tries for errand in wanted}
            self.round.wrong("lost", [f"{id} ({tries[id]} tries)" for id in lost])
        stray = [id for id in held if id not in {errand.id for errand in wanted}]
        if stray:
            self.round.wrong("torn or stray", stray)
        order = [errand.id for errand in wanted if errand.id in held]
        if ordered and not lost and not stray and order != list(dict.fromkeys(held)):
            self.round.wrong("out of order", f"done: {order}, held: {held}")
        self.checked += len(sure)
        for errand in wanted:
            if not errand.acknowledged:
                self.given_up["whole" if errand.id in held else "absent"] += 1

    def _messages(self, memory: perdure.Memory) -> list[str]:
        """An append is one message, a batch is three that stand together; a part of a batch is told as what it is: stray."""
        messages = patiently(lambda: memory.messages(500))
        seqs = [message.seq for message in messages]
        if seqs != list(range(1, len(seqs) + 1)):
            self.round.wrong("torn or stray", f"the places in the log are {seqs}")
        held: list[str] = []
        ids = [str(message.id) for message in messages]
        while ids:
            id = ids.pop(0)
            rest = [f"{id.removesuffix('.0')}.{part}" for part in range(1, BATCH)]
            if id.endswith(".0") and ids[: BATCH - 1] == rest:
                del ids[: BATCH - 1]
                id = id.removesuffix(".0")
            held.append(id)
        return held

    def _revisions(self, memory: perdure.Memory, runner: Runner) -> list[str]:
        found = patiently(lambda: memory.state.history(Errand.state_key(runner.memory), limit=500))
        numbers = [revision.number for revision in found]
        if numbers != list(range(len(numbers), 0, -1)):
            self.round.wrong("torn or stray", f"the revisions are {numbers}")
        return [json.loads(revision.body or "null") for revision in reversed(found)]

    def _merged(self, memory: perdure.Memory) -> list[str]:
        """What was merged, if entries and coverage agree on it."""
        series = memory.series(Errand.series_name(memory))
        try:
            entries = [str(entry.id) for entry in patiently(lambda: list(series.entries()))]
            covered = patiently(lambda: series.windows(START, START + timedelta(days=300)))
        except perdure.NotFound:
            return []
        whole = [id.removesuffix(".0") for id in entries if id.endswith(".0")]
        if entries != [f"{id}.{part}" for id in whole for part in range(BATCH)]:
            self.round.wrong("torn or stray", f"entries {entries}")
        told = sorted(span for one in covered for span in _tens(one.span.start, one.span.end))
        # Entries are in the order of their time, which is that of the errands.
        if told != sorted(int(id.rsplit("-", 1)[1]) for id in whole):
            self.round.wrong("torn or stray", f"covered are {told}, held is {whole}")
        return whole

    def _remembered(self, memory: perdure.Memory) -> list[str]:
        found = patiently(lambda: memory.memories.list(limit=500))
        channel = memory.scope.address.channel
        said = [one.content for recalled in found for one in recalled.statements if one.content.startswith("The key of ")]
        held = [content.rsplit(" ", 1)[-1] for content in said]
        return [id for id in held if id.split("-")[1] == channel]


def _tens(start: datetime, end: datetime) -> list[int]:
    return list(range(int((start - START) / timedelta(minutes=10)), int((end - START) / timedelta(minutes=10))))


def async_face(engine: perdure.Engine) -> tuple[aio.AsyncEngine, aio.Threads]:
    """The async face of an engine that is open; close the threads afterwards."""
    threads = aio.Threads()
    return aio.AsyncEngine(engine, threads), threads
