"""P20: of three PostgreSQL servers the primary fails under load; the engine is never opened anew.

Patroni has another server take over; the URL names all three. One engine with a background worker lives through every failover
of the round. At the end replication is made asynchronous, to show what can be lost then.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Event
from typing import Any

import psycopg

import perdure
from perdure.ports.store import ReadOnly
from proof.cluster import Cluster, Member, patroni_cluster
from proof.errands import Books, Runner, async_face, patiently, plan
from proof.harness import Case, Promise, Round
from proof.network import Weather
from proof.wholeness import check_heals, check_whole

DEADLINE_S = 20.0
GRACE_S = 20.0
"""What a call may take beyond its deadline before we say that it hangs."""
GIVE_UP_S = 180.0
"""How long an errand may take in all: the lock of a primary that says nothing ends after 20 s, and a machine may be busy."""
ERRANDS_MAX = 120
STRIKE_S = 30.0
SETTLED_S = 1.0
POOL = 6
WAITING = """
SELECT pid, query, coalesce(backend_xid::text::bigint, 0) FROM pg_stat_activity
WHERE wait_event = 'SyncRep' AND application_name = 'perdure' ORDER BY pid
"""
LOST = "asynchronous: acknowledged, and lost"
UNSENT = 10
"""How many messages the replicas do not get while replication is asynchronous."""


@dataclass(slots=True)
class _Scene:
    """The cluster, the engine, and what was measured."""

    round: Round
    cluster: Cluster
    engine: perdure.Engine
    asynchronous: Any
    books: Books
    chance: random.Random
    struck_at: float = 0.0
    elected_at: float = 0.0
    gaps: dict[str, list[float]] = field(default_factory=dict)
    elections: dict[str, list[float]] = field(default_factory=dict)
    replications: dict[str, list[float]] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)

    def strike(self) -> Member:
        """The fault begins; who is struck."""
        self.struck_at = time.monotonic()
        return self.cluster.primary()

    def taken_over(self, old: Member) -> Member:
        """Wait for another primary; who it is."""
        new = self.cluster.another_primary(old)
        self.elected_at = time.monotonic()
        return new


# -- the faults. Each ends when another server is the primary.

Fault = Callable[[_Scene], Member]


def _commits_on_the_way(scene: _Scene) -> Member:
    """The primary has commits that no replica heard of, and dies. Before anybody asks what became of them, the numbers of their
    transactions are given to others."""
    old = scene.strike()
    old.from_members.cut()
    numbers = [number for _, _, number in _waiting_commits(old)]
    for member in scene.cluster.members:
        member.from_clients.refuse()
    old.kill_postgres()
    new = scene.taken_over(old)
    with psycopg.connect(new.url, autocommit=True) as somebody_else:
        given = 0
        while given <= max(numbers):
            [(given,)] = somebody_else.execute("SELECT pg_current_xact_id()::text::bigint").fetchall()
    for member in scene.cluster.members:
        member.from_clients.listen()
    return old


def _read_only_then_switched(scene: _Scene) -> Member:
    """A switch that was planned: first the primary takes no more writes, and its sessions live on; then another takes over."""
    old = scene.strike()
    _set(old, "default_transaction_read_only", "on")
    # Whoever writes runs into it before there is another one to go to.
    time.sleep(1.0)
    scene.cluster.switch_over(scene.cluster.following(old))
    scene.taken_over(old)
    _set(old, "default_transaction_read_only", "off")
    return old


def _wait_cancelled(scene: _Scene) -> Member:
    """Somebody cancels what hangs, since the replicas are away: PostgreSQL then says that it has committed. Then it dies."""
    old = scene.strike()
    old.from_members.cut()
    cancelled = [(pid, query) for pid, query, _ in _waiting_commits(old)]
    with psycopg.connect(old.url, autocommit=True) as connection:
        for pid, _ in cancelled:
            connection.execute("SELECT pg_cancel_backend(%s)", (pid,))
        _until(lambda: not {*cancelled} & {(pid, query) for pid, query, _ in connection.execute(WAITING).fetchall()})
    old.kill_postgres()
    scene.taken_over(old)
    return old


def _answer_lost(scene: _Scene) -> Member:
    """A commit is done and replicated; before the client hears of it, the primary dies."""
    old = scene.strike()
    proxy, name = old.from_clients, "answer lost"
    proxy.set(Weather(name, at_commit="lost after", times=1))
    before = proxy.met["committed, and the answer withheld"]
    _until(lambda: proxy.met["committed, and the answer withheld"] > before)
    old.kill_postgres()
    proxy.cut()
    scene.taken_over(old)
    return old


def _server_killed(scene: _Scene) -> Member:
    """PostgreSQL dies, Patroni lives."""
    old = scene.strike()
    old.kill_postgres()
    scene.taken_over(old)
    return old


def _cut_off(scene: _Scene) -> Member:
    """Nobody reaches the primary any more. It stays so until all errands are done."""
    old = scene.strike()
    old.cut_off(from_clients=True)
    scene.taken_over(old)
    return old


def _cut_off_with_clients(scene: _Scene) -> Member:
    """The primary and its clients are on one side, everybody else on the other; then the clients see both."""
    old = scene.strike()
    old.cut_off(from_clients=False)
    scene.taken_over(old)
    return old


def _paused(scene: _Scene) -> Member:
    """The primary stands still for so long that another takes over; then it goes on as if nothing had happened."""
    old = scene.strike()
    old.pause()
    scene.taken_over(old)
    old.resume()
    return old


def _machine_killed(scene: _Scene) -> Member:
    old = scene.strike()
    old.kill()
    scene.taken_over(old)
    return old


FAULTS: dict[str, Fault] = {
    "killed with commits on the way": _commits_on_the_way,
    "read-only, then switched over": _read_only_then_switched,
    "wait for the replica cancelled, then killed": _wait_cancelled,
    "answer lost, then killed": _answer_lost,
    "server killed": _server_killed,
    "cut off from all": _cut_off,
    "cut off from all but its clients": _cut_off_with_clients,
    "paused": _paused,
    "machine killed": _machine_killed,
}
QUICK = 3


def run(round: Round) -> None:
    with _scene(round) as scene:
        for case in round.cases(quick=QUICK, full=3 * len(FAULTS), name="failovers"):
            name = [*FAULTS][case.number % len(FAULTS)]
            _played(scene, name, case)
        for case in round.cases(quick=1, full=3, name="asynchronous failovers"):
            _asynchronous(scene, case)
        check_heals(round, scene.engine, when="the end of the round")


@contextmanager
def _scene(round: Round) -> Iterator[_Scene]:
    with ExitStack() as stack:
        cluster = stack.enter_context(patroni_cluster())
        settings = perdure.Settings(url=cluster.url, deadline_s=DEADLINE_S, postgres_pool_max=POOL)
        engine = stack.enter_context(perdure.open(settings=settings, background=True))
        face, threads = async_face(engine)
        stack.callback(threads.close)
        scene = _Scene(round, cluster, engine, face, Books(round, engine), random.Random(round.seed))
        yield scene
        round.count("acknowledged", scene.books.checked)
        round.facts |= {
            "deadline_s": DEADLINE_S,
            "seconds without service, by fault": {name: _told(found) for name, found in scene.gaps.items()},
            "of these until another server was the primary": {name: _told(found) for name, found in scene.elections.items()},
            "and until a replica followed it": {name: _told(found) for name, found in scene.replications.items()},
            "calls refused": dict(scene.refused),
            "given up": scene.books.given_up,
        }


def _told(seconds: list[float]) -> str:
    return " ".join(f"{one:.1f}" for one in seconds)


def _played(scene: _Scene, name: str, case: Case) -> None:
    """Errands of three addresses of two users while the primary fails; then their books are checked."""
    round, over = scene.round, Event()
    least = round.sized(quick=12, full=30)

    def enough(done: int) -> bool:
        # However fast they are done, the fault comes among them.
        return done >= least and over.is_set()

    runners = []
    for actor in range(3):
        engine = scene.asynchronous if actor == 2 else scene.engine
        memory = engine.memory(f"u{case.number}-{actor % 2}", agent=f"agent-{actor}", channel=str(actor))
        errands = plan(case.number, actor, ERRANDS_MAX, case.chance)
        runners.append(Runner(round, memory, errands, DEADLINE_S, GRACE_S, GIVE_UP_S, enough))
    for runner in runners:
        runner.start()
    _until(lambda: all(runner.done >= 2 or not runner.running for runner in runners))
    time.sleep(case.chance.random() / 5)
    old = FAULTS[name](scene)
    over.set()
    scene.elections.setdefault(name, []).append(scene.elected_at - scene.struck_at)
    scene.cluster.await_synchronous(other_than=old)
    scene.replications.setdefault(name, []).append(time.monotonic() - scene.struck_at)
    for runner in runners:
        if not runner.join(GIVE_UP_S):
            round.wrong("hangs", f"{name}: an errand of {runner.memory} does not end")
    old.mend()
    scene.cluster.await_whole()
    answered = sorted(at for runner in runners for at in runner.answered_at)
    after = [(earlier, later) for earlier, later in pairwise(answered) if later > scene.struck_at]
    if after:
        round.met(name)
        scene.gaps.setdefault(name, []).append(max(later - earlier for earlier, later in after))
    for runner in runners:
        scene.refused[name] += runner.refused
        early = [error for error, took in runner.refusals if isinstance(error, ReadOnly) and took < DEADLINE_S - 1]
        round.check(not early, "not followed", f"{name}: {len(early)} calls were refused before their deadline: {early[:1]}")
        with round.guarded("does not heal"):
            scene.books.check(runner)
    round.count("errands", sum(len(runner.errands) for runner in runners))
    if round.size == "full":
        with round.guarded("does not heal"):
            patiently(lambda: check_whole(round, scene.engine, when=name))


def _asynchronous(scene: _Scene, case: Case) -> None:
    """Replicas lag behind, and the primary dies: what was acknowledged last is gone. What is left is sound, and in order."""
    round, cluster = scene.round, scene.cluster
    cluster.set_synchronous(False)
    old = cluster.primary()
    memory = scene.engine.memory(f"async-{case.number}")
    acknowledged = []
    for number in range(2 * UNSENT):
        if number == UNSENT:
            old.from_members.cut()
        acknowledged.append(str(patiently(lambda number=number: memory.append("user", f"said {number}", id=f"m{number}")).id))
    old.kill_postgres()
    cluster.another_primary(old)
    held = [str(message.id) for message in patiently(lambda: memory.messages(500), GIVE_UP_S)]
    lost = [id for id in acknowledged if id not in held]
    round.met(LOST, len(lost))
    round.count("lost with asynchronous replication", len(lost))
    round.count("acknowledged with asynchronous replication", len(acknowledged))
    round.check(held == acknowledged[: len(held)], "torn or stray", f"asynchronous: held is {held}")
    old.mend()
    cluster.set_synchronous(True)
    cluster.await_whole()
    # Whoever still has them can say them again, under the same ids.
    for number in range(2 * UNSENT):
        patiently(lambda number=number: memory.append("user", f"said {number}", id=f"m{number}"))
    found = [str(message.id) for message in patiently(lambda: memory.messages(500))]
    round.check(found == acknowledged, "doubled", f"asynchronous: said again, and held is {found}")
    with round.guarded("does not heal"):
        patiently(lambda: check_whole(round, scene.engine, when="asynchronous"))


def _waiting_commits(member: Member) -> list[tuple[int, str, int]]:
    """Process, words and number of each transaction that waits for a replica, once everybody who writes has come so far."""
    found: list[tuple[int, str, int]] = []
    since = time.monotonic()

    def all_waiting() -> bool:
        nonlocal found, since
        with psycopg.connect(member.url, autocommit=True) as connection:
            now = connection.execute(WAITING).fetchall()
        if now != found:
            found, since = now, time.monotonic()
        return bool(found) and time.monotonic() > since + SETTLED_S

    if not _until(all_waiting):
        raise TimeoutError("no commit waits for a replica, although none is reached")
    return found


def _set(member: Member, name: str, value: str) -> None:
    """On this server, whoever it is now."""

    def done() -> bool:
        try:
            with psycopg.connect(member.url, autocommit=True, options=f"-c {name}=off") as connection:
                connection.execute(f"ALTER SYSTEM SET {name} = {value}".encode())
                connection.execute("SELECT pg_reload_conf()")
            return True
        except psycopg.OperationalError:
            return False

    if not _until(done):
        raise TimeoutError(f"{member.name} does not take `{name}`")


def _until(holds: Callable[[], bool], seconds: float = STRIKE_S) -> bool:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


PROMISE = Promise(
    id="P20",
    says="when another PostgreSQL server takes over from the primary, what returned is stored once and in order",
    tried_by="three servers under Patroni and etcd with synchronous replication; under load the primary is killed with commits on "
    "the way, made read-only and switched, cut off, paused, and killed with its machine; one engine, both faces and a background "
    "worker live through all of it. With asynchronous replication the loss is shown",
    run=run,
    evidence=(*[*FAULTS][:QUICK], LOST),
    figure="{wrong} lost, doubled or out of order over {failovers} failovers, {acknowledged} writes acknowledged; with asynchronous "
    "replication {lost with asynchronous replication} of {acknowledged with asynchronous replication} lost",
)
