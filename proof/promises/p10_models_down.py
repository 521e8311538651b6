"""P10: the model or the embedder is down, in every way we know, for a while or for long.

What is asked of perdure meanwhile: every message is kept, append asks no model, reading goes on, the state says degraded.
Afterwards: what waited is done, each thing once, without a restart, and the state says so no more.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import perdure
from perdure.adapters import wire
from perdure.adapters.embedding.http import ServerModel, ollama_embedder, openai_embedder
from perdure.domain.context.recall import ENTRY_KINDS
from perdure.services.context import assembly
from perdure.services.models import model_backed
from perdure.settings import Settings
from perdure.testing import StoppedClock
from proof.chat_faults import chat_faults
from proof.embedding_faults import embedding_faults, swapped
from proof.harness import Promise, Round
from proof.model_host import TOWNS, Fault, ModelHost, able
from proof.servers import fresh_sqlite
from proof.wholeness import check_whole

Layer = Literal["chat", "embedding"]
LAYERS = perdure.Layers(fold_messages_min=6, rolling_turns=2, spine_turns=2, history_messages_max=6)
LASTING_ROUNDS = 10
"""More than a job has tries: what has a stand-in is done by it, the rest must wait."""
RESUMING_ROUNDS = 3
"""Hours until what waited is done: no pause after a failure is longer than one."""
HEALING_ROUNDS = 40
"""Hours until everything is done and said to be well: a share of failures counts for a day."""
PATIENT_S, HASTY_S = 20.0, 0.15
QUICK = 10
ALWAYS = (
    ("embedding", "rows too short", False),
    ("embedding", "zeros", False),
    ("embedding", "HTTP 401", False),
    ("embedding", "nobody listens", True),
    ("embedding", "never answers", False),
    ("chat", "never answers", False),
    ("chat", "HTTP 500", True),
    ("chat", "another schema", False),
)
"""Of every sort one: these come first, whatever the seed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One case: what fails, how, for how long, in which protocol."""

    layer: Layer
    fault: Fault
    lasting: bool
    protocol: str
    town: str

    @property
    def words(self) -> str:
        return f"{self.layer} {self.protocol}: {self.fault.name}, {'lasting' if self.lasting else 'passing'}"


@dataclass(slots=True)
class Trial:
    """One store, one user, and the server whose fault they live with."""

    round: Round
    plan: Plan
    host: ModelHost
    engine: perdure.Engine
    clock: StoppedClock
    said: list[str] = field(default_factory=list)
    append_ms: list[float] = field(default_factory=list)

    @property
    def ana(self) -> perdure.Memory:
        return self.engine.memory("ana")

    def wrong(self, kind: str, what: object) -> None:
        self.round.wrong(kind, f"{self.plan.words}: {what}")

    def check(self, holds: bool, kind: str, what: object) -> None:
        if not holds:
            self.wrong(kind, what)

    def append(self, role: str, content: str) -> None:
        """Store a message. Nobody may be asked for it: not one connection is made."""
        before, began = self.host.connections, time.perf_counter()
        self.ana.append(role, content)
        self.append_ms.append((time.perf_counter() - began) * 1000)
        self.check(self.host.connections == before, "append asks a model", content)
        self.said.append(content)
        self.clock.move(seconds=20)

    def talk(self, about: str) -> None:
        for role, content in (
            ("user", f"I live in {self.plan.town}. {about}"),
            ("assistant", "Noted."),
            ("user", f"Please plan the trip for {about}; the code is QX-4711."),
            ("assistant", "I will look for flights."),
            ("user", f"Never book before 10am. {about}"),
            ("assistant", "Understood."),
            ("user", f"That is all about {about}."),
            ("assistant", "Good."),
        ):
            self.append(role, content)

    def check_reading(self) -> None:
        """All that was said is there, and every way of reading answers."""
        held = [message.content for message in self.ana.messages(limit=500)]
        self.check(held == self.said, "lost", f"{len(held)} messages of {len(self.said)}")
        context = self.ana.context("Book the trip")
        self.check("QX-4711" in context.text, "context fails", context.notes)
        found = self.ana.recall("QX-4711")
        self.check(any("QX-4711" in hit.text for hit in found.hits), "recall fails", found.uncovered)

    def work(self, hours: int = 1) -> None:
        for _ in range(hours):
            self.clock.move(hours=1)
            self.engine.process(60)


def run(round: Round) -> None:
    """All faults, each passing and lasting, in an order of the seed."""
    with ModelHost(able) as host, ModelHost(able) as elsewhere:
        plans = _plans(round, elsewhere.url)
        if round.size == "full":
            round.facts["chat faults"] = len({one.fault.name for one in plans if one.layer == "chat"})
            round.facts["embedding faults"] = len({one.fault.name for one in plans if one.layer == "embedding"})
        append_ms: list[float] = []
        for case in round.cases(quick=min(QUICK, len(plans)), full=len(plans), name="faults"):
            plan = plans[case.number]
            with round.guarded("unhandled"), _opened(round, plan, host) as trial:
                _tried(trial)
                append_ms += trial.append_ms
        round.check(elsewhere.connections == 0, "elsewhere", f"{elsewhere.connections} connections to where redirects lead")
        _check_order(round, host)
    append_ms.sort()
    if append_ms:
        round.facts["append p50 ms"] = f"{append_ms[len(append_ms) // 2]:.2f}"
        round.facts["append p99 ms"] = f"{append_ms[len(append_ms) * 99 // 100]:.2f}"


def _plans(round: Round, elsewhere: str) -> list[Plan]:
    """Every fault twice, in an order of the seed; a quick round has the first few."""
    chance = random.Random(f"{round.seed}/plans")
    plans = []
    for layer, faults in (("chat", chat_faults(elsewhere)), ("embedding", embedding_faults(elsewhere))):
        for fault in faults:
            for lasting in (False, True):
                protocol = chance.choice(("openai", "ollama"))
                plans.append(Plan(layer, fault, lasting, protocol, chance.choice(TOWNS)))
    chance.shuffle(plans)
    return sorted(plans, key=lambda plan: (plan.layer, plan.fault.name, plan.lasting) not in ALWAYS)


@contextmanager
def _opened(round: Round, plan: Plan, host: ModelHost) -> Iterator[Trial]:
    """A new store. Deadlines are such as a round can wait for; those of faults that answer at once are never reached."""
    clock = StoppedClock()
    url = fresh_sqlite(round.folder)
    common = {"url": url, "profile": "complete", "layers": LAYERS, "durability": "normal"}
    host.mend()
    wire.PAUSE_S = 0.0
    model_backed.CALL_S = assembly.FOLD_S = PATIENT_S
    if plan.layer == "chat":
        settings = Settings(**common, embedder="none", model=host.setting(plan.protocol))
        engine = perdure.open(settings=settings, clock=clock)
    else:
        server = ServerModel(host.url, "scripted", deadline_s=HASTY_S * 3 if plan.fault.slow else PATIENT_S)
        embedder = (openai_embedder if plan.protocol == "openai" else ollama_embedder)(server)
        engine = perdure.open(settings=Settings(**common), clock=clock, embedder=embedder)
    try:
        with engine:
            yield Trial(round, plan, host, engine, clock)
    finally:
        host.mend()
        model_backed.CALL_S = assembly.FOLD_S = PATIENT_S
        path = Path(url.removeprefix("sqlite:///"))
        for left in path.parent.glob(f"{path.name}*"):
            left.unlink()


def _tried(trial: Trial) -> None:
    host, fault = trial.host, trial.plan.fault
    met = host.met[fault.name]
    host.break_(fault)
    if fault.slow:
        model_backed.CALL_S = assembly.FOLD_S = HASTY_S
    trial.talk("the fair in May")
    if fault.slow:
        _append_beside_a_hanging_model(trial)
    trial.work()
    refused = fault.refuses and trial.engine.health().queue.failing > 0
    if host.met[fault.name] > met or refused:
        trial.round.met(f"{trial.plan.layer} faults")
    else:
        trial.wrong("not met", "the fault was never met")
    _check_degraded(trial)
    trial.check_reading()
    if trial.plan.lasting:
        trial.work(LASTING_ROUNDS)
        trial.append("user", "Is it still down?")
        trial.work()
        _check_degraded(trial)
        trial.check_reading()
        trial.round.met("lasting faults")
    else:
        trial.round.met("passing faults")
    host.mend()
    model_backed.CALL_S = assembly.FOLD_S = PATIENT_S
    _check_healed(trial)


def _append_beside_a_hanging_model(trial: Trial) -> None:
    """A worker waits for the server; a message that comes now is stored before the worker has its answer."""
    connections = trial.host.connections
    working = threading.Thread(target=trial.engine.process, args=(60,), name="worker")
    working.start()
    until = time.monotonic() + 10
    while trial.host.connections == connections and time.monotonic() < until and working.is_alive():
        time.sleep(0.001)
    asked = trial.host.connections > connections
    trial.ana.append("user", "Are you still there?")
    trial.said.append("Are you still there?")
    if asked and working.is_alive():
        trial.round.met("appended while a model was waited for")
    working.join(60)
    trial.check(not working.is_alive(), "hangs", "the worker did not come back from the model")


def _check_degraded(trial: Trial) -> None:
    if trial.plan.fault.plausible:
        return
    for who, degraded in (("health", trial.engine.health().degraded), ("doctor", trial.engine.doctor().degraded)):
        trial.check(bool(_troubles(degraded)), "not said to be degraded", f"{who}: {degraded}")


def _troubles(degraded: Sequence[str]) -> list[str]:
    """What has to do with models and their work; that the store of a trial is the faster kind has not."""
    return [line for line in degraded if line.startswith(("model: ", "jobs: "))]


def _check_healed(trial: Trial) -> None:
    """Everything that waited is done, once, without anybody's doing; what comes now is done too; the state is well again."""
    trial.work(RESUMING_ROUNDS)
    _check_done(trial, "nobody has said anything since")
    trial.clock.move(hours=1)
    trial.talk("the fair in June")
    trial.work(2)
    trial.clock.move(hours=1)
    trial.talk("the fair in July")
    for _ in range(HEALING_ROUNDS):
        trial.work()
        if not _troubles(trial.engine.health().degraded):
            break
    degraded = trial.engine.doctor().degraded
    trial.check(not _troubles(degraded), "still degraded", degraded)
    _check_done(trial, "there was more to do since")
    trial.check_reading()
    _check_known_once(trial)
    if trial.plan.layer == "chat":
        _check_digests_once(trial)
    else:
        _check_indexed_once(trial)
    if check_whole(trial.round, trial.engine, when=trial.plan.words):
        trial.round.count("healed")


