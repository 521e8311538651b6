"""Random knowledge against the journal: no statement is lost, no single-valued attribute has two values at a time.

Statements with and without attributes, of the user and of others, private and shared, told late, told ahead, corrected, ended;
names that turn out to be one; folds, pins, archives; undoing any of it, with and without what was built on it. After every
step each statement that was ever added is there, or was undone; and in the end, undoing everything leaves nothing.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

import perdure
from perdure import Memory
from perdure.app import Engine
from perdure.domain.errors import Conflict, InvalidInput, LimitExceeded, NotFound
from perdure.domain.knowledge.memories import Statement, to_statement
from perdure.engine.extraction.predicates import is_single_valued
from perdure.engine.knowledge.outcomes import Outcome
from perdure.engine.knowledge.terms import terms_of
from perdure.ports.tables.knowledge import to_record
from perdure.testing import StoppedClock

BASE = perdure.Settings(url="memory:", durability="normal")
AGENTS = ("coach", "companion")
VERIFY_EVERY = 5
"""Looking through the whole store takes longer than a step. What is unsound stays so, and the end is always looked at."""
# Far enough apart that none is taken for another, near enough to need asking: Mukesh and Makesh.
PEOPLE = ("Mukesh", "Makesh", "Wolfgang")
CITIES = ("Austin", "Boston", "Chicago")
KINDS = ("fact", "preference", "relationship", "habit", "friction")
TRAITS = ("plays chess", "owns a boat", "sings well", "never sleeps", "bakes bread", "paints walls")

people = st.sampled_from(PEOPLE)
subjects = st.sampled_from((None, None, *PEOPLE))
cities = st.sampled_from(CITIES)
private = st.sampled_from((None, None, None, *AGENTS))
agents = st.sampled_from(AGENTS)
days = st.sampled_from((None, None, None, -40, -3, 0, 5))
which = st.integers(0, 999)
Row = tuple[str, str]


class Knowledge(RuleBasedStateMachine):
    """Each rule does something to what is known of one user."""

    open_subject: Callable[[StoppedClock], Engine]

    @initialize()
    def start(self) -> None:
        self.clock = StoppedClock()
        self.engine = type(self).open_subject(self.clock)
        self.said: dict[str, str] = {}
        """Every statement that was ever added, with its words."""
        self.merged = False

    def memory(self, agent: str = "coach") -> Memory:
        return self.engine.memory("ana", agent=agent)

    def keep(self, outcome: Outcome, content: str | None = None) -> None:
        if outcome.statement is not None:
            self.said.setdefault(outcome.statement.id, outcome.statement.content)
            if content is not None:
                assert outcome.statement.content == content, "what is taken for the same says something else"

    # -- what is told

    @rule(minutes=st.sampled_from((0, 1, 60, 24 * 60, 10 * 24 * 60)))
    def time_passes(self, minutes: int) -> None:
        self.clock.move(minutes=minutes)

    @rule(who=people, trait=st.sampled_from(TRAITS), kind=st.sampled_from(KINDS), visible_to=private)
    def a_trait_is_told(self, who: str, trait: str, kind: Any, visible_to: str | None) -> None:
        outcome = self.memory().remember(trait, "PEOPLE", entities=[f"person:{who}"], fact_type=kind, visible_to=visible_to)
        assert outcome.verdict in ("added", "mentioned")
        self.keep(outcome, trait)

    @rule(who=subjects, city=cities, visible_to=private, since=days, corrects=st.booleans())
    def a_home_is_told(self, who: str | None, city: str, visible_to: str | None, since: int | None, corrects: bool) -> None:
        self._tell_home(who, city, visible_to, since, corrects=corrects)

    @rule(who=subjects, city=cities, visible_to=private, since=days)
    def a_home_is_over(self, who: str | None, city: str, visible_to: str | None, since: int | None) -> None:
        self._tell_home(who, city, visible_to, since, ended=True)

    def _tell_home(self, who: str | None, city: str, visible_to: str | None, since: int | None, **how: bool) -> None:
        fields: dict[str, Any] = {"entities": [f"place:{city}"]}
        if who is not None:
            fields = {"entities": [f"person:{who}", f"place:{city}"], "subject": f"person:{who}"}
        if since is not None:
            fields["valid_from"] = self.clock.now() + timedelta(days=since)
        words = f"{who or 'The user'} lives in {city}"
        kind: Any = "PROFILE" if who is None else "PEOPLE"
        self.keep(self.memory().remember(words, kind, attribute="lives_in", value=city, visible_to=visible_to, **fields, **how))

    @rule(drink=st.sampled_from(("tea", "milk")), visible_to=private)
    def a_liking_is_told(self, drink: str, visible_to: str | None) -> None:
        words = f"Likes {drink}"
        self.keep(self.memory().remember(words, attribute="likes", value=drink, visible_to=visible_to), words)

    @rule(one=people, other=people)
    def two_are_named_together(self, one: str, other: str) -> None:
        words = f"{one} met {other}"
        self.keep(self.memory().remember(words, "PEOPLE", entities=[f"person:{one}", f"person:{other}"]))

    # -- who is who

    @rule(one=people, other=people)
    def two_are_one(self, one: str, other: str) -> None:
        with suppress(Conflict, InvalidInput, NotFound):
            self.memory().entities.merge(f"person:{one}", f"person:{other}")
            self.merged = True

    @rule(who=people, label=st.sampled_from(("Micky", "Bobo", *PEOPLE)))
    def a_name_is_added(self, who: str, label: str) -> None:
        with suppress(Conflict, NotFound):
            self.memory().entities.alias(f"person:{who}", label)

    # -- upkeep

    @rule()
    def the_curator_runs(self) -> None:
        self.memory().memories.curate()

    @rule(agent=agents, index=which, how=st.sampled_from(("pin", "unpin", "archive", "restore")))
    def a_memory_is_handled(self, agent: str, index: int, how: str) -> None:
        listed = self.memory(agent).memories.list(archived=True)
        if listed:
            with suppress(InvalidInput):
                getattr(self.memory(agent).memories, how)(listed[index % len(listed)].memory.record_key)

    @precondition(lambda self: bool(self.said))
    @rule(index=which, cascade=st.booleans())
    def something_is_undone(self, index: int, cascade: bool) -> None:
        newest = self.memory().journal.list(1)
        if newest:
            with suppress(Conflict, LimitExceeded, NotFound):
                # The latest actions are the likely ones.
                self.memory().undo(max(1, newest[0].seq - index % 12), cascade=cascade)

    @precondition(lambda self: bool(self.said))
    @rule()
    def the_last_action_is_undone(self) -> None:
        newest = self.memory().journal.list(1)
        if newest and newest[0].kind in ("memory", "statement", "entity", "suggestion"):
            self.memory().undo(newest[0].seq)

    # -- what always holds

    @invariant()
    def no_statement_is_lost(self) -> None:
        held = self.statements()
        assert {key: one.content for key, one in held.items() if key in self.said} == {
            key: content for key, content in self.said.items() if key in held
        }, "a statement says something else than it did"
        for key in self.said.keys() - held.keys():
            last = next(one for one in self.operations() if (one.kind, one.key) == ("statement", key))
            assert (last.action, last.after) == ("undo", None), f"statement {key} was lost by {last.action}"

    @invariant()
    def a_single_valued_attribute_has_one_value_at_a_time(self) -> None:
        held = [one for one in self.statements().values() if is_single_valued(one.attribute)]
        self._check_at(self.clock.now(), held)
        # Two lives that turn out to be one may overlap in the past; those of the user never.
        own = held if not self.merged else [one for one in held if one.subject == "user"]
        for moment in {one.valid_from for one in own}:
            self._check_at(moment, own)

    @staticmethod
    def _check_at(moment: datetime, held: list[Statement]) -> None:
        filled = Counter((one.subject, one.attribute, one.visible_to) for one in held if one.holds_at(moment))
        twice = {slot for slot, count in filled.items() if count > 1}
        assert not twice, f"two values of {twice} at {moment}"

    @invariant()
    def what_is_current_is_listed_and_nothing_else(self) -> None:
        """Nothing is orphaned: whatever holds is found in a memory, by those who may see it."""
        now = self.clock.now()
        for agent in AGENTS:
            memories = self.memory(agent).memories.list(archived=True, limit=1_000)
            # A memory that was folded is listed with what it said, which belongs to the fold since.
            folded = {one.memory.record_key for one in memories if one.memory.status == "ARCHIVED" and one.memory.folded_into}
            said = [(memory.memory.record_key, one) for memory in memories for one in memory.statements]
            assert all(one.memory == key or key in folded for key, one in said)
            listed = [one.id for key, one in said if one.memory == key]
            holding = {key for key, one in self.statements().items() if one.holds_at(now) and one.visible_to in (None, agent)}
            assert (sorted(listed), len(listed)) == (sorted(holding), len(set(listed)))
            entities = {one.ref for one in self.memory(agent).entities.list(limit=1_000)}
            named = {ref for memory in memories for one in memory.statements for ref in one.entities}
            assert named <= entities, "a statement names somebody who is not there"

    @invariant()
    def pinned_memories_are_active_and_weigh_three(self) -> None:
        for memory in self.memory().memories.list(pinned=True, archived=True):
            assert (memory.memory.status, memory.memory.importance, memory.memory.source) != ("ARCHIVED", 3, "curated_fold")
            assert (memory.memory.status, memory.memory.importance) == ("ACTIVE", 3)

    @invariant()
    def the_store_stays_sound(self) -> None:
        self.steps = getattr(self, "steps", 0) + 1
        if self.steps % VERIFY_EVERY == 0:
            self.check_the_store_is_sound_and_every_term_is_right()

    def check_the_store_is_sound_and_every_term_is_right(self) -> None:
        report = self.engine.verify()
        assert report.clean, report.findings[:3]
        with self.engine._store.snapshot() as snapshot:
            terms = {(row[2], row[5], row[3], row[4]) for row in snapshot.rows("record_terms")}
        expected = {
            (kind, key, field, value) for (kind, key), body in self.records().items() for field, value in terms_of(kind, body)
        }  # type: ignore[arg-type]
        assert terms == expected

    def records(self) -> dict[Row, dict[str, Any]]:

        with self.engine._store.snapshot() as snapshot:
            held = map(to_record, snapshot.rows("records"))
            return {(record.kind, record.key): dict(record.body) for record in held}

    def statements(self) -> dict[str, Statement]:
        return {key: to_statement(body) for (kind, key), body in self.records().items() if kind == "statement"}

    def operations(self) -> list[Any]:
        owner = self.memory().scope.owner
        return self.engine._store.read(owner, lambda view: view.list_operations(limit=100_000))

    def teardown(self) -> None:
        if hasattr(self, "engine"):
            self.check_the_store_is_sound_and_every_term_is_right()
            self.engine.close()


class UndoneInTheEnd(Knowledge):
    """The same, and in the end everything is undone, the newest first."""

    def teardown(self) -> None:
        if hasattr(self, "engine"):
            for action in sorted({one.batch for one in self.operations()}, reverse=True):
                try:
                    self.memory().undo(action)
                except Conflict as error:
                    # What was undone on the way is over. If it is not, something is left in the end.
                    assert "undone already" in str(error), error  # noqa: PT017
            assert self.records() == {}
        super().teardown()


def run(machine: type[Knowledge], open_subject: Callable[[StoppedClock], Engine], examples: int, steps: int = 30) -> None:
    subject = type(machine.__name__, (machine,), {"open_subject": staticmethod(open_subject)})
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        subject,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


def in_memory(clock: StoppedClock) -> Engine:
    return perdure.open(settings=BASE, clock=clock)


def on_disk(folder: Path) -> Callable[[StoppedClock], Engine]:
    def open_subject(clock: StoppedClock) -> Engine:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return perdure.open(settings=replace(BASE, url=f"sqlite:///{folder}/perdure.db"), clock=clock)

    return open_subject


def test_in_memory_nothing_is_lost_and_every_attribute_has_one_value() -> None:
    run(Knowledge, in_memory, examples=60)


def test_on_sqlite_nothing_is_lost_and_every_attribute_has_one_value(tmp_path: Path) -> None:
    run(Knowledge, on_disk(tmp_path / "store"), examples=20)


def test_in_memory_undoing_everything_restores_the_first_state() -> None:
    run(UndoneInTheEnd, in_memory, examples=40, steps=15)


def test_on_sqlite_undoing_everything_restores_the_first_state(tmp_path: Path) -> None:
    run(UndoneInTheEnd, on_disk(tmp_path / "store"), examples=10, steps=15)
