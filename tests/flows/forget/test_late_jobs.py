"""A job that has read something which is then forgotten must not bring it back (T-54)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import perdure
from perdure.domain.knowledge.proposals import Evidence, Extraction, ExtractionRequest, Proposal
from perdure.ports.tables.rows import TABLES
from perdure.services.conversation.intake import Intake
from perdure.testing import StoppedClock
from scripted import ScriptedSummariser, WaitingSummariser

SECRET = "xanadupolis"
WAIT_S = 60


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(datetime(2026, 1, 5, 10, 0, tzinfo=UTC))


class WaitingExtractor:
    """Proposes what it is told, and stands still before its first answer."""

    name = "waiting/1"

    def __init__(self) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()

    def extract(self, request: ExtractionRequest) -> Extraction:
        if not self.asked.is_set():
            self.asked.set()
            assert self.go_on.wait(WAIT_S)
        cited = [(one, Evidence(one.id, 0, len(one.content), one.at)) for one in request.messages]
        return Extraction(tuple(Proposal("PROFILE", "fact", f"Said {one.content}", evidence=(place,)) for one, place in cited))


def talk(engine: perdure.Engine) -> perdure.Memory:
    ana = engine.memory("ana")
    for number in range(6):
        ana.append("user", f"I live in {SECRET.title()}, and it is {number} o'clock", id=f"m{number}")
    return ana


def left_of_it(engine: perdure.Engine, folder: Path) -> list[str]:
    with engine._store.snapshot() as snapshot:
        rows = [table for table in TABLES for row in snapshot.rows(table) if SECRET in repr(row).lower()]
    files = [path.name for path in folder.rglob("*.md") if SECRET in path.read_text().lower()]
    return rows + files


def drain(engine: perdure.Engine, clock: StoppedClock) -> None:
    for _ in range(4):
        engine.process(WAIT_S)
        clock.move(hours=1)


def forget(engine: perdure.Engine) -> Callable[[], object]:
    return lambda: engine.memory("ana").forget(messages=("m0", "m5"))


def test_who_was_named_a_moment_ago_is_forgotten_at_once(backend: Any, clock: StoppedClock) -> None:
    with backend.open(clock=clock) as engine:
        ana = engine.memory("ana")
        ana.append("user", "John Doe is my dentist.")
        assert ana.forget(entity="person:John Doe").removed["entity"] == 1
        assert "Doe" not in ana.messages()[0].content
        engine.process(WAIT_S)
        assert ana.entities.list() == []


def test_forgetting_says_what_nobody_has_learned_from_yet(backend: Any, clock: StoppedClock) -> None:
    with backend.open(clock=clock, catch_up_ms=0) as engine:
        ana = engine.memory("ana")
        ana.append("user", "John Doe is my dentist.")
        report = ana.forget(entity="person:John Doe")
        assert report.nothing
        assert report.pending > 0
        engine.process(WAIT_S)
        assert ana.forget(entity="person:John Doe").pending == 0
        assert "Doe" not in ana.messages()[0].content


def test_a_summary_that_was_being_written_is_written_anew_from_what_is_left(
    backend: Any, clock: StoppedClock, tmp_path: Path
) -> None:
    model = WaitingSummariser(lessons=(f"Never mention {SECRET}",))
    with backend.open(clock=clock, summariser=model, profile="complete", files_dir=str(tmp_path / "files")) as engine:
        ana = talk(engine)
        model.while_it_works(lambda: engine.process(WAIT_S), forget(engine))
        model.lessons = ()
        drain(engine, clock)
        assert left_of_it(engine, tmp_path) == []
        assert ana.conversation.digests("rolling"), "it is written, of what is left"
        assert engine.verify().clean


def test_what_an_extractor_found_in_forgotten_messages_is_not_learned(
    backend: Any, clock: StoppedClock, tmp_path: Path
) -> None:
    extractor = WaitingExtractor()
    with perdure.open(settings=backend.settings, clock=clock, extractor=extractor) as engine:
        talk(engine)
        worker = threading.Thread(target=engine.process, args=(WAIT_S,))
        worker.start()
        assert extractor.asked.wait(WAIT_S)
        forget(engine)()
        extractor.go_on.set()
        worker.join(WAIT_S)
        drain(engine, clock)
        assert left_of_it(engine, tmp_path) == []
        learned = [one.content for memory in engine.memory("ana").memories.list() for one in memory.statements]
        assert learned == ["Said [forgotten]"], "it was looked through again"
        assert engine.verify().clean


def test_lessons_that_forgotten_messages_taught_leave_the_book(backend: Any, clock: StoppedClock, tmp_path: Path) -> None:
    files = tmp_path / "files"
    with backend.open(clock=clock, profile="complete", files_dir=str(files)) as engine:
        ana = engine.memory("ana")
        ana.append("user", f"From now on always greet me with {SECRET}", id="m0")
        for number in range(1, 6):
            ana.append("user", f"Thank you {number}", id=f"m{number}")
        book = files / "default" / "ana" / "memory.md"
        drain(engine, clock)
        book.write_text(f"{book.read_text()}- Give distances in kilometres\n")
        assert SECRET in book.read_text()
        ana.forget(messages=("m0", "m0"))
        assert SECRET not in book.read_text()
        drain(engine, clock)
        assert left_of_it(engine, tmp_path) == []
        assert [one.text for one in ana.lessons.list()] == ["Give distances in kilometres"], "what a person wrote is taken in"


@pytest.mark.parametrize("how", ["deleted", "taken back"])
def test_what_is_said_in_the_place_of_messages_that_went_while_they_were_counted_is_read_and_counted(
    backend: Any, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A session goes on under the id of a deleted one, and after its end was taken back, with the same numbers."""
    read, deeds = Intake.read_up_to, list[Callable[[], object]]()

    def read_and_then(intake: Intake, *asked: Any) -> None:
        read(intake, *asked)
        while deeds:
            deeds.pop()()

    monkeypatch.setattr(Intake, "read_up_to", read_and_then)
    with backend.open(clock=clock) as engine:
        ana = engine.memory("ana")
        for number in range(5):
            ana.append("user", f"The boat number {number}", session="talk")

        def say_otherwise() -> None:
            ana.conversation.delete("talk") if how == "deleted" else ana.conversation.pop("talk", messages=2)
            ana.append("user", "The harbour is closed", session="talk")

        deeds.append(say_otherwise)
        engine.process(WAIT_S)
        assert deeds == []
        assert ana.conversation.tally("talk").up_to_seq == (1 if how == "deleted" else 4)
        assert ana.recall("harbour").hits[0].text == "The harbour is closed"
        assert engine.verify().clean