def _check_done(trial: Trial, when: str) -> None:
    left = [
        job for job in trial.ana.admin.jobs() if job.state in ("running", "dead") or (job.state == "ready" and job.attempts)
    ]
    trial.check(not left, "not done", f"{when}: {[(job.kind, job.state, job.last_error) for job in left]}")


def _check_known_once(trial: Trial) -> None:
    """The one thing the user says of themselves is known, by one statement."""
    town = trial.plan.town
    held = [one for memory in trial.ana.memories.list() for one in memory.statements if one.attribute == "lives_in"]
    values = [one.value for one in held if one.is_live()]
    trial.check(values == [town], "not learned once", f"lives_in: {values}, said: {town}")


def _check_digests_once(trial: Trial) -> None:
    """Each session has its digest, and no messages were taken into two versions of one layer."""
    for session in trial.ana.conversation.sessions():
        digests = trial.ana.conversation.digests(session=session.id, limit=100)
        kinds = {digest.kind for digest in digests}
        if session.ended_at is not None:
            trial.check("session" in kinds, "not summarised", f"session {session.number} has {sorted(kinds)}")
        seen: Counter[tuple[str, int]] = Counter()
        for digest in digests:
            for source in digest.sources:
                if digest.kind == "session":
                    seen.update((digest.kind, seq) for seq in range(source.first_seq, source.last_seq + 1))
        doubled = [place for place, times in seen.items() if times > 1]
        trial.check(not doubled, "summarised twice", f"session {session.number}: {doubled[:5]}")
    trial.check(bool(trial.ana.conversation.digests("spine")), "not summarised", "there is no spine")


