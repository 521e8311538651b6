"""Reading sees what was written: what is due for a user is done inside the call that reads, or the answer says what waits."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest

import perdure
from perdure.app import Engine
from perdure.compose.store import open_store
from perdure.domain.jobs import Claim, Job
from perdure.domain.knowledge.proposals import Extraction, ExtractionRequest
from perdure.interfaces.access import CallerAccess, Door
from perdure.testing import StoppedClock

SAID = "I live in Lisbon. My mother is Rosa. Remind me to call the dentist tomorrow."


class HastyClock(StoppedClock):
    """One on which every look takes time."""

    def monotonic(self) -> float:
        self._monotonic += 0.02
        return self._monotonic


class OwnExtractor:
    """A host's own, which counts how often it is asked."""

    name = "own/1"

    def __init__(self) -> None:
        self.asked = 0

    def extract(self, request: ExtractionRequest) -> Extraction:
        self.asked += 1
        return Extraction((), ())


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


@pytest.fixture
def engine(backend: Any, clock: StoppedClock) -> perdure.Engine:
    return backend.open(clock=clock)


READS: dict[str, Any] = {
    "memories.list": lambda ana: ana.memories.list(),
    "entities.list": lambda ana: ana.entities.list(),
    "todos.list": lambda ana: ana.todos.list(),
    "recall": lambda ana: ana.recall("Who is Rosa?"),
    "context": lambda ana: ana.context("Who is Rosa?"),
    "before": lambda ana: ana.before("Who is Rosa?"),
    "overview": lambda ana: ana.admin.overview(),
    "a tool": lambda ana: ana.tools.call_tool("recall", {"query": "Who is Rosa?"}),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_a_call_that_reads_sees_what_was_written_just_before(engine: perdure.Engine, read: Any) -> None:
    ana = engine.memory("ana")
    ana.append("user", SAID)
    assert getattr(read(ana), "pending", 0) == 0
    held = engine._store.read(ana.scope.owner, lambda view: view.records.count("memory"))
    assert held == 2
    assert ana.admin.overview().counts["memories"] == 2


def test_what_is_learned_while_reading_is_in_the_answer(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    ana.append("user", SAID)
    assert {one.content for one in ana.memories.list()} == {"Lives in Lisbon", "Rosa is my mother"}
    assert [one.content for one in ana.todos.list()] == ["Call the dentist"]
    ana.append("user", "I moved to Porto.")
    found = ana.recall("Where do I live?")
    assert found.hits[0].text == "Lives in Porto"
    assert found.uncovered.nothing, "its vector was made, too"
    ana.append("user", "Anna is my sister.")
    assert "Anna is my sister" in ana.context("Who is Anna?").text


def test_writing_learns_nothing(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    ana.append("user", SAID)
    ana.append_many([perdure.NewMessage("user", "I work at Acme.")])
    assert ana.journal.list() == []
    assert [job.kind for job in ana.admin.jobs("ready")].count("tally") == 1
    assert [message.content for message in ana.messages()][-1] == "I work at Acme."
    assert ana.journal.list() == [], "and neither does reading the log"


def test_only_what_this_user_waits_for_is_done(engine: perdure.Engine) -> None:
    ana, ben = engine.memory("ana"), engine.memory("ben")
    ana.append("user", SAID)
    ben.append("user", SAID)
    assert ana.memories.list() != []
    assert ben.journal.list() == []
    assert {job.state for job in ben.admin.jobs()} == {"ready"}


def test_what_was_said_to_another_agent_is_learned_too(engine: perdure.Engine) -> None:
    engine.memory("ana", agent="coach", channel="c").append("user", SAID)
    assert len(engine.memory("ana").memories.list()) == 2


def test_an_answer_names_what_there_was_no_time_for_and_the_next_ones_go_on(backend: Any) -> None:
    engine = backend.open(clock=HastyClock())
    ana = engine.memory("ana")
    ana.append_many([perdure.NewMessage("user", f"Person{chr(97 + number)} is my cousin.") for number in range(26)])
    listed = ana.memories.list()
    assert listed.pending > 0
    seen = [len(listed)]
    for _ in range(40):
        found = ana.recall("Who is my cousin?")
        seen.append(len(ana.memories.list()))
        if not found.pending:
            break
    assert found.pending == 0
    assert ana.context().pending == 0
    assert seen == sorted(seen)
    assert seen[0] < 26 == seen[-1]


def test_the_setting_leaves_it_all_to_a_worker(backend: Any, clock: StoppedClock) -> None:
    engine = backend.open(clock=clock, catch_up_ms=0)
    ana = engine.memory("ana")
    ana.append("user", SAID)
    assert (list(ana.memories.list()), ana.memories.list().pending) == ([], 1)
    assert ana.recall("Where do I live?").pending == ana.context().pending == ana.before("Who am I?").pending == 1
    engine.process()
    assert (len(ana.memories.list()), ana.memories.list().pending) == (2, 0)


@pytest.mark.parametrize("wrong", [-1, 60_001, "soon"])
def test_a_time_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(perdure.InvalidInput, match="`catch_up_ms`"):
        perdure.Settings(catch_up_ms=wrong)


def test_what_a_host_brought_along_is_asked_by_a_worker_alone(
    backend: Any, clock: StoppedClock, caplog: pytest.LogCaptureFixture
) -> None:
    own = OwnExtractor()
    engine = perdure.open(settings=backend.settings, clock=clock, extractor=own)
    ana = engine.memory("ana")
    ana.append("user", SAID)
    with caplog.at_level(logging.WARNING, logger="perdure.jobs"):
        assert ana.memories.list().pending == 1
        assert ana.recall("Where do I live?").pending == 1
        assert caplog.records == [], "it may only just be at it"
        clock.move(minutes=6)
        assert ana.memories.list().pending == 1
        ana.context()
    assert own.asked == 0
    [told] = [one.getMessage() for one in caplog.records]
    assert "`perdure worker`" in told
    assert "`background=True`" in told
    assert "ana" not in told.replace("a user", "")
    assert any("no worker takes it" in line and "`background=True`" in line for line in engine.health().degraded)
    engine.process()
    assert own.asked == 1
    assert ana.memories.list().pending == 0
    engine.close()


def test_a_key_that_may_only_read_writes_nothing(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    ana.append("user", SAID)
    reader = CallerAccess("reader", None, frozenset({"read"}))
    there = Door(engine, reader, "http").memory("ana", "read")
    assert (list(there.memories.list()), there.memories.list().pending) == ([], 1)
    assert there.recall("Where do I live?").pending == 1
    assert ana.journal.list() == []
    both = CallerAccess("both", None, frozenset({"read", "write"}))
    assert len(Door(engine, both, "http").memory("ana", "read").memories.list()) == 2


class _NoClaims:
    """A store that cannot be written just then."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.error: perdure.PerdureError | None = None

    def claim(self, claim: Claim) -> list[Job]:
        if self.error is not None:
            raise self.error
        return list(self._inner.claim(claim))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_a_store_that_refuses_does_not_keep_the_call_from_its_answer(tmp_path: Path, clock: StoppedClock) -> None:
    settings = perdure.Settings(url=f"sqlite:///{tmp_path / 'a.db'}")
    store: Any = _NoClaims(open_store(settings))
    with Engine(store, clock, settings) as engine:
        ana = engine.memory("ana")
        ana.append("user", SAID)
        store.error = perdure.Unavailable("the disk is full; make room")
        assert (list(ana.memories.list()), ana.memories.list().pending) == ([], 1)
        assert ana.recall("Where do I live?").pending == 1
        assert any("learning while reading: failed 3 times" in line for line in engine.health().degraded)
        store.error = None
        assert len(ana.memories.list()) == 2
        assert not any("learning while reading" in line for line in engine.health().degraded)


def test_a_job_that_fails_while_reading_is_tried_again_and_says_why(
    engine: perdure.Engine, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from perdure.engine.extraction.extractor import RuleExtractor

    def broken(_self: RuleExtractor, _request: ExtractionRequest) -> Extraction:
        raise RuntimeError("a bug")

    ana = engine.memory("ana")
    ana.append("user", SAID)
    with monkeypatch.context() as patch:
        patch.setattr(RuleExtractor, "extract", broken)
        assert (list(ana.memories.list()), ana.memories.list().pending) == ([], 1)
        [job] = [one for one in ana.admin.jobs() if one.kind == "extract"]
        assert (job.failures, job.state) == (1, "ready")
        assert any("failed and are tried again" in line for line in engine.health().degraded)
    assert list(ana.memories.list()) == [], "it waits after a failure"
    clock.move(minutes=1)
    assert len(ana.memories.list()) == 2


def test_readers_at_the_same_time_learn_once(tmp_path: Path) -> None:
    with perdure.open(f"sqlite:///{tmp_path / 'a.db'}") as engine:
        ana = engine.memory("ana")
        ana.append("user", SAID)
        failed: list[BaseException] = []

        def read() -> None:
            try:
                ana.memories.list()
                ana.recall("Where do I live?")
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=read) for _ in range(6)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        engine.process(60)
        assert failed == []
        assert sorted(one.content for one in ana.memories.list()) == ["Lives in Lisbon", "Rosa is my mother"]
        assert {one.mentions for held in ana.memories.list() for one in held.statements} == {1}
        assert engine.verify().clean


def test_what_is_learned_meanwhile_is_no_doing_of_the_one_who_reads(backend: Any, clock: StoppedClock) -> None:
    engine = backend.open(clock=clock, access_log="all")
    ana = engine.memory("ana")
    ana.append("user", SAID)
    ana.memories.list()
    [entry] = [one for one in ana.journal.accesses() if one.call == "memories.list"]
    assert (entry.action, entry.operations) == ("read", ())


def test_a_large_index_is_left_to_a_worker(engine: perdure.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.services.index.job.EMBED_BATCH", 10)
    ana = engine.memory("ana")
    ana.append_many([perdure.NewMessage("user", f"The weather of day {number} was fine") for number in range(30)])
    found = ana.recall("weather")
    assert found.pending == 0
    assert found.uncovered.waiting >= 30
    engine.process(60)
    assert ana.recall("weather").uncovered.waiting == 0