class Relay:
    """Two at the same work, of whom the first is done while the second is at it, and the user was erased in between."""

    def __init__(self) -> None:
        self.takes: list[Callable[[], None]] = [self._first, self._second]
        self.second: threading.Thread | None = None
        self.meanwhile: Callable[[], threading.Thread] | None = None
        self.second_is_at_it, self.first_is_done = threading.Event(), threading.Event()

    def take(self) -> None:
        if self.takes:
            self.takes.pop(0)()

    def run(self, first: Callable[[], object], meanwhile: Callable[[], object], second: Callable[[], object]) -> None:
        def begin() -> threading.Thread:
            meanwhile()
            return threading.Thread(target=second)

        self.meanwhile = begin
        first()
        self.first_is_done.set()
        assert self.second is not None
        self.second.join(WAIT_S)

    def _first(self) -> None:
        assert self.meanwhile is not None
        self.second = self.meanwhile()
        self.second.start()
        assert self.second_is_at_it.wait(WAIT_S)

    def _second(self) -> None:
        self.second_is_at_it.set()
        assert self.first_is_done.wait(WAIT_S)


class RelayedExtractor(WaitingExtractor):
    def __init__(self, relay: Relay) -> None:
        super().__init__()
        self.asked.set()
        self.relay = relay

    def extract(self, request: ExtractionRequest) -> Extraction:
        self.relay.take()
        return super().extract(request)


def begin_anew(ana: perdure.Memory, clock: StoppedClock) -> None:
    ana.forget(user=True)
    clock.move(seconds=1)
    for number in range(6):
        ana.append("user", f"I like tea {number}", id=f"n{number}")


@pytest.mark.parametrize("who", ["a worker", "a caller"])
def test_nothing_is_learned_from_a_user_who_was_erased_and_speaks_again(
    backend: Any, clock: StoppedClock, tmp_path: Path, who: str
) -> None:
    relay = Relay()
    with perdure.open(settings=backend.settings, clock=clock, extractor=RelayedExtractor(relay)) as engine:
        ana = talk(engine)
        work = partial(engine.process, WAIT_S)
        relay.run(work if who == "a worker" else ana.memories.extract, partial(begin_anew, ana, clock), work)
        assert left_of_it(engine, tmp_path) == []
        drain(engine, clock)
        learned = {one.content for memory in ana.memories.list() for one in memory.statements}
        assert learned == {f"Said I like tea {number}" for number in range(6)}
        assert engine.verify().clean


def test_no_summary_tells_of_a_user_who_was_erased_and_speaks_again(backend: Any, clock: StoppedClock, tmp_path: Path) -> None:
    relay = Relay()

    def tell(request: perdure.SummaryRequest) -> perdure.Summary:
        relay.take()
        return perdure.Summary(" ".join(message.content for message in request.messages))

    files = str(tmp_path / "files")
    model = ScriptedSummariser(answer=tell)
    with backend.open(clock=clock, summariser=model, profile="complete", files_dir=files) as engine:
        ana = talk(engine)
        work = partial(engine.process, WAIT_S)
        relay.run(work, partial(begin_anew, ana, clock), work)
        assert left_of_it(engine, tmp_path) == []
        drain(engine, clock)
        assert left_of_it(engine, tmp_path) == []
        assert "tea" in ana.conversation.digests("rolling")[-1].text
        assert engine.verify().clean