def _check_indexed_once(trial: Trial) -> None:
    """Every message has its vectors, of the right embedder, and is found once, by meaning as well."""
    store, owner = trial.engine._store, trial.ana.scope.owner
    head = store.read(owner, lambda view: view.index.head())
    trial.check(head.embedder == "scripted//8", "not indexed", f"the vectors are of {head.embedder!r}")
    trial.check(head.vectored == head.last, "not indexed", f"{head.vectored} of {head.last} have vectors")
    entries = store.read(owner, lambda view: {kind: view.index.count_entries(kind) for kind in ENTRY_KINDS})
    trial.check(entries["message"] == len(trial.said), "not indexed once", f"{entries} for {len(trial.said)} messages")
    vectors = store.read(owner, lambda view: view.index.vectors(head.embedder, 0, upto=head.last))
    blank = [number for number, body in vectors if not any(body)]
    trial.check(not blank, "not indexed", f"entries {blank[:5]} have vectors of zeros")
    found = trial.ana.recall("That is all about the fair in June.", limit=50)
    trial.check(found.uncovered.degraded is None, "still degraded", found.uncovered.degraded)
    ids = [hit.id for hit in found.hits]
    trial.check(len(ids) == len(set(ids)), "found twice", ids)


def _check_order(round: Round, host: ModelHost) -> None:
    """Rows that come in another order, as the protocol allows, go to the texts they belong to."""
    texts = ["one", "two", "three"]
    with ModelHost(swapped) as other:
        straight = openai_embedder(ServerModel(host.url, "scripted")).embed(texts)
        turned = openai_embedder(ServerModel(other.url, "scripted")).embed(texts)
    round.check(bool((straight == turned).all()), "order", "the rows of a reordered answer went to other texts")
    round.check(not (straight[0] == straight[1]).all(), "order", "the check is blind")
    round.met("reordered rows")


PROMISE = Promise(
    id="P10",
    says="model or embedder down: nothing lost, reading works, the state says degraded, work resumes",
    tried_by="a real server on loopback that fails in every phase of an exchange: chat and embedding faults, each passing and lasting",
    run=run,
    evidence=(
        "chat faults",
        "embedding faults",
        "passing faults",
        "lasting faults",
        "appended while a model was waited for",
        "reordered rows",
    ),
    figure="{wrong} lost, unfinished or doubled over {faults} faults; {healed} healed",
)
