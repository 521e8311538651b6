"""P19: the network to PostgreSQL fails, the server crashes; the engine is never opened anew.

One engine with a background worker lives through every fault of the round, and through the crashes of a server of its own.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import perdure
from proof.crashing import CrashingServer
from proof.errands import Books, Runner, aim, async_face, patiently, plan
from proof.harness import Case, Promise, Round
from proof.network import CALM, Proxy, Weather
from proof.wholeness import check_whole

DEADLINE_S = 2.0
GRACE_S = 9.0
"""What a call may take beyond its deadline before we say that it hangs. A busy machine is slow; a black hole is for ever."""
OUTAGE_S = 5.0
POOL = 4
SLICE_BYTES = 7
WORKER_S = 30.0
DRAIN_S = 90.0
"""A job that failed in the faults waits for its next try: that is why."""
CLOSING_S = 20.0
"""`close` lets the background worker finish what it does, and the pool its attempts."""
OPENING_S = 2.0
"""What libpq makes of a shorter deadline when it connects."""


def _weathers(chance: random.Random) -> list[Weather]:
    """Every fault of the network, the order of the round."""
    return [
        Weather("latency", delay_s=chance.choice([0.001, 0.003, 0.006])),
        Weather("cut after commit", at_commit="cut after", times=chance.randint(2, 4)),
        Weather("slices", slice_bytes=SLICE_BYTES),
        Weather("lost before commit", at_commit="lost before", times=1),
        Weather("reset", reset_within_bytes=chance.choice([400, 4_000, 40_000]), times=chance.randint(2, 5)),
        Weather("cut before commit", at_commit="cut before", times=chance.randint(2, 4)),
        Weather("refused"),
        Weather("half-close of the answers", half_close="client", times=chance.randint(1, 3)),
        Weather("lost after commit", at_commit="lost after", times=1),
        Weather("half-close of the questions", half_close="server", times=chance.randint(1, 3)),
        Weather("lost in a statement", mid_statement=True, times=1),
        Weather("black hole", swallow=True),
    ]


FAULTS = tuple(weather.name for weather in _weathers(random.Random(0)))
LASTING = ("latency", "slices")
"""Those that only slow things down: they last for a while."""

Crash = Callable[[CrashingServer], None]


def _back_later(stop: Crash) -> Crash:
    def crash(server: CrashingServer) -> None:
        stop(server)
        time.sleep(0.3)
        server.restart()

    return crash


CRASHES: dict[str, Crash] = {
    "server killed": _back_later(CrashingServer.kill_the_server),
    "backend killed": CrashingServer.kill_a_backend,
    "all processes killed": _back_later(CrashingServer.kill_them_all),
    "immediate stop": _back_later(CrashingServer.stop_immediately),
    "orderly restart": _back_later(CrashingServer.stop_fast),
    "frozen": lambda server: server.freeze(DEADLINE_S + 1.0),
}


@dataclass(slots=True)
class _Scene:
    """The server, the network, the engine, and what was measured."""

    round: Round
    server: CrashingServer
    proxy: Proxy
    engine: perdure.Engine
    asynchronous: Any
    books: Books
    worst_overrun_s: float = 0.0
    slowest_recovery_s: float = 0.0
    refused: int = 0
    users: list[str] = field(default_factory=list)


def run(round: Round) -> None:
    with _scene(round) as scene:
        for case in round.cases(quick=len(FAULTS), full=12 * len(FAULTS), name="faults"):
            weather = _weathers(case.chance)[case.number % len(FAULTS)]
            before = scene.proxy.met[weather.name]
            weather = replace(weather, aim=aim(case.number).encode())
            _played(scene, f"f{case.number}", case, lambda runners, weather=weather: _weathered(scene, weather, runners))
            round.met(weather.name, scene.proxy.met[weather.name] - before)
            _checked(scene, weather.name, in_full=round.size == "full" and case.number % 10 == 0)
        for case in round.cases(quick=1, full=len(CRASHES), name="crashes"):
            name = [*CRASHES][case.number % len(CRASHES)]
            _played(scene, f"c{case.number}", case, lambda runners, name=name: _crashed(scene, name, runners))
            _checked(scene, name, in_full=round.size == "full")
        _at_rest(scene)
        _opened_and_closed_in_a_black_hole(scene)


@contextmanager
def _scene(round: Round) -> Iterator[_Scene]:
    server = CrashingServer()
    proxy = Proxy(server.socket, random.Random(f"{round.seed}/proxy"))
    try:
        with perdure.open(settings=_settings(proxy, "perdure"), background=True) as engine:
            face, threads = async_face(engine)
            scene = _Scene(round, server, proxy, engine, face, Books(round, engine))
            try:
                yield scene
            finally:
                threads.close()
                proxy.calm()
                proxy.cut()
        round.facts |= {
            "deadline_s": DEADLINE_S,
            "worst_overrun_s": max(0.0, _rounded(scene.worst_overrun_s)),
            "slowest_recovery_s": _rounded(scene.slowest_recovery_s),
            "calls_refused": scene.refused,
            "given_up": scene.books.given_up,
            "strikes": dict(proxy.met),
        }
    finally:
        proxy.close()
        server.stop()


def _settings(proxy: Proxy, schema: str) -> perdure.Settings:
    url = f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres?sslmode=disable&gssencmode=disable"
    return perdure.Settings(url=url, postgres_schema=schema, deadline_s=DEADLINE_S, postgres_pool_max=POOL)


def _played(scene: _Scene, user: str, case: Case, fault: Callable[[list[Runner]], None]) -> None:
    """Errands at three addresses of a new user while the fault strikes; then their books are checked."""
    runners = []
    for actor in range(3):
        engine = scene.asynchronous if actor == 2 else scene.engine
        memory = engine.memory(user, agent=f"agent-{actor}", channel=str(actor))
        errands = plan(case.number, actor, scene.round.sized(quick=5, full=10), case.chance)
        runners.append(Runner(scene.round, memory, errands, DEADLINE_S, GRACE_S))
    scene.users.append(user)
    for runner in runners:
        runner.start()
    fault(runners)
    over = time.monotonic()
    first = sum(runner.done for runner in runners)
    recovered = False
    while any(runner.running for runner in runners):
        if not recovered and sum(runner.done for runner in runners) > first:
            recovered = True
            scene.slowest_recovery_s = max(scene.slowest_recovery_s, time.monotonic() - over)
        _released_if_hanging(scene, runners)
        time.sleep(0.005)
    for runner in runners:
        scene.worst_overrun_s = max(scene.worst_overrun_s, runner.worst_overrun_s)
        scene.refused += runner.refused
        with scene.round.guarded("does not heal"):
            scene.books.check(runner)
    scene.round.count("errands", sum(len(runner.errands) for runner in runners))
    scene.proxy.set(CALM)


def _released_if_hanging(scene: _Scene, runners: list[Runner]) -> None:
    """Whoever waits far beyond the deadline is let go, so that the round ends; the runner tells that it hung."""
    now = time.monotonic()
    began = [runner.began_call for runner in runners]
    if any(one is not None and now - one > DEADLINE_S + GRACE_S + 1 for one in began):
        scene.proxy.calm()
        scene.proxy.cut()


def _weathered(scene: _Scene, weather: Weather, runners: list[Runner]) -> None:
    """The fault begins when errands are under way, and ends when it has struck."""
    proxy = scene.proxy
    _until(lambda: sum(runner.done for runner in runners) >= 2, OUTAGE_S)
    if weather.name == "refused":
        proxy.refuse()
        proxy.cut()
        # Somebody must have run into it, and waited for as long as a call may.
        if _until(lambda: sum(runner.refused for runner in runners) > 0, OUTAGE_S):
            proxy.met[weather.name] += 1
        proxy.listen()
        return
    proxy.set(weather)
    if weather.name in LASTING:
        _until(lambda: not any(runner.running for runner in runners), OUTAGE_S)
    elif weather.swallow:
        _until(lambda: sum(runner.refused for runner in runners) > 0, OUTAGE_S)
    else:
        _until(lambda: proxy.weather.times <= 0 or not any(runner.running for runner in runners), 2 * OUTAGE_S)
    proxy.calm()


def _crashed(scene: _Scene, name: str, runners: list[Runner]) -> None:
    _until(lambda: sum(runner.done for runner in runners) >= 2, OUTAGE_S)
    # Aimed at a moment at which somebody waits for an answer.
    waiting = _until(lambda: any(runner.began_call is not None for runner in runners), OUTAGE_S)
    CRASHES[name](scene.server)
    if waiting:
        scene.round.met(f"crash: {name}")


def _until(holds: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.001)
    return True


def _checked(scene: _Scene, name: str, *, in_full: bool) -> None:
    if in_full:
        with scene.round.guarded("does not heal"):
            patiently(lambda: check_whole(scene.round, scene.engine, when=name))


def _at_rest(scene: _Scene) -> None:
    """All faults are over: the background worker is at work by itself, each message is counted once, the store is whole."""
    round = scene.round
    with round.guarded("does not heal"):
        before = patiently(scene.engine.health).queue
        until = time.monotonic() + WORKER_S
        while (now := patiently(scene.engine.health)).queue.done <= before.done and now.queue.late_s > 0:
            if time.monotonic() > until:
                round.wrong("does not heal", f"the background worker does nothing: {now.queue}; {now.worker_trouble}")
                break
            time.sleep(0.02)
        # It is at work again; the rest of the jobs is done with our help.
        until = time.monotonic() + DRAIN_S
        while (left := patiently(scene.engine.health).queue).late_s > 0 or left.failing or left.running:
            if time.monotonic() > until:
                break
            with suppress(perdure.Unavailable):
                scene.engine.process(WORKER_S)
            time.sleep(0.05)
        round.check(
            not (left.dead or left.failing or left.late_s > 0),
            "does not heal",
            f"jobs are left when all faults are over: {left}",
        )
        for user in scene.users:
            for actor in range(3):
                memory = scene.engine.memory(user, agent=f"agent-{actor}", channel=str(actor))
                patiently(lambda memory=memory: _counted(scene, memory))
        patiently(lambda: check_whole(round, scene.engine, when="the end of the round"))
    round.count("acknowledged", scene.books.checked)


def _counted(scene: _Scene, memory: perdure.Memory) -> None:
    """What a job has counted is what the log holds: no job was lost or carried out twice."""
    messages = memory.messages(500)
    if not messages:
        return
    tally = memory.conversation.tally()
    scene.round.check(
        tally.messages == tally.up_to_seq == len(messages),
        "a job was lost or ran twice",
        f"{memory}: {tally.messages} counted up to {tally.up_to_seq}, {len(messages)} held",
    )


def _opened_and_closed_in_a_black_hole(scene: _Scene) -> None:
    """Opening, maintenance and closing end, too, when nobody answers."""
    round, proxy = scene.round, scene.proxy
    proxy.set(Weather("black hole from the start", swallow=True))
    calls: dict[str, Callable[[], object]] = {
        "open": lambda: perdure.open(settings=_settings(proxy, "another")),
        "verify": scene.engine.verify,
        "process": lambda: scene.engine.process(0.1),
        "health": scene.engine.health,
    }
    with ThreadPoolExecutor(len(calls)) as pool:
        waits = {name: pool.submit(_timed, call) for name, call in calls.items()}
        for name, wait in waits.items():
            try:
                took, raised = wait.result(OPENING_S + GRACE_S)
            except TimeoutError:
                round.wrong("hangs", f"`{name}` did not end within {OPENING_S + GRACE_S} s")
                proxy.calm()
                proxy.cut()
                continue
            scene.worst_overrun_s = max(scene.worst_overrun_s, took - DEADLINE_S)
            round.check(isinstance(raised, perdure.Unavailable), "raised", f"`{name}` in a black hole: {raised!r:.300}")
    round.met("black hole from the start", proxy.met["black hole from the start"])
    took, raised = _timed(scene.engine.close)
    round.check(raised is None and took < CLOSING_S + GRACE_S, "hangs", f"`close` took {took:.1f} s: {raised!r:.300}")


def _timed(call: Callable[[], object]) -> tuple[float, BaseException | None]:
    began = time.monotonic()
    try:
        call()
    except Exception as error:
        return time.monotonic() - began, error
    return time.monotonic() - began, None


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.2f}")


PROMISE = Promise(
    id="P19",
    says="behind a network that fails and a server that crashes, what returned is stored once, and no call hangs",
    tried_by="latency, slices, resets, cuts before and after COMMIT, losses within a statement, black holes, refusals and "
    "half-closes between perdure and PostgreSQL, and crashes of the server; one engine, both faces and a background worker "
    "live through all of it",
    run=run,
    evidence=(*FAULTS, "black hole from the start", *(f"crash: {name}" for name in [*CRASHES][:1])),
    figure="{wrong} lost, doubled, torn or hanging over {faults} network faults and {crashes} server crashes, "
    "{acknowledged} writes acknowledged",
)
