"""Random histories give the same answers on the oracle and on a real database, through the public calls and a stopped clock."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

import perdure
import pg
from perdure.app import Engine
from perdure.domain.errors import PerdureError
from perdure.domain.models import Usage
from perdure.domain.oversight import Decision, DecisionKind
from perdure.domain.reports import ProcessReport
from perdure.domain.scope import Address, Owner, ToolCallId
from perdure.ports.store import View
from perdure.ports.tables.rows import TABLES
from perdure.testing import StoppedClock

USERS = ("ana", "an%", "ANA")
PLACES = (("coach", "a"), ("coach", "b"))
SESSIONS = (None, None, None, "named", "other")
BASE = perdure.Settings(url="memory:", limits=perdure.Limits(queue_jobs_max=4, batch_messages_max=5))

COMPARE_EVERY = 4
"""Comparing everything takes many times as long as a step. What differs stays so, and the end is always compared."""

texts = st.text(max_size=30).filter(lambda text: "\0" not in text and text.isprintable())
calls = st.sampled_from(["c1", "c2", "c3"])


def outcome(call: Callable[[], Any]) -> Any:
    """What a call answers, or which error it names."""
    try:
        return call()
    except PerdureError as error:
        return error.code


class Histories(RuleBasedStateMachine):
    """Each rule runs on both engines and compares what a caller can see."""

    open_subject: Callable[[StoppedClock], Engine]

    @initialize()
    def start(self) -> None:
        self.clocks = (StoppedClock(), StoppedClock())
        self.oracle = perdure.open(settings=BASE, clock=self.clocks[0])
        self.subject = type(self).open_subject(self.clocks[1])
        self.appended: list[tuple[str, tuple[str, str], str]] = []
        self.steps = 0

    def both(self, call: Callable[[Engine, StoppedClock], Any]) -> Any:
        expected = outcome(lambda: call(self.oracle, self.clocks[0]))
        found = outcome(lambda: call(self.subject, self.clocks[1]))
        assert found == expected
        return expected

    @rule(
        user=st.sampled_from(USERS),
        place=st.sampled_from(PLACES),
        text=texts,
        session=st.sampled_from(SESSIONS),
        name=st.none() | st.sampled_from(["m1", "m2", "m3"]),
        role=st.sampled_from(["user", "assistant", "system", "bishop"]),
    )
    def append(self, user: str, place: tuple[str, str], text: str, session: str | None, name: str | None, role: str) -> None:
        message = self.both(
            lambda engine, _: engine.memory(user, agent=place[0], channel=place[1]).append(role, text, session=session, id=name)
        )
        if isinstance(message, perdure.Message):
            self.appended.append((user, place, message.id))

    @rule(user=st.sampled_from(USERS), place=st.sampled_from(PLACES), made=st.lists(calls, max_size=2, unique=True))
    def call_tools(self, user: str, place: tuple[str, str], made: list[str]) -> None:
        tools = [perdure.ToolCall(ToolCallId(name), f"tool_{name}", {"q": name}) for name in made]
        self.both(lambda engine, _: _memory(engine, user, place).append("assistant", "…", tool_calls=tools))

    @rule(
        user=st.sampled_from(USERS),
        place=st.sampled_from(PLACES),
        answered=calls,
        failed=st.booleans(),
        session=st.sampled_from(SESSIONS),
    )
    def answer_tool(self, user: str, place: tuple[str, str], answered: str, failed: bool, session: str | None) -> None:
        self.both(
            lambda engine, _: _memory(engine, user, place).append(
                "tool", "42", tool_call_id=answered, failed=failed, session=session
            )
        )

    @rule(
        user=st.sampled_from(USERS),
        place=st.sampled_from(PLACES),
        batch=st.lists(st.tuples(texts, st.none() | st.sampled_from(["m1", "m4"])), max_size=6),
    )
    def append_many(self, user: str, place: tuple[str, str], batch: list[tuple[str, str | None]]) -> None:
        messages = [perdure.NewMessage("user", text, id=name) for text, name in batch]
        self.both(lambda engine, _: _memory(engine, user, place).append_many(messages))

    @precondition(lambda self: bool(self.appended))
    @rule(data=st.data(), limit=st.integers(0, 6), forward=st.booleans())
    def page(self, data: st.DataObject, limit: int, forward: bool) -> None:
        user, place, name = data.draw(st.sampled_from(self.appended))
        side = {"after" if forward else "before": name}
        self.both(lambda engine, _: _memory(engine, user, place).messages(limit, **side))

    @rule(
        user=st.sampled_from(USERS),
        place=st.sampled_from(PLACES),
        name=st.sampled_from(["d1", "d2", "d3", "ä"]),
        goal=texts,
        kind=st.sampled_from(["before", "after"]),
        keep=st.integers(1, 4),
    )
    def decide(self, user: str, place: tuple[str, str], name: str, goal: str, kind: DecisionKind, keep: int) -> None:
        def put(engine: Engine, clock: StoppedClock) -> bool:
            decision = Decision(name, clock.now(), Address(*place), kind, {"goal": goal})
            return engine._store.write(Owner("default", user), lambda tx: tx.oversight.put_decision(decision, keep=keep))

        self.both(put)

    @rule(user=st.sampled_from(USERS), names=st.lists(st.sampled_from(["d1", "d2", "ä", "never"]), max_size=3))
    def forget_decisions(self, user: str, names: list[str]) -> None:
        self.both(
            lambda engine, _: engine._store.write(Owner("default", user), lambda tx: tx.oversight.remove_decisions(names))
        )

    @rule(
        user=st.sampled_from(USERS),
        purpose=st.sampled_from(["fold", "chat"]),
        outcome=st.sampled_from(["ok", "timeout"]),
        calls=st.integers(0, 3),
        took_ms=st.floats(0, 1e6),
    )
    def ask_a_model(self, user: str, purpose: str, outcome: str, calls: int, took_ms: float) -> None:
        def add(engine: Engine, clock: StoppedClock) -> None:
            usage = Usage(purpose, outcome, calls, 7 * calls, calls, took_ms, clock.now())
            engine._store.write(Owner("default", user), lambda tx: tx.oversight.add_usage(usage))

        self.both(add)

    @rule(user=st.sampled_from(USERS), place=st.sampled_from(PLACES), shared=st.booleans())
    def configure(self, user: str, place: tuple[str, str], shared: bool) -> None:
        self.both(lambda engine, _: _memory(engine, user, place).conversation.configure(shared=shared))

    @rule(minutes=st.sampled_from([1, 29, 30, 31, 600, -45]))
    def time_passes(self, minutes: int) -> None:
        for clock in self.clocks:
            clock.move(minutes=minutes)

    @rule()
    def run_jobs(self) -> None:
        report = self.both(lambda engine, _: engine.process(1.0))
        assert isinstance(report, ProcessReport)

    @rule(lease=st.sampled_from([1, 3600]))
    def a_worker_dies_with_a_job(self, lease: int) -> None:
        def crash(engine: Engine, clock: StoppedClock) -> Any:
            from perdure.domain.jobs import Claim

            jobs = engine._store.claim(Claim("doomed", ("tally",), clock.now(), lease, 2))
            return [(job.owner, job.key, job.attempts, job.fence) for job in jobs]

        self.both(crash)

    @rule(user=st.sampled_from(USERS))
    def erase(self, user: str) -> None:
        self.both(lambda engine, _: engine._store.erase(Owner("default", user)))
        self.appended = [one for one in self.appended if one[0] != user]

    @rule()
    def reopen_from_a_backup(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "backup"
            self.oracle.backup(path)
            copy = perdure.open(settings=BASE, clock=self.clocks[0])
            from perdure.services.store.backup import restore

            restore(self.subject._store, path, replace=True)
            restore(copy._store, path)
            self.oracle.close()
            self.oracle = copy

    @invariant()
    def what_is_visible_stays_equal(self) -> None:
        if hasattr(self, "oracle"):
            self.steps += 1
            if self.steps % COMPARE_EVERY == 0:
                self.compare_everything_visible()

    def compare_everything_visible(self) -> None:
        for user in USERS:
            for place in PLACES:
                self.both(lambda engine, _, user=user, place=place: _memory(engine, user, place).messages(1_000))
                self.both(lambda engine, _, user=user, place=place: _memory(engine, user, place).conversation.sessions(100))
                self.both(lambda engine, _, user=user, place=place: _memory(engine, user, place).conversation.tally())
            self.both(lambda engine, _, user=user: engine.memory(user).journal.list(100))
            self.both(lambda engine, _, user=user: _overseen(engine, user))
            self.both(lambda engine, _, user=user: [replace(job, worker=None) for job in engine.memory(user).admin.jobs()])
        self.both(lambda engine, _: list(engine._store.usage()))

    def teardown(self) -> None:
        if hasattr(self, "oracle"):
            self.compare_everything_visible()
            report = self.subject.verify()
            assert report.findings == ()
            assert self.oracle.verify() == report
            self.oracle.close()
            self.subject.close()


def _memory(engine: Engine, user: str, place: tuple[str, str]) -> perdure.Memory:
    return engine.memory(user, agent=place[0], channel=place[1])


def _overseen(engine: Engine, user: str) -> list[Any]:
    """Decisions in pages and by what they are about, and what was asked."""

    def look(view: View) -> list[Any]:
        everything = list(view.oversight.list_decisions(limit=100))
        pages = [list(view.oversight.list_decisions(limit=2, before=one.id)) for one in everything]
        chosen = [
            list(view.oversight.list_decisions(limit=3, kind=kind, address=Address(*place)))
            for kind in (None, "before", "after")
            for place in PLACES
        ]
        return [everything, pages, chosen, list(view.oversight.list_usage())]

    return engine._store.read(Owner("default", user), look)


def run(open_subject: Callable[[StoppedClock], Engine], examples: int) -> None:
    machine = type("Histories", (Histories,), {"open_subject": staticmethod(open_subject)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )


def test_sqlite_answers_as_the_oracle_does(tmp_path: Path) -> None:
    def open_subject(clock: StoppedClock) -> Engine:
        folder = tmp_path / "store"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return perdure.open(settings=replace(BASE, url=f"sqlite:///{folder}/perdure.db"), clock=clock)

    run(open_subject, examples=40)


@pytest.mark.slow
def test_postgres_answers_as_the_oracle_does(postgres_url: str) -> None:
    with pg.fresh_schema(postgres_url) as schema:

        def open_subject(clock: StoppedClock) -> Engine:
            engine = perdure.open(settings=replace(BASE, url=postgres_url, postgres_schema=schema), clock=clock)
            with engine._store.snapshot() as snapshot:
                owners = {Owner(str(row[0]), str(row[1])) for table in TABLES for row in snapshot.rows(table)}
            for owner in owners:
                engine._store.erase(owner)
            return engine

        run(open_subject, examples=15)
